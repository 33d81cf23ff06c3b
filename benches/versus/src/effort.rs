//! The amount of work: all of it, in more than an hour, or a selection that takes eight
//! minutes.

use std::time::Duration;

use crate::args::Workload;

/// The time after which a case runs no more. Some rivals need a minute for one round of
/// ten million timers.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy)]
pub struct Effort {
    pub quick: bool,
}

impl Effort {
    /// Returns how often a case of a workload runs.
    pub fn rounds(self, workload: Workload) -> Rounds {
        let exactly = |rounds| Rounds {
            least: rounds,
            most: rounds,
            patience: Duration::ZERO,
            limit: Duration::MAX,
        };
        match workload {
            // Bytes vary little. The model of caches says the same every time, but its
            // check is measured.
            Workload::Memory | Workload::Cores => Rounds {
                limit: LIMIT,
                ..exactly(self.either(1, 3))
            },
            Workload::Leak => exactly(1),
            Workload::Lateness
            | Workload::Idle
            | Workload::Tail
            | Workload::Probe
            | Workload::Shards
            | Workload::Ticker
            | Workload::AsyncLateness => exactly(self.either(3, 5)),
            // A round of milliseconds says little on a machine that is slow for
            // seconds at a time.
            _ => Rounds {
                least: 3,
                most: 15,
                patience: self.either(Duration::from_millis(400), Duration::from_secs(2)),
                limit: LIMIT,
            },
        }
    }

    /// Returns the number of steps that are timed in one round.
    pub fn steps(self) -> usize {
        if self.quick { 200_000 } else { 1_000_000 }
    }

    /// Returns the sizes for which there is time.
    pub fn sizes(self, sizes: &[usize]) -> Vec<usize> {
        let largest = if self.quick { 1_000_000 } else { usize::MAX };
        let fits = |size: &usize| *size <= largest;
        sizes.iter().copied().filter(fits).collect()
    }

    /// Returns `quick` for a quick run and `whole` otherwise.
    pub fn either<T>(self, quick: T, whole: T) -> T {
        if self.quick { quick } else { whole }
    }
}

/// How often a case runs: `least` times, and on up to `most` times while all its
/// rounds have taken less than `patience`. After the first round, no round begins once all
/// have taken `limit`.
#[derive(Clone, Copy)]
pub struct Rounds {
    pub least: usize,
    pub most: usize,
    pub patience: Duration,
    pub limit: Duration,
}

impl Rounds {
    /// Whether a case runs again after `done` rounds that took `elapsed`.
    pub fn go_on(self, done: usize, elapsed: Duration) -> bool {
        let is_wanted = done < self.least || done < self.most && elapsed < self.patience;
        done == 0 || is_wanted && elapsed < self.limit
    }
}
