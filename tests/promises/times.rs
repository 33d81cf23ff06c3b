//! Promises 1, 2, 14 and 15: when timers fire.

use super::*;

#[test]
fn promise_01_a_delay_is_rounded_up_to_a_tick() {
    let (engine, clock) = virtual_engine();
    clock.advance(Duration::from_micros(300));
    let unstarted = engine.create(Timer::after(MS, ())).unwrap();
    let _ids = [engine.after(MS, ()), unstarted.start().unwrap()];
    // One millisecond from 0.3 ms on is 1.3 ms: within tick 1, so due at 2.
    clock.advance_to(Time::from_nanos(1_999_999));
    assert!(engine.queue(0).is_empty());
    clock.advance_to(at(2));
    assert_eq!(engine.queue(0).len(), 2);
}

#[test]
fn promise_01_a_loop_that_overslept_fires_no_new_timer_early() {
    let (engine, driver) = Engine::builder().start_driven().unwrap();
    engine.after(MS, Instant::now());
    for _ in 0..3 {
        thread::sleep(20 * MS); // nobody processes what is due
        for delay in [1, 2, 5, 30] {
            engine.after(delay * MS, Instant::now() + delay * MS);
        }
        for _ in 0..20 {
            while driver.process_due(usize::MAX) == Advance::More {}
            let due = payloads(&engine);
            assert!(due.iter().all(|&due| due <= Instant::now()), "fired early");
            thread::sleep(2 * MS);
        }
    }
    assert_eq!(engine.ledger().completed, 13);
}

/// Fine timers that are filed later hide none that was filed early, in a coarser level.
#[test]
fn promise_02_on_time() {
    for delay in [1, 63, 64, 65, 130, 4_095, 4_096, 4_097, 300_000] {
        let (engine, clock) = virtual_engine();
        engine.after(delay * MS, "on time");
        for ahead in [60, 5, 1] {
            clock.advance_to(at(u64::from(delay).saturating_sub(ahead)));
            engine.put(Timer::at(at(u64::from(delay) + 2), "fine"));
        }
        assert!(engine.queue(0).is_empty());
        clock.advance(MS);
        let expired = engine.next();
        assert_eq!(expired.lateness(), Duration::ZERO);
        assert_eq!(expired.tick().0, delay.into());
        assert_eq!(expired.into_payload(), "on time");
        // Steps from one wake-up to the next, as a ticker does.
        clock.run_until(engine.now() + SECOND);
        assert_eq!(take(&engine, 0).len(), 3);
        let latest = engine.snapshot().lateness.quantile(1.0);
        assert!(latest <= Some(Duration::from_nanos(1)));
    }
}

#[test]
fn promise_02_a_postponed_timer_reaches_the_next_wakeup() {
    let (engine, clock) = virtual_engine();
    let id = engine.after(10 * MS, "session");
    // At last it has expired, and nobody took it.
    for delay in [20, 500, 70_000, 70_000] {
        engine.reschedule(id, delay * MS).unwrap();
        clock.run_until(engine.now() + (delay - 1) * MS);
        assert!(engine.queue(0).is_empty());
        clock.run_until(engine.now() + u32::from(delay == 70_000) * MS);
    }
    assert_eq!(payloads(&engine), ["session"]);
}

#[test]
fn promise_02_a_task_can_tell_how_late_it_is() {
    let (tasks, driver) = driven_tasks();
    let told = told();
    let due = tasks.now() + 2 * MS;
    let task = Timer::every(MS, told.of(Firing::lateness)).starting(due);
    tasks.run(task.times(2)).unwrap();
    thread::sleep(10 * MS);
    let before = tasks.now() - due;
    while driver.process_due(1) == Advance::More {}
    let after = tasks.now() - due;
    let late = told.all();
    assert!((before..=after).contains(&late[0]), "{late:?}");
    // Due a millisecond later, and run a moment later.
    assert!((before - MS..=after - MS).contains(&late[1]), "{late:?}");
}

#[test]
fn promise_02_a_task_notified_early_is_not_late() {
    let (tasks, clock) = virtual_tasks();
    let told = told();
    let ids = [(); 2].map(|()| {
        let task = told.of(|firing| {
            assert_eq!((firing.is_cancelled(), firing.rearm(MS)), (true, Err(Refusal::Cancelled)));
            (firing.lateness(), firing.deadline())
        });
        tasks.run(Timer::after(MS, task).notified()).unwrap()
    });
    tasks.reschedule(ids[1], Time::MAX).unwrap();
    assert!(ids.iter().all(|&id| tasks.cancel(id) == Cancel::Cancelled(())));
    clock.run_until(tasks.now());
    assert_eq!(told.all(), [at(1), Time::MAX].map(|due| (Duration::ZERO, due)));
}

