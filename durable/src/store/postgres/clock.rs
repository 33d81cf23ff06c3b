//! The clock of the database, as far as a node knows it.
//!
//! All nodes run jobs by one clock, so that theirs may be wrong. Each answer to a renewal tells the
//! time; until the next one it goes on by a clock that counts suspends and knows no steps.

use std::time::Duration;

use parking_lot::Mutex;

use crate::wall::{WallClock, WallTime};

#[derive(Default)]
pub(super) struct DatabaseClock(Mutex<Known>);

/// The database's time at a moment, as far as it is certain to have come.
#[derive(Clone, Copy, Default)]
struct Known {
    at: Duration,
    /// When the database was asked last.
    told: Duration,
    time: WallTime,
}

impl Known {
    fn time_at(self, at: Duration) -> WallTime {
        self.time + at.saturating_sub(self.at)
    }
}

impl DatabaseClock {
    /// Returns whether the database was not asked for a minute.
    pub(super) fn is_old(&self) -> bool {
        let told = self.0.lock().told;
        monotonic().saturating_sub(told) > Duration::from_secs(60)
    }

    /// Takes note of a time that the database has told between `asked` and now. What is known is
    /// kept if it agrees: a slow answer says less.
    pub(super) fn set(&self, told: WallTime, asked: Duration) {
        let now = monotonic();
        let mut known = self.0.lock();
        known.told = now;
        let latest = told + now.saturating_sub(asked);
        if !(told..=latest).contains(&known.time_at(now)) {
            *known = Known { at: now, told: now, time: told };
        }
    }
}

impl WallClock for DatabaseClock {
    fn now(&self) -> WallTime {
        let known = *self.0.lock();
        known.time_at(monotonic())
    }
}

/// Returns the time since a point that stays the same while the machine runs.
#[cfg(target_os = "linux")]
pub(super) fn monotonic() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn monotonic() -> Duration {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durable_04_the_time_of_a_slow_answer_has_come() {
        let clock = DatabaseClock::default();
        let time = WallTime::from_unix_micros;
        clock.set(time(5_000_000), monotonic());
        assert!(clock.now() >= time(5_000_000) && clock.now() < time(6_000_000));
        // The answer took a minute: it was 5.5 seconds at some moment of that.
        clock.set(time(4_000_000), monotonic().saturating_sub(Duration::from_secs(60)));
        assert!(clock.now() >= time(5_000_000), "agrees with what was known");
        clock.set(time(9_000_000), monotonic());
        assert!(clock.now() >= time(9_000_000), "a step");
        clock.set(time(1_000_000), monotonic());
        assert!(clock.now() < time(2_000_000), "and one back");
    }
}
