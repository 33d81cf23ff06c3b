//! A shard behind its lock, and the tick at which it wants to be visited.

use crossbeam_utils::CachePadded;

use crate::hub::fairness::{Walk, step_aside};
use crate::shard::Shard;
use crate::sync::{AtomicU64, Lock, LockGuard, Ordering};
use crate::tick::Tick;

pub(crate) struct ShardCell<T> {
    pub(crate) index: usize,
    /// The tick at which the shard wants to be visited. The ticker reads it
    /// without the lock; only a holder of the lock writes it.
    next: CachePadded<AtomicU64>,
    shard: Lock<Shard<T>>,
}

impl<T> ShardCell<T> {
    pub(super) fn new(index: usize, shard: Shard<T>) -> ShardCell<T> {
        ShardCell {
            index,
            next: CachePadded::new(AtomicU64::new(Tick::MAX.0)),
            shard: Lock::new(shard),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> LockGuard<'_, Shard<T>> {
        self.shard.lock()
    }

    /// Locks for a worker: a ticker within a batch keeps the lock (see
    /// `expire.rs`).
    #[inline]
    pub(super) fn lock_low_priority(&self) -> LockGuard<'_, Shard<T>> {
        self.shard.lock_low_priority()
    }

    /// Notes, under the lock, that a timer was linked for `tick`. Returns
    /// whether that is earlier than the ticker knows of.
    #[inline]
    pub(super) fn lower_next(&self, tick: Tick) -> bool {
        let lowered = tick < self.next();
        if lowered {
            self.set_next(tick);
        }
        lowered
    }

    /// The tick at which the shard wants to be visited.
    #[inline]
    pub(crate) fn next(&self) -> Tick {
        Tick(self.next.load(Ordering::Relaxed))
    }

    /// The caller holds the lock.
    #[inline]
    pub(super) fn set_next(&self, tick: Tick) {
        self.next.store(tick.0, Ordering::Relaxed);
    }

    /// Lets waiters in, between two holds of the lock.
    pub(crate) fn step_aside(&self) {
        step_aside(&self.shard);
    }

    /// The same for a walk, which gives waiters no more than their share of its
    /// time.
    pub(super) fn step_aside_in(&self, walk: &mut Walk) {
        walk.step_aside(&self.shard);
    }

    pub(super) fn has_urgent_waiters(&self) -> bool {
        self.shard.has_urgent_waiters()
    }
}
