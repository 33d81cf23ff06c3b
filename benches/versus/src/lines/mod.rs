//! The cache lines that calls take away from other cores, for more cores than this
//! machine has.
//!
//! A run under valgrind records the addresses that marked calls of a number of threads
//! read and write, in the order in which they happened. A model of a cache for each
//! thread counts the lines that have to come from another thread's cache, or have to be
//! removed from it. The model has no limit on a cache's size, and calls do not overlap.
//! It therefore counts what calls cost that do not wait for each other.

mod caches;
pub mod marks;
mod trace;

pub use trace::{Counts, trace};

/// Whether a trace is possible.
pub fn missing() -> Option<&'static str> {
    let version = std::process::Command::new("valgrind")
        .arg("--version")
        .output();
    version.is_err().then_some("valgrind is not installed")
}
