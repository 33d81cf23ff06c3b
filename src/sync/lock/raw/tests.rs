use super::*;
use crate::sync::lock::parker::CondvarParker;
use std::cell::{Cell, RefCell};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Sleeps that only a wake-up ends, within a limit, and the number of those that have begun.
#[derive(Default)]
struct Untimed {
    mutex: Mutex<()>,
    woken: Condvar,
    begun: AtomicU32,
}

impl Parker for Untimed {
    fn park(&self, word: &AtomicU32, seen: u32, _limit: Duration) {
        let guard = self.mutex.lock().unwrap();
        if word.load(Ordering::Relaxed) == seen {
            self.begun.fetch_add(1, Ordering::Relaxed);
            let woken = self.woken.wait_timeout(guard, Duration::from_secs(20)).unwrap();
            assert!(!woken.1.timed_out(), "forgotten");
        }
    }

    fn wake_one(&self, _word: &AtomicU32) {
        drop(self.mutex.lock().unwrap());
        self.woken.notify_one();
    }
}

/// Counts sleeps and wake-ups but performs neither.
#[derive(Default)]
struct Counted {
    sleeps: AtomicU32,
    /// Of the last sleep, in milliseconds.
    limit: AtomicU32,
    wakes: AtomicU32,
}

impl Parker for Counted {
    fn park(&self, word: &AtomicU32, seen: u32, limit: Duration) {
        self.limit.store(limit.as_millis() as u32, Ordering::Relaxed);
        assert_eq!(word.load(Ordering::Relaxed), seen, "would not sleep");
        assert!(self.sleeps.fetch_add(1, Ordering::Relaxed) < 1_000, "sleeps for ever");
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

/// Waits for a lock that this thread holds and releases it in the first pause for
/// which `is_last` returns true. Returns the lengths of the pauses.
fn pauses_until(
    lock: &RawLock<Counted>,
    is_last: impl Fn(&RawLock<Counted>, usize) -> bool,
) -> Vec<u32> {
    assert!(lock.try_lock());
    let pauses = RefCell::new(Vec::new());
    let is_free = Cell::new(false);
    lock.wait(|nanos| {
        pauses.borrow_mut().push(nanos);
        assert!(pauses.borrow().len() < 1_000, "polls for ever");
        if !is_free.get() && is_last(lock, pauses.borrow().len()) {
            is_free.set(true);
            lock.unlock();
        }
    });
    lock.unlock();
    pauses.into_inner()
}

#[test]
fn a_waiter_polls_twice_before_it_requests_the_lock() {
    // Another one may sleep.
    for parked in [0, PARKED] {
        let lock = RawLock::default();
        lock.wanted.store(parked, Ordering::Relaxed);
        let pauses = pauses_until(&lock, |lock, pause| {
            assert_eq!(lock.wanted(), parked | if pause > 2 { REQUESTED } else { 0 });
            pause == 3
        });
        assert_eq!(pauses, [POLLS[0], POLLS[1], BETWEEN_ATTEMPTS]);
        // The unlock saw the request.
        assert_eq!((lock.wanted(), lock.sleeps(), lock.wakes()), (0, 0, parked / PARKED));
    }
}

#[test]
fn a_waiter_that_requested_in_vain_sleeps_and_then_requests_again() {
    // However many sleep, they wake up about as often together as one would.
    for others in [0, 9, 900] {
        let lock = RawLock::default();
        lock.sleepers.store(others, Ordering::Relaxed);
        let requested = ATTEMPTS as usize + POLLS.len();
        let pauses = pauses_until(&lock, |lock, pause| {
            assert_eq!(lock.sleeps(), u32::from(pause > requested));
            pause == requested + 2
        });
        assert!(pauses[POLLS.len()..].iter().all(|&nanos| nanos == BETWEEN_ATTEMPTS));
        assert_eq!(lock.active.load(Ordering::Relaxed), 0);
        assert_eq!(lock.sleepers.load(Ordering::Relaxed), others);
        assert_eq!(lock.parker.limit.load(Ordering::Relaxed), 100.min(others + 1));
    }
}

#[test]
fn an_unlock_wakes_a_sleeper_only_if_all_waiters_sleep() {
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
fn an_old_request_costs_no_sleeper_its_wake_up() {
    let lock = RawLock::<Counted>::default();
    lock.wanted.store(REQUESTED | PARKED, Ordering::Relaxed);
    lock.hold(|| {});
    assert_eq!((lock.wanted(), lock.wakes()), (0, 1));
}

/// The first time, no waiter comes. The second time, one has already come.
#[test]
fn an_unlock_stands_off_until_a_waiter_comes() {
    let lock = RawLock::<Counted>::default();
    let begun = std::time::Instant::now();
    assert!(!lock.stand_off());
    // Allows a factor, because the processor may change its pace.
    assert!(begun.elapsed().as_nanos() > u128::from(STAND_OFF / 8));
    assert!(lock.try_lock());
    assert!(lock.stand_off());
    // The unlock of the new holder does the rest.
    lock.wanted.store(REQUESTED | PARKED, Ordering::Relaxed);
    lock.serve_waiters();
    assert_eq!((lock.wanted(), lock.wakes()), (PARKED, 0));
}

/// The holder unlocks once all waiters are asleep. Each waiter wakes the next one.
#[test]
fn each_sleeper_wakes_the_next() {
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

/// However soon others come back.
#[test]
fn a_waiter_that_slept_in_vain_is_handed_the_lock() {
    let (lock, holds) = (RawLock::<CondvarParker>::default(), Mutex::new(Vec::new()));
    assert!(lock.try_lock());
    thread::scope(|scope| {
        scope.spawn(|| {
            lock.wait(|_| ());
            holds.lock().unwrap().push("the waiter");
            lock.unlock();
        });
        while lock.wanted.load(Ordering::Relaxed) < CLAIM {
            thread::yield_now();
        }
        lock.unlock();
        lock.hold(|| holds.lock().unwrap().push("whoever comes first"));
    });
    assert_eq!(holds.into_inner().unwrap(), ["the waiter", "whoever comes first"]);
    assert!(lock.wanted.load(Ordering::Relaxed) < CLAIM);
}

/// Tests the lock as it is on systems without a futex.
#[test]
fn one_holder_at_a_time_on_condition_variables() {
    let lock = RawLock::<CondvarParker>::default();
    // Reads and writes in two steps, so a second holder would lose an increment.
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

#[test]
fn a_pause_lasts_about_as_long_as_it_says() {
    const NANOS: u32 = 50_000;
    let sample = || {
        let begun = Instant::now();
        (0..pauses(NANOS)).for_each(|_| spin_loop());
        begun.elapsed().as_nanos() as u32
    };
    // Takes the fastest sample, because the machine may be busy. Allows a
    // factor, because the processor may change its pace.
    let fastest = (0..100).map(|_| sample()).min().unwrap();
    assert!((NANOS / 8..NANOS * 8).contains(&fastest), "{fastest} ns");
}
