//! Ten million timers from eight threads that start together: half of them are
//! cancelled while others expire, and the ledger balances to the last one.

#![cfg(not(any(loom, shuttle)))]

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tickwheel::{Engine, Queue, Timer};

const THREADS: u64 = 8;
const PER_THREAD: u64 = 1_250_000;
const ROUND: u64 = 500;

/// What a thread did: how many of its timers it cancelled.
fn schedule_and_cancel(engine: &Engine<u64>, thread: u64) -> u64 {
    let mut cancelled = 0;
    let mut ids = Vec::with_capacity(ROUND as usize);
    for round in 0..PER_THREAD / ROUND {
        for n in 0..ROUND {
            // Some are due at once, most within a few ticks.
            let delay = Duration::from_micros((n * 7 + round * 13 + thread) % 9_000);
            let timer = Timer::after(delay, n).queue((n % 2) as usize);
            ids.push(engine.schedule(timer).unwrap());
        }
        for id in ids.drain(..).step_by(2) {
            cancelled += u64::from(engine.cancel(id).payload().is_some());
        }
    }
    cancelled
}

fn count(queue: Queue<u64>) -> u64 {
    queue.count() as u64
}

#[test]
fn ten_million_timers_leave_a_balanced_ledger() {
    let engine = Engine::builder().queues(2).start().unwrap();
    let workers = [0, 1].map(|index| {
        let queue = engine.queue(index);
        thread::spawn(move || count(queue))
    });
    let begin = Barrier::new(THREADS as usize);
    let cancelled: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (engine, begin) = (&engine, &begin);
                scope.spawn(move || {
                    begin.wait();
                    schedule_and_cancel(engine, thread)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    let left = engine.drain(Duration::from_secs(60));
    let taken: u64 = workers
        .into_iter()
        .map(|worker| worker.join().unwrap())
        .sum();

    let ledger = engine.ledger();
    assert!(ledger.is_balanced(), "{ledger:?}");
    assert_eq!(ledger.accepted, THREADS * PER_THREAD);
    assert_eq!((ledger.live, left.len()), (0, 0));
    assert_eq!((ledger.completed, ledger.cancelled), (taken, cancelled));
    // What was not cancelled in time had expired and was taken already.
    assert!(cancelled > THREADS * PER_THREAD / 3, "{cancelled}");
}
