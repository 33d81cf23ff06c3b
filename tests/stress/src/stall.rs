//! Whether the machine itself stood still: a thread on each processor that
//! sleeps for a millisecond at a time and sees how long that took.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(1);

pub struct Watchers {
    over: AtomicBool,
    /// All that was overslept, in nanoseconds, on the worst processor.
    overslept: AtomicU64,
}

impl Watchers {
    pub fn new() -> Watchers {
        Watchers {
            over: AtomicBool::new(false),
            overslept: AtomicU64::new(0),
        }
    }

    pub fn start<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        for processor in 0..processors {
            scope.spawn(move || self.watch(processor));
        }
    }

    fn watch(&self, processor: usize) {
        stay_on(processor);
        let mut overslept = Duration::ZERO;
        while !self.over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            nap();
            overslept += begun.elapsed().saturating_sub(3 * NAP);
        }
        self.overslept
            .fetch_max(overslept.as_nanos() as u64, Ordering::AcqRel);
    }

    pub fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// How long the worst processor stood still; known when they have ended.
    pub fn overslept(&self) -> Duration {
        Duration::from_nanos(self.overslept.load(Ordering::Acquire))
    }
}

/// Sleeps by the clock that the engine goes by, and by a call that it does not
/// use.
fn nap() {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: NAP.as_nanos() as _,
    };
    // SAFETY: the request is valid for reads, and no rest is asked for.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &time, std::ptr::null_mut()) };
}

fn stay_on(processor: usize) {
    // SAFETY: all zeros is an empty set, the number is below its size, and the
    // set is valid for reads.
    unsafe {
        let mut only: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor % libc::CPU_SETSIZE as usize, &mut only);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &only);
    }
}
