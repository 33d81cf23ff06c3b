//! A shard behind its lock, and the tick at which the ticker has to visit it.

use crossbeam_utils::CachePadded;

use crate::hub::fairness::{Walk, step_aside};
use crate::shard::Shard;
use crate::sync::{AtomicU64, Lock, LockGuard, Ordering};
use crate::tick::Tick;

pub(crate) struct ShardCell<T> {
    pub(crate) index: usize,
    /// The tick at which the ticker has to visit the shard. The ticker reads it without
    /// the lock, but only a holder of the lock writes it.
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

    /// Locks if no other thread holds the lock.
    #[inline]
    pub(super) fn try_lock(&self) -> Option<LockGuard<'_, Shard<T>>> {
        self.shard.try_lock()
    }

    /// Locks for a worker, for which the ticker does not interrupt a visit (see
    /// `expire.rs`).
    #[inline]
    pub(super) fn lock_low_priority(&self) -> LockGuard<'_, Shard<T>> {
        self.shard.lock_low_priority()
    }

    /// Notes, under the lock, that a timer was linked for `tick`. Returns whether `tick`
    /// is earlier than the `next` that the ticker knows.
    #[inline]
    pub(super) fn lower_next(&self, tick: Tick) -> bool {
        let lowered = tick < self.next();
        if lowered {
            self.set_next(tick);
        }
        lowered
    }

    #[inline]
    pub(crate) fn next(&self) -> Tick {
        Tick(self.next.load(Ordering::Relaxed))
    }

    /// Sets `next`. The caller holds the lock.
    #[inline]
    pub(super) fn set_next(&self, tick: Tick) {
        self.next.store(tick.0, Ordering::Relaxed);
    }

    /// Lets waiting threads take the lock, between two holds of it.
    pub(crate) fn step_aside(&self) {
        step_aside(&self.shard);
    }

    /// Does the same for a walk, which gives waiters only their share of its time.
    pub(crate) fn step_aside_in(&self, walk: &mut Walk) {
        walk.step_aside(&self.shard);
    }

    pub(super) fn has_urgent_waiters(&self) -> bool {
        self.shard.has_urgent_waiters()
    }
}
