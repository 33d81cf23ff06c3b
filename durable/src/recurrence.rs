//! When a recurring job is due next.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::wall::WallTime;

/// The largest number of bytes of a cron expression, which is stored with its job.
const MOST_CRON: usize = 1_024;

/// The recurrence of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Recurrence {
    /// Every `period` from the job's first due time on.
    Every {
        /// The time from one occurrence to the next.
        period: Duration,
        /// The first due time, which fixes the phase.
        first: WallTime,
    },
    /// At the times of a cron expression that ends with a time zone.
    Cron(String),
}

impl Recurrence {
    /// Returns the first occurrence after `time`, or `None` if there is none: a cron
    /// expression that never comes true, or a time past the end of the calendar.
    #[must_use]
    pub fn next_after(&self, time: WallTime) -> Option<WallTime> {
        self.try_next_after(time).ok().flatten()
    }

    /// Returns the first occurrence after `time`, or an error if a stored expression or its
    /// time zone is not known here, or nothing is found.
    pub(crate) fn try_next_after(&self, time: WallTime) -> Result<Option<WallTime>, InvalidCron> {
        match self {
            Recurrence::Every { period, first } => Ok(next_multiple(*period, *first, time)),
            Recurrence::Cron(expression) => next_match(parse(expression)?, time),
        }
    }
}

/// The text that a store keeps. Times are microseconds since 1970.
impl fmt::Display for Recurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Recurrence::Every { period, first } => {
                let period = u64::try_from(period.as_micros()).unwrap_or(u64::MAX);
                write!(f, "every {period} from {}", first.as_unix_micros())
            }
            Recurrence::Cron(expression) => write!(f, "cron {expression}"),
        }
    }
}

impl FromStr for Recurrence {
    type Err = InvalidCron;

    fn from_str(text: &str) -> Result<Recurrence, InvalidCron> {
        if let Some(expression) = text.strip_prefix("cron ") {
            return Ok(Recurrence::Cron(expression.to_owned()));
        }
        let every = text.strip_prefix("every ").and_then(|every| {
            let (period, first) = every.split_once(" from ")?;
            Some(Recurrence::Every {
                period: Duration::from_micros(period.parse().ok()?),
                first: WallTime::from_unix_micros(first.parse().ok()?),
            })
        });
        every.ok_or_else(|| invalid("neither `cron` nor `every`"))
    }
}

fn next_multiple(period: Duration, first: WallTime, time: WallTime) -> Option<WallTime> {
    let period = u64::try_from(period.as_micros()).ok()?.max(1);
    if time < first {
        return Some(first);
    }
    let turns = time.since(first).as_micros() as u64 / period;
    let offset = turns.checked_add(1)?.checked_mul(period)?;
    let next = first.as_unix_micros().checked_add(offset)?;
    Some(WallTime::from_unix_micros(next))
}

/// A panic of another crate ends the job and not its node. Whatever has come true once does so again,
/// so to find nothing is a failure and no end.
fn next_match(
    (pattern, zone): (Cron, TimeZone),
    time: WallTime,
) -> Result<Option<WallTime>, InvalidCron> {
    let micros = i64::try_from(time.as_unix_micros()).ok();
    let Some(after) = micros.and_then(|micros| Timestamp::from_microsecond(micros).ok()) else {
        return Ok(None);
    };
    let after = after.to_zoned(zone);
    let search = || pattern.find_next_occurrence(&after, false);
    let failed = |why: &str| invalid(format!("nothing found after {time}: {why}"));
    let next = catch_unwind(AssertUnwindSafe(search)).map_err(|_| failed("a panic"))?;
    let next = next.map_err(|error| failed(&error.to_string()))?.timestamp().as_microsecond();
    Ok(u64::try_from(next).ok().map(WallTime::from_unix_micros))
}

/// A cron expression that cannot be understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "not a cron expression: write five fields and a time zone, such as `30 9 * * MON-FRI Europe/Berlin` ({0})"
)]
pub struct InvalidCron(String);

/// Checks that an expression can be understood.
pub(crate) fn check_cron(expression: &str) -> Result<(), InvalidCron> {
    parse(expression).map(drop)
}

fn parse(expression: &str) -> Result<(Cron, TimeZone), InvalidCron> {
    if expression.len() > MOST_CRON {
        return Err(invalid(format!("longer than {MOST_CRON} bytes")));
    }
    let expression = expression.trim();
    let (pattern, zone) =
        expression.rsplit_once(char::is_whitespace).ok_or_else(|| invalid("there is one word"))?;
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    let pattern = parser.parse(pattern).map_err(invalid)?;
    Ok((pattern, TimeZone::get(zone).map_err(invalid)?))
}

