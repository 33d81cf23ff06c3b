//! tokio's `Sleep`, in its runtime, and on a clock that stands still.
//!
//! A sleep registers itself when it is polled for the first time, and is
//! cancelled by dropping it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::{Sleep, interval, sleep, sleep_until};

use crate::countdown::Countdown;
use crate::rival::{Caller, Shared, Sleepers, TICK, Timers, UNKNOWN};

type Id = Pin<Box<Sleep>>;

/// Registers a sleep, as awaiting it does.
fn register(sleep: Sleep, waker: &Waker) -> Id {
    let mut sleep = Box::pin(sleep);
    let _ = sleep.as_mut().poll(&mut Context::from_waker(waker));
    sleep
}

/// Returns the runtime whose clock moves on command.
pub fn paused() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_current_thread();
        let builder = builder.enable_time().start_paused(true);
        builder.build().expect("a runtime without I/O")
    })
}

/// Moves that runtime's clock to a tick, and fires due sleeps.
pub fn advance_to(start: tokio::time::Instant, tick: u64) {
    let now = start + Duration::from_millis(tick);
    let step = now.saturating_duration_since(tokio::time::Instant::now());
    paused().block_on(tokio::time::advance(step));
}

/// A task's waker, as far as tokio can tell.
#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Count>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sleeps on the clock that stands still. Only a sleep's owner can tell that it
/// has fired, so fired sleeps are counted.
pub struct PausedSleeps {
    start: tokio::time::Instant,
    count: Arc<Count>,
    seen: u64,
    waker: Waker,
    _guard: EnterGuard<'static>,
}

impl Timers for PausedSleeps {
    const NAME: &'static str = "tokio Sleep, paused";
    const THREAD_SAFE: bool = true;
    type Id = Id;

    fn new() -> PausedSleeps {
        let guard = paused().enter();
        let count = Arc::new(Count::default());
        PausedSleeps {
            start: tokio::time::Instant::now(),
            waker: Waker::from(Arc::clone(&count)),
            count,
            seen: 0,
            _guard: guard,
        }
    }

    fn schedule(&mut self, deadline: u64, _: u64) -> Id {
        let deadline = self.start + Duration::from_millis(deadline);
        register(sleep_until(deadline), &self.waker)
    }

    fn cancel(&mut self, id: Id) {
        drop(id);
    }

    fn postpone(&mut self, mut id: Id, deadline: u64, _: u64) -> Id {
        let deadline = self.start + Duration::from_millis(deadline);
        id.as_mut().reset(deadline);
        id
    }

    fn advance(&mut self, now: u64, fired: &mut Vec<u64>) {
        advance_to(self.start, now);
        let count = self.count.0.load(Ordering::Relaxed);
        fired.extend((self.seen..count).map(|_| UNKNOWN));
        self.seen = count;
    }
}

/// Sleeps in a runtime with a worker of its own, called from other threads.
pub struct Sleeps(Runtime);

pub struct Thread<'a> {
    now: tokio::time::Instant,
    calls: u32,
    _guard: EnterGuard<'a>,
}

/// The number of calls between two readings of the clock, as for tickwheel.
const CALLS_PER_READING: u32 = 1_000;

impl Thread<'_> {
    fn deadline(&mut self, delay_ticks: u64) -> tokio::time::Instant {
        self.calls += 1;
        if self.calls == CALLS_PER_READING {
            self.calls = 0;
            self.now = tokio::time::Instant::now();
        }
        self.now + Duration::from_millis(delay_ticks)
    }
}

impl Shared for Sleeps {
    const NAME: &'static str = "tokio Sleep";
    type Id = Id;
    type Caller<'a> = Thread<'a>;

    fn start() -> Sleeps {
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(1).enable_time();
        Sleeps(builder.build().expect("a runtime without I/O"))
    }

    fn caller(&self) -> Thread<'_> {
        let guard = self.0.enter();
        Thread {
            now: tokio::time::Instant::now(),
            calls: 0,
            _guard: guard,
        }
    }
}

impl Caller for Thread<'_> {
    type Id = Id;

    fn schedule(&mut self, delay_ticks: u64, _: u64) -> Id {
        register(sleep_until(self.deadline(delay_ticks)), Waker::noop())
    }

    fn schedule_after(&mut self, delay_ticks: u64, _: u64) -> Id {
        register(sleep(Duration::from_millis(delay_ticks)), Waker::noop())
    }

    fn cancel(&mut self, id: Id) {
        drop(id);
    }

    fn postpone(&mut self, mut id: Id, delay_ticks: u64, _: u64) -> Id {
        id.as_mut().reset(self.deadline(delay_ticks));
        id
    }
}

/// A task's waker that counts down.
struct CountDown(Arc<Countdown>);

impl Wake for CountDown {
    fn wake(self: Arc<CountDown>) {
        self.0.count();
    }
}

impl Sleepers for Sleeps {
    const NAME: &'static str = "tokio Sleep";
    const FINEST_TICK: Duration = TICK;

    /// Ignores the tick, which is always a millisecond.
    fn lateness(_: Duration, delays: &[Duration]) -> Vec<i64> {
        let Sleeps(runtime) = Sleeps::start();
        let one = |deadline: Instant| async move {
            sleep_until(deadline.into()).await;
            deadline.elapsed().as_nanos() as i64
        };
        let tasks: Vec<_> = delays
            .iter()
            .map(|&delay| runtime.spawn(one(Instant::now() + delay)))
            .collect();
        runtime.block_on(async {
            let mut late = Vec::with_capacity(tasks.len());
            for task in tasks {
                late.push(task.await.expect("the task only sleeps"));
            }
            late
        })
    }

    /// Uses a waker that counts, because a task per sleep would add its own cost.
    fn count(delays: &[Duration]) {
        let Sleeps(runtime) = Sleeps::start();
        let _guard = runtime.enter();
        let countdown = Arc::new(Countdown::new(delays.len()));
        let waker = Waker::from(Arc::new(CountDown(Arc::clone(&countdown))));
        let start = tokio::time::Instant::now();
        let one = |&delay| register(sleep_until(start + delay), &waker);
        let sleeps: Vec<Id> = delays.iter().map(one).collect();
        countdown.wait();
        drop(sleeps);
    }

    fn beat(period: Duration, watch: impl FnOnce()) {
        let Sleeps(runtime) = Sleeps::start();
        runtime.spawn(async move {
            let mut beats = interval(period);
            loop {
                beats.tick().await;
            }
        });
        watch();
        runtime.shutdown_background();
    }

    fn idle(delay: Option<Duration>, watch: impl FnOnce()) {
        let Sleeps(runtime) = Sleeps::start();
        if let Some(delay) = delay {
            runtime.spawn(async move { sleep(delay).await });
        }
        watch();
        runtime.shutdown_background();
    }
}
