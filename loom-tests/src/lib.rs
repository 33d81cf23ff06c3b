//! Helpers that the models in `tests/` share.
//!
//! A model is a test of two or three threads that loom runs under every
//! interleaving. Each file of `tests/` holds the models of one subject. A lost
//! wake-up leaves a thread blocked, which loom reports as a deadlock. The package is
//! empty without `--cfg loom`; the README says how to run it.

#![cfg(loom)]

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread::{self, JoinHandle};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tickwheel::stats::Ledger;
use tickwheel::time::Timers;
use tickwheel::{
    Builder, Driver, Engine, Expired, Family, Queue, StartError, Task, TaskEngine, Time, Timer,
    TimerId, VirtualClock,
};

const PREEMPTIONS: usize = 2;
const MAX_BRANCHES: usize = 10_000;

/// Runs `body` under every interleaving with at most `LOOM_MAX_PREEMPTIONS`
/// preemptions. Defaults to two.
pub fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(PREEMPTIONS);
    builder.max_branches = MAX_BRANCHES;
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&count);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        body();
    });
    println!("{} interleavings", count.load(Ordering::Relaxed));
}

/// A model of the smallest engine on a virtual clock.
pub fn engine_model(body: impl Fn(Engine<Payload>, VirtualClock) + Sync + Send + 'static) {
    start(|| builder(1).start_virtual(), body);
}

/// A model of the smallest engine with a ticker.
pub fn ticker_model(body: impl Fn(Engine<Payload>, VirtualClock) + Sync + Send + 'static) {
    start(|| builder(1).start_model(), body);
}

/// A model of the smallest engine that the caller's own loop drives.
pub fn driven_model(
    body: impl Fn(Engine<Payload>, Driver<Payload>, VirtualClock) + Sync + Send + 'static,
) {
    driven(|| builder(1), body);
}

/// A model of the smallest engine of tasks, with so many workers.
pub fn task_model(workers: usize, body: impl Fn(TaskEngine, VirtualClock) + Sync + Send + 'static) {
    let small = move || task_builder().workers(workers);
    start(move || small().start_virtual(), body);
}

/// A model of the smallest engine of tasks that the caller's own loop runs.
pub fn driven_task_model(
    body: impl Fn(TaskEngine, Driver<Task>, VirtualClock) + Sync + Send + 'static,
) {
    driven(task_builder, body);
}

fn driven<E: Family<Payload: Send> + 'static>(
    builder: fn() -> Builder<E>,
    body: impl Fn(E, Driver<E::Payload>, VirtualClock) + Sync + Send + 'static,
) {
    model(move || {
        let clock = VirtualClock::new();
        let (engine, driver) = builder().start_driven_model(&clock).unwrap();
        body(engine, driver, clock);
    });
}

/// A model of the smallest timers for futures.
pub fn timers_model(body: impl Fn(Timers, VirtualClock) + Sync + Send + 'static) {
    let small = || Timers::builder().wheel_size(4).shards(1);
    start(move || small().start_virtual(), body);
}

fn start<E: 'static, C: 'static>(
    start: impl Fn() -> Result<(E, C), StartError> + Sync + Send + 'static,
    body: impl Fn(E, C) + Sync + Send + 'static,
) {
    model(move || {
        let (engine, clock) = start().unwrap();
        body(engine, clock);
    });
}

fn task_builder() -> Builder<TaskEngine> {
    TaskEngine::builder().wheel_size(4).shards(1)
}

/// A payload. Loom fails the model if one is leaked.
#[derive(Debug)]
pub struct Payload {
    name: u32,
    _tracked: Arc<()>,
}

/// Returns a payload that is recognised by `name`.
#[must_use]
pub fn payload(name: u32) -> Payload {
    Payload { name, _tracked: Arc::new(()) }
}

impl Payload {
    /// Returns the name of the payload.
    #[must_use]
    pub fn name(&self) -> u32 {
        self.name
    }
}

