//! Times as people write and read them.

use std::time::Duration;

use jiff::SignedDuration;
use tickwheel_durable::WallTime;

/// Reads a length of time, such as `90s`, `1h30m` or `2d`.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    let hint = |_| "write a length of time as in 500ms, 90s, 1h30m or 36h".to_owned();
    let read: SignedDuration = text.parse().map_err(hint)?;
    Duration::try_from(read).map_err(|_| "a length of time is not negative".to_owned())
}

/// Returns how far away a time is: `in 3h 5m`, or `2m 1s ago`.
pub(crate) fn from_now(time: WallTime, now: WallTime) -> String {
    if time > now {
        format!("in {}", rough(time.since(now)))
    } else {
        format!("{} ago", rough(now.since(time)))
    }
}

/// Returns the two largest units of a length of time.
pub(crate) fn rough(length: Duration) -> String {
    let secs = length.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let Some(first) = units.iter().position(|(unit, _)| secs >= *unit) else {
        return format!("{}ms", length.as_millis());
    };
    let (unit, name) = units[first];
    let rest = units.get(first + 1).map(|(next, name)| (secs % unit / next, name));
    match rest {
        Some((more, next)) if more > 0 => format!("{}{name} {more}{next}", secs / unit),
        _ => format!("{}{name}", secs / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read() {
        for (text, secs) in [("90s", 90), ("1h30m", 5_400), ("0s", 0), ("36h", 129_600)] {
            assert_eq!(length(text), Ok(Duration::from_secs(secs)), "{text}");
        }
        assert!(length("soon").is_err() && length("-3s").is_err());
    }

    #[test]
    fn lengths_are_written_in_two_units() {
        let shown = [0, 59, 60, 3_601, 7_260, 200_000].map(|secs| rough(Duration::from_secs(secs)));
        assert_eq!(shown, ["0ms", "59s", "1m", "1h", "2h 1m", "2d 7h"]);
    }
}
