//! The place of a row among all others.

use super::answer::Answer;
use crate::args::Workload;

pub const WHEEL: &str = "tickwheel wheel";
pub const ENGINE: &str = "tickwheel engine";
pub const MANY: &str = "tickwheel engine, many";
pub const TASKS: &str = "tickwheel tasks";
pub const SLEEP: &str = "tickwheel sleep";

/// What tells a row from every other.
#[derive(Clone, Copy)]
pub struct Place {
    workload: Workload,
    metric: &'static str,
    size: usize,
    threads: usize,
    engine: &'static str,
}

pub const fn place(
    workload: Workload,
    metric: &'static str,
    (size, threads): (usize, usize),
    engine: &'static str,
) -> Place {
    Place {
        workload,
        metric,
        size,
        threads,
        engine,
    }
}

impl Place {
    /// Returns the row at this place, if it was measured.
    pub fn find<'r, 'a>(&self, answers: &'r [Answer<'a>]) -> Option<&'r Answer<'a>> {
        answers.iter().find(|answer| self.is(answer))
    }

    fn is(&self, answer: &Answer<'_>) -> bool {
        let row = answer.row;
        (row.workload, row.size, row.threads) == (self.workload, self.size, self.threads)
            && (row.engine, answer.summary.metric.as_str()) == (self.engine, self.metric)
    }
}
