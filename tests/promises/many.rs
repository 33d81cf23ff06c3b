//! Promises 3, 4, 9 and 11 for workers that take many payloads in one call.

use super::*;
use std::thread;
use tickwheel::{Cancel, Queue, RecvError, Timer};

#[test]
fn promise_04_a_cancel_of_a_payload_taken_with_many_says_that_it_is_gone() {
    let (engine, clock) = virtual_engine();
    let schedule = |n| engine.schedule(Timer::after(MS, n)).unwrap();
    let ids: Vec<_> = (0..5).map(schedule).collect();
    clock.advance(MS);
    let (queue, mut payloads) = (engine.queue(0), Vec::new());
    assert_eq!(engine.cancel(ids[1]), Cancel::Cancelled(1));
    assert!(queue.recv_many(&mut payloads, 3).unwrap().is_none());
    assert_eq!(payloads, [0, 2, 3]);
    assert_eq!(engine.cancel(ids[3]), Cancel::Gone);
    assert_eq!(engine.cancel(ids[4]), Cancel::Cancelled(4));
    assert!(queue.try_recv_many(&mut payloads, 3).is_err());
    assert_eq!(payloads, [0, 2, 3]);
    let ledger = engine.ledger();
    assert_eq!((ledger.completed, ledger.cancelled, ledger.live), (3, 2, 0));
}

/// Workers take as many as there are, while two threads cancel: every timer has one end.
#[test]
fn promise_04_what_is_cancelled_is_not_also_taken_with_many() {
    const TIMERS: usize = 4_000;
    let (engine, clock) = virtual_engine();
    let schedule = |n| engine.schedule(Timer::after(MS, n)).unwrap();
    let ids: Vec<_> = (0..TIMERS).map(schedule).collect();
    let ends = thread::scope(|scope| {
        let take = |queue: Queue<usize>| {
            let mut payloads = Vec::new();
            while queue.recv_many(&mut payloads, 50).is_ok() {}
            payloads
        };
        let workers: Vec<_> = (0..3)
            .map(|_| engine.queue(0))
            .map(|queue| scope.spawn(move || take(queue)))
            .collect();
        let cancel = |ids: Vec<TimerId>| {
            let answers = ids.into_iter().map(|id| engine.cancel(id));
            answers.filter_map(Cancel::payload).collect::<Vec<_>>()
        };
        let (even, odd) = (ids.iter().step_by(2), ids.iter().rev().step_by(2));
        let (even, odd): (Vec<_>, Vec<_>) = (even.copied().collect(), odd.copied().collect());
        let cancellers = [
            scope.spawn(move || cancel(even)),
            scope.spawn(move || cancel(odd)),
        ];
        clock.advance(MS);
        let cancelled = cancellers.map(|canceller| canceller.join().unwrap());
        while !engine.queue(0).is_empty() {
            thread::yield_now();
        }
        engine.shutdown();
        let taken = workers.into_iter().map(|worker| worker.join().unwrap());
        let mut ends: Vec<_> = taken.chain(cancelled).flatten().collect();
        ends.sort_unstable();
        ends
    });
    assert!(ends.into_iter().eq(0..TIMERS));
    let ledger = engine.ledger();
    assert_eq!((ledger.live, ledger.is_balanced()), (0, true));
}

/// Returns one timer of each kind: some lend their payload, and others hand it over.
fn some_timer(rng: &mut Rng, payload: u32) -> Timer<u32> {
    let delay = rng.u32(1..20) * MS;
    match rng.u32(0..8) {
        0 => Timer::every(delay, payload).times(2),
        1 => Timer::after(delay, payload).rearmable(),
        2 => Timer::after(delay, payload).reported(),
        3 => Timer::after(delay, payload).named("some"),
        4 => Timer::after(delay, payload).tolerance(3 * MS),
        _ => Timer::after(delay, payload),
    }
}

