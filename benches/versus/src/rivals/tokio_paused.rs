//! tokio's `Sleep` with one owner, on the clock for tests, which moves on command. Its
//! figures include a turn of the driver per tick.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::{self, Instant, sleep_until};

use super::tokio::{Id, register};
use crate::rival::{Rival, Timers, UNKNOWN};

/// Returns the runtime whose clock moves on command.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_current_thread();
        let builder = builder.enable_time().start_paused(true);
        builder.build().expect("a runtime without I/O")
    })
}

/// Moves that runtime's clock to a tick, and fires due sleeps.
pub fn advance_to(start: Instant, tick: u64) {
    let now = start + Duration::from_millis(tick);
    let step = now.saturating_duration_since(Instant::now());
    runtime().block_on(time::advance(step));
}

#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Count>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Only a sleep's owner can tell that it has fired, so fired sleeps are counted.
pub struct Sleeps {
    start: Instant,
    count: Arc<Count>,
    seen: u64,
    waker: Waker,
    _guard: EnterGuard<'static>,
}

impl Sleeps {
    fn instant(&self, tick: u64) -> Instant {
        self.start + Duration::from_millis(tick)
    }
}

impl Rival for Sleeps {
    const NAME: &'static str = "tokio";
    const LESS: &'static str = "no order among equal deadlines; a cancel returns no payload";
}

impl Timers for Sleeps {
    type Id = Id;

    fn new() -> Sleeps {
        let _guard = runtime().enter();
        let count = Arc::new(Count::default());
        Sleeps {
            start: Instant::now(),
            waker: Waker::from(Arc::clone(&count)),
            count,
            seen: 0,
            _guard,
        }
    }

    fn schedule(&mut self, deadline: u64, _: u64) -> Id {
        register(sleep_until(self.instant(deadline)), &self.waker)
    }

    fn cancel(&mut self, id: Id) {
        drop(id);
    }

    fn postpone(&mut self, mut id: Id, deadline: u64, _: u64) -> Id {
        id.as_mut().reset(self.instant(deadline));
        id
    }

    fn advance(&mut self, now: u64, fired: &mut Vec<u64>) {
        advance_to(self.start, now);
        let count = self.count.0.load(Ordering::Relaxed);
        fired.extend((self.seen..count).map(|_| UNKNOWN));
        self.seen = count;
    }
}
