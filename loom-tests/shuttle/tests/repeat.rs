//! Repeating timers, and their reports.

#![cfg(shuttle)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use shuttle::thread;
use tickwheel::{Timer, TimerId};
use tickwheel_shuttle_tests::{
    Payload, Tally, builder, check, join, pass_time, threads, tick, workers_that,
};

const TIMERS: u32 = 4;
const WORKERS: u32 = 3;

/// Returns a reported timer with a period of one tick.
fn beat(tally: &Tally) -> Timer<Payload> {
    Timer::every(Duration::from_millis(1), tally.payload()).reported()
}

/// For each payload, whether a worker holds it, and the number of its last firing.
#[derive(Default)]
struct Held([(AtomicBool, AtomicU64); TIMERS as usize]);

impl Held {
    fn take(&self, index: usize, number: u64) {
        let (is_held, last) = &self.0[index];
        assert!(!is_held.swap(true, Ordering::Relaxed), "firings overlap");
        let before = last.swap(number, Ordering::Relaxed);
        assert!(before < number, "firing {number} after {before}");
    }

    fn release(&self, index: usize) {
        self.0[index].0.store(false, Ordering::Relaxed);
    }

    fn is_held(&self, index: usize) -> bool {
        self.0[index].0.load(Ordering::Relaxed)
    }
}

/// Firings of one timer never overlap, no worker holds one when `cancel_and_wait`
/// returns, and each timer is reported once.
#[test]
fn cancel_and_wait_and_shutdown() {
    check(|| {
        let tally = Tally::default();
        let (engine, clock) = builder().start_model().unwrap();
        let ids: Vec<TimerId> = (0..TIMERS)
            .map(|n| engine.schedule(beat(&tally).times(u64::from(n))).unwrap())
            .collect();
        let held = Arc::new(Held::default());
        let workers = {
            let held = Arc::clone(&held);
            workers_that(&engine, WORKERS, move |expired| {
                let index = expired.payload().index();
                held.take(index, expired.number());
                thread::yield_now();
                held.release(index);
            })
        };
        let reported = Arc::new(AtomicUsize::new(0));
        let readers = threads(2, |_| {
            let (reports, reported) = (engine.reports(), Arc::clone(&reported));
            move || {
                reports.for_each(|_| {
                    reported.fetch_add(1, Ordering::Relaxed);
                })
            }
        });
        let cancellers = threads(2, |n| {
            let (engine, held, ids) = (engine.clone(), Arc::clone(&held), ids.clone());
            move || {
                for index in [2 * n as usize, 0] {
                    drop(engine.cancel_and_wait(ids[index]));
                    assert!(!held.is_held(index));
                }
            }
        });
        let time = pass_time(clock, 4);
        join(cancellers);
        drop(engine.shutdown());
        join(workers);
        join(readers);
        join([time]);
        // A firing that was still running may have ended after the readers.
        let late = engine.reports().count();
        assert_eq!(reported.load(Ordering::Relaxed) + late, ids.len());
        tally.assert_ended(engine.ledger());
    });
}

/// Each of four callers waits for a firing that another thread returns. All four
/// waits end.
#[test]
fn four_waiters() {
    check(|| {
        let tally = Tally::default();
        let (engine, clock) = builder().start_virtual().unwrap();
        for _ in 0..TIMERS {
            let beat = Timer::every(Duration::from_millis(1), tally.payload());
            engine.schedule(beat).unwrap();
        }
        clock.advance_to(tick(1));
        // No worker is in `recv`, because entering it wakes all waiters.
        let queue = engine.queue(0);
        let firings: Vec<_> = (0..TIMERS).map(|_| queue.try_recv().unwrap()).collect();
        let waiters: Vec<_> = firings
            .iter()
            .map(|firing| {
                let (engine, id) = (engine.clone(), firing.id());
                thread::spawn(move || drop(engine.cancel_and_wait(id)))
            })
            .collect();
        let workers: Vec<_> =
            firings.into_iter().map(|firing| thread::spawn(move || drop(firing))).collect();
        join(waiters);
        join(workers);
        tally.assert_ended(engine.ledger());
        assert_eq!(engine.ledger().cancelled, u64::from(TIMERS));
    });
}
