//! tokio: `Sleep`s that other threads register in its runtime, and tasks that sleep before
//! they call a closure.
//!
//! A sleep registers itself when it is polled for the first time, and is cancelled by
//! dropping it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::task::JoinHandle;
use tokio::time::{self, Sleep, sleep, sleep_until};

use crate::countdown::Countdown;
use crate::rival::{Caller, Closures, Rival, Shared, Sleepers};
use crate::stopwatch::Stopwatch;

pub type Id = Pin<Box<Sleep>>;

/// Registers a sleep, as awaiting it does.
pub fn register(sleep: Sleep, waker: &Waker) -> Id {
    let mut sleep = Box::pin(sleep);
    let _ = sleep.as_mut().poll(&mut Context::from_waker(waker));
    sleep
}

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(1).enable_time();
    builder.build().expect("a runtime without I/O")
}

pub struct Sleeps(Runtime);

impl Rival for Sleeps {
    const NAME: &'static str = "tokio";
    const LESS: &'static str = "no order among equal deadlines; a cancel returns no payload";
}

impl Shared for Sleeps {
    type Id = Id;
    type Caller<'a> = Entered<'a>;

    fn start() -> Sleeps {
        Sleeps(runtime())
    }

    fn caller(&self) -> Entered<'_> {
        let _guard = self.0.enter();
        let (now, calls) = (time::Instant::now(), 0);
        Entered { now, calls, _guard }
    }
}

pub struct Entered<'a> {
    now: time::Instant,
    calls: u32,
    _guard: EnterGuard<'a>,
}

impl Entered<'_> {
    /// Reads the clock as seldom as for tickwheel.
    fn deadline(&mut self, delay_ticks: u64) -> time::Instant {
        self.calls += 1;
        if self.calls.is_multiple_of(1_024) {
            self.now = time::Instant::now();
        }
        self.now + Duration::from_millis(delay_ticks)
    }
}

impl Caller for Entered<'_> {
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

impl Sleepers for Sleeps {
    /// Uses a waker that counts, because a task per sleep would add its own cost.
    fn count(delays: &[Duration]) -> Duration {
        let runtime = runtime();
        let _guard = runtime.enter();
        let countdown = Countdown::from(delays.len());
        let waker = Waker::from(Arc::clone(&countdown));
        let start = time::Instant::now();
        let mut context = Context::from_waker(&waker);
        let one = |&delay| {
            let mut sleep = Box::pin(sleep_until(start + delay));
            let polled = sleep.as_mut().poll(&mut context);
            assert!(polled.is_pending(), "scheduling has taken too long");
            sleep
        };
        let _sleeps: Vec<Id> = delays.iter().map(one).collect();
        let begun = Stopwatch::start_all();
        countdown.wait();
        begun.elapsed()
    }
}

/// A task that sleeps for each closure.
pub struct Tasks(Runtime);

impl Rival for Tasks {
    const NAME: &'static str = "tokio tasks";
    const LESS: &'static str = "no order among equal deadlines";
}

impl Closures for Tasks {
    type Id = JoinHandle<()>;

    fn start() -> Tasks {
        Tasks(runtime())
    }

    fn run_after(
        &self,
        delay: Duration,
        closure: impl FnOnce() + Send + 'static,
    ) -> JoinHandle<()> {
        self.0.spawn(async move {
            sleep(delay).await;
            closure();
        })
    }

    fn run_at(&self, time: Instant, closure: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        self.0.spawn(async move {
            sleep_until(time.into()).await;
            closure();
        })
    }

    fn cancel(&self, id: JoinHandle<()>) {
        id.abort();
    }
}
