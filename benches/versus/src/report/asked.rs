//! The ten rows that users ask about: docs/PERFORMANCE.md has them as a table, and the
//! README as a picture.

use super::answer::Answer;
use crate::args::Workload;
use crate::rivals::promises::lacks;

/// A question in a user's words, and the row that answers it.
pub struct Asked {
    pub question: &'static str,
    workload: Workload,
    metric: &'static str,
    size: usize,
    threads: usize,
    engine: &'static str,
}

impl Asked {
    /// Returns the row that answers the question, if it was measured.
    pub fn answer<'r, 'a>(&self, answers: &'r [Answer<'a>]) -> Option<&'r Answer<'a>> {
        answers.iter().find(|answer| self.is(answer))
    }

    fn is(&self, answer: &Answer<'_>) -> bool {
        let row = answer.row;
        (row.workload, row.size, row.threads) == (self.workload, self.size, self.threads)
            && (row.engine, answer.summary.metric.as_str()) == (self.engine, self.metric)
    }
}

const fn asked(
    question: &'static str,
    workload: Workload,
    metric: &'static str,
    (size, threads): (usize, usize),
    engine: &'static str,
) -> Asked {
    Asked {
        question,
        workload,
        metric,
        size,
        threads,
        engine,
    }
}

pub const WHEEL: &str = "tickwheel wheel";
const ENGINE: &str = "tickwheel engine";
const TASKS: &str = "tickwheel tasks";
const SLEEP: &str = "tickwheel sleep";

/// All sizes are there in a quick run, too.
#[rustfmt::skip]
pub const ASKED: [Asked; 10] = [
    asked("Cancel a timer and schedule another, one owner", Workload::Pair, "in flight", (1_024, 1), WHEEL),
    asked("The same in a shared engine, one thread", Workload::Pair, "in flight", (1_024, 1), ENGINE),
    asked("The same, two threads", Workload::Pair, "in flight", (1_024, 2), ENGINE),
    asked("The same with a closure, one thread that knows only a delay", Workload::Closures, "pair", (1_024, 1), TASKS),
    asked("Schedule on one thread, cancel on another", Workload::Remote, "pair", (256, 2), ENGINE),
    asked("Fire each of 100,000 timers, spread, one owner", Workload::Expire, "spread", (100_000, 1), WHEEL),
    asked("Fire and take each of 100,000 timers, spread, processor time", Workload::Expire, "spread, CPU of the engine", (100_000, 1), ENGINE),
    asked("Create, poll and drop a sleep in a task", Workload::Sleep, "delay given", (1, 1), SLEEP),
    asked("Memory of each of a million timers of 8 bytes", Workload::Memory, "live", (1_000_000, 1), ENGINE),
    asked("Lateness with a tick of 1 ms, p99", Workload::Lateness, "p99", (1_000, 1), ENGINE),
];

/// Returns the rival with the least median, of those that promise as much as tickwheel or
/// of the others.
pub fn best<'r, 'a>(rivals: &[&'r Answer<'a>], is_equal: bool) -> Option<&'r Answer<'a>> {
    let of_kind = |rival: &&&Answer<'_>| lacks(rival.row.engine).is_empty() == is_equal;
    let medians =
        |a: &&&Answer<'_>, b: &&&Answer<'_>| a.summary.median.total_cmp(&b.summary.median);
    rivals.iter().filter(of_kind).min_by(medians).copied()
}
