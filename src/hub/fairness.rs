//! Stepping aside for threads that are waiting for a lock, between two holds of it.

use std::time::{Duration, Instant};

use crate::sync::{Lock, thread};

/// The number of times that a holder offers the processor to the waiters of one lock.
const YIELDS: usize = 8;

/// The time for which a walk steps aside: about the time that a sleeping thread takes to
/// wake up.
const WAKE_UP: Duration = Duration::from_micros(100);

/// The divisor that gives the waiters' share of a walk's time.
const SHARE: u32 = 4;

/// Lets waiting threads take the lock.
pub(crate) fn step_aside<V>(lock: &Lock<V>) {
    if !lock.has_waiters() {
        return;
    }
    lock.wake_spinners();
    let mut yields = 0;
    while lock.has_waiters() && yields < YIELDS {
        thread::yield_now();
        yields += 1;
    }
}

/// A walk that takes many holds of a lock and has to end in time.
///
/// If threads outnumber processors, each thread may have a turn between two holds. So
/// a walk counts the time that it gives away.
pub(crate) struct Walk {
    begun: Instant,
    given: Duration,
}

impl Walk {
    pub(crate) fn begin() -> Walk {
        Walk {
            begun: Instant::now(),
            given: Duration::ZERO,
        }
    }

    /// Lets waiting threads take the lock, unless they have had their share of the walk's
    /// time.
    pub(crate) fn step_aside<V>(&mut self, lock: &Lock<V>) {
        if !lock.has_waiters() {
            return;
        }
        let now = Instant::now();
        if self.has_given_enough(now - self.begun) {
            return;
        }
        lock.wake_spinners();
        while lock.has_waiters() && now.elapsed() < WAKE_UP {
            thread::yield_now();
        }
        self.given += now.elapsed();
    }

    fn has_given_enough(&self, walked: Duration) -> bool {
        self.given * SHARE > walked
    }
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
    fn who_waits_gets_a_share_of_a_walk_and_no_more() {
        beside_a_waiter(|lock| {
            let mut walk = Walk::begin();
            for _ in 0..100 {
                let before = walk.given;
                walk.step_aside(lock);
                let is_let_in = walk.given > before;
                assert!(!is_let_in || before * SHARE <= walk.begun.elapsed());
            }
            assert!(walk.given >= WAKE_UP);
        });
    }

    #[test]
    fn where_nobody_waits_nothing_is_given() {
        let (lock, mut walk) = (Lock::new(()), Walk::begin());
        walk.step_aside(&lock);
        assert_eq!(walk.given, Duration::ZERO);
    }
}
