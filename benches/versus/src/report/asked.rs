//! The ten rows that users ask about: docs/PERFORMANCE.md has them as a table and as
//! a picture.

use super::answer::Answer;
use super::place::{ENGINE, Place, SLEEP, TASKS, WHEEL, place};
use crate::args::Workload;
use crate::rivals::promises::lacks;

/// A question in a user's words, and the place of the row that answers it.
pub struct Asked {
    pub question: &'static str,
    pub place: Place,
}

const fn asked(question: &'static str, place: Place) -> Asked {
    Asked { question, place }
}

/// All sizes are there in a quick run, too.
#[rustfmt::skip]
pub const ASKED: [Asked; 10] = [
    asked("Cancel a timer and schedule another, one owner", place(Workload::Pair, "in flight", (1_024, 1), WHEEL)),
    asked("The same in a shared engine, one thread", place(Workload::Pair, "in flight", (1_024, 1), ENGINE)),
    asked("The same, two threads", place(Workload::Pair, "in flight", (1_024, 2), ENGINE)),
    asked("The same with a closure, one thread that knows only a delay", place(Workload::Closures, "pair", (1_024, 1), TASKS)),
    asked("Schedule on one thread, cancel on another", place(Workload::Remote, "pair", (256, 2), ENGINE)),
    asked("Fire each of 100,000 timers, spread, one owner", place(Workload::Expire, "spread", (100_000, 1), WHEEL)),
    asked("Fire and take each of 100,000 timers, spread, processor time", place(Workload::Expire, "spread, CPU of the engine", (100_000, 1), ENGINE)),
    asked("Create, poll and drop a sleep in a task", place(Workload::Sleep, "delay given", (1, 1), SLEEP)),
    asked("Memory of each of a million timers of 8 bytes", place(Workload::Memory, "live", (1_000_000, 1), ENGINE)),
    asked("Lateness with a tick of 1 ms, p99", place(Workload::Lateness, "p99", (1_000, 1), ENGINE)),
];

/// Returns the rival with the least median, of those that promise as much as tickwheel or
/// of the others.
pub fn best<'r, 'a>(rivals: &[&'r Answer<'a>], is_equal: bool) -> Option<&'r Answer<'a>> {
    let of_kind = |rival: &&&Answer<'_>| lacks(rival.row.engine).is_empty() == is_equal;
    let medians =
        |a: &&&Answer<'_>, b: &&&Answer<'_>| a.summary.median.total_cmp(&b.summary.median);
    rivals.iter().filter(of_kind).min_by(medians).copied()
}
