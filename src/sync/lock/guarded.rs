//! The lock with its value, and with who waits for it.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::pace::{pauses, pauses_per_micro};
use super::raw::RawLock;
use crate::sync::primitives::{AtomicU32, Ordering};

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
type Sleep = super::futex::Futex;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
type Sleep = super::bed::Bed;

pub(crate) struct Lock<T> {
    raw: RawLock<Sleep>,
    /// How many wait who are in a hurry, and how many who are not, asleep or
    /// awake.
    urgent: AtomicU32,
    patient: AtomicU32,
    /// Changes when waiters are to look at once.
    invitations: OwnLines<AtomicU32>,
    value: OwnLines<UnsafeCell<T>>,
}

/// Two cache lines, because processors fetch them in pairs.
#[repr(align(128))]
struct OwnLines<V>(V);

// SAFETY: the value is reached only through a guard, of which there is at
// most one at a time; so threads pass the value to each other, never share.
unsafe impl<T: Send> Sync for Lock<T> {}

pub(crate) struct LockGuard<'a, T> {
    lock: &'a Lock<T>,
    /// What it hands out: so threads share a guard only where they may
    /// share the value.
    borrows: PhantomData<&'a mut T>,
}

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Lock<T> {
        // Here, because a waiter has no time for it.
        pauses_per_micro();
        Lock {
            raw: RawLock::default(),
            urgent: AtomicU32::new(0),
            patient: AtomicU32::new(0),
            invitations: OwnLines(AtomicU32::new(0)),
            value: OwnLines(UnsafeCell::new(value)),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        self.lock_as(&self.urgent)
    }

    /// As [`Lock::lock`], for a caller before whom a holder with much to do
    /// may finish.
    #[inline]
    pub(crate) fn lock_patiently(&self) -> LockGuard<'_, T> {
        self.lock_as(&self.patient)
    }

    #[inline]
    fn lock_as(&self, waiters: &AtomicU32) -> LockGuard<'_, T> {
        if !self.raw.try_lock() {
            self.wait(waiters);
        }
        LockGuard {
            lock: self,
            borrows: PhantomData,
        }
    }

    /// Whether somebody else is waiting for the lock.
    pub(crate) fn has_waiters(&self) -> bool {
        self.has_urgent_waiters() || self.patient.load(Ordering::Relaxed) > 0
    }

    /// Whether one of them is in a hurry.
    pub(crate) fn has_urgent_waiters(&self) -> bool {
        self.urgent.load(Ordering::Relaxed) > 0
    }

    /// Has waiters look at once. For who has just let go of the lock, and
    /// steps aside.
    pub(crate) fn invite(&self) {
        self.invitations.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Pauses so often, or until somebody invites.
    fn pause(&self, pauses: u32) {
        let invitations = || self.invitations.0.load(Ordering::Relaxed);
        let seen = invitations();
        for _ in 0..pauses {
            spin_loop();
            if invitations() != seen {
                break;
            }
        }
    }

    #[cold]
    fn wait(&self, waiters: &AtomicU32) {
        waiters.fetch_add(1, Ordering::Relaxed);
        self.raw.wait(|nanos| self.pause(pauses(nanos)));
        waiters.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so this thread holds the lock.
        unsafe { &*self.lock.value.0.get() }
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed mutably.
        unsafe { &mut *self.lock.value.0.get() }
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

    /// Has one `answer` for what threads must not share, and two, of which
    /// the compiler takes neither, for the rest.
    trait NotSync<Witness> {
        fn answer() {}
    }
    impl<V> NotSync<()> for V {}
    impl<V: Sync> NotSync<u8> for V {}

    #[test]
    fn a_guard_is_shared_only_where_its_value_may_be() {
        <LockGuard<'_, Cell<u32>> as NotSync<_>>::answer();
    }

    #[test]
    fn one_at_a_time() {
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

    /// Has somebody wait for a lock, and asks whether that is urgent.
    fn is_urgent(wait: impl FnOnce(&Lock<()>) + Send) -> bool {
        let lock = Lock::new(());
        let held = lock.lock();
        thread::scope(|scope| {
            scope.spawn(|| wait(&lock));
            while !lock.has_waiters() {
                thread::yield_now();
            }
            let urgent = lock.has_urgent_waiters();
            drop(held);
            urgent
        })
    }

    #[test]
    fn who_waits_patiently_is_not_urgent() {
        assert!(is_urgent(|lock| drop(lock.lock())));
        assert!(!is_urgent(|lock| drop(lock.lock_patiently())));
    }

    #[test]
    fn an_invitation_ends_a_pause() {
        let lock = Lock::new(());
        let begun = std::time::Instant::now();
        thread::scope(|scope| {
            let pausing = scope.spawn(|| lock.pause(u32::MAX));
            while !pausing.is_finished() {
                lock.invite();
                thread::yield_now();
            }
        });
        // By itself it ends after a minute or more.
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}
