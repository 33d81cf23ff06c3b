//! Cancelling: one timer, many, or all of a name.

use crate::hub::names::{Bucket, Namesakes};
use crate::hub::{Core, Held};
use crate::id::TimerId;
use crate::sync::IS_MODEL;
use crate::timer::{Cancel, CancelledByName};

/// How many timers one hold of a shard's lock cancels: enough that taking it hardly
/// counts, and few enough that a waiter does not wait long.
const CANCELS_PER_HOLD: usize = 32;

/// How many timers of a name are tried in one hold of the name's bucket.
const NAMESAKES_PER_HOLD: usize = if IS_MODEL { 1 } else { 32 };

impl<T> Core<T> {
    #[inline]
    pub(crate) fn cancel(&self, id: TimerId) -> Cancel<T> {
        let Some(cell) = self.cell_of(id) else {
            return Cancel::Gone;
        };
        let mut held = self.hold(cell);
        let Some(payload) = held.shard.cancel_plain(id) else {
            return self.cancel_any(held, id);
        };
        // No timer was linked and no signal raised: the lock is simply dropped.
        Cancel::Cancelled(payload)
    }

    #[cold]
    fn cancel_any(&self, mut held: Held<'_, T>, id: TimerId) -> Cancel<T> {
        let cancelled = held.shard.cancel(id, || self.tick_now());
        self.release(held);
        cancelled
    }

    /// Cancels many timers, and returns the answers in the order of `ids`.
    ///
    /// Consecutive ids of one shard share holds of its lock, and their entries are
    /// prefetched together: for another thread than the one that scheduled them,
    /// each is a cache miss.
    pub(crate) fn cancel_many(&self, ids: &[TimerId]) -> Vec<Cancel<T>> {
        let mut answers = Vec::with_capacity(ids.len());
        for of_one_shard in ids.chunk_by(|one, next| one.wheel() == next.wheel()) {
            for some in of_one_shard.chunks(CANCELS_PER_HOLD) {
                self.cancel_in_one_hold(some, &mut answers);
            }
        }
        answers
    }

    fn cancel_in_one_hold(&self, ids: &[TimerId], answers: &mut Vec<Cancel<T>>) {
        let Some(cell) = ids.first().and_then(|&id| self.cell_of(id)) else {
            answers.extend(ids.iter().map(|_| Cancel::Gone));
            return;
        };
        let mut held = self.hold(cell);
        ids.iter().for_each(|&id| held.shard.prefetch(id));
        let cancel = |&id| held.shard.cancel(id, || self.tick_now());
        answers.extend(ids.iter().map(cancel));
        self.release(held);
    }

    /// Cancels the timers of a name, oldest first, until `max` have ended as
    /// cancelled. Skips timers that are created meanwhile, so that it ends.
    pub(crate) fn cancel_by_name(&self, name: &str, max: usize) -> CancelledByName<T> {
        let mut namesakes = self.names.namesakes(name);
        let mut cancelled = CancelledByName {
            count: 0,
            payloads: Vec::new(),
        };
        while self.cancel_some_by_name(&mut namesakes, max, &mut cancelled) {
            self.names.step_aside(&namesakes);
        }
        cancelled
    }

    /// Cancels as many as one hold of the bucket allows. Returns whether there may be
    /// more.
    fn cancel_some_by_name(
        &self,
        namesakes: &mut Namesakes<'_>,
        max: usize,
        cancelled: &mut CancelledByName<T>,
    ) -> bool {
        // Before the lock is taken, because growing may copy all payloads.
        cancelled.payloads.reserve(NAMESAKES_PER_HOLD);
        let mut bucket = self.names.bucket_of(namesakes);
        for _ in 0..NAMESAKES_PER_HOLD {
            if cancelled.count == max {
                return false;
            }
            let Some(id) = bucket.next(namesakes) else {
                return false;
            };
            self.cancel_one_by_name(id, &mut bucket, cancelled);
        }
        true
    }

    fn cancel_one_by_name(
        &self,
        id: TimerId,
        bucket: &mut Bucket,
        cancelled: &mut CancelledByName<T>,
    ) {
        let Some(cell) = self.cell_of(id) else {
            return;
        };
        let mut held = self.hold(cell);
        let answer = held.shard.cancel(id, || self.tick_now());
        // `release` would wait for the bucket's lock, which this thread holds.
        let unnamed = std::mem::take(&mut held.shard.signals.unnamed);
        self.release(held);
        // A timer gives up its name exactly once, when it ends.
        cancelled.count += unnamed.len();
        unnamed.iter().for_each(|tag| bucket.remove(tag));
        cancelled.payloads.extend(answer.payload());
    }
}
