//! A timerfd that follows the wall clock, and an eventfd that ends its sleep.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, read, write};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::wall::WallTime;

/// The furthest time that is set, in microseconds since 1970: the year 36,000.
const FURTHEST: u64 = 1 << 60;

pub(super) struct StepTimer {
    timer: OwnedFd,
    bell: OwnedFd,
}

impl StepTimer {
    pub(super) fn new() -> io::Result<StepTimer> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(StepTimer {
            timer: timerfd_create(TimerfdClockId::Realtime, flags)?,
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    pub(super) fn ring(&self) {
        let _ = write(&self.bell, &1_u64.to_ne_bytes());
    }

    pub(super) fn sleep(&self, until: WallTime) {
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        // Reports a step since the last sleep, once; the caller then looks at the clock.
        let set = timerfd_settime(&self.timer, flags, &spec(until));
        if set.err() == Some(Errno::CANCELED) {
            return;
        }
        let mut fds =
            [PollFd::new(&self.timer, PollFlags::IN), PollFd::new(&self.bell, PollFlags::IN)];
        let _ = poll(&mut fds, None);
        // Fails with ECANCELED after a step, and then the caller looks at the clock.
        let _ = read(&self.timer, &mut [0_u8; 8]);
        let _ = read(&self.bell, &mut [0_u8; 8]);
    }
}

fn spec(until: WallTime) -> Itimerspec {
    // A time of zero would disarm the timer.
    let micros = until.as_unix_micros().clamp(1, FURTHEST);
    let value = Timespec::try_from(Duration::from_micros(micros));
    Itimerspec {
        it_interval: Timespec::default(),
        it_value: value.expect("within the range of the system"),
    }
}
