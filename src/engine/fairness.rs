//! Stepping aside for threads that are waiting for a lock, between two holds of it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::sync::{IS_MODEL, Lock, thread, thread_local};

/// The number of times that a holder offers the processor to the waiters of one lock.
const YIELDS: usize = 8;

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

/// Lets waiting threads take the lock, unless the calling thread has lately given waiters
/// their share of its time: if threads outnumber processors, a yield may last until each
/// of them has had a turn.
pub(crate) fn step_aside<V>(lock: &Lock<V>) {
    if !lock.has_waiters() {
        return;
    }
    lock.wake_spinners();
    // A model would take other ways if its computer were slow.
    match IS_MODEL {
        true => offer(lock, || true),
        false => offer_share(lock),
    }
}

fn offer_share<V>(lock: &Lock<V>) {
    let begun = Instant::now();
    let until = GIVEN_UNTIL.try_with(Cell::get).ok().flatten();
    if until.is_some_and(|until| begun < until) {
        return;
    }
    offer(lock, || begun.elapsed() < WAKE_UP);
    let given = begun.elapsed();
    // A thread that is ending has no such instant, and yields again.
    let _ = GIVEN_UNTIL.try_with(|until| until.set(Some(begun + given * (SHARE + 1))));
}

/// Yields while threads wait for the lock, a few times at most.
fn offer<V>(lock: &Lock<V>, is_soon: impl Fn() -> bool) {
    let mut yields = 0;
    while lock.has_waiters() && yields < YIELDS && is_soon() {
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
    fn a_holder_that_has_given_waiters_their_share_gives_no_more_for_a_while() {
        beside_a_waiter(|lock| {
            let later = Instant::now() + Duration::from_secs(3_600);
            GIVEN_UNTIL.set(Some(later));
            step_aside(lock);
            assert_eq!(GIVEN_UNTIL.get(), Some(later));
            GIVEN_UNTIL.set(None);
            let begun = Instant::now();
            step_aside(lock);
            let until = GIVEN_UNTIL.get().expect("it has given some");
            assert!(until > begun && until <= begun + begun.elapsed() * (SHARE + 1));
            // The calls before and behind what is measured take a moment, and the holder
            // may be interrupted in them: but not always.
            let is_exact = (0..1_000).any(|_| {
                GIVEN_UNTIL.set(None);
                let begun = Instant::now();
                step_aside(lock);
                let given = begun.elapsed();
                GIVEN_UNTIL.get().unwrap() - begun > given * SHARE + given / 2
            });
            assert!(is_exact, "the waiters get more than their share");
        });
    }

    #[test]
    fn where_nobody_waits_nothing_is_given() {
        let (lock, mut walk) = (Lock::new(()), Walk::begin());
        walk.step_aside(&lock);
        assert_eq!(walk.given, Duration::ZERO);
        step_aside(&lock);
        assert_eq!(GIVEN_UNTIL.get(), None);
    }
}
