//! A stopwatch for processor time.
//!
//! Processor time is the cost of one thread's work, even on a busy machine. Where threads
//! wait for each other, the wall clock is the measure.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

pub struct Stopwatch {
    clock: ClockId,
    begun: Duration,
}

impl Stopwatch {
    /// Measures the calling thread.
    pub fn start() -> Stopwatch {
        Stopwatch::on(ClockId::ThreadCPUTime)
    }

    /// Measures all threads together: an engine may have threads of its own.
    pub fn start_all() -> Stopwatch {
        Stopwatch::on(ClockId::ProcessCPUTime)
    }

    fn on(clock: ClockId) -> Stopwatch {
        let begun = used(clock);
        Stopwatch { clock, begun }
    }

    pub fn elapsed(&self) -> Duration {
        used(self.clock) - self.begun
    }

    /// Returns the nanoseconds of each of `steps`.
    pub fn per_step(&self, steps: usize) -> f64 {
        per_step(self.elapsed(), steps)
    }
}

/// Returns nanoseconds for each of `steps`.
pub fn per_step(elapsed: Duration, steps: usize) -> f64 {
    elapsed.as_nanos() as f64 / steps as f64
}

fn used(clock: ClockId) -> Duration {
    let used = clock_gettime(clock);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}
