//! Promises 3, 4, 6 and 12 where threads meet. The models in loom-tests explore every
//! interleaving of a few calls; here real threads run into each other many times over.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// A cancel that comes between the moment at which a timer is registered and the one at
/// which it is filed must not leave the entry behind.
#[test]
fn promise_06_a_cancel_that_races_the_registration_leaks_no_entry() {
    const ROUNDS: usize = 500;
    let engine = Engine::builder().shards(2).max_timers(16).start().unwrap();
    let over = AtomicBool::new(false);
    let cancel = || engine.cancel_by_name("victim", None).ids.len();
    let by_name = thread::scope(|scope| {
        let canceller = scope.spawn(|| {
            let mut count = 0;
            while !over.load(Ordering::Acquire) {
                count += cancel();
            }
            count + cancel()
        });
        let (begun, mut accepted) = (Instant::now(), 0);
        while accepted < ROUNDS && begun.elapsed() < PATIENCE {
            // The bound refuses until the other thread has come by.
            let timer = Timer::after(HOUR, ()).named("victim");
            accepted += usize::from(engine.schedule(timer).is_ok());
        }
        over.store(true, Ordering::Release);
        canceller.join().unwrap()
    });
    assert_eq!(by_name, ROUNDS);
    assert_eq!(ends(&engine), [0, 0, ROUNDS as u64, 0, 0]);
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
            let cancelled = ids.filter_map(|&id| engine.cancel(id).payload());
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
