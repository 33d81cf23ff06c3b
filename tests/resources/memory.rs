//! What timers cost in bytes, and that it comes back.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use tickwheel::wheel::ReserveError;
use tickwheel::{Engine, Tick, Time, Timer, TimerId, VirtualClock, Wheel};

use crate::alone::alone;
use crate::counting;
use crate::limits::{MEMORY, with_limit};

/// How many bytes an engine takes with seven timers, one on each of several
/// levels.
fn bytes_of_seven<T: Send + 'static>(payload: impl Fn() -> T) -> i64 {
    let before = counting::bytes();
    let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
    for n in 0..7 {
        let time = Time::from_millis(1 << (4 * n));
        engine.schedule(Timer::at(time, payload())).unwrap();
    }
    counting::bytes() - before
}

fn schedule(engine: &Engine<u64>, n: u64) -> TimerId {
    let time = Time::from_millis(1 + n * 7_919 % 100_000);
    engine.schedule(Timer::at(time, n)).unwrap()
}

const SHARDS: usize = 16;
const PEAK: u64 = 10_000;

fn of_many_shards() -> (Engine<u64>, VirtualClock) {
    let builder = Engine::builder().shards(SHARDS);
    let builder = builder.max_timers(2 * PEAK as usize);
    builder.start_virtual().unwrap()
}

/// Schedules many timers and cancels all but one of them, in one thread after the other; all of
/// the threads are there all the time, so each has a shard of its own.
fn move_a_peak(engine: &Engine<u64>) {
    let (turn, end) = (Barrier::new(SHARDS), Barrier::new(SHARDS));
    thread::scope(|scope| {
        for thread in 0..SHARDS {
            let (turn, end) = (&turn, &end);
            scope.spawn(move || {
                for whose in 0..SHARDS {
                    turn.wait();
                    if whose == thread {
                        let ids: Vec<_> = (0..PEAK).map(|n| schedule(engine, n)).collect();
                        // The first timer keeps the memory behind it until a shrink.
                        ids[1..].iter().for_each(|&id| _ = engine.cancel(id));
                    }
                }
                end.wait();
            });
        }
    });
}

/// How many bytes a live timer costs before nine in ten were cancelled, and after
/// the engine shrank.
fn bytes_per_timer(stays: impl Fn(u64) -> bool) -> (i64, i64) {
    const COUNT: u64 = 100_000;
    let mut ids = Vec::with_capacity(COUNT as usize);
    let before = counting::bytes();
    let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
    ids.extend((0..COUNT).map(|n| (n, schedule(&engine, n))));
    let full = (counting::bytes() - before) / COUNT as i64;
    let ended = ids.iter().filter(|&&(n, id)| !stays(n) && engine.cancel(id).is_cancelled());
    let live = COUNT - ended.count() as u64;
    engine.shrink();
    let few = (counting::bytes() - before) / live as i64;
    for (n, id) in ids {
        assert_eq!(engine.cancel(id).into_payload(), stays(n).then_some(n));
    }
    (full, few)
}

alone! {
    fn a_large_payload_costs_its_size_and_no_list_head_more() {
        // There is room for eight.
        let (small, large) = (bytes_of_seven(|| 7u64), bytes_of_seven(|| [7u8; 4_096]));
        assert!(large <= small + 8 * 4_096 + 1_024, "{large} and {small}");
    }

    fn a_wheel_that_gets_no_memory_says_so_and_keeps_its_timers() {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(5), 7u64);
        // Nearly the 32 GiB that a wheel may have.
        let reserve = || assert_eq!(wheel.try_reserve((1 << 30) - 4_096), Err(ReserveError::NoMemory));
        with_limit(MEMORY, 1 << 32, reserve);
        assert_eq!(wheel.cancel(id), Some(7));
    }

    fn a_peak_that_moves_from_thread_to_thread_comes_back() {
        move_a_peak(&of_many_shards().0);
        let before = counting::bytes();
        let (engine, _clock) = of_many_shards();
        let fresh = counting::bytes() - before;
        move_a_peak(&engine);
        let left = counting::bytes() - before;
        assert!(left > 10 * fresh, "{left} bytes: too few shards were used");
        engine.shrink();
        let left = counting::bytes() - before;
        assert!(left <= 2 * fresh, "{left} bytes, {fresh} when it was new");
    }

    fn the_memory_in_which_late_timers_were_sorted_comes_back() {
        let before = counting::bytes();
        let mut wheel = Wheel::starting_at(Tick(PEAK), 64);
        let fresh = counting::bytes() - before;
        (0..PEAK).for_each(|n| _ = wheel.schedule_at(Tick(PEAK - n), n));
        while wheel.pop_due(Tick(PEAK)).is_some() {}
        let left = counting::bytes() - before;
        assert!(left <= 2 * fresh, "{left} bytes, {fresh} when it was new");

        let before = counting::bytes();
        let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
        clock.advance_to(Time::from_millis(PEAK));
        let stays = schedule(&engine, PEAK);
        let fresh = counting::bytes() - before;
        (0..PEAK).for_each(|n| _ = engine.schedule(Timer::at(Time::from_millis(PEAK - n), n)));
        clock.advance(Duration::ZERO);
        assert_eq!(engine.queue(0).try_iter().count() as u64, PEAK);
        engine.shrink();
        let left = counting::bytes() - before;
        assert!(left <= 2 * fresh, "{left} bytes, {fresh} when it was new");
        assert_eq!(engine.cancel(stays).into_payload(), Some(PEAK));
    }

    fn shrinking_leaves_the_oldest_timers_about_what_they_cost() {
        let (full, few) = bytes_per_timer(|n| n < 10_000);
        assert!(few <= 2 * full, "{full} and then {few} bytes each");
    }
}
