//! Eighteen ways in which timers have failed in production elsewhere, each a
//! test of its number here: what went wrong there must not go wrong in this
//! engine. Time is virtual wherever real time is not the subject.
//!
//! Where a race is the subject, threads run into it many times over; that no
//! interleaving was missed is for the loom models to say, which are named.

#![cfg(not(loom))]

mod accounts;
mod callbacks;
mod deadlines;
#[cfg(target_os = "linux")]
mod fork;
mod races;

use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Engine, Expired, VirtualClock};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// Longer than any machine takes for what a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A one-shard engine on a virtual clock with a tick of one millisecond.
fn virtual_engine<T>() -> (Engine<T>, VirtualClock<T>) {
    let builder = Engine::builder().shards(1).queues(2);
    builder.start_virtual().unwrap()
}

/// Waits until something is so.
fn wait_until(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < PATIENCE, "it never came to that");
        thread::sleep(MS);
    }
}

/// The payloads of everything that waits in queue 0, and the ticks at which
/// it was due.
fn take_all<T>(engine: &Engine<T>) -> Vec<(T, u64)> {
    let queue = engine.queue(0);
    let expired = std::iter::from_fn(|| queue.try_recv().ok());
    expired
        .map(|expired: Expired<T>| (expired.tick().0, expired.into_payload()))
        .map(|(tick, payload)| (payload, tick))
        .collect()
}
