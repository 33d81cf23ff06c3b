//! The lateness of a thousand sleepers with random delays.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;

use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::Sleepers;
use crate::rivals::sleepers;

const SLEEPERS: usize = 1_000;
const COARSE: Duration = Duration::from_millis(1);
const FINE: Duration = Duration::from_micros(50);

/// A setting, and the names of its metrics.
#[derive(Clone, Copy)]
struct Setting {
    tick: Duration,
    loaded: bool,
    metrics: [&'static str; 4],
}

const IDLE: Setting = Setting {
    tick: COARSE,
    loaded: false,
    metrics: ["min", "p50", "p99", "p99.9"],
};

const FINE_IDLE: Setting = Setting {
    tick: FINE,
    loaded: false,
    metrics: ["min, 50 µs", "p50, 50 µs", "p99, 50 µs", "p99.9, 50 µs"],
};

const LOADED: Setting = Setting {
    tick: COARSE,
    loaded: true,
    metrics: ["min, loaded", "p50, loaded", "p99, loaded", "p99.9, loaded"],
};

const FINE_LOADED: Setting = Setting {
    tick: FINE,
    loaded: true,
    metrics: [
        "min, 50 µs, loaded",
        "p50, 50 µs, loaded",
        "p99, 50 µs, loaded",
        "p99.9, 50 µs, loaded",
    ],
};

pub fn cases(effort: Effort) -> Vec<Case> {
    let longest = effort.either(Duration::from_millis(300), Duration::from_secs(2));
    let mut cases = sleepers!(case(IDLE, longest));
    cases.extend(sleepers!(case(FINE_IDLE, longest)));
    cases.extend(sleepers!(case(LOADED, longest)));
    cases.extend(sleepers!(case(FINE_LOADED, longest)));
    cases
}

fn case<S: Sleepers>(setting: Setting, longest: Duration) -> Case {
    let case = Case::new(S::NAME, true, SLEEPERS, move || run::<S>(setting, longest));
    let too_fine = setting.tick < S::FINEST_TICK;
    case.unless(too_fine.then_some("its tick is a millisecond, always"))
}

fn run<S: Sleepers>(setting: Setting, longest: Duration) -> Vec<Reading> {
    let mut rng = Rng::with_seed(10);
    let longest = longest.as_nanos() as u64;
    let delays: Vec<Duration> = (0..SLEEPERS)
        .map(|_| Duration::from_nanos(rng.u64(1..=longest)))
        .collect();
    let mut late = match setting.loaded {
        true => under_load(|| S::lateness(setting.tick, &delays)),
        false => S::lateness(setting.tick, &delays),
    };
    late.sort_unstable();
    let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize] as f64 / 1_000.0;
    let shares = [0.0, 0.5, 0.99, 0.999];
    let readings = setting.metrics.into_iter().zip(shares);
    readings
        .map(|(metric, share)| Reading::new(metric, "µs", at(share)))
        .collect()
}

/// Runs `work` beside a busy thread per processor.
fn under_load<R>(work: impl FnOnce() -> R) -> R {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        done
    })
}
