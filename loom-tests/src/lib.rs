//! What the models in `tests/` share. Without `--cfg loom` there is nothing
//! here: see the README.

#![cfg(loom)]

use loom::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tickwheel::{Builder, Engine, Expired, Ledger, Queue, Time};

const PREEMPTIONS: usize = 2;
const MAX_BRANCHES: usize = 10_000;

/// Runs `body` under every interleaving with at most `LOOM_MAX_PREEMPTIONS`
/// preemptions, two unless told otherwise.
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

/// A payload: loom complains when one is lost without having been dropped.
#[derive(Debug)]
pub struct Payload {
    name: u32,
    _tracked: Arc<()>,
}

/// A payload to be recognised by `name`.
#[must_use]
pub fn payload(name: u32) -> Payload {
    Payload {
        name,
        _tracked: Arc::new(()),
    }
}

impl Payload {
    /// What it was named.
    #[must_use]
    pub fn name(&self) -> u32 {
        self.name
    }
}

/// When tick `n` begins.
#[must_use]
pub fn tick(n: u64) -> Time {
    Time::from_millis(n)
}

/// An engine as small as can be: what loom has to track is what it costs.
pub fn builder(shards: usize) -> Builder<Payload> {
    let small = Engine::builder().wheel_size(4);
    small.shards(shards).queues(1)
}

/// Takes the payloads that are there.
pub fn take_all(queue: &Queue<Payload>) -> Vec<Payload> {
    let mut taken = Vec::new();
    while let Ok(expired) = queue.try_recv() {
        taken.push(expired.into_payload());
    }
    taken
}

/// The name of the payload that an expired timer carries.
#[must_use]
pub fn name_of(expired: &Expired<Payload>) -> u32 {
    expired.payload().name()
}

/// Checks that every accepted timer has ended, each for one reason.
pub fn assert_all_ended(ledger: Ledger) {
    assert!(ledger.is_balanced(), "{ledger:?}");
    assert_eq!(ledger.live, 0, "{ledger:?}");
}
