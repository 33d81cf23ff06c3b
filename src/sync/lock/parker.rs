//! The sleep of a lock's waiters: on a futex, on 64-bit Linux and Android, or on a condition
//! variable, in a model and on other systems. With 32-bit pointers, a futex's time has 32 or
//! 64 bits, depending on the C library.
//!
//! A sleep has a limit; `raw.rs` says why.

use std::time::Duration;

use crate::sync::primitives::{AtomicU32, Condvar, Mutex, Ordering, lock, wait_for};

#[cfg(not(any(
    loom,
    shuttle,
    all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64")
)))]
pub(super) use CondvarParker as SystemParker;
#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    target_pointer_width = "64",
    not(any(loom, shuttle))
))]
pub(super) use futex::FutexParker as SystemParker;

/// Puts waiters to sleep on a word of their lock.
pub trait Parker: Default {
    /// Sleeps unless `word` differs from `seen`. The sleep ends at a wake-up, after `limit`, or
    /// spuriously.
    fn park(&self, word: &AtomicU32, seen: u32, limit: Duration);

    /// Wakes one sleeper. The caller has already changed `word`.
    fn wake_one(&self, word: &AtomicU32);
}

/// A condition variable with its mutex.
#[cfg_attr(not(any(loom, shuttle)), allow(dead_code))]
#[derive(Default, Debug)]
pub struct CondvarParker {
    mutex: Mutex<()>,
    woken: Condvar,
}

impl Parker for CondvarParker {
    fn park(&self, word: &AtomicU32, seen: u32, limit: Duration) {
        let guard = lock(&self.mutex);
        if word.load(Ordering::Relaxed) == seen {
            drop(wait_for(&self.woken, guard, limit));
        }
    }

    fn wake_one(&self, _word: &AtomicU32) {
        // A waiter that has checked the word is asleep once the mutex is free.
        drop(lock(&self.mutex));
        self.woken.notify_one();
    }
}

#[cfg(all(
    any(target_os = "linux", target_os = "android"),
    target_pointer_width = "64",
    not(any(loom, shuttle))
))]
mod futex {
    use super::{AtomicU32, Duration, Parker};

    #[derive(Default)]
    pub(crate) struct FutexParker;

    impl Parker for FutexParker {
        fn park(&self, word: &AtomicU32, seen: u32, limit: Duration) {
            let (tv_sec, tv_nsec) = (limit.as_secs() as _, limit.subsec_nanos() as _);
            let limit = libc::timespec { tv_sec, tv_nsec };
            let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: the word and the limit are valid for as long as the call lasts.
            // The caller checks the lock whatever the call returns.
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, seen, &raw const limit) };
        }

        fn wake_one(&self, word: &AtomicU32) {
            let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: the kernel uses only the address of the word.
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wake, 1) };
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync::AtomicBool;
    use std::thread;
    use std::time::Instant;

    const LIMIT: Duration = Duration::from_millis(1);

    /// Returns how long the shortest and the longest of a hundred sleeps last. A loaded machine
    /// does not prolong all of them.
    fn sleeps(parker: &impl Parker, word: &AtomicU32, seen: u32) -> [Duration; 2] {
        let sleep = |_| {
            let begun = Instant::now();
            parker.park(word, seen, LIMIT);
            begun.elapsed()
        };
        let lasted: Vec<_> = (0..100).map(sleep).collect();
        [*lasted.iter().min().unwrap(), *lasted.iter().max().unwrap()]
    }

    fn sleeps_until_woken<P: Parker + Sync>() {
        let (parker, word, ended) = (&P::default(), AtomicU32::new(1), AtomicBool::new(false));
        let [changed, _] = sleeps(parker, &word, 0);
        let [moment, alone] = sleeps(parker, &word, 1);
        // The thread that wakes may have to wait for a processor.
        let is_woken = thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    parker.wake_one(&word);
                    thread::yield_now();
                }
            });
            let is_woken = (0..100).any(|_| sleeps(parker, &word, 1)[0] < LIMIT);
            ended.store(true, Ordering::Relaxed);
            is_woken
        });
        assert!(alone >= LIMIT && moment < 20 * LIMIT, "{moment:?} {alone:?}");
        assert!(changed < LIMIT && is_woken, "{changed:?}, woken: {is_woken}");
    }

    #[test]
    fn a_sleep_ends_at_a_wake_up_or_after_a_moment() {
        sleeps_until_woken::<SystemParker>();
        sleeps_until_woken::<CondvarParker>();
    }
}
