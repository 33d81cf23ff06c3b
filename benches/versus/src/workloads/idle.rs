//! The cost of an idle engine: wake-ups and processor time of the whole process,
//! with no timer, with one an hour away, with one that is due soon after, and with
//! one that fires repeatedly.

use std::thread;
use std::time::Duration;

use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::Sleepers;
use crate::rivals::sleepers;

/// The time for new threads to settle down.
const SETTLING: Duration = Duration::from_millis(50);

/// The number of firings to watch.
const BEATS: u32 = 5;

/// A timer, and the names of its metrics.
#[derive(Clone, Copy)]
struct Setting {
    timer: Option<Duration>,
    wakeups: &'static str,
    time: &'static str,
}

pub fn cases(effort: Effort) -> Vec<Case> {
    let watch = effort.either(Duration::from_millis(200), Duration::from_secs(3));
    let none = Setting {
        timer: None,
        wakeups: "wake-ups, no timer",
        time: "CPU time, no timer",
    };
    let far = Setting {
        timer: Some(Duration::from_secs(3_600)),
        wakeups: "wake-ups, in an hour",
        time: "CPU time, in an hour",
    };
    let near = Setting {
        timer: Some(SETTLING + watch.mul_f64(1.2)),
        wakeups: "wake-ups, soon",
        time: "CPU time, soon",
    };
    let each = |setting| sleepers!(case(setting, watch));
    let mut cases: Vec<Case> = [none, far, near].into_iter().flat_map(each).collect();
    let period = effort.either(Duration::from_millis(100), Duration::from_secs(1));
    cases.extend(sleepers!(beating(period)));
    cases
}

/// Measures a repeating timer. The cost of a firing is the same for all long
/// periods.
fn beating<S: Sleepers>(period: Duration) -> Case {
    Case::new(S::NAME, true, 1, move || {
        let mut used = Usage::default();
        S::beat(period, || used = Usage::during(period * BEATS));
        let per_beat = |count: u64| count as f64 / f64::from(BEATS);
        vec![
            Reading::new("wake-ups, each firing", "", per_beat(used.wakeups())),
            Reading::new("CPU time, each firing", "µs", per_beat(used.micros)),
        ]
    })
}

fn case<S: Sleepers>(setting: Setting, watch: Duration) -> Case {
    let size = usize::from(setting.timer.is_some());
    Case::new(S::NAME, true, size, move || {
        let mut used = Usage::default();
        S::idle(setting.timer, || used = Usage::during(watch));
        let seconds = watch.as_secs_f64();
        let wakeups = used.wakeups() as f64;
        vec![
            Reading::new(setting.wakeups, "1/s", wakeups / seconds),
            Reading::new(setting.time, "µs/s", used.micros as f64 / seconds),
        ]
    })
}

/// The resources that the process has used.
#[derive(Clone, Copy, Default)]
struct Usage {
    /// The number of times that a thread went to sleep.
    switches: u64,
    micros: u64,
}

impl Usage {
    fn during(watch: Duration) -> Usage {
        thread::sleep(SETTLING);
        let before = Usage::now();
        thread::sleep(watch);
        Usage::now().since(before)
    }

    /// Returns the wake-ups, without that of the watching thread.
    fn wakeups(self) -> u64 {
        self.switches.saturating_sub(1)
    }

    fn now() -> Usage {
        // SAFETY: all zeroes is a value of this plain structure.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is valid for writes.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
        let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        Usage {
            switches: usage.ru_nvcsw as u64,
            micros: micros(usage.ru_utime) + micros(usage.ru_stime),
        }
    }

    fn since(self, before: Usage) -> Usage {
        Usage {
            switches: self.switches - before.switches,
            micros: self.micros - before.micros,
        }
    }
}
