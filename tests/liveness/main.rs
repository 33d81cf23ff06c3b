//! Calls return within their limits, and no thread keeps another waiting for
//! long. Real time is the subject. It is judged by counts, or by ratios to a
//! control in the same run.

#![cfg(not(any(loom, shuttle)))]

#[path = "../support/mod.rs"]
mod support;

mod probe;
mod walks;
