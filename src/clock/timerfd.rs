//! Sleeping on a timerfd, on Linux and Android.
//!
//! Deadlines are absolute, which prevents drift. The kernel wakes the reader with the
//! precision of a high-resolution timer, unlike a thread that sleeps on a condition
//! variable.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::clock::system::SystemClock;
use crate::timeline::Time;

pub(crate) struct TimerFd {
    fd: OwnedFd,
    clock: SystemClock,
}

impl TimerFd {
    pub(crate) const NAME: &str = "timerfd";

    /// Creates a timer for a thread that sleeps in [`TimerFd::wait`].
    pub(crate) fn for_ticker(clock: SystemClock) -> io::Result<Option<TimerFd>> {
        TimerFd::new(clock, libc::TFD_CLOEXEC).map(Some)
    }

    /// Creates a timer for an event loop that sleeps on the descriptor, and may read it.
    pub(crate) fn for_caller(clock: SystemClock) -> io::Result<Option<TimerFd>> {
        TimerFd::new(clock, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK).map(Some)
    }

    fn new(clock: SystemClock, flags: libc::c_int) -> io::Result<TimerFd> {
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libc::timerfd_create(clock.id(), flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(TimerFd { fd, clock })
    }

    /// Wakes the reader at `time`, which is centuries away if it never comes. If `time` has
    /// passed, wakes the reader at once. What has expired before is no longer to be read.
    pub(crate) fn set(&self, time: Time) {
        // Zero, and only zero, would disarm the timer.
        let raw = self.clock.raw(time).max(1);
        let mut spec = disarmed();
        spec.it_value.tv_sec = seconds(raw);
        spec.it_value.tv_nsec = (raw % 1_000_000_000) as _;
        // SAFETY: the descriptor is a timerfd, the new value is valid, and a null
        // pointer declines the old value.
        let result = unsafe {
            libc::timerfd_settime(
                self.fd.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &spec,
                core::ptr::null_mut(),
            )
        };
        debug_assert_eq!(result, 0, "{}", io::Error::last_os_error());
    }

    /// Waits for the deadline. May return early if a signal arrives.
    pub(crate) fn wait(&self) {
        let mut expirations = 0u64;
        // SAFETY: the buffer is valid for the eight bytes that a timerfd writes. The
        // result does not matter, because the caller reads the clock in any case.
        let _ = unsafe {
            libc::read(self.fd.as_raw_fd(), (&raw mut expirations).cast(), size_of::<u64>())
        };
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns the whole seconds, at most three centuries, which are as good as never. Where
/// seconds have 32 bits, the latest deadline is in the year 2038 or later.
fn seconds(nanos: u64) -> libc::time_t {
    let seconds = (nanos / 1_000_000_000).min(10_000_000_000);
    libc::time_t::try_from(seconds).unwrap_or(libc::time_t::MAX)
}

fn disarmed() -> libc::itimerspec {
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    libc::itimerspec { it_interval: zero, it_value: zero }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::clock::ClockSource;

    /// `promises` tests the descriptor of a driver.
    #[test]
    fn the_timer_of_a_ticker_is_not_left_to_other_programs() {
        let timer = TimerFd::for_ticker(SystemClock::new(ClockSource::Monotonic));
        let fd = timer.unwrap().unwrap().fd;
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()));
        let info = info.unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
        let flags = libc::c_int::from_str_radix(flags.trim(), 8).unwrap();
        assert_ne!(flags & libc::O_CLOEXEC, 0);
    }

    #[test]
    fn a_deadline_in_a_century_is_no_nearer() {
        assert_eq!(seconds(3_000_000_000 * 1_000_000_000), 3_000_000_000);
    }
}
