use super::*;
use crate::sync::lock::bed::Bed;
use std::cell::{Cell, RefCell};
use std::sync::{Condvar, Mutex};
use std::thread;

/// Sleeps that nothing but a wake-up ends, and how many have begun.
#[derive(Default)]
struct Untimed {
    mutex: Mutex<()>,
    woken: Condvar,
    begun: AtomicU32,
}

impl Parker for Untimed {
    fn park(&self, word: &AtomicU32, seen: u32) {
        let guard = self.mutex.lock().unwrap();
        if word.load(Ordering::Relaxed) == seen {
            self.begun.fetch_add(1, Ordering::Relaxed);
            drop(self.woken.wait(guard).unwrap());
        }
    }

    fn wake_one(&self, _word: &AtomicU32) {
        drop(self.mutex.lock().unwrap());
        self.woken.notify_one();
    }
}

/// Counts, and does nothing: whoever waits looks on.
#[derive(Default)]
struct Counted {
    sleeps: AtomicU32,
    wakes: AtomicU32,
}

impl Parker for Counted {
    fn park(&self, _word: &AtomicU32, _seen: u32) {
        self.sleeps.fetch_add(1, Ordering::Relaxed);
    }

    fn wake_one(&self, _word: &AtomicU32) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
    }
}

impl RawLock<Counted> {
    fn sleeps(&self) -> u32 {
        self.parker.sleeps.load(Ordering::Relaxed)
    }

    fn wakes(&self) -> u32 {
        self.parker.wakes.load(Ordering::Relaxed)
    }

    fn wanted(&self) -> u32 {
        self.wanted.load(Ordering::Relaxed)
    }
}

impl<P: Parker> RawLock<P> {
    fn hold(&self, work: impl FnOnce()) {
        if !self.try_lock() {
            self.wait(|nanos| (0..pauses(nanos)).for_each(|_| std::hint::spin_loop()));
        }
        work();
        self.unlock();
    }
}

/// A waiter for a lock that this thread holds; `at` lets go of it in one of the
/// pauses. Returns how long they were.
fn pauses_until(
    lock: &RawLock<Counted>,
    at: impl Fn(&RawLock<Counted>, usize) -> bool,
) -> Vec<u32> {
    assert!(lock.try_lock());
    let pauses = RefCell::new(Vec::new());
    let is_free = Cell::new(false);
    lock.wait(|nanos| {
        pauses.borrow_mut().push(nanos);
        assert!(pauses.borrow().len() < 1_000, "polls for ever");
        if !is_free.get() && at(lock, pauses.borrow().len()) {
            is_free.set(true);
            lock.unlock();
        }
    });
    lock.unlock();
    pauses.into_inner()
}

#[test]
fn a_waiter_polls_twice_before_it_asks() {
    let lock = RawLock::default();
    let pauses = pauses_until(&lock, |lock, pause| {
        assert_eq!(lock.wanted(), if pause > 2 { ASK } else { 0 });
        pause == 3
    });
    assert_eq!(pauses, [POLLS[0], POLLS[1], BETWEEN_LOOKS]);
    // Whoever let go saw it.
    assert_eq!((lock.wanted(), lock.sleeps(), lock.wakes()), (0, 0, 0));
}

#[test]
fn a_waiter_that_asked_in_vain_sleeps_and_then_asks_again() {
    let lock = RawLock::default();
    let asked = LOOKS as usize + POLLS.len();
    let pauses = pauses_until(&lock, |lock, pause| {
        assert_eq!(lock.sleeps(), u32::from(pause > asked));
        pause == asked + 2
    });
    assert!(
        pauses[POLLS.len()..]
            .iter()
            .all(|&nanos| nanos == BETWEEN_LOOKS)
    );
    assert_eq!(lock.active.load(Ordering::Relaxed), 0);
    assert_eq!(lock.sleepers.load(Ordering::Relaxed), 0);
}

#[test]
fn an_unlock_wakes_a_sleeper_only_if_all_who_wait_sleep() {
    let lock = RawLock::<Counted>::default();
    lock.wanted.store(PARKED, Ordering::Relaxed);
    lock.active.store(1, Ordering::Relaxed);
    lock.hold(|| {});
    assert_eq!((lock.wanted(), lock.wakes()), (PARKED, 0));
    lock.active.store(0, Ordering::Relaxed);
    lock.hold(|| {});
    assert_eq!((lock.wanted(), lock.wakes()), (0, 1));
    lock.hold(|| {});
    assert_eq!(lock.wakes(), 1);
}

#[test]
fn who_asked_and_has_gone_costs_no_sleeper_its_wake_up() {
    let lock = RawLock::<Counted>::default();
    lock.wanted.store(ASK | PARKED, Ordering::Relaxed);
    lock.hold(|| {});
    assert_eq!((lock.wanted(), lock.wakes()), (0, 1));
}

/// Nobody comes, and then somebody is there already.
#[test]
fn an_unlock_stands_off_until_somebody_comes() {
    let lock = RawLock::<Counted>::default();
    let begun = std::time::Instant::now();
    assert!(!lock.stand_off());
    // As long as it says, by a factor: the processor may change its pace.
    assert!(begun.elapsed().as_nanos() > u128::from(STAND_OFF / 8));
    assert!(lock.try_lock());
    assert!(lock.stand_off());
    // The new holder's unlock has the rest to do.
    lock.wanted.store(ASK | PARKED, Ordering::Relaxed);
    lock.let_in();
    assert_eq!((lock.wanted(), lock.wakes()), (PARKED, 0));
}

/// Lets go only when all of them sleep: each wakes the next one.
#[test]
fn waiters_sleep_and_are_woken() {
    const WAITERS: u32 = 4;
    let lock = RawLock::<Untimed>::default();
    thread::scope(|scope| {
        lock.hold(|| {
            (0..WAITERS).for_each(|_| drop(scope.spawn(|| lock.hold(|| {}))));
            while lock.sleepers.load(Ordering::Relaxed) < WAITERS
                || lock.active.load(Ordering::Relaxed) > 0
                || lock.parker.begun.load(Ordering::Relaxed) < WAITERS
            {
                thread::yield_now();
            }
        });
    });
    assert_eq!(lock.sleepers.load(Ordering::Relaxed), 0);
    assert_eq!(lock.active.load(Ordering::Relaxed), 0);
}

/// Where there is no futex.
#[test]
fn one_at_a_time_on_condition_variables() {
    let lock = RawLock::<Bed>::default();
    // Read and written in two steps.
    let count = AtomicU32::new(0);
    let increment = || {
        let seen = count.load(Ordering::Relaxed);
        count.store(seen + 1, Ordering::Relaxed);
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50_000).for_each(|_| lock.hold(increment)));
        }
    });
    assert_eq!(count.into_inner(), 200_000);
}
