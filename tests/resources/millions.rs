//! Ten million timers from eight threads that start together, or one million where the
//! compiler does not optimise: half of them are cancelled while others expire, and the
//! ledger balances to the last one.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use tickwheel::{Engine, Queue, Timer};

const THREADS: u64 = 8;
const ROUNDS: u64 = if cfg!(debug_assertions) { 250 } else { 2_500 };
const ROUND: u64 = 500;

/// Returns how many of its timers this thread has cancelled.
fn schedule_and_cancel(engine: &Engine<u64>, thread: u64) -> u64 {
    let mut cancelled = 0;
    for round in 0..ROUNDS {
        let schedule = |n| {
            // Some are due at once, most within a few ticks.
            let delay = Duration::from_micros((n * 7 + round * 13 + thread) % 9_000);
            let timer = Timer::after(delay, n).queue((n % 2) as usize);
            engine.schedule(timer).unwrap()
        };
        let ids: Vec<_> = (0..ROUND).map(schedule).collect();
        let wanted = ids.into_iter().step_by(2);
        cancelled += wanted.filter_map(|id| engine.cancel(id).into_payload()).count() as u64;
    }
    cancelled
}

#[test]
fn millions_of_timers_leave_a_balanced_ledger() {
    let engine = Engine::builder().queues(2).start().unwrap();
    let workers = [0, 1].map(|index| engine.queue(index));
    let workers = workers.map(|queue| thread::spawn(|| Queue::count(queue) as u64));
    let begin = Barrier::new(THREADS as usize);
    let cancelled = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, begin, cancelled) = (&engine, &begin, &cancelled);
            scope.spawn(move || {
                begin.wait();
                cancelled.fetch_add(schedule_and_cancel(engine, thread), Relaxed);
            });
        }
    });
    let cancelled = cancelled.into_inner();
    assert!(engine.drain(Duration::from_secs(60)).is_empty());
    let taken: u64 = workers.map(|worker| worker.join().unwrap()).iter().sum();

    let ledger = engine.ledger();
    assert!(ledger.is_balanced(), "{ledger:?}");
    assert_eq!(ledger.accepted, THREADS * ROUNDS * ROUND);
    assert_eq!((ledger.completed, ledger.cancelled), (taken, cancelled));
    // What was not cancelled in time had expired and was taken already: on a busy machine, a lot.
    assert!(cancelled > ledger.accepted / 10, "{cancelled}");
}
