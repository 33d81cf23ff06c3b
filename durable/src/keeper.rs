//! The sleep of the thread that keeps the window.
//!
//! On Linux the thread sleeps on a timerfd of the wall clock, which also wakes it when the
//! clock is set (`TFD_TIMER_CANCEL_ON_SET`). Elsewhere, and for a clock of the caller's, it
//! sleeps for the time that the wall clock has left; a step forward is then noticed with the
//! next load.

use parking_lot::{Condvar, Mutex};

use crate::wall::WallTime;

#[cfg(target_os = "linux")]
#[path = "keeper/timerfd.rs"]
mod timerfd;
#[cfg(target_os = "linux")]
use self::timerfd::StepTimer;

pub(crate) struct Alarm {
    is_rung: Mutex<bool>,
    bell: Condvar,
    #[cfg(target_os = "linux")]
    timer: Option<StepTimer>,
}

impl Alarm {
    /// Returns an alarm. With `is_system`, times are the system's.
    #[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
    pub(crate) fn new(is_system: bool) -> Alarm {
        Alarm {
            is_rung: Mutex::new(false),
            bell: Condvar::new(),
            #[cfg(target_os = "linux")]
            timer: is_system.then(StepTimer::new).and_then(Result::ok),
        }
    }

    /// Ends the sleep, or the next one.
    pub(crate) fn ring(&self) {
        #[cfg(target_os = "linux")]
        if let Some(timer) = &self.timer {
            return timer.ring();
        }
        *self.is_rung.lock() = true;
        self.bell.notify_one();
    }

    /// Blocks until the wall clock shows `until`, it is set, or the alarm is rung. May return
    /// early.
    pub(crate) fn sleep(&self, until: WallTime, now: WallTime) {
        #[cfg(target_os = "linux")]
        if let Some(timer) = &self.timer {
            return timer.sleep(until);
        }
        let mut rung = self.is_rung.lock();
        if !*rung {
            self.bell.wait_for(&mut rung, until.since(now));
        }
        *rung = false;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::wall::{SystemClock, WallClock};

    #[test]
    fn an_alarm_ends_by_its_time_and_by_its_bell() {
        for is_system in [true, false] {
            let alarm = Alarm::new(is_system);
            let now = SystemClock.now();
            alarm.ring();
            alarm.sleep(WallTime::MAX, now);
            let until = now + Duration::from_millis(50);
            alarm.sleep(until, now);
            assert!(SystemClock.now() >= until);
            std::thread::scope(|scope| {
                scope.spawn(|| alarm.sleep(WallTime::MAX, now));
                alarm.ring();
            });
        }
    }
}
