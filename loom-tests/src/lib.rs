//! Helpers that the models in `tests/` share.
//!
//! A model is a test of two or three threads that loom runs under every
//! interleaving. Each file of `tests/` holds the models of one subject. A lost
//! wake-up leaves a thread blocked, which loom reports as a deadlock. The package is
//! empty without `--cfg loom`; the README says how to run it.

#![cfg(loom)]

use loom::sync::Arc;
use loom::thread::{self, JoinHandle};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tickwheel::{Builder, Engine, Expired, Ledger, Queue, Time, Timer, TimerId};

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

/// A payload. Loom fails the model if one is leaked.
#[derive(Debug)]
pub struct Payload {
    name: u32,
    _tracked: Arc<()>,
}

/// Returns a payload that is recognised by `name`.
#[must_use]
pub fn payload(name: u32) -> Payload {
    Payload {
        name,
        _tracked: Arc::new(()),
    }
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
pub fn builder(shards: usize) -> Builder<Payload> {
    let small = Engine::builder().wheel_size(4);
    small.shards(shards).queues(1)
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
    beside(engine, move |engine| engine.cancel(id).payload().is_some())
}

/// Takes all payloads that are ready.
pub fn take_all(queue: &Queue<Payload>) -> Vec<Payload> {
    let mut taken = Vec::new();
    while let Ok(expired) = queue.try_recv() {
        taken.push(expired.into_payload());
    }
    taken
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
