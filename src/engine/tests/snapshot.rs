//! Snapshots of an engine that is full, large, or behind.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::stats::Snapshot;
use crate::wheel::Advance;
use crate::{Engine, Refusal, Timer};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn refused_timers_are_counted_by_reason() {
    let builder = Engine::builder().shards(4).max_timers(2);
    let (engine, _clock) = builder.start_virtual().unwrap();
    let timer = || Timer::after(SECOND, ());
    for _ in 0..2 {
        engine.schedule(timer()).unwrap();
    }
    for refused in [
        engine.schedule(timer()).unwrap_err(),
        engine.schedule(timer().named("recorded")).unwrap_err(),
        engine.create(timer()).map(drop).unwrap_err(),
    ] {
        assert_eq!(refused.reason(), Refusal::Full);
    }
    // In all shards.
    (0..20).for_each(|n| drop(engine.schedule(timer().named(n.to_string())).unwrap_err()));
    engine.schedule(timer().queue(9)).unwrap_err(); // refused by every engine
    engine.shutdown();
    engine.schedule(timer()).unwrap_err();
    let snapshot = engine.snapshot();
    assert_eq!((snapshot.refused.full, snapshot.refused.shut_down), (23, 1));
    assert_eq!(snapshot.max_timers, Some(2));
}

#[test]
fn the_counts_of_all_shards_are_added_up() {
    let builder = Engine::builder().shards(4).measure_work(true);
    let (engine, clock) = builder.start_virtual().unwrap();
    // In each shard.
    for n in 0..50_u64 {
        let last = Timer::every(SECOND, n).times(1).named(n.to_string());
        engine.schedule(last.reported()).unwrap();
    }
    clock.advance(SECOND);
    // They are found due in time, and taken late.
    clock.advance(2 * SECOND);
    let fail = |firing| {
        drop(catch_unwind(AssertUnwindSafe(|| {
            let _firing = firing;
            resume_unwind(Box::new(()))
        })))
    };
    engine.queue(0).try_iter().for_each(fail);
    let Snapshot { lateness, lateness_at_start, durations, reports, ledger, .. } =
        engine.snapshot();
    let counts = [lateness, lateness_at_start, durations]
        .map(|it| (it.count(), it.quantile(1.0) > Some(SECOND)));
    assert_eq!(counts, [(50, false), (50, true), (50, false)]);
    assert_eq!((reports, ledger.failed), (50, 50));
}

#[test]
fn memory_follows_a_peak_and_a_shrink() {
    let builder = Engine::builder().shards(2);
    let (engine, _clock) = builder.start_virtual().unwrap();
    let new = engine.snapshot().memory;
    for n in 0..10_000_u64 {
        engine.schedule(Timer::after(SECOND, n).reported().named(n.to_string())).unwrap();
    }
    let full = engine.snapshot().memory;
    assert!(full >= 10_000 * 300, "{full} bytes");
    engine.cancel_all();
    while engine.reports().try_recv().is_ok() {}
    let kept = engine.snapshot().memory;
    assert!(kept < full, "{kept} bytes: without a timer, the wheel keeps nothing");
    engine.shrink();
    let shrunk = engine.snapshot().memory;
    assert!(shrunk <= new + 4_096, "{shrunk} bytes, and {new} when new");
}

#[test]
fn an_engine_is_behind_until_its_due_timers_are_found() {
    let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
    for n in 0..3 {
        engine.schedule(Timer::after(SECOND, n)).unwrap();
    }
    let behind = || engine.snapshot().behind;
    assert_eq!(clock.advance_within(SECOND / 2, 1_000), Advance::Done);
    assert_eq!(behind(), Duration::ZERO);
    // Less than a tick counts, too.
    let bit = Duration::from_micros(1);
    assert_eq!(clock.advance_within(3 * SECOND / 2 + bit, 0), Advance::More);
    assert_eq!(behind(), SECOND + bit);
    // A visit that stops half-way is behind by the slot that it has reached.
    while clock.advance_within(Duration::ZERO, 1) == Advance::More {
        assert!(behind() >= SECOND && behind() <= SECOND + Duration::from_millis(64));
    }
    assert_eq!(clock.advance_within(Duration::ZERO, 1_000), Advance::Done);
    assert_eq!(behind(), Duration::ZERO);
    // It has not had the time to find one that is late from the beginning.
    let late = engine.schedule(Timer::after(SECOND, 4)).unwrap();
    engine.reschedule(late, crate::Time::START).unwrap();
    assert_eq!(behind(), bit);
    // Nor one that was for the past when it was scheduled.
    engine.schedule(Timer::at(crate::Time::START, 5)).unwrap();
    assert_eq!(behind(), bit);
}

#[test]
fn a_timer_is_counted_once_by_a_snapshot_of_its_shard() {
    const QUEUES: usize = 1_000;
    let builder = Engine::builder().shards(1).queues(QUEUES);
    let (engine, clock) = builder.start_virtual().unwrap();
    let is_over = AtomicBool::new(false);
    // The only timer is in the first queue or in the last, or ends.
    let alternate = || {
        while !is_over.load(Ordering::Relaxed) {
            for queue in [0, QUEUES - 1] {
                let timer = Timer::after(Duration::ZERO, ()).reported();
                engine.schedule(timer.queue(queue)).unwrap();
                let _ = clock.advance_within(Duration::ZERO, 9);
                drop(engine.queue(queue).try_recv().unwrap());
                engine.reports().try_recv().unwrap();
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(alternate);
        let taken = (0..2_000).map(|_| engine.snapshot());
        let is_torn = |it: &Snapshot| {
            let queued: usize = it.queued.iter().sum();
            queued as u64 > it.ledger.live || queued + it.reports > 1
        };
        let torn: Vec<_> = taken.filter(is_torn).map(|it| it.ledger).collect();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(torn, []);
    });
}
