//! The clocks of the system: the monotonic one, and on Linux the boot-time one.

#[cfg(target_os = "linux")]
pub(crate) use linux::SystemClock;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::SystemClock;

/// Which clock of the system an engine follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum ClockSource {
    /// The monotonic clock: it stands still while the machine is suspended.
    #[default]
    Monotonic,
    /// The boot-time clock, which counts the time that the machine was
    /// suspended. Only Linux has it; elsewhere it is the monotonic one.
    BootTime,
}

#[cfg(target_os = "linux")]
mod linux {
    use core::mem::MaybeUninit;
    use std::time::Instant;

    use super::ClockSource;
    use crate::time::Time;

    #[derive(Clone, Copy)]
    pub(crate) struct SystemClock {
        id: libc::clockid_t,
        /// What the system's clock said at the start.
        origin: u64,
        instant: Instant,
    }

    impl SystemClock {
        pub(crate) fn new(source: ClockSource) -> SystemClock {
            let id = match source {
                ClockSource::Monotonic => libc::CLOCK_MONOTONIC,
                ClockSource::BootTime => libc::CLOCK_BOOTTIME,
            };
            SystemClock {
                id,
                instant: Instant::now(),
                origin: raw_nanos(id),
            }
        }

        pub(crate) fn name(&self) -> &'static str {
            match self.id {
                libc::CLOCK_BOOTTIME => "boot time",
                _ => "monotonic",
            }
        }

        /// Nanoseconds since the start.
        #[inline]
        pub(crate) fn nanos(&self) -> u64 {
            raw_nanos(self.id).saturating_sub(self.origin)
        }

        /// The system's own identifier of this clock, for timerfd.
        pub(crate) fn id(&self) -> libc::clockid_t {
            self.id
        }

        /// What the system's clock says at `time`.
        pub(crate) fn raw(&self, time: Time) -> u64 {
            self.origin.saturating_add(time.as_nanos())
        }

        pub(crate) fn time_of(&self, instant: Instant) -> Option<Time> {
            // `self.instant` was read a moment before `origin`, so the result
            // is a moment late, and never early.
            let since = instant.checked_duration_since(self.instant);
            let time = Time::START + since.unwrap_or_default();
            (self.id == libc::CLOCK_MONOTONIC).then_some(time)
        }
    }

    #[inline]
    fn raw_nanos(id: libc::clockid_t) -> u64 {
        let mut now = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the pointer is valid for writes; both clocks exist on every
        // kernel that has timerfd, so the call succeeds and fills it in.
        let now = unsafe {
            let result = libc::clock_gettime(id, now.as_mut_ptr());
            debug_assert_eq!(result, 0);
            now.assume_init()
        };
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::time::Instant;

    use super::ClockSource;
    use crate::time::Time;
    use crate::time::nanos;

    #[derive(Clone, Copy)]
    pub(crate) struct SystemClock(Instant);

    impl SystemClock {
        pub(crate) fn new(_: ClockSource) -> SystemClock {
            SystemClock(Instant::now())
        }

        pub(crate) fn name(&self) -> &'static str {
            "monotonic"
        }

        /// Nanoseconds since the start.
        pub(crate) fn nanos(&self) -> u64 {
            nanos(self.0.elapsed())
        }

        pub(crate) fn time_of(&self, instant: Instant) -> Option<Time> {
            let since = instant.checked_duration_since(self.0);
            Some(Time::START + since.unwrap_or_default())
        }
    }
}
