//! The lock around a shard admits one thread at a time and forgets no sleeper.
//!
//! Sleeps never end by themselves here, so a sleeper without a wake-up is a
//! deadlock.

#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use tickwheel::model::{CondvarParker, RawLock};
use tickwheel_loom_tests::model;

#[derive(Default)]
struct Counter {
    lock: RawLock<CondvarParker>,
    /// Relaxed, because the lock orders it.
    count: AtomicU32,
}

impl Counter {
    fn increment(&self) {
        if !self.lock.try_lock() {
            self.lock.wait(|_| {});
        }
        let count = self.count.load(Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Relaxed);
        self.lock.unlock();
    }
}

/// Starts a thread for each number, which increments a counter that often. No thread
/// comes between another's read and write, and all of them get in.
fn increments<const THREADS: usize>(each: [u32; THREADS]) {
    model(move || {
        let counter = Arc::new(Counter::default());
        let increment = |&times: &u32| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || (0..times).for_each(|_| counter.increment()))
        };
        let others: Vec<_> = each[1..].iter().map(increment).collect();
        (0..each[0]).for_each(|_| counter.increment());
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(counter.count.load(Ordering::Relaxed), each.iter().sum());
    });
}

#[test]
fn two_threads() {
    increments([1, 1]);
}

#[test]
fn one_thread_comes_back() {
    increments([1, 2]);
}

#[test]
fn three_threads() {
    increments([1, 1, 1]);
}
