//! The ticker's visits to a shard.

use std::time::Duration;

use crate::engine::Engine;
use crate::engine::expire::{BATCHES_PER_RING, ENTRIES_PER_BATCH};
use crate::tick::Tick;
use crate::timeline::Time;
use crate::timer::Timer;

#[test]
fn a_round_is_one_bounded_visit_to_a_shard() {
    let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
    for n in 0..5_000 {
        engine.schedule(Timer::at(Time::START, n)).unwrap();
    }
    let offers = engine.core.shards[0].shard.pretend_an_urgent_waiter();
    engine.core.serve_a_round();
    let ready = engine.queue(0).len();
    let most = ENTRIES_PER_BATCH * BATCHES_PER_RING;
    assert!(0 < ready && ready <= most, "{ready}");
    // Were callers let in after each timer, the ticker would get hardly anything done. They are
    // at the end of the round, too.
    let during = offers() - 1;
    assert!(0 < during && during * ENTRIES_PER_BATCH <= ready, "{during}");
    assert!(engine.queue(0).try_recv().is_ok(), "nobody has heard of it");
}

#[test]
fn what_was_cancelled_in_many_shards_is_slept_over() {
    let (engine, _clock) = Engine::builder().shards(16).start_virtual().unwrap();
    // In each shard.
    for n in 0..200 {
        let timer = Timer::at(Time::from_secs(9), n).named(n.to_string());
        engine.schedule(timer).unwrap();
    }
    assert_eq!(engine.cancel_all().len(), 200);
    assert_eq!(engine.core.confirm_next_due(), Tick::MAX);
}

/// Otherwise a clock that runs to the next of them would believe that there is none.
#[test]
fn beside_an_overdue_shard_the_next_tick_is_that_of_another_shards_timer() {
    let (engine, clock) = Engine::builder().shards(2).start_virtual().unwrap();
    let core = &engine.core;
    let in_second = |n: u64| {
        let timer = Timer::at(Time::from_millis(100), n).named(n.to_string());
        let id = engine.schedule(timer).unwrap();
        id.wheels_after(core.first) == 1 || !engine.cancel(id).is_cancelled()
    };
    assert!((0..).any(in_second));
    clock.advance(Duration::from_millis(80));
    core.request_run();
    assert_eq!(core.next_due_after(core.tick_now()), Tick(100));
}
