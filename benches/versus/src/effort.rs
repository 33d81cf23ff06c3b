//! How much is done: all of it, which takes more than an hour, or what fits into
//! five minutes.

use std::time::Duration;

use crate::args::Workload;

#[derive(Clone, Copy)]
pub struct Effort {
    pub quick: bool,
}

impl Effort {
    /// How often a case runs, all others in between.
    pub fn rounds(self, workload: Workload) -> Rounds {
        let exactly = |rounds| Rounds {
            least: rounds,
            most: rounds,
            patience: Duration::ZERO,
        };
        match workload {
            // Bytes vary little, and minutes are long enough.
            Workload::Memory => exactly(self.either(1, 3)),
            Workload::Leak => exactly(1),
            Workload::Lateness | Workload::Idle | Workload::Tail | Workload::Probe => {
                exactly(self.either(3, 5))
            }
            // A round of milliseconds says little about a machine that is slow
            // for seconds.
            _ => Rounds {
                least: self.either(3, 5),
                most: 15,
                patience: self.either(Duration::from_millis(400), Duration::from_secs(5)),
            },
        }
    }

    /// How many steps are timed in one round.
    pub fn steps(self) -> usize {
        if self.quick { 200_000 } else { 1_000_000 }
    }

    /// Those of the sizes that there is time for.
    pub fn sizes(self, sizes: &[usize]) -> Vec<usize> {
        let largest = if self.quick { 1_000_000 } else { usize::MAX };
        let fits = |size: &usize| *size <= largest;
        sizes.iter().copied().filter(fits).collect()
    }

    /// One thing for a quick look, another for the whole.
    pub fn either<T>(self, quick: T, whole: T) -> T {
        if self.quick { quick } else { whole }
    }
}

/// How often a case runs: more often than it must while that took no longer than
/// `patience` in all.
#[derive(Clone, Copy)]
pub struct Rounds {
    pub least: usize,
    pub most: usize,
    pub patience: Duration,
}

impl Rounds {
    /// Whether a case is to run again after so many rounds that took it so long.
    pub fn go_on(self, done: usize, elapsed: Duration) -> bool {
        done < self.least || done < self.most && elapsed < self.patience
    }
}
