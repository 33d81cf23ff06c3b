//! Stepping aside for threads that are waiting for a lock, between two holds of it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::sync::{Lock, thread, thread_local};

/// The number of times that the holder for a short call offers the processor to the waiters.
pub(crate) const A_FEW: usize = 8;

/// A hold that is longer than a waiter polls puts the waiter to sleep. The holder then yields
/// until the waiter is awake.
pub(crate) const UNTIL_AWAKE: usize = usize::MAX;

/// The time for which a holder steps aside: about the time that a sleeping thread takes to
/// wake up.
const WAKE_UP: Duration = Duration::from_micros(100);

/// The divisor that gives the waiters' share of a holder's time.
const SHARE: u32 = 4;

thread_local! {
    /// The instant until which this thread has given waiters their share of its time.
    // Loom's macro does not know `const`.
    #[allow(clippy::missing_const_for_thread_local)]
    static GIVEN_UNTIL: Cell<Option<Instant>> = Cell::new(None);
}

/// Lets waiting threads take the lock, for at most this number of yields, unless the calling
/// thread has lately given waiters their share of its time: if threads outnumber processors,
/// a yield may last until each of them has had a turn.
pub(crate) fn step_aside<V>(lock: &Lock<V>, yields: usize) {
    if !lock.has_waiters() {
        return;
    }
    lock.wake_spinners();
    let begun = Instant::now();
    let until = GIVEN_UNTIL.try_with(Cell::get).ok().flatten();
    if until.is_some_and(|until| begun < until) {
        return;
    }
    let mut left = yields;
    while lock.has_waiters() && left > 0 && begun.elapsed() < WAKE_UP {
        thread::yield_now();
        left -= 1;
    }
    let given = begun.elapsed();
    // A thread that is ending has no such instant, and yields again.
    let _ = GIVEN_UNTIL.try_with(|until| until.set(Some(begun + given * (SHARE + 1))));
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::thread;

    /// Calls `body` with a lock that always has a waiter.
    fn beside_a_waiter(body: impl FnOnce(&Lock<()>)) {
        let (lock, held) = (Lock::new(()), Lock::new(()));
        let keep = held.lock();
        thread::scope(|scope| {
            scope.spawn(|| {
                let _lock = lock.lock();
                drop(held.lock());
            });
            while !held.has_waiters() {
                thread::yield_now();
            }
            scope.spawn(|| drop(lock.lock()));
            while !lock.has_waiters() {
                thread::yield_now();
            }
            body(&lock);
            drop(keep);
        });
    }

    #[test]
    fn a_holder_that_has_given_waiters_their_share_gives_no_more_for_a_while() {
        beside_a_waiter(|lock| {
            let later = Instant::now() + Duration::from_secs(3_600);
            GIVEN_UNTIL.set(Some(later));
            step_aside(lock, A_FEW);
            assert_eq!(GIVEN_UNTIL.get(), Some(later));
            GIVEN_UNTIL.set(None);
            let begun = Instant::now();
            step_aside(lock, A_FEW);
            let until = GIVEN_UNTIL.get().expect("it has given some");
            assert!(until > begun && until <= begun + begun.elapsed() * (SHARE + 1));
            // The calls before and behind what is measured take a moment, and the holder
            // may be interrupted in them: but not always.
            let is_exact = (0..1_000).any(|_| {
                GIVEN_UNTIL.set(None);
                let begun = Instant::now();
                step_aside(lock, A_FEW);
                let given = begun.elapsed();
                GIVEN_UNTIL.get().unwrap() - begun > given * SHARE + given / 2
            });
            assert!(is_exact, "the waiters get more than their share");
        });
    }

    #[test]
    fn a_holder_gives_a_sleeper_the_time_to_wake_up() {
        beside_a_waiter(|lock| {
            let begun = Instant::now();
            step_aside(lock, UNTIL_AWAKE);
            assert!(begun.elapsed() >= WAKE_UP);
        });
    }

    #[test]
    fn where_nobody_waits_nothing_is_given() {
        step_aside(&Lock::new(()), UNTIL_AWAKE);
        assert_eq!(GIVEN_UNTIL.get(), None);
    }
}
