//! Promises 3 and 4 for workers that take many payloads in one call.

use super::*;

#[test]
fn promise_03_many_take_at_most_as_many_as_they_may_from_all_shards() {
    let (engine, clock) = Engine::builder().shards(4).start_virtual().unwrap();
    thread::scope(|scope| {
        for n in 0..4 {
            let engine = &engine;
            scope.spawn(move || (0..100).for_each(|m| _ = engine.after(MS, 100 * n + m)));
        }
    });
    clock.advance(MS);
    let (queue, mut payloads) = (engine.queue(0), Vec::new());
    for (max, taken) in [(0, 0), (150, 150), (150, 300), (usize::MAX, 400)] {
        assert!(queue.try_recv_many(&mut payloads, max).unwrap().is_none());
        assert_eq!((payloads.len(), queue.len()), (taken, 400 - taken));
    }
    assert_eq!(engine.ledger().completed, 400);
    engine.shutdown();
    let over = queue.try_recv_many(&mut payloads, 1).unwrap_err();
    assert_eq!([over, queue.recv_timeout(MS).unwrap_err()], [RecvError::ShutDown; 2]);
    assert!(over.to_string().contains("was shut down"), "{over}");
    payloads.sort_unstable();
    assert!(payloads.into_iter().eq(0..400));
}

#[test]
fn promise_03_many_end_at_a_payload_that_is_only_lent() {
    let (engine, clock) = virtual_engine();
    engine.put(Timer::after(MS, 0).reported());
    let beat = engine.every(MS, 1);
    engine.after(MS, 2);
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

/// A worker that only asks for payloads still reaches every timer.
#[test]
fn promise_03_repeating_timers_hold_up_no_payloads() {
    let (engine, clock) = Engine::builder().shards(2).start_virtual().unwrap();
    let first = engine.every(SECOND, 0);
    let fill = |name| {
        for _ in 0..100 {
            engine.every(SECOND, name);
            engine.after(SECOND, name);
        }
    };
    fill(0);
    elsewhere(&engine, first, || 0, &|| fill(1));
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

/// Workers take one by one, or as many as there are, while threads cancel: every timer
/// has one end, and a bound lets as many in as before.
#[test]
fn promise_04_what_is_cancelled_is_not_also_taken() {
    const TIMERS: usize = 400;
    let bounded = Engine::builder().shards(1).max_timers(TIMERS);
    let (engine, clock) = bounded.start_virtual().unwrap();
    for round in 1..=30 {
        let ids: Vec<_> = (0..TIMERS).map(|n| engine.after(MS, n)).collect();
        clock.advance(MS);
        let gate = Barrier::new(4);
        let cancel = |ids: &mut dyn Iterator<Item = &TimerId>| {
            gate.wait();
            let cancelled = ids.filter_map(|&id| engine.cancel(id).into_payload());
            cancelled.collect::<Vec<_>>()
        };
        let mut ended: Vec<usize> = thread::scope(|scope| {
            let one_by_one = scope.spawn(|| {
                gate.wait();
                payloads(&engine)
            });
            let many = scope.spawn(|| {
                gate.wait();
                let (queue, mut payloads) = (engine.queue(0), Vec::new());
                while queue.try_recv_many(&mut payloads, 7).is_ok() {}
                payloads
            });
            // They meet about the middle.
            let even = scope.spawn(|| cancel(&mut ids.iter().rev().step_by(2)));
            let odd = scope.spawn(|| cancel(&mut ids.iter().skip(1).step_by(2)));
            let all = [one_by_one, many, even, odd];
            all.into_iter().flat_map(|it| it.join().unwrap()).collect()
        });
        ended.extend(payloads(&engine));
        ended.sort_unstable();
        assert!(ended.into_iter().eq(0..TIMERS), "lost, or in two hands");
        let [live, completed, cancelled, ..] = ends(&engine);
        assert_eq!((live, completed + cancelled), (0, (round * TIMERS) as u64));
    }
    let accepted = (0..2 * TIMERS).filter(|&n| engine.schedule(Timer::after(MS, n)).is_ok());
    assert_eq!(accepted.count(), TIMERS, "the bound has moved");
}
