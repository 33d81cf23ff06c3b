//! Promises 1, 2, 9, 14 and 15: when timers fire, and in which order.

use super::*;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;
use tickwheel::wheel::Advance;
use tickwheel::{
    Cancel, ClockSource, Expired, Firing, TaskEngine, Tick, Time, Timer, TimerId, Wheel,
};

#[test]
fn promise_01_never_early() {
    for (tick, clock) in [
        (MS, ClockSource::Monotonic),
        (Duration::from_micros(50), ClockSource::BootTime),
    ] {
        let engine = Engine::builder().tick(tick).clock(clock).start().unwrap();
        let queue = engine.queue(0);
        let worker = thread::spawn(move || {
            for expired in queue {
                let (scheduled, delay): (Instant, Duration) = expired.into_payload();
                assert!(scheduled.elapsed() >= delay, "{delay:?} fired early");
            }
        });
        thread::scope(|scope| {
            for seed in 1..=2 {
                let engine = &engine;
                scope.spawn(move || {
                    let mut random = Rng::with_seed(seed);
                    for _ in 0..2_000 {
                        // Now and then the ticker sleeps, and a stale reading
                        // of the clock would show.
                        if random.u64(..100) == 0 {
                            thread::sleep(Duration::from_micros(random.u64(..3_000)));
                        }
                        let delay = Duration::from_micros(random.u64(..30_000));
                        let timer = Timer::after(delay, (Instant::now(), delay));
                        engine.schedule(timer).unwrap();
                    }
                });
            }
        });
        assert!(engine.drain(SECOND).is_empty());
        assert_eq!(engine.ledger().completed, 4_000);
        worker.join().unwrap();
    }
}

#[test]
fn promise_01_a_delay_is_rounded_up_to_a_tick() {
    let (engine, clock) = virtual_engine();
    clock.advance(Duration::from_micros(300));
    engine.schedule(Timer::after(MS, ())).unwrap();
    // One millisecond from 0.3 ms on is 1.3 ms: within tick 1, so due at 2.
    clock.advance_to(Time::from_nanos(1_999_999));
    assert!(engine.queue(0).is_empty());
    clock.advance_to(Time::from_nanos(2_000_000));
    assert_eq!(engine.queue(0).len(), 1);
}

#[test]
fn promise_02_on_time() {
    let (engine, clock) = virtual_engine();
    for delay in [1, 63, 64, 65, 4_095, 4_096, 4_097, 300_000] {
        engine.schedule(Timer::after(delay * MS, delay)).unwrap();
    }
    while let Some(next) = engine.live().map(|timer| timer.tick).min() {
        clock.advance_to(Time::START + (next.0 as u32 - 1) * MS);
        assert!(engine.queue(0).is_empty());
        clock.advance(MS);
        let expired = take_all(&engine).pop().unwrap();
        assert_eq!(expired.lateness(), Duration::ZERO);
        assert_eq!(u64::from(expired.into_payload()), next.0);
    }
    engine.schedule(Timer::after(2 * MS, 0)).unwrap();
    clock.advance(5 * MS);
    assert_eq!(take_all(&engine)[0].lateness(), 3 * MS);
}

#[test]
fn promise_02_a_sleeping_ticker_is_in_time_for_the_earliest() {
    let engine = Engine::builder().start().unwrap();
    let queue = engine.queue(0);
    let mut lateness: Vec<Duration> = (0..60)
        .map(|n| {
            engine.schedule(Timer::after(3_600 * SECOND, ())).unwrap();
            engine.schedule(Timer::after((n % 7) * MS, ())).unwrap();
            queue.recv_timeout(10 * SECOND).unwrap().lateness()
        })
        .collect();
    lateness.sort();
    // The median, because a busy machine may hold up any single wake-up.
    assert!(lateness[30] < 50 * MS, "{lateness:?}");
}

#[test]
fn promise_02_a_task_can_tell_how_late_it_is() {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let (tell, told) = mpsc::channel();
    let due = tasks.now() + 2 * MS;
    let task = move |firing: Firing| tell.send(firing.lateness()).unwrap();
    tasks
        .run(Timer::every(MS, task).starting(due).times(2))
        .unwrap();
    thread::sleep(10 * MS);
    let before = tasks.now() - due;
    while driver.run_due(1) == Advance::More {}
    let after = tasks.now() - due;
    let late: Vec<_> = told.try_iter().collect();
    assert!((before..=after).contains(&late[0]), "{late:?}");
    // Due a millisecond later, and run a moment later.
    assert!((before - MS..=after - MS).contains(&late[1]), "{late:?}");
}