/// Schedules the same timers each time, and takes all firings as they come due. Returns the
/// payloads in order.
fn taken_with(take: impl Fn(&Queue<u32>, &mut Vec<u32>), seed: u64) -> Vec<u32> {
    let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let (mut rng, mut payloads) = (Rng::with_seed(seed), Vec::new());
    let ids: Vec<_> = (0..300)
        .map(|n| engine.schedule(some_timer(&mut rng, n)).unwrap())
        .collect();
    let queue = engine.queue(0);
    for _ in 0..45 {
        clock.advance(MS);
        let _ = engine.cancel(ids[rng.usize(..300)]);
        take(&queue, &mut payloads);
    }
    assert_eq!(engine.ledger().live, 0);
    payloads
}

#[test]
fn promise_09_many_come_in_the_order_of_single_ones() {
    for seed in 0..40 {
        let one_by_one = |queue: &Queue<u32>, payloads: &mut Vec<u32>| {
            payloads.extend(queue.try_iter().map(|expired| *expired.payload()));
        };
        let many = |queue: &Queue<u32>, payloads: &mut Vec<u32>| {
            let max = 1 + seed as usize * 3;
            while let Ok(lent) = queue.try_recv_many(payloads, max) {
                payloads.extend(lent.map(|expired| *expired.payload()));
            }
        };
        assert_eq!(taken_with(many, seed), taken_with(one_by_one, seed));
    }
}

#[test]
fn promise_03_many_take_at_most_as_many_as_they_may_from_all_shards() {
    let (engine, clock) = Engine::builder().shards(4).start_virtual().unwrap();
    thread::scope(|scope| {
        for n in 0..4 {
            let engine = &engine;
            scope.spawn(move || {
                for m in 0..100 {
                    engine.schedule(Timer::after(MS, 100 * n + m)).unwrap();
                }
            });
        }
    });
    clock.advance(MS);
    let (queue, mut payloads) = (engine.queue(0), Vec::new());
    assert!(queue.try_recv_many(&mut payloads, 0).unwrap().is_none());
    assert!(queue.recv_many(&mut payloads, 150).unwrap().is_none());
    assert_eq!((payloads.len(), queue.len()), (150, 250));
    assert!(
        queue
            .recv_many(&mut payloads, usize::MAX)
            .unwrap()
            .is_none()
    );
    payloads.sort_unstable();
    assert!(payloads.into_iter().eq(0..400));
    assert_eq!(engine.ledger().completed, 400);
}

#[test]
fn promise_03_many_end_at_a_payload_that_is_only_lent() {
    let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let schedule = |timer| engine.schedule(timer).unwrap();
    schedule(Timer::after(MS, 0).reported());
    let beat = schedule(Timer::every(MS, 1));
    schedule(Timer::after(MS, 2));
    clock.advance(MS);
    let (queue, mut payloads) = (engine.queue(0), Vec::new());
    let lent = queue.recv_many(&mut payloads, 10).unwrap().unwrap();
    assert_eq!((lent.id(), &payloads), (beat, &vec![0]));
    assert!(queue.recv_many(&mut payloads, 10).unwrap().is_none());
    assert_eq!(payloads, [0, 2]);
    // The timer lives on, and a cancel reaches it.
    drop(lent);
    clock.advance(MS);
    let lent = queue.recv_many(&mut payloads, 10).unwrap().unwrap();
    assert_eq!(engine.cancel(beat), Cancel::Running);
    assert_eq!((lent.number(), lent.is_cancelled()), (2, true));
    assert_eq!(engine.reports().recv().unwrap().payload, None);
}

fn fill(engine: &Engine<u32>, name: u32) {
    for _ in 0..100 {
        engine.schedule(Timer::every(SECOND, name)).unwrap();
        engine.schedule(Timer::after(SECOND, name)).unwrap();
    }
}

