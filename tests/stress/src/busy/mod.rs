//! A round that judges time: hostile callers on more threads than there are
//! processors, and the longest that anybody had to wait for a call.
//!
//! What a busy machine does to a call depends on the machine. So each round
//! has a control: the same callers do the same to a wheel behind a plain mutex,
//! in turns with the engine, and the engine fails only on a ratio between the
//! two. A finding counts if further attempts have it, too: other work on the
//! machine does not come back each time at the same turn.

mod control;
mod hostile;
mod limits;
mod probe;
mod stalls;
mod subject;
mod trouble;

use std::sync::Arc;

use crate::book::Book;
use crate::plan::Plan;
use crate::progress::{Progress, Tally};
use trouble::Trouble;

/// What is found this often in a row is a defect.
const ATTEMPTS: usize = 3;

pub fn run(plan: &Plan, book: &Book, tally: &Arc<Tally>, progress: &Progress) {
    let trouble = Trouble::of(plan);
    for attempt in 1..=ATTEMPTS {
        let comparison = trouble.make(plan, tally);
        let finding = format!("{trouble:?}, attempt {attempt}: {comparison}");
        if plan.figures || comparison.is_too_long() {
            progress.note(&finding);
        }
        if !comparison.is_too_long() {
            break;
        }
        if attempt == ATTEMPTS {
            book.broke(finding);
        }
    }
}
