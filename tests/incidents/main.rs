//! Eighteen ways in which timers have failed in production elsewhere, each a
//! test of its number here: what went wrong there must not go wrong in this
//! engine. Time is virtual wherever real time is not the subject.
//!
//! Where a race is the subject, threads run into it many times over; that no
//! interleaving was missed is for the loom models to say, which are named.

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