#[test]
fn promise_02_a_task_notified_early_is_not_late() {
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    let (tell, told) = mpsc::channel();
    let task = move |firing: Firing| tell.send((firing.lateness(), firing.deadline())).unwrap();
    let id = tasks.run(Timer::after(MS, task).notified()).unwrap();
    assert_eq!(tasks.cancel(id), Cancel::Cancelled(()));
    clock.run_until(tasks.now());
    assert_eq!(told.try_recv(), Ok((Duration::ZERO, Time::from_millis(1))));
}

/// Files timer 1 into another shard than that of `id`: threads that live at the
/// same time have numbers of their own, so that one of them gets there.
fn schedule_elsewhere(engine: &Engine<u32>, id: TimerId) {
    let other = engine.schedule(Timer::after(2 * MS, 1)).unwrap();
    if shard_of(other) == shard_of(id) {
        engine.cancel(other).payload().unwrap();
        thread::scope(|scope| _ = scope.spawn(|| schedule_elsewhere(engine, id)));
    }
}

#[test]
fn promise_02_a_crowded_shard_keeps_no_other_waiting() {
    let (engine, clock) = Engine::builder().shards(2).start_virtual().unwrap();
    let crowd: Vec<_> = (0..1_000)
        .map(|_| engine.schedule(Timer::after(MS, 0)).unwrap())
        .collect();
    schedule_elsewhere(&engine, crowd[0]);
    // The crowd is due first, and its bell is rung first.
    clock.advance(MS);
    clock.advance(MS);
    let place = payloads(&engine).iter().position(|&n| n == 1).unwrap();
    assert!(place < 200, "{place} were taken ahead of it");
}

#[test]
fn the_earliest_deadline_is_exact() {
    let (engine, clock) = Engine::builder().shards(4).start_virtual().unwrap();
    assert_eq!(engine.earliest_deadline(), None);
    engine.schedule(Timer::after(Duration::MAX, 0)).unwrap();
    let unstarted = engine.create(Timer::after(MS, 1)).unwrap();
    assert_eq!(engine.earliest_deadline(), None, "nothing is ever due");
    // Each thread files into a shard of its own.
    for deadline in [700, 350, 900] {
        let timer = Timer::at(Time::from_millis(deadline), 2);
        thread::scope(|scope| _ = scope.spawn(|| engine.schedule(timer).unwrap()));
    }
    let earliest = Timer::at(Time::from_millis(300), 3);
    let earliest = engine.schedule(earliest).unwrap();
    let at = |ms| Some(Time::from_millis(ms));
    assert_eq!(engine.earliest_deadline(), at(300));
    // Postponing leaves it in its slot.
    engine.reschedule(earliest, Time::from_millis(800)).unwrap();
    assert_eq!(engine.earliest_deadline(), at(350));
    clock.advance_to(Time::from_millis(350));
    assert_eq!(engine.queue(0).len(), 1);
    assert_eq!(engine.earliest_deadline(), at(700), "350 has expired");
    unstarted.start().unwrap();
    assert_eq!(engine.earliest_deadline(), at(351));
}

#[test]
fn a_driver_knows_a_bound_and_the_earliest_deadline() {
    let (engine, driver) = Engine::builder().start_driven().unwrap();
    assert_eq!(driver.earliest_deadline(), None);
    let hour = Time::from_secs(3_600);
    let id = engine.schedule(Timer::at(hour, ())).unwrap();
    let day = Time::from_secs(86_400);
    engine.reschedule(id, day).unwrap();
    assert!(driver.next_wakeup().unwrap() <= hour);
    assert_eq!(driver.earliest_deadline(), Some(day));
    engine.cancel(id).payload().unwrap();
    assert_eq!(driver.earliest_deadline(), None);
}

#[test]
fn a_driver_spends_its_budget_on_due_timers_only() {
    let (engine, driver) = Engine::builder().shards(1).start_driven().unwrap();
    let schedule = |n| engine.schedule(Timer::at(Time::START, n)).unwrap();
    (0..100).for_each(|n| _ = schedule(n));
    assert_eq!(driver.process_due(40), Advance::More);
    assert_eq!(engine.queue(0).len(), 40);
    assert_eq!(driver.process_due(100), Advance::Done);
    assert_eq!(engine.queue(0).len(), 100);
    // One that would do in one step, and in two.
    for budget in [3, 40] {
        schedule(100);
        assert_eq!(driver.process_due(budget), Advance::Done, "{budget}");
    }
}

