//! The fifteen promises of the crate's front page, each with the tests that
//! fail when it is broken. Time is virtual wherever real time is not the
//! subject.

#![cfg(not(any(loom, shuttle)))]

#[path = "../common/random.rs"]
mod random;

mod bounds;
mod cancels;
mod driven;
mod endings;
mod isolation;
mod refusals;
mod repeats;
mod settings;
mod shares;
mod tickers;
mod times;

use std::time::Duration;

use random::Random;
use tickwheel::{Engine, Expired, VirtualClock};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A one-shard engine on a virtual clock with a tick of one millisecond.
fn virtual_engine<T: Send + 'static>() -> (Engine<T>, VirtualClock<T>) {
    Engine::builder()
        .shards(1)
        .queues(2)
        .start_virtual()
        .unwrap()
}

/// Everything that waits in queue 0, taken and let go one after the other.
fn take_all<T>(engine: &Engine<T>) -> Vec<Expired<T>> {
    engine.queue(0).try_iter().collect()
}

/// The payloads of everything that waits in queue 0.
fn payloads<T>(engine: &Engine<T>) -> Vec<T> {
    take_all(engine)
        .into_iter()
        .map(Expired::into_payload)
        .collect()
}
