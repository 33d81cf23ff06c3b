//! The features `metrics`, `tracing` and `serde`, compiled together.

#![cfg(not(any(loom, shuttle)))]

#[path = "../support/events.rs"]
mod events;
mod metrics;
#[path = "../support/recorder.rs"]
mod recorder;
mod serde;
#[path = "../support/mod.rs"]
mod support;
mod tracing;
