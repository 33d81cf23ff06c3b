//! What several of the tests need: durations, an engine on a virtual clock, and
//! what waits in its queues. Each test uses some of it.

#![allow(dead_code)]

use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Engine, Expired, Refusal, Refused, VirtualClock};

pub const MS: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);
pub const HOUR: Duration = Duration::from_secs(3_600);

/// Longer than any machine takes for what a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// An engine on a virtual clock with a tick of one millisecond. Its one shard
/// makes the order of all timers total.
pub fn virtual_engine<T: Send + 'static>() -> (Engine<T>, VirtualClock) {
    let builder = Engine::builder().shards(1).queues(2);
    builder.start_virtual().unwrap()
}

/// All firings that wait in queue 0, taken and not let go.
pub fn take_all<T>(engine: &Engine<T>) -> Vec<Expired<T>> {
    engine.queue(0).try_iter().collect()
}

/// The payloads of everything that waits in queue 0.
pub fn payloads<T>(engine: &Engine<T>) -> Vec<T> {
    let expired = take_all(engine).into_iter();
    expired.map(Expired::into_payload).collect()
}

/// The reason and what comes back, if a call was refused.
pub fn parts<A, R>(answer: Result<A, Refused<R>>) -> Result<A, (Refusal, R)> {
    answer.map_err(|refused| (refused.reason(), refused.into_inner()))
}

/// (due tick, payload) of everything that waits in a queue, taken and let go
/// one after the other, so that repeating timers go on.
pub fn take<T: Clone>(engine: &Engine<T>, queue: usize) -> Vec<(u64, T)> {
    let queue = engine.queue(queue);
    let expired = queue.try_iter();
    expired.map(|expired| (expired.tick().0, expired.payload().clone())).collect()
}

/// Waits in real time until `happened` holds.
pub fn wait_until(happened: impl Fn() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < PATIENCE, "it never happened");
        thread::sleep(MS);
    }
}