#[test]
fn promise_09_order() {
    let (engine, clock) = virtual_engine();
    let mut random = Rng::with_seed(9);
    // More than have one list for each slot.
    let mut expected = Vec::new();
    for n in 0..12_000u64 {
        let tick = 1 + random.u64(..700);
        engine
            .schedule(Timer::at(Time::START + (tick as u32) * MS, n))
            .unwrap();
        expected.push((tick, n));
    }
    expected.sort();
    // Cascades on the way, and pauses in the middle of everything.
    for _ in 0..7 {
        clock.advance(100 * MS);
    }
    let fired: Vec<(u64, u64)> = take_all(&engine)
        .into_iter()
        .map(|expired| (expired.tick().0, expired.into_payload()))
        .collect();
    assert_eq!(fired, expected);
}

#[test]
fn promise_09_a_rescheduled_timer_keeps_its_age() {
    // So many on one tick that they share the lists of a slot: what one hold
    // of the lock moves, and more than that.
    for count in [24, 60] {
        let (engine, clock) = virtual_engine();
        let at = |ms: u32| Time::START + ms * MS;
        let schedule = |ms, n| engine.schedule(Timer::at(at(ms), n)).unwrap();
        let postponed = schedule(3, 0);
        (1..count / 2).for_each(|n| _ = schedule(100, n));
        let forward = schedule(900, count / 2);
        (count / 2 + 1..count).for_each(|n| _ = schedule(100, n));
        engine.reschedule(postponed, at(100)).unwrap();
        engine.reschedule(forward, at(100)).unwrap();
        clock.advance_to(at(100));
        assert_eq!(payloads(&engine), (0..count).collect::<Vec<_>>());
    }
}

#[test]
fn promise_14_any_deadline() {
    let (engine, clock) = virtual_engine();
    clock.advance(10 * SECOND);
    engine
        .schedule(Timer::after(Duration::ZERO, "zero"))
        .unwrap();
    engine
        .schedule(Timer::at(Time::from_secs(2), "past"))
        .unwrap();
    let never = engine
        .schedule(Timer::after(Duration::MAX, "never"))
        .unwrap();
    engine
        .schedule(Timer::at(Time::from_nanos(u64::MAX - 1), "furthest"))
        .unwrap();
    assert!(engine.queue(0).is_empty(), "not inline in the call");
    clock.advance(Duration::ZERO);
    assert_eq!(payloads(&engine), ["zero", "past"]);

    // Years of uptime, across every level's wrap.
    let year = Duration::from_secs(365 * 86_400);
    for _ in 0..583 {
        let id = engine.schedule(Timer::after(year, "a year")).unwrap();
        clock.advance(year - MS);
        assert!(engine.queue(0).is_empty());
        clock.advance(MS);
        assert_eq!(payloads(&engine), ["a year"]);
        assert_eq!(engine.deadline(id), None);
    }
    clock.advance_to(Time::from_nanos(u64::MAX - 1_000_000_000));
    assert!(engine.queue(0).is_empty(), "the furthest fired early");
    clock.advance_to(Time::MAX);
    let left = engine.shutdown();
    assert!(left.iter().any(|closed| closed.id == never));
}

#[test]
fn promise_14_a_new_overdue_timer_fires_after_older_ones() {
    let (engine, clock) = virtual_engine();
    engine.schedule(Timer::after(5 * MS, "due")).unwrap();
    clock.advance_to(Time::START + 5 * MS);
    engine
        .schedule(Timer::after(Duration::ZERO, "zero"))
        .unwrap();
    engine.schedule(Timer::at(Time::START, "past")).unwrap();
    clock.advance(Duration::ZERO);
    assert_eq!(payloads(&engine), ["due", "zero", "past"]);
}

#[test]
fn promise_15_time_only_moves_forward() {
    let (engine, clock) = virtual_engine();
    clock.advance_to(Time::from_secs(5));
    engine.schedule(Timer::after(SECOND, ())).unwrap();
    clock.advance_to(Time::from_secs(3));
    assert_eq!(
        (clock.now(), engine.current_tick()),
        (Time::from_secs(5), Tick(5_000))
    );
    clock.advance_to(Time::from_secs(6));
    assert_eq!(engine.queue(0).len(), 1);

    let engine = Engine::<()>::builder().start().unwrap();
    let before = Instant::now();
    let time = engine.time_of(before).unwrap();
    let now = engine.now();
    assert!(time <= now && now - time < 10 * SECOND);
    assert!(engine.now() >= now);
}

