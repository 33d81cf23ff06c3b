//! How much is done: all of it, which takes about an hour, or what fits into
//! three minutes.

use crate::args::Workload;

#[derive(Clone, Copy)]
pub struct Effort {
    pub quick: bool,
}

impl Effort {
    /// How often each case runs, all others in between.
    pub fn rounds(self, workload: Workload) -> usize {
        match workload {
            // Bytes vary little, and minutes are long enough.
            Workload::Memory => self.either(1, 3),
            Workload::Leak => 1,
            _ => self.either(3, 5),
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
