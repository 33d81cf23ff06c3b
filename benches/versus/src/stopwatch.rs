//! A stopwatch for processor time.
//!
//! Processor time is the cost of one thread's work, even on a busy machine. Where
//! threads wait for each other, the wall clock is the measure.

use std::time::Duration;

pub struct Stopwatch {
    clock: libc::clockid_t,
    begun: Duration,
}

impl Stopwatch {
    /// Measures the calling thread.
    pub fn start() -> Stopwatch {
        Stopwatch::on(libc::CLOCK_THREAD_CPUTIME_ID)
    }

    /// Measures all threads together: an engine may have threads of its own.
    pub fn start_all() -> Stopwatch {
        Stopwatch::on(libc::CLOCK_PROCESS_CPUTIME_ID)
    }

    fn on(clock: libc::clockid_t) -> Stopwatch {
        let begun = used(clock);
        Stopwatch { clock, begun }
    }

    pub fn elapsed(&self) -> Duration {
        used(self.clock) - self.begun
    }
}

fn used(clock: libc::clockid_t) -> Duration {
    let mut used = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `used` is valid for writes, and every Linux has these clocks.
    unsafe { libc::clock_gettime(clock, &mut used) };
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}
