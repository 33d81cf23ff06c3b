//! Failures of threads that meet.

use super::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use tickwheel::{Cancel, Closed, Engine, Timer, TimerId};

/// Cancelling came between the moment at which a timer was registered and the
/// one at which it was filed: it found nothing to unlink, and the entry stayed
/// for ever.
///
/// Models: `expiry::cancel_and_ticker`, `expiry::stale_id`.
#[test]
fn f01_a_cancel_that_races_the_registration_leaks_no_entry() {
    const ROUNDS: usize = 2_000;
    let builder = Engine::builder().shards(2).max_timers(16);
    let engine = builder.start().unwrap();
    let payload = Arc::new(());
    let over = AtomicBool::new(false);
    let by_name = thread::scope(|scope| {
        let canceller = scope.spawn(|| {
            let mut count = 0;
            while !over.load(Ordering::Acquire) {
                count += engine.cancel_by_name("victim", None).ids.len();
            }
            count + engine.cancel_by_name("victim", None).ids.len()
        });
        let begun = Instant::now();
        let mut accepted = 0;
        while accepted < ROUNDS && begun.elapsed() < PATIENCE {
            let timer = Timer::after(YEAR, Arc::clone(&payload)).named("victim");
            let scheduled = match accepted % 2 {
                0 => engine.schedule(timer).map(drop),
                _ => engine.create(timer).and_then(|it| it.start().map(drop)),
            };
            match scheduled {
                Ok(()) => accepted += 1,
                // Until the other thread has come by.
                Err(_) => thread::yield_now(),
            }
        }
        over.store(true, Ordering::Release);
        canceller.join().unwrap()
    });
    assert_eq!(by_name, ROUNDS);
    let ledger = engine.ledger();
    assert_eq!((ledger.cancelled, ledger.live), (ROUNDS as u64, 0));
    assert_eq!(Arc::strong_count(&payload), 1);
}

/// The ticker computed how long it would sleep, let go of the locks, and only
/// then said until when; a timer that was scheduled in between woke nobody.
///
/// Models: `sleep::one_submitter`, `sleep::two_submitters`, `sleep::two_shards`.
#[test]
fn f02_no_wake_up_is_lost_while_the_ticker_goes_to_sleep() {
    const TICK: Duration = Duration::from_micros(50);
    let builder = Engine::builder().tick(TICK).shards(4).queues(2);
    let engine = builder.start().unwrap();
    engine.schedule(Timer::after(HOUR, ())).unwrap();
    thread::scope(|scope| {
        for thread in 0..2 {
            let (queue, engine) = (engine.queue(thread), &engine);
            scope.spawn(move || {
                for _ in 0..3_000 {
                    // The ticker, which has just fired, is on its way to sleep.
                    let soon = Timer::after(TICK, ()).queue(thread);
                    engine.schedule(soon).unwrap();
                    queue.recv_timeout(PATIENCE).expect("slept over it");
                }
            });
        }
    });
}

/// Firing and cancelling both took a timer for theirs, and both counted it out:
/// the count of live timers went below zero, or a bound let too many in.
///
/// Models: `take::cancel_and_one_worker`, `take::cancel_and_two_workers`,
/// `expiry::cancel_and_shutdown`.
#[test]
fn f12_no_timer_is_counted_out_twice() {
    const MAX: usize = 40;
    let builder = Engine::builder().shards(1).max_timers(MAX);
    let (engine, clock) = builder.start_virtual().unwrap();
    for round in 0..300 {
        let ids: Vec<_> = (0..MAX)
            .map(|n| engine.schedule(Timer::after(MS, n)).unwrap())
            .collect();
        clock.advance(MS);
        let both = Barrier::new(2);
        let (taken, cancelled) = thread::scope(|scope| {
            let worker = scope.spawn(|| {
                both.wait();
                payloads(&engine)
            });
            both.wait();
            // They meet about the middle; every other one is the worker's.
            let wanted = ids.iter().rev().step_by(2);
            let cancelled = wanted.filter_map(|&id| engine.cancel(id).payload());
            let cancelled: Vec<usize> = cancelled.collect();
            (worker.join().unwrap(), cancelled)
        });
        let taken = taken.iter().copied();
        let mut all: Vec<usize> = taken.chain(cancelled).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..MAX), "lost, or in two hands");
        let ledger = engine.ledger();
        assert_eq!(
            (ledger.live, ledger.accepted),
            (0, (round + 1) * MAX as u64)
        );
        assert_eq!(ledger.cancelled + ledger.completed, ledger.accepted);
    }
    let accepted = (0..2 * MAX).filter(|&n| engine.schedule(Timer::after(MS, n)).is_ok());
    assert_eq!(accepted.count(), MAX, "the bound has moved");
}

