//! A limit is kept, whatever others do meanwhile.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Engine, RecvError, Timer};

const LIMIT: Duration = Duration::from_millis(400);

/// A timer expires, calls a worker and is cancelled, and so the next, four times
/// in the worker's limit, which does not begin anew each time.
///
/// Sometimes the worker is faster than the cancel, and has a timer: that is no
/// answer, and the next round may give one.
#[test]
fn timers_that_are_cancelled_do_not_prolong_a_wait() {
    const ROUNDS: usize = 20;
    let counts = std::iter::repeat_with(cancels_during_a_wait);
    let count = counts.take(ROUNDS).flatten().next();
    assert!(count.expect("the worker is always faster") < MOST_CANCELS);
}

const MOST_CANCELS: u32 = 24;

/// How many timers were cancelled while a worker waited, if it got none.
fn cancels_during_a_wait() -> Option<u32> {
    let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let cancelled = AtomicU32::new(0);
    let received = thread::scope(|scope| {
        let queue = engine.queue(0);
        let waiting = scope.spawn(move || queue.recv_timeout(LIMIT).map(drop));
        while !waiting.is_finished() && cancelled.load(Ordering::Relaxed) < MOST_CANCELS {
            thread::sleep(LIMIT / 4);
            let id = engine.schedule(Timer::after(Duration::ZERO, ())).unwrap();
            clock.advance(Duration::from_millis(1));
            let _ = engine.cancel(id);
            cancelled.fetch_add(1, Ordering::Relaxed);
        }
        waiting.join().unwrap()
    });
    let count = cancelled.load(Ordering::Relaxed);
    (received == Err(RecvError::Empty)).then_some(count)
}

/// A worker of a bounded queue waits for leave to take a firing, and then for a
/// firing: both together for no longer than its limit.
#[test]
fn waiting_for_leave_counts_as_waiting() {
    let engine = Engine::builder().queue_bound(1).start().unwrap();
    engine.schedule(Timer::after(Duration::ZERO, ())).unwrap();
    let held = engine.queue(0).recv().unwrap();
    let waited = thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let begun = Instant::now();
            let received = engine.queue(0).recv_timeout(5 * LIMIT);
            assert_eq!(received.err(), Some(RecvError::Empty));
            begun.elapsed()
        });
        thread::sleep(4 * LIMIT);
        drop(held);
        waiting.join().unwrap()
    });
    // It was nearly twice the limit.
    assert!(waited < 8 * LIMIT, "{waited:?}");
}

/// No clock gets to the end of the longest wait: it has none.
#[test]
fn the_longest_limit_is_none() {
    let (engine, clock) = Engine::builder().start_virtual().unwrap();
    let (queue, reports) = (engine.queue(0), engine.reports());
    thread::scope(|scope| {
        let taken = scope.spawn(move || queue.recv_timeout(Duration::MAX).map(drop));
        let read = scope.spawn(move || reports.recv_timeout(Duration::MAX).map(drop));
        thread::sleep(LIMIT / 8);
        engine
            .schedule(Timer::every(LIMIT, ()).times(1).reported())
            .unwrap();
        clock.advance(LIMIT);
        assert_eq!(taken.join().unwrap(), Ok(()));
        assert_eq!(read.join().unwrap(), Ok(()));
    });
}
