//! Inspecting an engine while it works and after its end.

use std::time::Duration;

use crate::engine::Engine;
use crate::stats::Inspection;
use crate::tick::Tick;
use crate::timer::Timer;

const MS: Duration = Duration::from_millis(1);

fn counted(inspection: &Inspection) -> usize {
    let levels = inspection.shards.iter().flat_map(|shard| &shard.levels);
    levels.flat_map(|level| &level.timers).sum()
}

#[test]
fn every_live_timer_is_in_a_slot_or_in_a_ready_list() {
    let builder = Engine::builder().shards(2).queues(2).wheel_size(20);
    let (engine, clock) = builder.start_virtual().unwrap();
    for n in 0..500 {
        let timer = Timer::after(n * n % 9_973 * MS, n).queue(n as usize % 2);
        engine.schedule(timer).unwrap();
    }
    for _ in 0..110 {
        clock.advance(97 * MS);
        let inspection = engine.inspect(usize::MAX);
        let queued = |shard: usize| inspection.shards[shard].queued.iter().sum::<usize>();
        let live: u64 = inspection.shards.iter().map(|shard| shard.ledger.live).sum();
        assert_eq!(counted(&inspection) + queued(0) + queued(1), live as usize);
        assert_eq!(
            inspection.shards.iter().all(|shard| shard.next_wakeup.is_none()),
            counted(&inspection) == 0
        );
        assert!(inspection.shards.iter().any(|shard| shard.reached > Tick(0)));
        // Reports are in no queue.
        assert!(inspection.shards.iter().all(|shard| shard.queued.len() == 2));
        engine.queue(0).try_recv().unwrap();
    }
    assert_eq!((inspected_tick(&engine), engine.inspect(1).wheel_size), (MS, 20));
}

fn inspected_tick<T>(engine: &Engine<T>) -> Duration {
    engine.inspect(0).tick
}

#[test]
fn a_count_stops_at_the_limit() {
    let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
    for n in 0..1_000 {
        engine.schedule(Timer::after(9 * MS, n)).unwrap();
    }
    let limits = [0, 1, 5, 8, 9, 256, usize::MAX];
    let counts = limits.map(|most| counted(&engine.inspect(most)));
    assert_eq!(counts, [0, 1, 5, 8, 9, 256, 1_000]);
    // The more it may count, the fewer of the 64 slots one hold of the lock visits.
    let offers = engine.core.shards[0].shard.pretend_an_urgent_waiter();
    let holds = |most| {
        let before = offers();
        drop(engine.inspect(most));
        offers() - before
    };
    assert_eq!([1, 16, 256].map(holds), [1, 4, 64]);
}

/// The lists of a closed shard are not maintained, so nothing may walk along them.
#[test]
fn an_engine_that_was_shut_down_has_no_levels() {
    let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
    for n in 0..100 {
        engine.schedule(Timer::after(n * MS, n)).unwrap();
    }
    engine.shutdown();
    let inspection = engine.inspect(usize::MAX);
    assert!(inspection.shards[0].levels.is_empty());
    assert_eq!(inspection.shards[0].ledger.shut_down, 100);
}
