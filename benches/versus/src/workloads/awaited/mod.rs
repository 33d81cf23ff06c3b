//! Workloads of timers that tasks await, inside tokio's runtime.

pub mod lateness;
pub mod reset;
pub mod sleep;
mod sleepers;
pub mod tasks;
pub mod timeout;
pub mod wake;