#[test]
fn promise_15_run_until_steps_and_waits_for_the_workers() {
    let (engine, clock) = Engine::builder().queues(2).start_virtual().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let workers: Vec<_> = (0..2)
        .map(|index| {
            let (engine, tell) = (engine.clone(), tell.clone());
            let queue = engine.queue(index);
            let (ready, is_ready) = std::sync::mpsc::channel();
            let worker = thread::spawn(move || {
                let _ = queue.recv_timeout(Duration::ZERO);
                ready.send(()).unwrap();
                for expired in queue {
                    let now = engine.now();
                    thread::sleep(2 * MS); // real time: slower than the clock
                    let left: u32 = expired.into_payload();
                    tell.send(now).unwrap();
                    if left > 0 {
                        let next = Timer::after(SECOND, left - 1).queue(index);
                        engine.schedule(next).unwrap();
                    }
                }
            });
            is_ready.recv().unwrap();
            worker
        })
        .collect();
    for index in 0..2 {
        engine
            .schedule(Timer::after(SECOND, 4).queue(index))
            .unwrap();
    }
    clock.run_until(Time::from_secs(4));
    let seen: Vec<Time> = told.try_iter().collect();
    let second = |s| Time::from_secs(s);
    assert_eq!(seen, [1, 1, 2, 2, 3, 3, 4, 4].map(second));
    clock.run_until(Time::from_secs(100));
    assert_eq!(told.try_iter().count(), 2);
    engine.shutdown();
    workers
        .into_iter()
        .for_each(|worker| worker.join().unwrap());
}

#[test]
fn promise_02_a_tolerance_lets_neighbours_share_a_wakeup() {
    let (engine, clock) = virtual_engine();
    for delay in [70, 80, 100, 127, 128] {
        let timer = Timer::after(delay * MS, delay).tolerance(60 * MS);
        engine.schedule(timer).unwrap();
    }
    engine
        .schedule(Timer::after(90 * MS, 90).tolerance(5 * MS))
        .unwrap();
    let mut ticks: Vec<u64> = engine.live().map(|timer| timer.tick.0).collect();
    ticks.sort_unstable();
    // 128 is the start of a slot of level 1; from 90 to 95 there is none.
    assert_eq!(ticks, [90, 128, 128, 128, 128, 128]);
    clock.advance(130 * MS);
    for expired in take_all(&engine) {
        let asked = *expired.payload() * MS;
        assert_eq!(
            expired.lateness(),
            130 * MS - asked,
            "counts from the one asked for"
        );
    }
    // A repeating timer keeps the phase of its requested times.
    let beat = Timer::every(100 * MS, 0).tolerance(60 * MS).times(3);
    engine.schedule(beat).unwrap();
    let mut ticks = Vec::new();
    for _ in 0..500 {
        clock.advance(MS);
        ticks.extend(take_all(&engine).iter().map(|expired| expired.tick().0));
    }
    // Asked for at 230, 330 and 430.
    assert_eq!(ticks, [256, 384, 448]);
}

#[test]
fn promise_02_each_budget_hands_out_what_it_made_ready() {
    let (engine, driver) = Engine::builder().start_driven().unwrap();
    let due = engine.now() + MS;
    for n in 0..3 {
        engine.schedule(Timer::at(due, n)).unwrap();
    }
    thread::sleep(due - engine.now() + MS);
    let queue = engine.queue(0);
    let taken = || {
        queue
            .try_iter()
            .map(Expired::into_payload)
            .collect::<Vec<_>>()
    };
    assert_eq!(driver.process_due(1), Advance::More);
    assert_eq!(taken(), [0]);
    assert_eq!(driver.process_due(usize::MAX), Advance::Done);
    assert_eq!(taken(), [1, 2]);
}