/// Returns the time at which tick `n` begins.
#[must_use]
pub fn tick(n: u64) -> Time {
    Time::from_millis(n)
}

/// Returns a timer with a period of one tick.
#[must_use]
pub fn beat(name: u32) -> Timer<Payload> {
    Timer::every(Duration::from_millis(1), payload(name))
}

/// Returns a builder of the smallest engine, because a model costs as much as the
/// state that loom has to track.
pub fn builder(shards: usize) -> Builder<Engine<Payload>> {
    let small = Engine::builder().wheel_size(4);
    small.shards(shards).queues(1)
}

/// A timer, and the firing of it that its caller holds.
pub struct Lent {
    /// The smallest engine.
    pub engine: Engine<Payload>,
    /// Its clock.
    pub clock: VirtualClock,
    /// The timer.
    pub id: TimerId,
    /// The firing.
    pub firing: Expired<Payload>,
}

/// Takes the first firing of a timer at tick `now`.
pub fn lent(timer: Timer<Payload>, now: u64) -> Lent {
    let (engine, clock) = builder(1).start_virtual().unwrap();
    let id = engine.schedule(timer).unwrap();
    clock.advance_to(tick(now));
    let firing = engine.queue(0).try_recv().unwrap();
    Lent { engine, clock, id, firing }
}

/// Calls the engine from another thread.
pub fn beside<R: 'static>(
    engine: &Engine<Payload>,
    call: impl FnOnce(&Engine<Payload>) -> R + 'static,
) -> JoinHandle<R> {
    let engine = engine.clone();
    thread::spawn(move || call(&engine))
}

/// Cancels a timer from another thread, which returns whether it got the payload.
pub fn cancel_beside(engine: &Engine<Payload>, id: TimerId) -> JoinHandle<bool> {
    beside(engine, move |engine| engine.cancel(id).into_payload().is_some())
}

/// Takes all payloads that are ready.
pub fn take_all(queue: &Queue<Payload>) -> Vec<Payload> {
    let mut taken = Vec::new();
    while let Ok(expired) = queue.try_recv() {
        taken.push(expired.into_payload());
    }
    taken
}

/// Returns the names of payloads in their order.
pub fn names<'a>(payloads: impl IntoIterator<Item = &'a Payload>) -> Vec<u32> {
    let mut names: Vec<u32> = payloads.into_iter().map(Payload::name).collect();
    names.sort_unstable();
    names
}

/// Returns the name of an expired timer's payload.
#[must_use]
pub fn name_of(expired: &Expired<Payload>) -> u32 {
    expired.payload().name()
}

/// Checks that every accepted timer has ended, and for one reason.
pub fn assert_all_ended(ledger: Ledger) {
    assert!(ledger.is_balanced(), "{ledger:?}");
    assert_eq!(ledger.live, 0, "{ledger:?}");
}

/// An executor's waker, for which a thread waits.
#[derive(Default)]
pub struct Bell(std::sync::Arc<Ringing>);

#[derive(Default)]
struct Ringing {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Ringing {
    fn wake(self: std::sync::Arc<Ringing>) {
        *self.woken.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

impl Bell {
    /// Polls a future with this waker.
    pub fn poll<F: Future>(&self, future: Pin<&mut F>) -> Poll<F::Output> {
        let waker = Waker::from(std::sync::Arc::clone(&self.0));
        future.poll(&mut Context::from_waker(&waker))
    }

    /// Polls a future whenever the bell rings, until it has ended.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            match self.poll(future.as_mut()) {
                Poll::Ready(output) => return output,
                Poll::Pending => self.wait(),
            }
        }
    }

    fn wait(&self) {
        let mut woken = self.0.woken.lock().unwrap();
        while !std::mem::take(&mut *woken) {
            woken = self.0.changed.wait(woken).unwrap();
        }
    }
}
