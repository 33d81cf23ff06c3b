//! Counted payloads: each leaves the engine once, and the ledger agrees.

// The schedulers do not see the count, because it is no part of the scenario.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tickwheel::stats::Ledger;

/// How a payload left the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// A worker took it or ran it.
    Taken,
    /// A cancel returned it.
    Cancelled,
    /// The shutdown returned it.
    ShutDown,
    /// It came back with a refused timer.
    Refused,
    /// It was dropped with its last firing, or with a firing whose timer had ended.
    Dropped,
}

/// All payloads of a run, and the end of each.
#[derive(Clone, Default)]
pub struct Tally(Arc<Mutex<Vec<Option<End>>>>);

/// A counted payload.
pub struct Payload {
    index: usize,
    end: End,
    tally: Tally,
}

impl Tally {
    /// Returns a new payload.
    #[must_use]
    pub fn payload(&self) -> Payload {
        let mut ends = self.ends();
        ends.push(None);
        Payload { index: ends.len() - 1, end: End::Dropped, tally: self.clone() }
    }

    /// Returns how many payloads have ended in this way.
    #[must_use]
    pub fn count(&self, end: End) -> u64 {
        let ends = self.ends();
        ends.iter().filter(|&&other| other == Some(end)).count() as u64
    }

    /// Returns whether all payloads have ended.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.ends().iter().all(Option::is_some)
    }

    /// Checks that every payload and every accepted timer has ended, and that the
    /// ledger agrees on how.
    pub fn assert_agrees(&self, ledger: Ledger) {
        assert_eq!(self.count(End::Dropped), 0, "lost: {:?}", self.ends());
        self.assert_ended(ledger);
        assert_eq!(ledger.completed, self.count(End::Taken), "{ledger:?}");
        assert_eq!(ledger.cancelled, self.count(End::Cancelled), "{ledger:?}");
        assert_eq!(ledger.shut_down, self.count(End::ShutDown), "{ledger:?}");
    }

    /// Checks as [`Tally::assert_agrees`] does, and allows the engine to drop
    /// payloads for any reason.
    pub fn assert_ended(&self, ledger: Ledger) {
        assert!(self.is_settled(), "left: {:?}", self.ends());
        assert!(ledger.is_balanced(), "{ledger:?}");
        assert_eq!(ledger.live, 0, "{ledger:?}");
        let all = self.ends().len() as u64;
        assert_eq!(ledger.accepted, all - self.count(End::Refused), "{ledger:?}");
    }

    fn ends(&self) -> MutexGuard<'_, Vec<Option<End>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Payload {
    /// Returns the number of the payload in its run.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Notes that the payload has left the engine in this way.
    pub fn end(mut self, end: End) {
        self.end = end;
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        let before = self.tally.ends()[self.index].replace(self.end);
        assert!(before.is_none() || thread::panicking(), "ended twice");
    }
}
