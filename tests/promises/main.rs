//! The fifteen promises of the crate's front page, each with the tests that
//! fail when it is broken. Time is virtual unless real time is the subject.

#![cfg(not(any(loom, shuttle)))]

#[path = "../support/mod.rs"]
mod support;

mod awaiting;
mod bounds;
mod cancels;
mod changes;
mod driven;
mod endings;
mod handles;
mod instants;
mod isolation;
mod many;
mod names;
mod order;
mod pauses;
mod rearm;
mod refusals;
mod repeats;
mod repetitions;
mod reports;
mod reservations;
mod reuse;
mod settings;
mod shares;
mod shutdowns;
mod tickers;
mod times;
mod virtual_time;
mod workers;

use std::time::Duration;

use fastrand::Rng;
use support::{MS, PATIENCE, SECOND, payloads, take_all, virtual_engine};
use tickwheel::{Engine, Expired, TimerId, VirtualClock};

/// The shard that a timer is in, as its id shows it: only for telling shards apart.
fn shard_of(id: TimerId) -> String {
    let shown = format!("{id:?}");
    shown.split('.').next().unwrap().to_string()
}
