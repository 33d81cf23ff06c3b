//! Numbers and durations in a few characters.

use std::time::Duration;

/// Formats a count with a comma before each three digits.
pub(crate) fn exact(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count in at most four characters, or five from 10¹² on.
pub(crate) fn compact(count: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    let unit = UNITS.iter().find(|&&(unit, _)| count >= unit);
    let Some(&(unit, name)) = unit else {
        return count.to_string();
    };
    match count / unit {
        whole @ 0..10 => format!("{whole}.{}{name}", count % unit * 10 / unit),
        whole => format!("{whole}{name}"),
    }
}

/// Formats a duration in at most seven characters up to ten thousand years, with two
/// digits or whole units.
pub(crate) fn duration(duration: Duration) -> String {
    const UNITS: [(f64, &str); 8] = [
        (365.0 * 86_400.0, "y"),
        (86_400.0, "d"),
        (3_600.0, "h"),
        (60.0, "min"),
        (1.0, "s"),
        (1e-3, "ms"),
        (1e-6, "µs"),
        (1e-9, "ns"),
    ];
    let seconds = duration.as_secs_f64();
    let unit = UNITS.iter().find(|&&(unit, _)| seconds >= unit * 0.9999);
    let &(unit, name) = unit.unwrap_or(&UNITS[7]);
    let value = seconds / unit;
    let text = match value {
        0.0..9.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    format!("{} {name}", text.trim_end_matches(".0"))
}

/// Formats a time as hours, minutes, seconds and thousandths.
pub(crate) fn time(since_start: Duration) -> String {
    let (seconds, millis) = (since_start.as_secs(), since_start.subsec_millis());
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    format!("{hours}:{minutes:02}:{:02}.{millis:03}", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stay_short() {
        let counts = [0, 999, 1_000, 9_999, 10_000, 999_999, 1_200_000, 10_000_000];
        let short = ["0", "999", "1.0k", "9.9k", "10k", "999k", "1.2M", "10M"];
        assert_eq!(counts.map(compact), short);
        assert_eq!(exact(1_234_567), "1,234,567");
        assert_eq!(exact(123_456), "123,456");
    }

    #[test]
    fn durations_stay_short() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (65_536, "66 µs"),
            (1_000_000, "1 ms"),
            (64_000_000, "64 ms"),
            (4_096_000_000, "4.1 s"),
            (262_144_000_000, "4.4 min"),
            (16_777_216_000_000, "4.7 h"),
            (1_073_741_824_000_000, "12 d"),
            (68_719_476_736_000_000, "2.2 y"),
        ];
        for (nanos, text) in cases {
            assert_eq!(duration(Duration::from_nanos(nanos)), text);
        }
        assert_eq!(time(Duration::from_millis(3_725_042)), "1:02:05.042");
    }
}
