//! Cancelling one timer, many timers, or the timers with a name. For cancelling
//! everything, see `cancel_all.rs`.

use crate::hub::names::{Bucket, NAMESAKES_PER_HOLD, Namesakes};
use crate::hub::{Core, Held, Unsent};
use crate::id::TimerId;
use crate::sync::IS_MODEL;
use crate::timer::Cancel;

/// The number of timers that one hold of a shard's lock cancels: enough that the cost of
/// taking the lock is negligible, and few enough that a waiter does not wait long.
const CANCELS_PER_HOLD: usize = 32;

/// The number of timers with a name for which the first hold of a bucket's lock has room.
/// Few names have more, and memory for many would cost more than the cancels.
const FIRST_NAMESAKES: usize = if IS_MODEL { 1 } else { 4 };

impl<T> Core<T> {
    #[inline]
    pub(crate) fn cancel(&self, id: TimerId) -> Cancel<T> {
        self.cancel_then(id, |cancelled| cancelled)
    }

    /// Cancels a timer, and calls `then` with the answer, outside the lock. Where most
    /// answers are given, the compiler knows which one it is.
    #[inline(always)]
    pub(crate) fn cancel_then<R>(&self, id: TimerId, then: impl FnOnce(Cancel<T>) -> R) -> R {
        let Some(cell) = self.cell_of(id) else {
            return then(Cancel::Gone);
        };
        let mut held = self.hold(cell);
        let Some(at) = held.shard.find_plain(id) else {
            return then(self.cancel_any(held, id));
        };
        let payload = held.shard.cancel_plain(at);
        // The lock is simply dropped: no timer was linked and no signal was raised.
        drop(held);
        then(Cancel::Cancelled(payload))
    }

    #[cold]
    pub(super) fn cancel_any(&self, mut held: Held<'_, T>, id: TimerId) -> Cancel<T> {
        let cancelled = held.shard.cancel(id, || self.tick_now());
        self.release(held);
        cancelled
    }

    /// Cancels many timers, and returns the answers in the order of `ids`.
    ///
    /// Consecutive ids of one shard share holds of its lock. Their entries are prefetched
    /// together, because each is a cache miss if another thread scheduled the timer.
    pub(crate) fn cancel_many(&self, ids: &[TimerId]) -> Vec<(TimerId, Cancel<T>)> {
        let mut answers = Vec::with_capacity(ids.len());
        for of_one_shard in ids.chunk_by(|one, next| one.wheel() == next.wheel()) {
            for some in of_one_shard.chunks(CANCELS_PER_HOLD) {
                self.cancel_in_one_hold(some, &mut answers);
            }
        }
        answers
    }

    fn cancel_in_one_hold(&self, ids: &[TimerId], answers: &mut Vec<(TimerId, Cancel<T>)>) {
        let Some(cell) = ids.first().and_then(|&id| self.cell_of(id)) else {
            answers.extend(ids.iter().map(|&id| (id, Cancel::Gone)));
            return;
        };
        let mut held = self.hold(cell);
        ids.iter().for_each(|&id| held.shard.prefetch(id));
        let cancel = |&id| (id, held.shard.cancel(id, || self.tick_now()));
        answers.extend(ids.iter().map(cancel));
        self.release(held);
    }

    /// Cancels the timers with a name, oldest first, until `max` of them have been
    /// cancelled. Skips timers that are created meanwhile; otherwise it might never end.
    pub(crate) fn cancel_by_name(
        &self,
        name: &str,
        max: Option<usize>,
    ) -> Vec<(TimerId, Cancel<T>)> {
        let mut left = max.unwrap_or(usize::MAX);
        let mut namesakes = self.names.namesakes(name);
        let mut answers = Vec::new();
        let mut count = FIRST_NAMESAKES;
        while self.cancel_some_by_name(&mut namesakes, count, &mut left, &mut answers) {
            self.names.step_aside(&namesakes);
            count = NAMESAKES_PER_HOLD;
        }
        answers
    }

    /// Cancels up to `count` timers in one hold of the bucket. Returns whether there may
    /// be more timers.
    fn cancel_some_by_name(
        &self,
        namesakes: &mut Namesakes<'_>,
        count: usize,
        left: &mut usize,
        answers: &mut Vec<(TimerId, Cancel<T>)>,
    ) -> bool {
        // Reserved before the lock is taken, because growing may copy all payloads.
        answers.reserve(count);
        let mut unsent = Vec::with_capacity(count);
        let may_be_more = self.cancel_in_bucket(namesakes, count, left, answers, &mut unsent);
        unsent.into_iter().for_each(|unsent| self.send(unsent));
        may_be_more
    }

    /// Does the same, and leaves in `unsent` what has to be sent outside the
    /// bucket's lock.
    fn cancel_in_bucket(
        &self,
        namesakes: &mut Namesakes<'_>,
        count: usize,
        left: &mut usize,
        answers: &mut Vec<(TimerId, Cancel<T>)>,
        unsent: &mut Vec<Unsent>,
    ) -> bool {
        let mut bucket = self.names.bucket_of(namesakes);
        for _ in 0..count {
            if *left == 0 {
                return false;
            }
            let Some(id) = bucket.next(namesakes) else {
                return false;
            };
            let one = self.cancel_one_by_name(id, namesakes.name, &mut bucket, answers);
            let Some((ends, sends)) = one else { continue };
            *left -= usize::from(ends);
            unsent.push(sends);
        }
        true
    }

    /// Cancels a timer that has this name. Returns whether it ends because of this call,
    /// and not by itself when its last firing returns.
    fn cancel_one_by_name(
        &self,
        id: TimerId,
        name: &str,
        bucket: &mut Bucket,
        answers: &mut Vec<(TimerId, Cancel<T>)>,
    ) -> Option<(bool, Unsent)> {
        let mut held = self.hold(self.cell_of(id)?);
        if !held.shard.has_name(id, name) {
            return None;
        }
        let answer = held.shard.cancel(id, || self.tick_now());
        let mut unsent = self.release_unsent(held);
        // Taken out, because `send` would not find them any more.
        let mut has_ended = false;
        unsent.signals.take_unnamed(|place| {
            bucket.remove(place);
            // A timer gives up its name exactly once, when it ends.
            has_ended = true;
        });
        if !matches!(answer, Cancel::Gone) {
            answers.push((id, answer));
        }
        Some((has_ended, unsent))
    }
}