#[test]
fn promise_02_a_tolerance_lets_neighbours_share_a_wakeup() {
    let (engine, clock) = virtual_engine();
    let micros = Duration::from_micros;
    let windows = [(70_000, 60_000), (80_000, 60_000), (100_000, 60_000), (127_000, 60_000)];
    // The last two end within tick 127.
    let others = [(128_000, 60_000), (90_000, 5_000), (100_000, 27_999), (99_200, 28_200)];
    for (delay, window) in windows.into_iter().chain(others) {
        engine.put(Timer::after(micros(delay), delay).tolerance(micros(window)));
    }
    // It is kept at a start, and when the timer is moved.
    let unstarted = engine.create(Timer::after(110 * MS, 120_000).tolerance(60 * MS));
    let id = unstarted.unwrap().start().unwrap();
    assert_eq!(engine.deadline(id), Some(at(128)));
    engine.reschedule(id, 120 * MS).unwrap();
    let mut ticks: Vec<u64> = engine.live().map(|timer| timer.tick.0).collect();
    ticks.sort_unstable();
    // 128 is the start of a slot of level 1; from 90 to 95 there is none.
    assert_eq!(ticks, [90, 100, 100, 128, 128, 128, 128, 128, 128]);
    clock.advance(130 * MS);
    for expired in take_all(&engine) {
        // It counts from the request.
        assert_eq!(expired.lateness(), 130 * MS - micros(*expired.payload()));
    }
    // A repeating timer keeps the phase of its requested times: 230, 330 and 430.
    engine.put(Timer::every(100 * MS, 0).tolerance(60 * MS).times(3));
    let mut ticks = Vec::new();
    for _ in 0..500 {
        clock.advance(MS);
        ticks.extend(take(&engine, 0).iter().map(|&(tick, _)| tick));
    }
    assert_eq!(ticks, [256, 384, 448]);
}

#[test]
fn lateness_counts_from_the_deadline_whether_or_not_a_timer_has_a_record() {
    let (engine, clock) = virtual_engine();
    for delay in [Duration::ZERO, Duration::from_micros(1_500)] {
        clock.advance(Duration::from_micros(700));
        let timer = || Timer::after(delay, "late");
        for timer in [timer(), timer().named("it"), timer().reported(), timer().rearmable()] {
            engine.put(timer);
        }
        clock.advance(8 * MS);
        let lateness = || engine.next().lateness();
        let first = lateness();
        assert!(first > 6 * MS);
        (0..3).for_each(|_| assert_eq!(lateness(), first));
    }
}

#[test]
fn promise_02_lateness_is_measured() {
    let (engine, clock) = virtual_engine();
    (1..=100).for_each(|delay| _ = engine.after(delay * MS, ()));
    (0..90).for_each(|_| clock.advance(MS));
    clock.advance(SECOND);
    let seen = engine.snapshot();
    assert_eq!((seen.lateness.count(), seen.queued), (100, vec![100, 0]));
    assert!(seen.lateness.quantile(0.9).unwrap() <= Duration::from_nanos(1));
    let late = seen.lateness.quantile(0.99).unwrap();
    assert!(late >= 990 * MS && late <= 2 * SECOND, "{late:?}");

    let (engine, clock) = Engine::builder().shards(2).start_virtual().unwrap();
    let first = engine.after(MS, ());
    elsewhere(&engine, first, || (), &|| _ = engine.after(MS, ()));
    clock.advance(2 * HOUR);
    let lateness = engine.snapshot().lateness;
    assert_eq!(lateness.count(), 2);
    for q in [0.0, 1.0] {
        let late = lateness.quantile(q).unwrap();
        assert!((2 * HOUR - SECOND..4 * HOUR).contains(&late), "{late:?}");
    }
}