/// A service that had just been stopped accepted a timer, which was neither
/// fired nor returned: its waiter waited for ever.
///
/// Models: `shutdown::one_submitter`, `shutdown::two_submitters`,
/// `shutdown::three_submitters`, `shutdown::one_submitter_and_the_ticker`.
#[test]
fn f15_a_stop_that_races_schedules_accounts_for_every_timer() {
    for _ in 0..60 {
        let engine = Engine::builder().shards(4).start().unwrap();
        let (begun, has_begun) = mpsc::channel();
        let (accepted, left) = thread::scope(|scope| {
            let submitters: Vec<_> = (0..3)
                .map(|_| {
                    let (begun, engine) = (begun.clone(), &engine);
                    scope.spawn(move || schedule_until_refused(engine, &begun))
                })
                .collect();
            (0..3).for_each(|_| has_begun.recv().unwrap());
            let left = engine.shutdown();
            let accepted = submitters.into_iter().flat_map(|it| it.join().unwrap());
            (accepted.collect::<HashSet<_>>(), left)
        });
        let returned: HashSet<_> = left.iter().map(|closed: &Closed<u32>| closed.id).collect();
        assert_eq!((returned.len(), &returned), (left.len(), &accepted));
        let ledger = engine.ledger();
        assert_eq!((ledger.shut_down, ledger.live), (left.len() as u64, 0));
    }
}

/// What was accepted, in the end.
fn schedule_until_refused(engine: &Engine<u32>, begun: &mpsc::Sender<()>) -> Vec<TimerId> {
    let mut accepted = Vec::new();
    for n in 0..1_000_000 {
        match engine.schedule(Timer::after(HOUR, n)) {
            Ok(id) => accepted.push(id),
            Err(refused) => {
                assert_eq!(refused.into_payload(), n);
                return accepted;
            }
        }
        match n {
            ..20 => {}
            20 => begun.send(()).unwrap(),
            // The stop should come soon, and not after a million more.
            _ => thread::yield_now(),
        }
    }
    panic!("nothing is refused any more");
}

/// A repeating callback armed itself again after another thread had cancelled
/// it, and could be cancelled no more.
///
/// Models: `repeat::cancel`, `repeat::cancel_when_behind`, `repeat::shutdown`.
#[test]
fn f16_a_repeat_that_was_cancelled_is_not_armed_again() {
    let (engine, clock) = virtual_engine();
    for round in 1..=3_000 {
        let id = engine.schedule(Timer::every(MS, round)).unwrap();
        clock.advance((1 + round % 3) * MS); // sometimes behind already
        let running = engine.queue(0).recv().unwrap();
        let (go, may_go) = mpsc::sync_channel(0);
        let answer = thread::scope(|scope| {
            let canceller = scope.spawn(|| {
                go.send(()).unwrap();
                engine.cancel(id)
            });
            may_go.recv().unwrap();
            drop(running);
            canceller.join().unwrap()
        });
        // It ran, or it waited for its next firing: it ended either way.
        assert_ne!(answer, Cancel::Gone);
        let ledger = engine.ledger();
        assert_eq!((ledger.cancelled, ledger.live), (u64::from(round), 0));
    }
    clock.advance(HOUR);
    assert!(engine.queue(0).is_empty());
}
