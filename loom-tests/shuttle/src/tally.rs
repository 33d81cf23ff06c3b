//! Payloads that are counted: each comes out of the engine once, one way or
//! another, and the ledger says the same.

// Nothing that the schedulers are to see: counting is no part of the scenario.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tickwheel::Ledger;

/// How a payload came out of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// A worker took it, or ran it.
    Taken,
    /// It came back to who cancelled it.
    Cancelled,
    /// It came back from the shutdown.
    ShutDown,
    /// It came back to who scheduled it.
    Refused,
    /// It was dropped: the last firing was given back, or its timer had ended
    /// meanwhile.
    Dropped,
}

/// All payloads of a run, and how each has ended.
#[derive(Clone, Default)]
pub struct Tally(Arc<Mutex<Vec<Option<End>>>>);

/// A payload that is counted.
pub struct Payload {
    index: usize,
    end: End,
    tally: Tally,
}

impl Tally {
    /// A new payload.
    #[must_use]
    pub fn payload(&self) -> Payload {
        let mut ends = self.ends();
        ends.push(None);
        Payload {
            index: ends.len() - 1,
            end: End::Dropped,
            tally: self.clone(),
        }
    }

    /// How many payloads have ended that way.
    #[must_use]
    pub fn count(&self, end: End) -> u64 {
        let ends = self.ends();
        ends.iter().filter(|&&other| other == Some(end)).count() as u64
    }

    /// Whether no payload is left.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.ends().iter().all(Option::is_some)
    }

    /// Checks that every payload has ended and every accepted timer too, and
    /// that the ledger knows how.
    pub fn assert_agrees(&self, ledger: Ledger) {
        assert_eq!(self.count(End::Dropped), 0, "lost: {:?}", self.ends());
        self.assert_ended(ledger);
        assert_eq!(ledger.completed, self.count(End::Taken), "{ledger:?}");
        assert_eq!(ledger.cancelled, self.count(End::Cancelled), "{ledger:?}");
        assert_eq!(ledger.shut_down, self.count(End::ShutDown), "{ledger:?}");
    }

    /// As [`Tally::assert_agrees`], where the engine may drop payloads, for
    /// whatever reason.
    pub fn assert_ended(&self, ledger: Ledger) {
        assert!(self.is_settled(), "left: {:?}", self.ends());
        assert!(ledger.is_balanced(), "{ledger:?}");
        assert_eq!(ledger.live, 0, "{ledger:?}");
        let all = self.ends().len() as u64;
        assert_eq!(
            ledger.accepted,
            all - self.count(End::Refused),
            "{ledger:?}"
        );
    }

    fn ends(&self) -> MutexGuard<'_, Vec<Option<End>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Payload {
    /// Its number among the payloads of the run.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// It is out, that way.
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
