//! The lock around a shard admits one thread at a time and forgets no sleeper.
//!
//! Sleeps never end by themselves here, so a sleeper without a wake-up is a
//! deadlock.

#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use std::time::Duration;
use tickwheel::model::{CondvarParker, RawLock};
use tickwheel_loom_tests::model;

type Lock = RawLock<CondvarParker>;
type Wait = fn(&Lock);

const WAIT: Wait = |lock| lock.wait(|_| {});
/// As a waiter does that has slept in vain.
const CLAIM: Wait = |lock| lock.claim(Duration::ZERO);

#[derive(Default)]
struct Counter {
    lock: Lock,
    /// Relaxed, because the lock orders it.
    count: AtomicU32,
}

impl Counter {
    fn increment(&self, wait: Wait) {
        if !self.lock.try_lock() {
            wait(&self.lock);
        }
        let count = self.count.load(Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Relaxed);
        self.lock.unlock();
    }
}

/// Starts a thread for each number, which increments a counter that often. No thread
/// comes between another's read and write, and all of them get in.
fn increments<const THREADS: usize>(each: [u32; THREADS], wait: Wait) {
    model(move || {
        let counter = Arc::new(Counter::default());
        let increment = |&times: &u32| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || (0..times).for_each(|_| counter.increment(wait)))
        };
        let others: Vec<_> = each[1..].iter().map(increment).collect();
        (0..each[0]).for_each(|_| counter.increment(wait));
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(counter.count.load(Ordering::Relaxed), each.iter().sum());
    });
}

#[test]
fn two_threads() {
    increments([1, 1], WAIT);
}

#[test]
fn one_thread_comes_back() {
    increments([1, 2], WAIT);
}

#[test]
fn three_threads() {
    increments([1, 1, 1], WAIT);
}

#[test]
fn one_thread_claims_and_another_comes_back() {
    increments([1, 3], CLAIM);
}

#[test]
fn three_threads_claim() {
    increments([1, 1, 2], CLAIM);
}
