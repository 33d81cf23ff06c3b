//! A lock with its value and with two priorities.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};

use crossbeam_utils::CachePadded;

use super::parker::SystemParker;
use super::raw::{RawLock, pauses, pauses_per_micro};
use crate::sync::primitives::{AtomicU32, Ordering};

/// A lock, the value that it protects, and the counts of its waiters.
pub(crate) struct Lock<T> {
    raw: RawLock<SystemParker>,
    /// The numbers of threads waiting, asleep or awake, in [`Lock::lock`] and in
    /// [`Lock::lock_low_priority`].
    urgent: AtomicU32,
    low_priority: AtomicU32,
    /// A count whose change makes spinning waiters retry at once.
    wake_ups: CachePadded<AtomicU32>,
    value: CachePadded<UnsafeCell<T>>,
}

// SAFETY: the value is reached only through a guard, and there is at most one guard
// at a time. Threads therefore pass the value to each other and never share it.
unsafe impl<T: Send> Sync for Lock<T> {}

// No foreign code runs under a lock. A panic of a payload, key or task therefore leaves
// the value whole, for whoever takes the lock next.
impl<T> UnwindSafe for Lock<T> {}
impl<T> RefUnwindSafe for Lock<T> {}

/// Access to the value of a lock. Dropping it releases the lock.
pub(crate) struct LockGuard<'a, T> {
    lock: &'a Lock<T>,
    /// Lets threads share a guard only if they may share the value.
    borrows: PhantomData<&'a mut T>,
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Lock<T> {
        // Measures pauses now, because a waiter has no time to do so.
        pauses_per_micro();
        Lock {
            raw: RawLock::default(),
            urgent: AtomicU32::new(0),
            low_priority: AtomicU32::new(0),
            wake_ups: CachePadded::new(AtomicU32::new(0)),
            value: CachePadded::new(UnsafeCell::new(value)),
        }
    }

    /// Blocks until the lock is free, and takes it.
    #[inline]
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        self.lock_as(&self.urgent)
    }

    /// Takes the lock as [`Lock::lock`] does, except that a busy holder may finish
    /// its work first.
    #[inline]
    pub(crate) fn lock_low_priority(&self) -> LockGuard<'_, T> {
        self.lock_as(&self.low_priority)
    }

    /// Takes the lock if it is free.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<LockGuard<'_, T>> {
        self.raw.try_lock().then(|| self.guard())
    }

    #[inline]
    fn lock_as(&self, waiters: &AtomicU32) -> LockGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.wait(waiters),
        }
    }

    /// Returns whether other threads are waiting for the lock.
    pub(crate) fn has_waiters(&self) -> bool {
        self.has_urgent_waiters() || self.low_priority.load(Ordering::Relaxed) > 0
    }

    /// Returns whether a thread is waiting in [`Lock::lock`].
    pub(crate) fn has_urgent_waiters(&self) -> bool {
        self.urgent.load(Ordering::Relaxed) > 0
    }

    /// Makes spinning waiters retry at once. Called by a thread that has just
    /// released the lock and steps aside.
    pub(crate) fn wake_spinners(&self) {
        self.wake_ups.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a waiter that never takes the lock. Returns how often spinning waiters were woken.
    #[cfg(test)]
    pub(crate) fn pretend_an_urgent_waiter(&self) -> impl Fn() -> usize {
        self.urgent.fetch_add(1, Ordering::Relaxed);
        || self.wake_ups.load(Ordering::Relaxed) as usize
    }

    /// Pauses `pauses` times, or until [`Lock::wake_spinners`] is called.
    fn pause(&self, pauses: u32) {
        let wake_ups = || self.wake_ups.load(Ordering::Relaxed);
        let seen = wake_ups();
        for _ in 0..pauses {
            spin_loop();
            if wake_ups() != seen {
                break;
            }
        }
    }

    #[cold]
    fn wait(&self, waiters: &AtomicU32) -> LockGuard<'_, T> {
        waiters.fetch_add(1, Ordering::Relaxed);
        self.raw.wait(|nanos| self.pause(pauses(nanos)));
        waiters.fetch_sub(1, Ordering::Relaxed);
        self.guard()
    }

    /// Returns the guard of the thread that has just taken the lock.
    #[inline]
    fn guard(&self) -> LockGuard<'_, T> {
        LockGuard { lock: self, borrows: PhantomData }
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so this thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed mutably.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for LockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.raw.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::thread;
    use std::time::Duration;

    /// A trait with one `answer` for types that threads must not share. For other
    /// types it has two, so a call is ambiguous and does not compile.
    trait NotSync<Witness> {
        fn answer() {}
    }
    impl<V> NotSync<()> for V {}
    impl<V: Sync> NotSync<u8> for V {}

    #[test]
    fn threads_share_a_guard_only_if_they_may_share_the_value() {
        <LockGuard<'_, Cell<u32>> as NotSync<_>>::answer();
    }

    #[test]
    fn one_holder_at_a_time() {
        let lock = Lock::new(0u64);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50_000 {
                        let mut value = lock.lock();
                        let seen = *value;
                        *value = seen + 1;
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 200_000);
        assert!(!lock.has_waiters());
    }

    /// Returns whether a thread that is waiting in `wait` is urgent.
    fn is_urgent(wait: impl FnOnce(&Lock<()>) + Send) -> bool {
        let lock = Lock::new(());
        let (held, begun) = (lock.lock(), std::time::Instant::now());
        let urgent = thread::scope(|scope| {
            scope.spawn(|| wait(&lock));
            while !lock.has_waiters() {
                assert!(begun.elapsed() < Duration::from_secs(20), "a waiter is not counted");
                thread::yield_now();
            }
            let urgent = lock.has_urgent_waiters();
            drop(held);
            urgent
        });
        assert!(!lock.has_waiters());
        urgent
    }

    #[test]
    fn a_low_priority_waiter_is_not_urgent() {
        assert!(is_urgent(|lock| drop(lock.lock())));
        assert!(!is_urgent(|lock| drop(lock.lock_low_priority())));
    }

    #[test]
    fn a_wake_up_ends_a_pause() {
        let lock = Lock::new(());
        let begun = std::time::Instant::now();
        thread::scope(|scope| {
            let pausing = scope.spawn(|| lock.pause(u32::MAX));
            while !pausing.is_finished() {
                lock.wake_spinners();
                thread::yield_now();
            }
        });
        // Without a wake-up, the pause lasts for a minute or more.
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}
