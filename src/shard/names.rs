//! The timers of a shard by their names. Timers without a name don't touch the index.
//!
//! A timer with a name is scheduled into the shard that the hash of its name says,
//! whichever thread schedules it. All timers of one name are therefore behind one lock,
//! and their sequence numbers say which of them is older. Each engine hashes names with a
//! key of its own, so nobody can choose names that share a shard.
//!
//! The index holds timers by the hash of the name, and the name itself is with its timer. Two
//! names may have one hash, so a timer that is found here must be asked for its name.

use std::collections::VecDeque;
use std::iter::from_fn;
// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc;

use crate::id::TimerId;
use crate::shard::Shard;
use crate::sync::IS_MODEL;
use crate::tick::Tick;
use crate::timer::{Cancel, Refusal, Timer};
use crate::wheel::EntryIndex;

/// The number of timers that one hold of a shard's lock finds, or tries to cancel.
pub(crate) const NAMESAKES_PER_HOLD: usize = if IS_MODEL { 1 } else { 32 };

/// The timers with a name that were created before some moment, and of which the oldest have
/// been visited.
pub(crate) struct Namesakes<'a> {
    name: &'a str,
    /// The hash of the name.
    hash: u64,
    /// The lowest sequence number of a timer that has not been visited.
    next: u64,
    /// The first sequence number of a later timer.
    end: u64,
}

impl<T> Shard<T> {
    pub(super) fn name_of(&self, at: EntryIndex) -> Option<&Arc<str>> {
        self.records[self.record_of(at)?].timer.name.as_ref()
    }

    /// Returns the timers that have this name now.
    pub(crate) fn namesakes<'a>(&self, name: &'a str, hash: u64) -> Namesakes<'a> {
        Namesakes { name, hash, next: 0, end: self.wheel.youngest.sequence() + 1 }
    }

    /// Returns the next of these timers, or `None` after the last one.
    pub(crate) fn next_namesake(&self, of: &mut Namesakes<'_>) -> Option<EntryIndex> {
        loop {
            let id = self.index.oldest(of.hash, of.next..).filter(|id| id.sequence() < of.end)?;
            of.next = id.sequence() + 1;
            let at = self.wheel.find_own(id)?;
            if self.name_of(at).is_some_and(|name| **name == *of.name) {
                return Some(at);
            }
        }
    }

    /// Finds the next few of these timers. Returns whether there are no more.
    pub(crate) fn find_namesakes(
        &self,
        of: &mut Namesakes<'_>,
        found: &mut VecDeque<TimerId>,
    ) -> bool {
        let next = || Some(self.wheel.id(self.next_namesake(of)?));
        found.extend(from_fn(next).take(NAMESAKES_PER_HOLD));
        found.len() < NAMESAKES_PER_HOLD
    }

    /// Cancels the next `most` of these timers, until `left` more of them end because of that.
    /// (A timer whose last firing is running may end by itself.) Returns whether there are
    /// no more.
    pub(crate) fn cancel_namesakes(
        &mut self,
        of: &mut Namesakes<'_>,
        most: usize,
        left: &mut usize,
        now: impl Fn() -> Tick,
        answers: &mut Vec<(TimerId, Cancel<T>)>,
    ) -> bool {
        for _ in 0..most {
            let Some(at) = self.next_namesake(of).filter(|_| *left > 0) else {
                return true;
            };
            let (id, named) = (self.wheel.id(at), self.index.len());
            let answer = self.cancel_at(at, &now);
            // A timer gives up its name exactly once, when it ends.
            *left -= named - self.index.len();
            answers.push((id, answer));
        }
        false
    }

    /// Takes a credit for a new timer, unless its name is to be unique and is taken.
    #[inline]
    pub(super) fn admit_named(
        &mut self,
        timer: &Timer<T>,
        name_hash: Option<u64>,
    ) -> Result<(), Refusal> {
        self.admit()?;
        if timer.unique && self.is_taken(timer.name.as_deref().zip(name_hash)) {
            self.credit.put();
            return Err(Refusal::NameTaken);
        }
        Ok(())
    }

    #[cold]
    fn is_taken(&self, name: Option<(&str, u64)>) -> bool {
        let others = name.map(|(name, hash)| self.namesakes(name, hash));
        others.is_some_and(|mut of| self.next_namesake(&mut of).is_some())
    }

    /// Removes a timer that ends from the index. Its record keeps the name.
    #[inline]
    pub(super) fn give_up_name(&mut self, at: EntryIndex, key: usize) {
        if let Some(hash) = self.records[key].name_hash.take() {
            self.index.remove(hash, self.wheel.id(at));
        }
    }
}
