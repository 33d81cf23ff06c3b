//! Promise 9 to those who run a program twice: with one shard and one thread, the same
//! calls give the same order, in every kind of engine.

use super::*;
use std::sync::Mutex;

/// The name of a timer, its due tick after the beginning, and the number of the firing.
type Log = Vec<(u32, u64, u64)>;

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

fn entry(begin: Time, name: u32, tick: Tick, number: u64) -> (u32, u64, u64) {
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
            engine.schedule(next).unwrap();
        }
    }
}

fn on_a_virtual_clock(seed: u64, follow: bool) -> Log {
    let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let (begin, mut log) = (Time::from_millis(9), Log::new());
    prepare(&engine, begin, seed, |name, due| {
        engine.schedule(Timer::at(due, name)).unwrap()
    });
    let mut rng = Rng::with_seed(seed);
    while engine.ledger().live > 0 {
        while clock.advance_within(rng.u32(0..5) * MS, rng.usize(1..9)) == Advance::More {}
        take(&engine, begin, follow, &mut log);
    }
    log
}

fn on_a_virtual_clock_by_tasks(seed: u64) -> Log {
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    let (begin, log) = (Time::from_millis(9), Arc::<Mutex<Log>>::default());
    prepare(tasks.engine(), begin, seed, |name, due| {
        tasks.run(Timer::at(due, logs(&log, begin, name))).unwrap()
    });
    clock.run_until(begin + TICKS as u32 * MS);
    tasks.shutdown();
    std::mem::take(&mut log.lock().unwrap())
}

/// A task that writes its firing into a log.
fn logs(log: &Arc<Mutex<Log>>, begin: Time, name: u32) -> impl FnMut(Firing) + Send + use<> {
    let log = Arc::clone(log);
    move |firing| {
        let entry = entry(begin, name, firing.tick(), firing.number());
        log.lock().unwrap().push(entry);
    }
}

/// Prepares an engine on a system clock before the first timer is due; otherwise, begins
/// anew with more time. Returns the beginning.
fn in_time<E>(
    mut start: impl FnMut() -> E,
    mut prepare: impl FnMut(&E, u64) -> (Time, bool),
) -> (E, Time) {
    for lead in [100, 1_000, 10_000, 60_000] {
        let engine = start();
        if let (begin, true) = prepare(&engine, lead) {
            return (engine, begin);
        }
    }
    panic!("this machine takes a minute for sixty timers");
}

/// Prepares an engine whose first timers are due in `lead` milliseconds.
fn prepare_soon<T>(
    engine: &Engine<T>,
    lead: u64,
    seed: u64,
    mut schedule: impl FnMut(u32, Time, Time) -> TimerId,
) -> (Time, bool) {
    let begin = Time::from_millis(engine.current_tick().0 + lead);
    prepare(engine, begin, seed, |name, due| schedule(name, due, begin));
    (begin, engine.now() < begin)
}

fn on_a_ticker(seed: u64) -> Log {
    let start = || Engine::builder().shards(1).start().unwrap();
    let (engine, begin) = in_time(start, |engine, lead| {
        prepare_soon(engine, lead, seed, |name, due, _| {
            engine.schedule(Timer::at(due, name)).unwrap()
        })
    });
    let mut log = Log::new();
    let queue = engine.queue(0);
    while engine.ledger().live > 0 {
        let expired = queue.recv_timeout(PATIENCE).unwrap();
        log.push(entry(begin, *expired.payload(), expired.tick(), 1));
    }
    log
}

fn in_a_loop(seed: u64) -> Log {
    let start = || TaskEngine::builder().start_driven().unwrap();
    let log = Arc::<Mutex<Log>>::default();
    let ((tasks, driver), _) = in_time(start, |(tasks, _), lead| {
        prepare_soon(tasks.engine(), lead, seed, |name, due, begin| {
            tasks.run(Timer::at(due, logs(&log, begin, name))).unwrap()
        })
    });
    while tasks.ledger().live > 0 {
        let _ = driver.run_due(7);
        thread::sleep(driver.timeout().unwrap_or_default());
    }
    std::mem::take(&mut log.lock().unwrap())
}

#[test]
fn promise_09_each_kind_of_engine_gives_the_same_order() {
    for seed in 0..3 {
        let log = on_a_virtual_clock(seed, false);
        assert!(log.is_sorted_by_key(|&(_, tick, _)| tick), "{log:?}");
        assert_eq!(on_a_virtual_clock_by_tasks(seed), log);
        assert_eq!(in_a_loop(seed), log);
        assert_eq!(on_a_ticker(seed), log);
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
