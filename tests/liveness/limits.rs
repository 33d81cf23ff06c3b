//! A limit is kept, whatever others do meanwhile.

use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Engine, RecvError, Timer};

const LIMIT: Duration = Duration::from_millis(400);

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
