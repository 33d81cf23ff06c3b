//! Promise 9 to those who run a program twice: with one shard and one thread, the same
//! calls give the same order, in every kind of engine.

use super::*;

/// The name of a timer, its due tick after the beginning, and the number of the firing.
type Entry = (u32, u64, u64);
type Log = Vec<Entry>;

/// The timers of a program, and the ticks within which they are due.
const TIMERS: u32 = 60;
const TICKS: u64 = 20;

/// Schedules timers, and cancels and moves some of them, as the seed says.
fn prepare<T>(
    engine: &Engine<T>,
    begin: Time,
    seed: u64,
    mut schedule: impl FnMut(u32, Time) -> TimerId,
) {
    let mut rng = Rng::with_seed(seed);
    let mut ids = Vec::new();
    for name in 0..TIMERS {
        let mut due = || begin + rng.u32(0..TICKS as u32) * MS;
        ids.push(schedule(name, due()));
        let (moved, to) = (due(), rng.usize(0..ids.len()));
        match rng.u32(0..4) {
            0 => _ = engine.reschedule(ids[to], moved),
            1 => _ = engine.cancel(ids[to]),
            _ => {}
        }
    }
}

fn entry(begin: Time, name: u32, tick: Tick, number: u64) -> Entry {
    (name, tick.0 - begin.as_nanos() / 1_000_000, number)
}

/// Takes everything that waits. Each payload that is taken adds another at its own tick,
/// some of which repeat.
fn take(engine: &Engine<u32>, begin: Time, follow: bool, log: &mut Log) {
    while let Ok(expired) = engine.queue(0).try_recv() {
        let (name, number) = (*expired.payload(), expired.number());
        log.push(entry(begin, name, expired.tick(), number));
        drop(expired);
        if follow && name < TIMERS {
            let next = match name % 3 {
                0 => Timer::every((name % 5 + 1) * MS, name + TIMERS).times(3),
                _ => Timer::after(name % 4 * MS, name + TIMERS),
            };
            engine.put(next);
        }
    }
}

fn on_a_virtual_clock(seed: u64, follow: bool) -> Log {
    let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let (begin, mut log) = (Time::from_millis(9), Log::new());
    prepare(&engine, begin, seed, |name, due| engine.put(Timer::at(due, name)));
    let mut rng = Rng::with_seed(seed);
    while engine.ledger().live > 0 {
        while clock.advance_within(rng.u32(0..5) * MS, rng.usize(1..9)) == Advance::More {}
        take(&engine, begin, follow, &mut log);
    }
    log
}

fn on_a_virtual_clock_by_tasks(seed: u64) -> Log {
    let ((tasks, clock), told) = (virtual_tasks(), told());
    prepare(&tasks, at(9), seed, |name, due| {
        tasks.run(Timer::at(due, logs(&told, at(9), name))).unwrap()
    });
    clock.run_until(at(9 + TICKS));
    told.all()
}

/// A task that tells its firing.
fn logs(log: &Told<Entry>, begin: Time, name: u32) -> impl FnMut(Firing) + Send + use<> {
    log.of(move |firing| entry(begin, name, firing.tick(), firing.number()))
}

/// The order of an engine on a system clock that was prepared before the first timer was
/// due: otherwise, it begins anew with more time.
fn in_time(run: impl Fn(u64) -> Option<Log>) -> Log {
    let log = [100, 1_000, 10_000, 60_000].into_iter().find_map(run);
    log.expect("this machine takes a minute for sixty timers")
}

fn on_a_ticker(seed: u64, lead: u64) -> Option<Log> {
    let engine = Engine::builder().shards(1).start().unwrap();
    let begin = at(engine.current_tick().0 + lead);
    prepare(&engine, begin, seed, |name, due| engine.put(Timer::at(due, name)));
    (engine.now() < begin).then(|| {
        let (mut log, queue) = (Log::new(), engine.queue(0));
        while engine.ledger().live > 0 {
            let expired = queue.recv_timeout(PATIENCE).unwrap();
            log.push(entry(begin, *expired.payload(), expired.tick(), 1));
        }
        log
    })
}

fn in_a_loop(seed: u64, lead: u64) -> Option<Log> {
    let ((tasks, driver), told) = (driven_tasks(), told());
    let begin = at(tasks.current_tick().0 + lead);
    prepare(&tasks, begin, seed, |name, due| {
        tasks.run(Timer::at(due, logs(&told, begin, name))).unwrap()
    });
    (tasks.now() < begin).then(|| {
        while tasks.ledger().live > 0 {
            let _ = driver.process_due(7);
            thread::sleep(driver.timeout().unwrap_or_default());
        }
        told.all()
    })
}

#[test]
fn promise_09_each_kind_of_engine_gives_the_same_order() {
    for seed in 0..3 {
        let log = on_a_virtual_clock(seed, false);
        assert!(log.is_sorted_by_key(|&(_, tick, _)| tick), "{log:?}");
        assert_eq!(on_a_virtual_clock_by_tasks(seed), log);
        assert_eq!(in_time(|lead| in_a_loop(seed, lead)), log);
        assert_eq!(in_time(|lead| on_a_ticker(seed, lead)), log);
    }
}

#[test]
fn promise_09_a_program_gives_the_same_order_in_each_run() {
    for seed in 0..100 {
        let log = on_a_virtual_clock(seed, true);
        assert!(log.len() > TIMERS as usize);
        assert_eq!(on_a_virtual_clock(seed, true), log);
    }
}

#[test]
fn promise_09_order() {
    let (engine, clock) = virtual_engine();
    let mut random = Rng::with_seed(9);
    // More than have one list for each slot.
    let mut expected: Vec<_> = (0..12_000).map(|n| (random.u64(1..=700), n)).collect();
    for &(tick, n) in &expected {
        engine.put(Timer::at(at(tick), n));
    }
    expected.sort();
    // Cascades on the way, and pauses in the middle of everything.
    (0..7).for_each(|_| clock.advance(100 * MS));
    assert_eq!(super::take(&engine, 0), expected);
}

#[test]
fn promise_09_a_rescheduled_timer_keeps_its_age() {
    // So many on one tick that they share the lists of a slot: what one hold
    // of the lock moves, and more than that.
    for count in [24, 60] {
        let (engine, clock) = virtual_engine();
        let schedule = |ms, n| engine.put(Timer::at(at(ms), n));
        let postponed = schedule(3, 0);
        (1..count / 2).for_each(|n| _ = schedule(100, n));
        let forward = schedule(900, count / 2);
        (count / 2 + 1..count).for_each(|n| _ = schedule(100, n));
        engine.reschedule(postponed, at(100)).unwrap();
        engine.reschedule(forward, at(100)).unwrap();
        clock.advance_to(at(100));
        assert!(payloads(&engine).into_iter().eq(0..count));
    }
}
