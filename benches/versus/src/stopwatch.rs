//! Processor time of the calling thread.
//!
//! Where one thread does all the work this is what the work costs, whoever
//! else uses the machine meanwhile; where threads wait for each other the wall
//! clock is the measure.

use std::time::Duration;

pub struct Stopwatch(Duration);

impl Stopwatch {
    pub fn start() -> Stopwatch {
        Stopwatch(used())
    }

    pub fn elapsed(&self) -> Duration {
        used() - self.0
    }
}

fn used() -> Duration {
    let mut used = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `used` is valid for writes, and every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut used) };
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}
