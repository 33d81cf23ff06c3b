//! A program's timers and its model, to copy.

#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use tickwheel::{Engine, Time, Timer};

/// A session is closed while it expires: one of the two ends it, and only one.
#[test]
fn a_session_ends_once() {
    loom::model(|| {
        // One shard and short wheels: a model costs as much as its state.
        let small = Engine::builder().shards(1).wheel_size(4);
        let (timers, clock) = small.start_virtual().unwrap();
        let ends = Arc::new(AtomicU32::new(0));
        let limit = Time::from_millis(1);
        let id = timers.schedule(Timer::at(limit, "session 7")).unwrap();

        // In production: the ticker, and a worker in a loop of `recv`.
        let expiry = {
            let (queue, ends) = (timers.queue(0), Arc::clone(&ends));
            thread::spawn(move || {
                clock.advance_to(limit);
                while queue.try_recv().is_ok() {
                    ends.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        if timers.cancel(id).is_cancelled() {
            ends.fetch_add(1, Ordering::Relaxed);
        }
        expiry.join().unwrap();
        assert_eq!(ends.load(Ordering::Relaxed), 1);
    });
}
