//! The lock around a shard: held for nanoseconds, taken millions of times a
//! second, nearly always by the same thread.
//!
//! Taking it is one atomic swap and releasing it a plain store, which halves
//! the cost of a mutex that must look for sleepers when it is released
//! (measured per pair: 18 ns against 24). Who has to wait spins, then yields,
//! then sleeps for moments, because the holder may have been preempted. Waiters
//! are counted, so that the ticker can step aside for them; those who can wait
//! longer, apart.
//!
//! Two threads that meet in a lock pay for every cache line that goes from one
//! to the other. So the value has lines of its own, which those who look at the
//! lock leave with its holder; and who waits looks soon, in case that this was
//! all, and then seldom, so that the holder gets many turns before the lines go
//! over (measured, one thread schedules and another cancels, pauses before the
//! first look and before each further one: 1 and 1, 400 ns a pair; 64 and 64, 97;
//! 16 and 256, 85). A holder who wants others to come invites them, through a
//! line that is written for nothing else.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use real::{Lock, LockGuard};

#[cfg(any(loom, shuttle))]
pub(crate) use model::{Lock, LockGuard};

#[cfg(not(any(loom, shuttle)))]
mod real {
    use std::cell::UnsafeCell;
    use std::hint::spin_loop;
    use std::marker::PhantomData;
    use std::ops::{Deref, DerefMut};
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::thread;
    use std::time::Duration;

    /// How long a waiter pauses before it looks for the first time.
    const FIRST_PAUSES: u32 = 16;
    /// How long before each other time, and up to which look.
    const LONG_PAUSES: u32 = 256;
    const LONG_LOOKS: u32 = 8;
    /// The same for one who has waited long, and after that yields.
    const SHORT_PAUSES: u32 = 32;
    const LOOKS: u32 = LONG_LOOKS + 64;
    const LOOKS_AND_YIELDS: u32 = LOOKS + 64;
    const NAP: Duration = Duration::from_micros(50);

    pub(crate) struct Lock<T> {
        taken: AtomicBool,
        /// How many wait who are in a hurry, and how many who are not.
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
            Lock {
                taken: AtomicBool::new(false),
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
            if self.taken.swap(true, Ordering::Acquire) {
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
            let mut looks = 0;
            loop {
                match looks {
                    0 => self.pause(FIRST_PAUSES),
                    1..LONG_LOOKS => self.pause(LONG_PAUSES),
                    LONG_LOOKS..LOOKS => self.pause(SHORT_PAUSES),
                    LOOKS..LOOKS_AND_YIELDS => thread::yield_now(),
                    _ => thread::sleep(NAP),
                }
                if !self.taken.load(Ordering::Relaxed) && !self.taken.swap(true, Ordering::Acquire)
                {
                    break;
                }
                looks = looks.saturating_add(1);
            }
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
            self.lock.taken.store(false, Ordering::Release);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::cell::Cell;

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
}

#[cfg(any(loom, shuttle))]
mod model {
    use crate::sync::{Mutex, MutexGuard};

    pub(crate) struct Lock<T>(Mutex<T>);

    pub(crate) type LockGuard<'a, T> = MutexGuard<'a, T>;

    impl<T> Lock<T> {
        pub(crate) fn new(value: T) -> Lock<T> {
            Lock(Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> LockGuard<'_, T> {
            crate::sync::lock(&self.0)
        }

        pub(crate) fn lock_patiently(&self) -> LockGuard<'_, T> {
            self.lock()
        }

        pub(crate) fn has_waiters(&self) -> bool {
            false
        }

        pub(crate) fn invite(&self) {}

        /// There may be: so whoever asks lets go, and others get in between.
        pub(crate) fn has_urgent_waiters(&self) -> bool {
            true
        }
    }
}
