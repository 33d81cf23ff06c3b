//! One-shot tasks without a record: lending one to a worker, and its end.
//!
//! While a worker runs such a task, its entry stays, without a payload and on no list,
//! and its tag says that it is lent. A call that has to note anything for the worker's
//! return gives the entry a record; from then on it is a recorded timer like any other.

use crate::id::TimerId;
use crate::shard::Shard;
use crate::shard::body::Body;
use crate::shard::firing::{Claimed, Outcome, Returned};
use crate::shard::record::{State, TimerRecord};
use crate::timeline::Time;
use crate::timer::{CloseReason, Timer};
use crate::wheel::EntryIndex;

impl<T> Shard<T> {
    /// Lends a task that has left its ready list, at `now` if takes are measured.
    pub(super) fn take_task(&mut self, at: EntryIndex, now: Option<Time>) -> Claimed<T> {
        debug_assert!(self.tag(at).has_payload());
        let firing = self.plain_firing(at, true);
        let body = std::mem::replace(self.wheel.payload_mut(at), Body::lent(now));
        self.wheel.set_tag(at, self.tag(at).lent().0);
        self.wheel.set_aside(at);
        self.work.held += 1;
        Claimed {
            firing,
            // SAFETY: the tag said that the body is a payload.
            payload: unsafe { body.into_payload() },
        }
    }

    /// Ends a lent task that has no record, at `now`.
    pub(super) fn end_task(
        &mut self,
        at: EntryIndex,
        payload: Option<T>,
        outcome: Outcome,
        now: Time,
    ) -> Returned<T> {
        let taken = self.taken(at);
        self.note_return(taken, now);
        self.ledger.ended(match outcome {
            Outcome::Panicked => CloseReason::Failed,
            Outcome::Returned | Outcome::Kept => CloseReason::Completed,
        });
        self.credit.put();
        // The body has no payload.
        self.wheel.remove(at);
        Returned {
            payload,
            awaited: false,
        }
    }

    /// Returns the record of a timer. A task that was lent without a record gets one.
    pub(super) fn record_if_lent(&mut self, at: EntryIndex) -> Option<usize> {
        match self.tag(at).is_lent() {
            true => Some(self.record_lent(at)),
            false => self.record_of(at),
        }
    }

    /// Returns when a worker took a lent task that has no record, if takes are measured.
    fn taken(&self, at: EntryIndex) -> Option<Time> {
        assert!(self.tag(at).is_lent(), "only what was lent comes back");
        // SAFETY: the tag says that the body is the time of the take.
        unsafe { self.wheel.payload(at).as_taken() }
    }

    #[cold]
    fn record_lent(&mut self, at: EntryIndex) -> usize {
        let requested = self.tick.start_of(self.wheel.deadline_of(at));
        let timer = Timer::at(requested, None).into_task(|none| none);
        let mut record = TimerRecord::of(timer, requested, None);
        record.deliver();
        record.taken = self.taken(at);
        record.state = State::LENT;
        let key = self.records.insert(record);
        *self.wheel.payload_mut(at) = Body::record(key);
        self.wheel.set_tag(at, self.tag(at).with_record().0);
        key
    }

    /// Whether a worker runs this task, of which nothing has been noted.
    pub(super) fn is_lent_task(&self, id: TimerId) -> bool {
        let at = self.wheel.find_own(id);
        at.is_some_and(|at| self.tag(at).is_lent())
    }
}
