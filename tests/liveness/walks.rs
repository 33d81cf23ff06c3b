//! Calls that walk through all timers, or very many, keep no other caller
//! waiting for long, and cost no more than their answer needs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{HOUR as FAR, MS};
use tickwheel::{Engine, Timer, TimerId};

/// So many that a walk through them takes far longer than the system lets another
/// program run.
const MANY: u32 = if cfg!(debug_assertions) { 200_000 } else { 3_000_000 };
/// The same, of those that have a name.
const NAMED: u32 = 200_000;
const ROUNDS: usize = 20;

/// An engine of one shard on a virtual clock, and `count` far timers in it.
fn engine_with(count: u32, name: Option<&str>) -> (Engine<u32>, Vec<TimerId>) {
    let builder = Engine::builder().shards(1);
    let (engine, _clock) = builder.start_virtual().unwrap();
    let timer = |n| match name {
        None => Timer::after(FAR + (n % 512) * MS, n),
        Some(name) => Timer::after(FAR, n).named(name),
    };
    let ids = (0..count).map(|n| engine.schedule(timer(n)).unwrap()).collect();
    (engine, ids)
}

/// Asserts that `act` takes no more than some times as long with `large` as with `small`:
/// the shortest of several calls, because on a busy machine one of them is undisturbed.
fn costs_the_same([small, large]: [&Engine<u32>; 2], times: u32, act: impl Fn(&Engine<u32>)) {
    let fastest = |engine| {
        let time = || {
            let begun = Instant::now();
            act(engine);
            begun.elapsed()
        };
        std::iter::repeat_with(time).take(ROUNDS).min().unwrap()
    };
    let (control, took) = (fastest(small), fastest(large));
    assert!(took < times * control, "{took:?}, {control:?}");
}

#[test]
fn an_account_costs_no_more_after_a_peak() {
    let (small, _) = engine_with(1, None);
    let (large, ids) = engine_with(MANY, None);
    drop(large.cancel_many(&ids));
    // A walk takes a thousand times that.
    costs_the_same([&small, &large], 20, |engine| {
        assert_eq!(engine.ledger().live, engine.snapshot().ledger.live);
        assert!(engine.ledger().is_balanced());
    });
}

#[test]
fn the_earliest_deadline_costs_no_walk_if_it_stands_alone() {
    let [small, large] = [1, MANY].map(|count| {
        let (engine, _) = engine_with(count, None);
        (0..count).for_each(|_| _ = engine.schedule(Timer::after(MS, 0)).unwrap());
        engine
    });
    // A walk takes more than a thousand times that.
    costs_the_same([&small, &large], 50, |engine| {
        assert_eq!(engine.earliest_deadline(), Some(engine.now() + MS));
    });
}

#[test]
fn the_earliest_deadline_costs_no_walk_through_the_slots() {
    let [few, many] = [1, 60_000].map(|count| {
        let builder = Engine::builder().shards(1).wheel_size(65_536);
        let (engine, _clock) = builder.start_virtual().unwrap();
        (1..=count).for_each(|n| _ = engine.schedule(Timer::after(n * MS, n)).unwrap());
        engine
    });
    // A walk takes more than a hundred times that.
    costs_the_same([&few, &many], 10, |engine| {
        assert_eq!(engine.earliest_deadline(), Some(engine.now() + MS));
    });
}

#[test]
fn cancelling_one_by_name_costs_no_more_among_namesakes() {
    let [few, many] = [1_000, NAMED].map(|count| engine_with(count, Some("crew")).0);
    // A walk takes two hundred times that.
    costs_the_same([&few, &many], 20, |engine| {
        assert_eq!(engine.cancel_by_name("crew", 1).len(), 1);
    });
}

/// One that waits for all of a walk waits for nearly all of the time.
const SHORT: f64 = 0.3;