#[test]
fn promise_02_lateness_of_hours_and_each_shard_is_measured() {
    const THREADS: u32 = 4;
    let builder = Engine::builder().shards(4);
    let (engine, clock) = builder.start_virtual().unwrap();
    // Numbers of threads that live together differ, and so mostly do shards.
    let all_here = std::sync::Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for n in 0..THREADS {
            let (engine, all_here) = (&engine, &all_here);
            scope.spawn(move || {
                engine.schedule(Timer::after(MS, n)).unwrap();
                all_here.wait();
            });
        }
    });
    clock.advance(7_200 * SECOND);
    let lateness = engine.snapshot().lateness;
    assert_eq!(lateness.count(), u64::from(THREADS));
    for q in [0.0, 1.0] {
        let late = lateness.quantile(q).unwrap();
        assert!(
            (7_199 * SECOND..14_400 * SECOND).contains(&late),
            "{late:?}"
        );
    }
}

#[test]
fn promise_02_lateness_is_measured() {
    let (engine, clock) = virtual_engine();
    for delay in 1..=100 {
        engine.schedule(Timer::after(delay * MS, ())).unwrap();
    }
    for _ in 0..90 {
        clock.advance(MS);
    }
    clock.advance(1_000 * MS);
    let lateness = engine.snapshot().lateness;
    assert_eq!(lateness.count(), 100);
    assert!(lateness.quantile(0.9).unwrap() <= Duration::from_nanos(1));
    let late = lateness.quantile(0.99).unwrap();
    assert!(late >= 990 * MS && late <= 2_000 * MS, "{late:?}");
    assert_eq!(engine.snapshot().queued, [100, 0]);
}

#[test]
fn promise_09_a_budget_may_end_on_a_moved_timer() {
    let mut wheel = Wheel::new(64);
    let moved = wheel.schedule_at(Tick(0), "moved");
    wheel.schedule_at(Tick(0), "due");
    assert!(wheel.reschedule(moved, Tick(50)));
    let mut fired = Vec::new();
    for _ in 0..3 {
        let _ = wheel.advance(Tick(10), 1, |_, expired| fired.push(expired.payload));
    }
    assert_eq!(fired, ["due"]);
}

#[test]
fn promise_14_a_deadline_within_the_last_tick_is_never_due() {
    let (engine, clock) = virtual_engine();
    let last = Time::from_nanos(u64::MAX - u64::MAX % 1_000_000);
    engine.schedule(Timer::at(last, "last")).unwrap();
    assert_eq!(engine.earliest_deadline(), Some(last));
    for nanos in [last.as_nanos() + 1, u64::MAX - 1, u64::MAX] {
        let never = Timer::at(Time::from_nanos(nanos), "never");
        engine.schedule(never).unwrap();
    }
    clock.advance_to(last);
    assert_eq!(payloads(&engine), ["last"]);
    assert_eq!(engine.earliest_deadline(), None, "nothing is ever due");
    clock.advance_to(Time::MAX);
    assert!(engine.queue(0).is_empty());
    assert_eq!(engine.shutdown().len(), 3);
}

/// What an engine says of a timer for 3 ms that was filed at 20 ms; `before`
/// comes first.
fn of_the_past(before: impl FnOnce(&Engine<u32>)) -> (Time, Tick, Duration, Time) {
    let (engine, clock) = virtual_engine();
    clock.advance(20 * MS);
    before(&engine);
    let asked = Time::from_millis(3);
    let id = engine.schedule(Timer::at(asked, 1)).unwrap();
    let deadline = engine.deadline(id).unwrap();
    assert_eq!(engine.earliest_deadline(), Some(deadline));
    clock.advance(2 * MS);
    let mine = take_all(&engine)
        .into_iter()
        .find(|expired| expired.id() == id);
    let expired = mine.unwrap();
    assert!(engine.snapshot().lateness.quantile(1.0).unwrap() >= 19 * MS);
    (
        deadline,
        expired.tick(),
        expired.lateness(),
        expired.deadline(),
    )
}

#[test]
fn promise_02_a_timer_for_the_past_is_reported_as_requested() {
    let asked = Time::from_millis(3);
    let expected = (asked, Tick(3), 19 * MS, asked);
    assert_eq!(of_the_past(|_| {}), expected);
    // Its shard has just read the clock.
    let busy = |engine: &Engine<u32>| _ = engine.schedule(Timer::after(SECOND, 2)).unwrap();
    assert_eq!(of_the_past(busy), expected);
    let moved = |engine: &Engine<u32>| {
        let id = engine.schedule(Timer::after(Duration::ZERO, 3)).unwrap();
        engine.reschedule(id, SECOND).unwrap();
    };
    assert_eq!(of_the_past(moved), expected);
}
