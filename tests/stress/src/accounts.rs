//! What every round has to account for at its end.

use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Ledger, Snapshot};

use crate::book::Book;

/// How long due timers may take to fire, and payloads to be dropped, before
/// they count as lost. A starved thread gets there in the end.
const PATIENCE: Duration = Duration::from_secs(20);

/// With nothing scheduled any more no later wake-up covers for a lost one.
pub fn wait_until_fired(book: &Book, snapshot: impl FnOnce() -> Snapshot) {
    let known = book.known();
    let awaited = || known.iter().filter(|known| known.record.is_awaited());
    let all_fired = wait_until(Duration::from_millis(5), || awaited().next().is_none());
    if !all_fired {
        let (lost, snapshot) = (awaited().count(), snapshot());
        book.broke(format!("{lost} are due and do not fire: {snapshot:#?}"));
    }
}

/// The thread that moves the time may be the last to drop its handle.
pub fn wait_until_dropped(book: &Book) {
    let known = book.known();
    let are_dropped = || known.iter().all(|known| known.record.are_tokens_dropped());
    wait_until(Duration::from_millis(1), are_dropped);
}

/// Judges every timer by its record.
pub fn check_records(book: &Book, all_told: bool) {
    for known in book.known() {
        known.record.check(all_told, book);
    }
}

pub fn check_balance(book: &Book, ledger: &Ledger) {
    if !ledger.is_balanced() {
        book.broke(format!("unbalanced at the end: {ledger:?}"));
    }
}

/// Returns whether it came to hold.
fn wait_until(nap: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(nap);
    }
    true
}
