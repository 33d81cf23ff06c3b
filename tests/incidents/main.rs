//! Eighteen failures that timers of other projects had in production, each with
//! a test of its number: this engine must not fail in the same way. Time is
//! virtual unless real time is the subject.
//!
//! Where a race is the subject, threads run into it many times over. The test
//! names the loom models that explore every interleaving of it.

#![cfg(not(loom))]

#[path = "../support/mod.rs"]
mod support;

mod accounts;
mod callbacks;
mod deadlines;
#[cfg(target_os = "linux")]
mod fork;
mod races;

use std::thread;
use std::time::{Duration, Instant};

use support::{HOUR, MS, PATIENCE, SECOND, payloads, take, virtual_engine, wait_until};
use tickwheel::Engine;

const YEAR: Duration = Duration::from_secs(365 * 86_400);