/// Asserts that no call of another thread, for the same shard or name, takes a large share
/// of the time of `act` while that is in progress: in one of some rounds, because other
/// programs may have the processors.
fn others_go_on(
    set_up: impl Fn() -> Engine<u32>,
    call: impl Fn(&Engine<u32>) + Sync,
    act: impl Fn(&Engine<u32>),
) {
    let longest_share = || {
        let engine = set_up();
        let (begun, over) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let caller = scope.spawn(|| {
                let mut longest = Duration::ZERO;
                while !over.load(Ordering::Acquire) {
                    let calling = Instant::now();
                    call(&engine);
                    longest = longest.max(calling.elapsed());
                    begun.store(true, Ordering::Release);
                }
                longest
            });
            while !begun.load(Ordering::Acquire) {
                thread::yield_now();
            }
            let acting = Instant::now();
            act(&engine);
            let all = acting.elapsed();
            over.store(true, Ordering::Release);
            caller.join().unwrap().as_secs_f64() / all.as_secs_f64()
        })
    };
    let mut shares = std::iter::repeat_with(longest_share).take(ROUNDS);
    assert!(shares.any(|share| share < SHORT), "in no round");
}

/// A call that needs the lock of the only shard.
fn ask(engine: &Engine<u32>) {
    assert!(engine.queue(0).is_empty());
}

fn schedule(engine: &Engine<u32>) {
    engine.schedule(Timer::after(FAR, 0)).unwrap();
}

fn schedule_named(engine: &Engine<u32>) {
    engine.schedule(Timer::after(FAR, 0).named("crew")).unwrap();
}

fn many() -> Engine<u32> {
    engine_with(MANY, None).0
}

fn named() -> Engine<u32> {
    engine_with(NAMED, Some("crew")).0
}

fn vacated() -> Engine<u32> {
    // A vacant entry costs a walk a tenth of what a timer does.
    let (engine, ids) = engine_with(MANY.max(2_000_000), None);
    // The last timer keeps the memory.
    drop(engine.cancel_many(&ids[..ids.len() - 1]));
    engine
}

#[test]
fn others_go_on_while_an_engine_is_shut_down_or_drained() {
    others_go_on(many, ask, |it| assert_eq!(it.shutdown().len(), MANY as usize));
    others_go_on(many, ask, |it| assert_eq!(it.drain(MS).len(), MANY as usize));
}

#[test]
fn others_go_on_while_the_earliest_deadline_is_searched() {
    others_go_on(many, ask, |it| assert_eq!(it.earliest_deadline(), Some(it.now() + FAR)));
}

#[test]
fn others_go_on_while_vacated_entries_are_searched() {
    others_go_on(vacated, ask, |it| assert_eq!(it.live().count(), 1));
}

#[test]
fn others_schedule_under_a_name_while_all_of_it_are_cancelled() {
    let all = |it: &Engine<u32>| it.cancel_by_name("crew", None).len();
    others_go_on(named, schedule_named, |it| assert!(all(it) >= NAMED as usize));
}

#[test]
fn others_schedule_under_a_name_while_it_is_looked_up() {
    let all = |it: &Engine<u32>| it.find_by_name("crew").count();
    others_go_on(named, schedule_named, |it| assert!(all(it) >= NAMED as usize));
}

#[test]
fn others_schedule_while_all_are_cancelled() {
    others_go_on(many, schedule, |it| assert!(it.cancel_all().len() >= MANY as usize));
}

#[test]
fn others_go_on_while_many_are_cancelled() {
    let ids = |it: &Engine<u32>| it.live().map(|timer| timer.id).collect::<Vec<_>>();
    others_go_on(many, ask, |it| assert_eq!(it.cancel_many(&ids(it)).len(), MANY as usize));
}

/// A shutdown refuses first and walks afterwards; whatever was accepted is returned.
#[test]
fn what_comes_during_a_shutdown_is_refused_before_its_end() {
    let share_of_the_time = || {
        let (engine, begun) = (many(), Instant::now());
        let (accepted, refused, ended) = thread::scope(|scope| {
            let submitter = scope.spawn(|| {
                let mut accepted = MANY as usize;
                while engine.schedule(Timer::after(FAR, 0)).is_ok() {
                    accepted += 1;
                    thread::yield_now();
                }
                (accepted, begun.elapsed())
            });
            let returned = engine.shutdown().len();
            let ended = begun.elapsed();
            let (accepted, refused) = submitter.join().unwrap();
            assert_eq!((accepted, engine.ledger().live), (returned, 0));
            (accepted, refused, ended)
        });
        assert_eq!(engine.ledger().shut_down, accepted as u64);
        refused.as_secs_f64() / ended.as_secs_f64()
    };
    let mut shares = std::iter::repeat_with(share_of_the_time).take(ROUNDS);
    assert!(shares.any(|share| share < 0.5), "refused at the end only");
}
