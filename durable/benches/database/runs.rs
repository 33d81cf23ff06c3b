//! The runs of a contender, as its handlers note them.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tickwheel_durable::{SystemClock, WallClock, WallTime};

use crate::contender::Handler;

/// The time within which every job of a round must have run.
const PATIENCE: Duration = Duration::from_secs(60);

/// Due times, and the times at which handlers began.
#[derive(Default)]
pub(crate) struct Runs {
    begun: Mutex<Vec<(WallTime, WallTime)>>,
    changed: Condvar,
}

impl Runs {
    pub(crate) fn handler(self: &Arc<Runs>) -> Handler {
        let runs = Arc::clone(self);
        Arc::new(move |due| {
            let now = SystemClock.now();
            runs.begun.lock().unwrap().push((due, now));
            runs.changed.notify_one();
        })
    }

    /// Waits for so many runs, and takes them.
    pub(crate) fn wait(&self, jobs: usize) -> Vec<(WallTime, WallTime)> {
        let begin = Instant::now();
        let mut begun = self.begun.lock().unwrap();
        while begun.len() < jobs {
            assert!(begin.elapsed() < PATIENCE, "{} of {jobs} ran", begun.len());
            begun = self.changed.wait_timeout(begun, PATIENCE).unwrap().0;
        }
        std::mem::take(&mut *begun)
    }

    /// Takes the runs so far.
    pub(crate) fn take(&self) -> Vec<(WallTime, WallTime)> {
        std::mem::take(&mut *self.begun.lock().unwrap())
    }
}

/// Returns the median, the 99th percentile and the largest of times, in milliseconds.
pub(crate) fn spread(mut times: Vec<Duration>) -> [f64; 3] {
    times.sort_unstable();
    let last = times.len() - 1;
    [times.len() / 2, times.len() * 99 / 100, last]
        .map(|at| times[at.min(last)].as_secs_f64() * 1e3)
}

/// Returns the medians of rounds, place by place.
pub(crate) fn medians<const N: usize>(rounds: &[[f64; N]]) -> [f64; N] {
    std::array::from_fn(|place| {
        let mut values: Vec<f64> = rounds.iter().map(|round| round[place]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    })
}
