//! What tokio's own tests assert of its timers, as numbered behaviours: a module for each
//! of tokio's files, and a test for each of its tests, which the comment above names.
//! Read at tokio 1.54.1 and tokio-util 0.7.20. Time is virtual unless real time is the
//! subject.
//!
//! A `differs` test shows a deliberate difference; docs/MIGRATING.md gives the reasons. A
//! `better` test shows where tokio's test allows for more than this crate needs.

mod delay_queue;

use tickwheel_await_tests::{ByHand, ms};
