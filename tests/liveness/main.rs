//! Calls end when they said they would, and no thread keeps another one waiting
//! for long. Real time is the subject: it is judged by counts, or by ratios to
//! a control in the same run.

#![cfg(not(any(loom, shuttle)))]

#[path = "../support/mod.rs"]
mod support;

mod limits;
mod probe;
mod walks;