fn invalid(reason: impl fmt::Display) -> InvalidCron {
    InvalidCron(reason.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> WallTime {
        let time: jiff::Timestamp = text.parse().unwrap();
        WallTime::from_unix_micros(time.as_microsecond() as u64)
    }

    fn next(expression: &str, after: &str) -> String {
        let cron = Recurrence::Cron(expression.to_owned());
        cron.next_after(at(after)).map_or("none".to_owned(), |time| time.to_string())
    }

    #[test]
    fn every_keeps_its_phase() {
        let first = WallTime::from_unix_micros(7);
        let period = Duration::from_micros(10);
        let every = Recurrence::Every { period, first };
        let next =
            |now| every.next_after(WallTime::from_unix_micros(now)).unwrap().as_unix_micros();
        assert_eq!([next(0), next(7), next(16), next(17), next(1_000)], [7, 17, 17, 27, 1_007]);
        assert_eq!(every.next_after(WallTime::MAX), None);
    }

    /// At the end of all times there is no next occurrence, and no panic.
    #[test]
    fn the_end_of_the_calendar_is_no_panic() {
        let (period, first) = (Duration::from_micros(1), WallTime::default());
        let every = Recurrence::Every { period, first };
        assert_eq!(every.next_after(WallTime::MAX), None);
        let cron = Recurrence::Cron("0 0 1 1 * UTC".to_owned());
        for year in 9_990..=9_999 {
            let new_year = at(&format!("{year}-01-01T00:00:00Z"));
            assert!(cron.next_after(new_year).is_none_or(|next| next > new_year));
        }
    }

    #[test]
    fn an_unknown_zone_is_an_error() {
        let cron = Recurrence::Cron("0 0 * * * Mars/Olympus".to_owned());
        assert!(cron.try_next_after(WallTime::default()).is_err());
        assert_eq!(cron.next_after(WallTime::default()), None);
    }

    #[test]
    fn cron_is_read_in_its_time_zone() {
        let weekdays = "30 9 * * MON-FRI Europe/Berlin";
        assert_eq!(next(weekdays, "2026-11-20T10:00:00Z"), "2026-11-23T08:30:00Z");
        assert_eq!(next(weekdays, "2026-07-01T00:00:00Z"), "2026-07-01T07:30:00Z");
        assert_eq!(next("0 0 30 2 * UTC", "2026-01-01T00:00:00Z"), "none");
    }

    /// A local time that is left out runs right after the change, and one that comes twice
    /// runs the first time.
    #[test]
    fn cron_runs_once_on_the_days_on_which_the_clocks_change() {
        let night = "30 2 * * * Europe/Berlin";
        assert_eq!(next(night, "2026-03-28T12:00:00Z"), "2026-03-29T01:00:00Z");
        assert_eq!(next(night, "2026-03-29T01:00:00Z"), "2026-03-30T00:30:00Z");
        assert_eq!(next(night, "2026-10-24T12:00:00Z"), "2026-10-25T00:30:00Z");
        assert_eq!(next(night, "2026-10-25T00:30:00Z"), "2026-10-26T01:30:00Z");
    }

    /// A pattern with a wildcard for the hour counts each hour that passes.
    #[test]
    fn cron_for_every_hour_runs_in_every_hour() {
        let hourly = "30 * * * * Europe/Berlin";
        for day in ["2026-03-29", "2026-10-25"] {
            for hour in 0..6 {
                let after = format!("{day}T0{hour}:00:00Z");
                assert_eq!(next(hourly, &after), format!("{day}T0{hour}:30:00Z"));
            }
        }
    }

    /// So does one with a list: two o'clock is left out, and comes twice.
    #[test]
    fn cron_with_a_list_of_hours_runs_whenever_one_of_them_passes() {
        let list = "0 2,14 * * * Europe/Berlin";
        assert_eq!(next(list, "2026-03-28T22:00:00Z"), "2026-03-29T12:00:00Z");
        assert_eq!(next(list, "2026-10-24T22:00:00Z"), "2026-10-25T00:00:00Z");
        assert_eq!(next(list, "2026-10-25T00:00:00Z"), "2026-10-25T01:00:00Z");
    }

    /// Each is refused, and with the reason.
    #[test]
    fn what_is_no_expression_is_refused() {
        for bad in ["", "UTC", "* * * * *", "* * * * UTC", "* * * * * *", "* * * * * * UTC"] {
            assert!(check_cron(bad).is_err(), "{bad}");
        }
        let list = ["0"; MOST_CRON].join(",");
        assert!(check_cron(&format!("{list} * * * * UTC")).is_err());
        assert!(check_cron(" 0 12 * * 1#2 \t UTC ").is_ok());
    }
}