/// Fills another shard than that of the timer, from another thread.
fn fill_elsewhere(engine: &Engine<u32>, id: TimerId) {
    let other = engine.schedule(Timer::after(SECOND, 1)).unwrap();
    engine.cancel(other).payload().unwrap();
    match shard_of(other) == shard_of(id) {
        true => thread::scope(|scope| _ = scope.spawn(|| fill_elsewhere(engine, id))),
        false => fill(engine, 1),
    }
}

/// A worker that only asks for payloads still reaches every timer.
#[test]
fn promise_03_repeating_timers_hold_up_no_payloads() {
    let (engine, clock) = Engine::builder().shards(2).start_virtual().unwrap();
    let first = engine.schedule(Timer::every(SECOND, 0)).unwrap();
    fill(&engine, 0);
    fill_elsewhere(&engine, first);
    clock.advance(SECOND);
    let (queue, mut payloads, mut lent) = (engine.queue(0), Vec::new(), Vec::new());
    let mut calls = 0;
    while let Ok(firing) = queue.try_recv_many(&mut payloads, 1_000) {
        lent.extend(firing);
        calls += 1;
    }
    assert_eq!((payloads.len(), lent.len()), (200, 201));
    assert!(calls <= 203, "{calls} calls");
    // It moves on from a shard after 64 timers.
    let first = lent.iter().position(|firing| *firing.payload() == 1);
    assert!(first.is_some_and(|first| first <= 64), "{first:?}");
}

#[test]
fn promise_11_many_need_a_permit_and_keep_it_only_for_a_firing() {
    let bounded = Engine::builder().shards(1).queue_bound(1);
    let (engine, clock) = bounded.start_virtual().unwrap();
    for n in 0..50 {
        engine.schedule(Timer::after(MS, n)).unwrap();
    }
    engine.schedule(Timer::every(MS, 50)).unwrap();
    engine.schedule(Timer::after(MS, 51)).unwrap();
    clock.advance(MS);
    let (queue, mut payloads) = (engine.queue(0), Vec::new());
    let held = queue.recv().unwrap();
    let refused = queue.try_recv_many(&mut payloads, 100);
    assert!(matches!(refused, Err(RecvError::Empty)));
    drop(held);
    let lent = queue.recv_many(&mut payloads, 100).unwrap().unwrap();
    assert!(payloads.iter().copied().eq(1..50));
    assert!(queue.try_recv_many(&mut payloads, 100).is_err());
    drop(lent);
    assert!(queue.recv_many(&mut payloads, 100).unwrap().is_none());
    assert_eq!(payloads.last(), Some(&51));
    // That call has given its permit back.
    clock.advance(MS);
    let again = queue.try_recv_many(&mut payloads, 100).unwrap();
    assert!(again.is_some_and(|beat| *beat.payload() == 50));
}

#[test]
fn promise_12_many_learn_of_a_shutdown() {
    let (engine, _clock) = virtual_engine::<u32>();
    let queue = engine.queue(0);
    let worker = thread::spawn(move || {
        let mut payloads = Vec::new();
        (queue.recv_many(&mut payloads, 9).unwrap_err(), payloads)
    });
    engine.shutdown();
    assert_eq!(worker.join().unwrap(), (RecvError::ShutDown, vec![]));
}

#[test]
fn promise_06_many_payloads_give_their_memory_back() {
    let bounded = Engine::builder().shards(1).max_timers(200);
    let (engine, clock) = bounded.start_virtual().unwrap();
    let (queue, mut payloads) = (engine.queue(0), Vec::new());
    for round in 1..=5 {
        for n in 0..200 {
            engine.schedule(Timer::after(MS, n)).unwrap();
        }
        assert!(engine.schedule(Timer::after(MS, 200)).is_err());
        clock.advance(MS);
        assert!(queue.recv_many(&mut payloads, 200).unwrap().is_none());
        assert_eq!(payloads.len(), 200 * round);
    }
}
