//! Repeating, named and unstarted timers, and the reports on them.

#![cfg(shuttle)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use shuttle::thread;
use tickwheel::{Engine, Refused, Timer, TimerId};
use tickwheel_shuttle_tests::{
    End, Payload, Tally, builder, check, join, pass_time, shut_down, threads, tick, workers,
    workers_who,
};

const TIMERS: u32 = 4;
const WORKERS: u32 = 3;

fn refuse<V>(scheduled: Result<V, Refused<Payload>>) -> Option<V> {
    let refused = match scheduled {
        Ok(value) => return Some(value),
        Err(refused) => refused,
    };
    refused.into_timer().into_payload().end(End::Refused);
    None
}

/// A timer with a period of one tick, which wants a report.
fn beat(tally: &Tally) -> Timer<Payload> {
    Timer::every(Duration::from_millis(1), tally.payload()).reported()
}

/// Which payloads are in a worker's hands, and with which firing they were
/// last.
#[derive(Default)]
struct Hands([(AtomicBool, AtomicU64); TIMERS as usize]);

impl Hands {
    fn take(&self, index: usize, number: u64) {
        let (held, last) = &self.0[index];
        assert!(!held.swap(true, Ordering::Relaxed), "firings overlap");
        let before = last.swap(number, Ordering::Relaxed);
        assert!(before < number, "firing {number} after {before}");
    }

    fn give(&self, index: usize) {
        self.0[index].0.store(false, Ordering::Relaxed);
    }

    fn hold(&self, index: usize) -> bool {
        self.0[index].0.load(Ordering::Relaxed)
    }
}

/// Firings of one timer never overlap, none is in anybody's hands when
/// `cancel_and_wait` returns, and each timer is reported once.
#[test]
fn cancel_and_wait_and_shutdown() {
    check(|| {
        let tally = Tally::default();
        let (engine, clock) = builder().start_model().unwrap();
        let ids: Vec<TimerId> = (0..TIMERS)
            .map(|n| engine.schedule(beat(&tally).times(u64::from(n))).unwrap())
            .collect();
        let hands = Arc::new(Hands::default());
        let workers = {
            let hands = Arc::clone(&hands);
            workers_who(&engine, WORKERS, move |expired| {
                let index = expired.payload().index();
                hands.take(index, expired.number());
                thread::yield_now();
                hands.give(index);
            })
        };
        let reported = Arc::new(AtomicUsize::new(0));
        let readers = threads(2, |_| {
            let (reports, reported) = (engine.closed(), Arc::clone(&reported));
            move || {
                reports.for_each(|_| {
                    reported.fetch_add(1, Ordering::Relaxed);
                })
            }
        });
        let cancellers = threads(2, |n| {
            let (engine, hands, ids) = (engine.clone(), Arc::clone(&hands), ids.clone());
            move || {
                for index in [2 * n as usize, 0] {
                    drop(engine.cancel_and_wait(ids[index]));
                    assert!(!hands.hold(index));
                }
            }
        });
        let time = pass_time(clock, 4);
        join(cancellers);
        drop(engine.shutdown());
        join(workers);
        join(readers);
        join([time]);
        // A last firing that was running may have ended after the readers did.
        let late = engine.closed().count();
        assert_eq!(reported.load(Ordering::Relaxed) + late, ids.len());
        tally.assert_ended(engine.ledger());
    });
}

/// Each of four callers waits for a firing of its own, which somebody else gives
/// back: each is told.
#[test]
fn four_who_wait() {
    check(|| {
        let tally = Tally::default();
        let (engine, clock) = builder().start_virtual().unwrap();
        for _ in 0..TIMERS {
            let beat = Timer::every(Duration::from_millis(1), tally.payload());
            engine.schedule(beat).unwrap();
        }
        clock.advance_to(tick(1));
        // Nobody is in `recv`: a worker that goes back there wakes who waits.
        let queue = engine.queue(0);
        let firings: Vec<_> = (0..TIMERS).map(|_| queue.try_recv().unwrap()).collect();
        let waiters: Vec<_> = firings
            .iter()
            .map(|firing| {
                let (engine, id) = (engine.clone(), firing.id());
                thread::spawn(move || drop(engine.cancel_and_wait(id)))
            })
            .collect();
        let workers: Vec<_> = firings
            .into_iter()
            .map(|firing| thread::spawn(move || drop(firing)))
            .collect();
        join(waiters);
        join(workers);
        tally.assert_ended(engine.ledger());
        assert_eq!(engine.ledger().cancelled, u64::from(TIMERS));
    });
}

/// Timers of one name come and go, some of them unstarted, while others cancel
/// by it: the answers add up to what was cancelled.
#[test]
fn names() {
    check(|| {
        let tally = Tally::default();
        let (engine, clock) = builder().start_model().unwrap();
        let cancelled = Arc::new(AtomicUsize::new(0));
        let creators = threads(3, |n| {
            let (engine, tally) = (engine.clone(), tally.clone());
            move || create_two(&engine, &tally, u64::from(n))
        });
        let cancellers = threads(2, |_| {
            let (engine, cancelled) = (engine.clone(), Arc::clone(&cancelled));
            move || {
                for _ in 0..2 {
                    let answer = engine.cancel_by_name("batch", 1);
                    assert!(answer.count <= 1);
                    cancelled.fetch_add(answer.count, Ordering::Relaxed);
                    let payloads = answer.payloads.into_iter();
                    payloads.for_each(|payload| payload.end(End::Cancelled));
                }
            }
        });
        let workers = workers(&engine, WORKERS);
        let time = pass_time(clock, 2);
        join(creators);
        join(cancellers);
        shut_down(&engine);
        join(workers);
        join([time]);
        tally.assert_agrees(engine.ledger());
        let cancelled = cancelled.load(Ordering::Relaxed) as u64;
        assert_eq!(engine.ledger().cancelled, cancelled);
        assert_eq!(engine.cancel_by_name("batch", usize::MAX).count, 0);
    });
}

fn create_two(engine: &Engine<Payload>, tally: &Tally, n: u64) {
    let named = |at| Timer::at(tick(at), tally.payload()).named("batch");
    refuse(engine.schedule(named(1 + n % 2)));
    if let Some(unstarted) = refuse(engine.create(named(1))) {
        refuse(unstarted.start());
    }
}