#[test]
fn promise_14_any_deadline() {
    let (engine, clock) = virtual_engine();
    engine.after(10 * SECOND, "due");
    clock.advance(10 * SECOND);
    engine.after(Duration::ZERO, "zero");
    engine.put(Timer::at(at(2_000), "past"));
    let never = engine.after(Duration::MAX, "never");
    let disarmed = engine.after(HOUR, "disarmed");
    engine.reschedule(disarmed, Time::MAX).unwrap();
    let last = Time::from_nanos(u64::MAX - u64::MAX % 1_000_000);
    engine.put(Timer::at(last, "last"));
    engine.put(Timer::at(last + Duration::from_nanos(1), "in the last tick"));
    assert_eq!(engine.queue(0).len(), 1, "not inline in the call");
    clock.advance(Duration::ZERO);
    assert_eq!(payloads(&engine), ["due", "past", "zero"]);

    // Years of uptime, across every level's wrap.
    let year = 365 * 24 * HOUR;
    for _ in 0..583 {
        let id = engine.after(year, "a year");
        clock.advance(year - MS);
        assert!(engine.queue(0).is_empty());
        clock.advance(MS);
        assert_eq!(payloads(&engine), ["a year"]);
        assert_eq!(engine.deadline(id), None);
    }
    clock.advance_to(Time::from_nanos(last.as_nanos() - 1));
    assert!(engine.queue(0).is_empty(), "the furthest fired early");
    clock.advance_to(last);
    assert_eq!(payloads(&engine), ["last"]);
    assert_eq!(engine.earliest_deadline(), None, "nothing is ever due");
    clock.advance_to(Time::MAX);
    assert!(engine.queue(0).is_empty());
    let left = engine.shutdown();
    assert!(left.len() == 3 && left.iter().any(|closed| closed.id == never));
}

#[test]
fn promise_15_time_only_moves_forward() {
    let (engine, clock) = virtual_engine();
    clock.advance_to(at(5_000));
    engine.after(SECOND, ());
    clock.advance_to(at(3_000));
    assert_eq!(clock.now(), at(5_000));
    assert_eq!(engine.current_tick(), Tick(5_000));
    clock.advance_to(at(6_000));
    assert_eq!(engine.queue(0).len(), 1);

    let engine = Engine::builder().start().unwrap();
    let time = engine.time_of(Instant::now()).unwrap();
    let now = engine.now();
    assert!(time <= now && now - time < 10 * SECOND);
    assert!(engine.now() >= now);
    // An instant is one time, whenever its timer is started.
    let timer = Timer::at(Instant::now() + HOUR, ());
    let ids = [engine.put(timer.clone()), engine.create(timer).unwrap().start().unwrap()];
    assert_eq!(engine.deadline(ids[0]), engine.deadline(ids[1]));
}

#[test]
fn promise_15_a_clock_that_does_not_measure_instants_refuses_them() {
    let instant = Instant::now() + SECOND;
    let (engine, clock) = virtual_engine();
    let mut engines = vec![engine];
    if cfg!(target_os = "linux") {
        let builder = Engine::builder().clock(ClockSource::BootTime);
        engines.push(builder.start().unwrap());
    }
    for engine in engines {
        for timer in [Timer::at(instant, 7), Timer::every(SECOND, 7).starting(instant)] {
            let scheduled = engine.schedule(timer.clone()).unwrap_err();
            let created = engine.create(timer.clone()).unwrap_err();
            for refused in [scheduled, created] {
                assert_eq!(refused.reason(), Refusal::InstantOnOtherClock);
                assert!(refused.to_string().contains("`engine.now()` plus"));
                assert_eq!(refused.into_inner(), timer);
            }
        }
        let id = engine.after(SECOND, 7);
        let deadline = engine.deadline(id);
        let moved = engine.reschedule(id, instant);
        assert_eq!(moved, Err(Refusal::InstantOnOtherClock));
        assert_eq!(engine.deadline(id), deadline);
        assert_eq!(engine.ledger().accepted, 1);
        engine.put(Timer::after(Duration::ZERO, 8).rearmable());
        clock.advance(Duration::ZERO);
        let due = engine.queue(0).recv().unwrap();
        let refused = due.rearm(instant).unwrap_err();
        assert_eq!(refused.reason(), Refusal::InstantOnOtherClock);
    }
    let ((tasks, clock), told) = (virtual_tasks(), told());
    tasks.run(Timer::after(MS, told.of(move |firing| firing.rearm(instant)))).unwrap();
    clock.run_until(at(1));
    assert_eq!(told.next(), Err(Refusal::InstantOnOtherClock));
}

/// No clock gets to the end of the longest wait.
#[test]
fn promise_14_the_longest_limit_is_none() {
    let (engine, clock) = virtual_engine();
    let (queue, reports) = (engine.queue(0), engine.reports());
    thread::scope(|scope| {
        let taken = scope.spawn(move || queue.recv_timeout(Duration::MAX).map(drop));
        let read = scope.spawn(move || reports.recv_timeout(Duration::MAX).map(drop));
        thread::sleep(20 * MS);
        engine.put(Timer::every(MS, ()).times(1).reported());
        clock.advance(MS);
        assert_eq!(taken.join().unwrap(), Ok(()));
        assert_eq!(read.join().unwrap(), Ok(()));
    });
}
