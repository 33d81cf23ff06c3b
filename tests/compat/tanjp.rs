//! tanjp's timing wheel: repeat counts and closed reports.

use super::*;
use std::collections::HashMap;
use std::error::Error;
use std::thread;
use std::time::{Instant, SystemTime};
use tickwheel::wheel::{Geometry, KeyedWheel};
use tickwheel::{Cancel, ClockSource, CloseReason, Closed, Refusal, Timer};

/// The date at which the article's run starts.
const START: u64 = 1_587_848_614;

/// An engine with ticks of one second that starts at that date.
fn engine_at_start<T: Send + 'static>() -> (Engine<T>, VirtualClock<T>) {
    Engine::builder()
        .tick(SECOND)
        .start_at(Time::from_secs(START))
        .shards(1)
        .queues(3)
        .start_virtual()
        .unwrap()
}

fn reports<T>(engine: &Engine<T>) -> Vec<Closed<T>> {
    engine.reports().try_iter().collect()
}

#[test]
fn g1_nothing_can_be_added_before_start_or_after_close() {
    // Before the start there is only a builder, which has no call for it.
    let (engine, clock) = virtual_engine();
    engine.schedule(Timer::after(MS, "in time")).unwrap();
    assert_eq!(engine.shutdown().len(), 1);
    for timer in [
        Timer::after(MS, "once"),
        Timer::at(Time::from_millis(5), "at"),
        Timer::every(MS, "every").times(3),
    ] {
        let refused = engine.schedule(timer.clone()).unwrap_err();
        assert_eq!(refused.reason(), Refusal::ShutDown);
        assert!(refused.to_string().contains("shut down"));
        assert_eq!(refused.into_timer(), timer, "it comes back as it was");
    }
    clock.advance(SECOND);
    assert_eq!(engine.ledger().accepted, 1);
}

#[test]
fn g1_a_tid_may_be_used_once_at_a_time() {
    let mut wheel = KeyedWheel::starting_at(Tick(START), 256);
    wheel.schedule_after(11, 3, "eleven").unwrap();
    wheel.schedule_after(12, 1, "twelve").unwrap();

    let refused = wheel.schedule_after(11, 9, "another").unwrap_err();
    assert_eq!((refused.key, refused.payload), (11, "another"));
    let error: &dyn Error = &refused;
    let says = error.to_string();
    assert!(says.contains("11") && says.contains("cancel"), "{says}");
    // The one that is there has not noticed.
    assert_eq!(wheel.deadline(&11), Some(Tick(START + 3)));
    assert_eq!(wheel.len(), 2);

    // Moving is not a second use; and a stranger's key moves nothing.
    assert!(wheel.reschedule(&11, Tick(START + 2)));
    assert!(!wheel.reschedule(&13, Tick(START + 2)));
    let fired: Vec<_> = std::iter::from_fn(|| wheel.pop_due(Tick(START + 10)))
        .map(|expired| (expired.deadline.0 - START, expired.key, expired.payload))
        .collect();
    assert_eq!(fired, [(1, 12, "twelve"), (2, 11, "eleven")]);
}

#[test]
fn g1_a_tid_may_be_used_again_after_it_closed() {
    let mut wheel = KeyedWheel::new(20);
    let tid = String::from("tid");
    for round in 0..100 {
        wheel.schedule_after(tid.clone(), 5, round).unwrap();
        assert!(wheel.contains_key("tid") && !wheel.is_empty());
        if round % 2 == 0 {
            assert_eq!(wheel.cancel("tid"), Some(round));
            assert_eq!(wheel.cancel("tid"), None);
            assert_eq!(wheel.next_wakeup(), None);
        } else {
            let to = wheel.now().after(5);
            assert_eq!(wheel.pop_due(to).unwrap().payload, round);
        }
        assert!(!wheel.contains_key("tid") && wheel.is_empty());
        assert_eq!(wheel.deadline("tid"), None);
    }

    // The same for an engine, with a map on top: a tid is free again when its
    // closed report has been read.
    let (engine, clock) = engine_at_start();
    let mut ids = HashMap::new();
    for _ in 0..3 {
        let timer = Timer::every(SECOND, 11).times(2).reported();
        assert_eq!(ids.insert(11, engine.schedule(timer).unwrap()), None);
        clock.advance(2 * SECOND);
        assert_eq!(take(&engine, 0).len(), 2);
        for closed in reports(&engine) {
            let tid = closed.payload.unwrap();
            assert_eq!(ids.remove(&tid), Some(closed.id));
        }
    }
}

#[test]
fn g1_a_tid_on_an_engine_is_a_name() {
    let (engine, clock) = engine_at_start();
    let schedule = |tid: u64, payload| {
        let timer = Timer::after(3 * SECOND, payload);
        engine.schedule(timer.named(tid.to_string())).unwrap();
    };
    let cancel = |tid: u64| engine.cancel_by_name(&tid.to_string(), None);
    for round in 0..3 {
        for tid in [11, 12] {
            schedule(tid, (tid, round));
        }
        // From a thread that has not seen what `schedule` returned.
        let cancelled = thread::scope(|scope| scope.spawn(|| cancel(11)).join().unwrap());
        assert_eq!(cancelled.payloads, [(11, round)]);
        assert_eq!(cancel(11).ids.len(), 0);
        clock.advance(3 * SECOND);
        let fired = take(&engine, 0);
        assert_eq!(fired.len(), 1);
        assert_eq!(fired[0].1, (12, round));
        assert_eq!(cancel(12).ids.len(), 0, "it has fired");
    }
}

#[test]
fn g2_repeat_n_fires_n_times_and_0_for_ever() {
    for times in [1, 2, 5, 0] {
        let (engine, clock) = engine_at_start();
        let timer = Timer::every(3 * SECOND, "beat").times(times);
        engine.schedule(timer).unwrap();
        let mut seen = Vec::new();
        for _ in 0..3_000 {
            clock.advance(SECOND);
            seen.extend(take(&engine, 0).into_iter().map(|(tick, _)| tick));
        }
        // First after one period, and then every period, without drift.
        let expected = if times == 0 { 1_000 } else { times };
        let due = (1..=expected).map(|k| START + 3 * k);
        assert!(seen.into_iter().eq(due), "{times} times");
        assert_eq!(engine.ledger().live, u64::from(times == 0));
    }
}

#[test]
fn g2_no_drift_when_many_ticks_are_calculated_at_once() {
    let (engine, clock) = engine_at_start();
    engine.schedule(Timer::every(3 * SECOND, 'a')).unwrap();
    let counted = Timer::every(7 * SECOND, 'b').times(10);
    engine.schedule(counted).unwrap();
    let mut seen = Vec::new();
    let mut random = Rng::with_seed(6);
    while clock.now() < Time::from_secs(START + 1_000) {
        clock.advance(random.u32(..100) * SECOND);
        seen.extend(take(&engine, 0));
    }
    let end = engine.current_tick().0;
    let due_by = |tid| move |&&(tick, other): &&(u64, char)| other == tid && tick <= end;
    let a = (1..=(end - START) / 3).map(|k| (START + 3 * k, 'a'));
    assert!(seen.iter().filter(due_by('a')).copied().eq(a));
    let b = (1..=10).map(|k| (START + 7 * k, 'b'));
    assert!(seen.iter().filter(due_by('b')).copied().eq(b));
}

#[test]
fn g3_calculating_k_ticks_advances_exactly_k() {
    let (engine, clock) = engine_at_start();
    let id = engine
        .schedule(Timer::after(5 * SECOND, "payload").queue(2))
        .unwrap();
    clock.advance(Duration::ZERO);
    assert_eq!(engine.current_tick(), Tick(START), "0 ticks do nothing");
    assert!(engine.queue(2).is_empty());
    clock.advance(4 * SECOND);
    assert_eq!(engine.current_tick(), Tick(START + 4));
    assert!(engine.queue(2).is_empty(), "nothing fired, and it says so");
    clock.advance(9 * SECOND);
    assert_eq!(engine.current_tick(), Tick(START + 13));
    assert_eq!(engine.queue(2).len(), 1, "one fired, and it says so");

    // Each firing carries receiver, id, its own tick, payload.
    let expired = engine.queue(2).recv().unwrap();
    assert_eq!((expired.queue(), expired.id()), (2, id));
    assert_eq!(expired.tick(), Tick(START + 5));
    assert_eq!(expired.deadline(), Time::from_secs(START + 5));
    assert_eq!(expired.into_payload(), "payload");

    // The wheel alone stands exactly at the tick it was moved to.
    let mut wheel = Wheel::starting_at(Tick(START), 20);
    wheel.schedule_after(5, ());
    for (ticks, fires) in [(0, false), (4, false), (0, false), (9, true), (1, false)] {
        let to = wheel.now().after(ticks);
        assert_eq!(wheel.pop_due(to).is_some(), fires);
        assert!(wheel.pop_due(to).is_none());
        assert_eq!(wheel.now(), to);
    }
}

#[test]
fn g4_the_last_repetition_closes_with_its_own_tick() {
    let (engine, clock) = engine_at_start();
    let timer = Timer::every(3 * SECOND, 11).times(4).queue(1);
    let id = engine.schedule(timer.reported()).unwrap();
    let mut results = Vec::new();
    for _ in 0..20 {
        clock.advance(SECOND);
        let expired = take(&engine, 1).into_iter();
        results.extend(expired.map(|(tick, tid)| ("expired", tick - START, tid)));
        for closed in reports(&engine) {
            assert_eq!((closed.id, closed.queue, closed.firings), (id, 1, 4));
            assert_eq!(closed.reason, CloseReason::Completed);
            results.push(("closed", closed.tick.0 - START, closed.payload.unwrap()));
        }
    }
    let expected = [3, 6, 9, 12].map(|tick| ("expired", tick, 11));
    assert_eq!(results[..4], expected);
    assert_eq!(results[4..], [("closed", 12, 11)]);
}

#[test]
fn g4_ticks_are_the_same_when_many_are_calculated_at_once() {
    for (timer, last) in [
        (Timer::every(3 * SECOND, 11).times(4), START + 12),
        (Timer::after(5 * SECOND, 12), START + 5),
    ] {
        let (engine, clock) = engine_at_start();
        engine.schedule(timer.reported()).unwrap();
        clock.advance(100 * SECOND);
        assert!(reports(&engine).is_empty(), "closed before it was expired");
        assert_eq!(take(&engine, 0).last().unwrap().0, last);
        assert_eq!(reports(&engine)[0].tick, Tick(last));
    }
}

#[test]
fn g5_the_article_s_run() {
    let (engine, clock) = engine_at_start();
    for (queue, tid, every, times) in [(1, 11, 3, 4), (1, 12, 1, 5), (2, 20, 3, 0)] {
        let timer = Timer::every(every * SECOND, tid).times(times);
        engine.schedule(timer.queue(queue).reported()).unwrap();
    }
    let mut lines = Vec::new();
    while engine.current_tick() < Tick(START + 15) {
        clock.advance(SECOND);
        let now = engine.current_tick().0;
        let (one, two) = (take(&engine, 1), take(&engine, 2));
        // Queue 1 is the receiver of 11 and 12, queue 2 of 20.
        assert!(two.iter().all(|&(_, tid)| tid == 20));
        let mut expired = Vec::new();
        for (tick, tid) in one.into_iter().chain(two) {
            assert_eq!(tick, now);
            expired.push(tid);
        }
        let mut closed = Vec::new();
        for report in reports(&engine) {
            assert_eq!(report.tick.0, now);
            closed.extend(report.payload);
        }
        if !expired.is_empty() {
            lines.push((now - (START - 614), expired, closed));
        }
    }
    // Within a tick and a queue: in the order in which they were scheduled. In
    // the article it is last in, first out, turned round by each cascade.
    let expected = [
        (615, vec![12], vec![]),
        (616, vec![12], vec![]),
        (617, vec![11, 12, 20], vec![]),
        (618, vec![12], vec![]),
        (619, vec![12], vec![12]),
        (620, vec![11, 20], vec![]),
        (623, vec![11, 20], vec![]),
        (626, vec![11, 20], vec![11]),
        (629, vec![20], vec![]),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn g6_wheel_time_follows_the_monotonic_clock() {
    for source in [ClockSource::Monotonic, ClockSource::BootTime] {
        let before = Instant::now();
        let engine = Engine::<()>::builder().clock(source).start().unwrap();
        let after = Instant::now();
        let mut last = Tick(0);
        for _ in 0..20 {
            std::thread::sleep(MS);
            let at_least = after.elapsed().as_millis() as u64;
            let tick = engine.current_tick();
            let at_most = before.elapsed().as_millis() as u64;
            assert!((at_least..=at_most).contains(&tick.0));
            assert!(tick >= last, "it went back");
            last = tick;
        }
        let on_monotonic_clock = engine.time_of(Instant::now()).is_some();
        // Other systems have no second clock.
        let has_both = cfg!(any(target_os = "linux", target_os = "android"));
        assert_eq!(
            on_monotonic_clock,
            source == ClockSource::Monotonic || !has_both
        );
    }
}

#[test]
fn g6_in_tests_time_can_be_sped_up_and_never_goes_back() {
    let begun = Instant::now();
    let (engine, clock) = engine_at_start();
    let year = 365 * 86_400 * SECOND;
    engine.schedule(Timer::after(year, ())).unwrap();
    clock.advance(year);
    assert_eq!(take(&engine, 0).len(), 1);
    // The other two times are elsewhere.
    assert!(begun.elapsed() < PATIENCE);
    let date = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    assert_ne!(date.unwrap().as_secs(), engine.current_tick().0);
    assert_eq!(
        engine.time_of(begun),
        None,
        "a virtual clock is none of them"
    );

    let (now, tick) = (clock.now(), engine.current_tick());
    clock.advance_to(Time::from_secs(START));
    clock.advance_to(Time::START);
    assert_eq!((clock.now(), engine.current_tick()), (now, tick));
    let mut wheel = Wheel::<()>::starting_at(Tick(START), 20);
    assert!(wheel.pop_due(Tick(START - 1)).is_none());
    assert_eq!(wheel.now(), Tick(START));
}

#[test]
#[cfg(target_os = "linux")]
fn g6_a_step_of_the_system_date_changes_nothing() {
    // A step cannot be staged here; but what could follow it can be seen. The
    // kernel tells which clock each timer descriptor follows: of those of both
    // kinds of engine, none is the system's date. That the engine's own reading
    // of time is the monotonic clock is shown above.
    let sources = [ClockSource::Monotonic, ClockSource::BootTime];
    let engines = sources.map(|source| Engine::<()>::builder().clock(source).start().unwrap());
    let clocks = clocks_of_timer_descriptors();
    assert!(clocks.contains(&1) && clocks.contains(&7), "{clocks:?}");
    assert!(!clocks.contains(&0));
    drop(engines);
}

#[test]
fn g_better_cancel_exists() {
    let (engine, clock) = engine_at_start();
    let timer = Timer::every(SECOND, 20).reported();
    let id = engine.schedule(timer).unwrap();
    clock.advance(SECOND);
    assert_eq!(take(&engine, 0).len(), 1);
    assert_eq!(engine.cancel(id), Cancel::Cancelled(20));
    clock.advance(10 * SECOND);
    assert_eq!(take(&engine, 0), []);
    let closed = reports(&engine).pop().unwrap();
    assert_eq!(closed.reason, CloseReason::Cancelled);
    assert_eq!((closed.tick, closed.firings), (Tick(START + 1), 1));
}

#[test]
fn g_better_a_delay_of_zero_fires() {
    let (engine, clock) = engine_at_start();
    engine.schedule(Timer::after(Duration::ZERO, 'a')).unwrap();
    let now_and_then = Timer::every(3 * SECOND, 'b').starting(Duration::ZERO);
    engine.schedule(now_and_then.times(2)).unwrap();
    clock.advance(Duration::ZERO);
    assert_eq!(take(&engine, 0), [(START, 'a'), (START, 'b')]);
    clock.advance(3 * SECOND);
    assert_eq!(take(&engine, 0), [(START + 3, 'b')]);

    let mut wheel = Wheel::starting_at(Tick(START), 256);
    wheel.schedule_after(0, 'c');
    assert_eq!(fire(&mut wheel, START), [(START, 'c')]);
}

#[test]
fn g_better_the_top_wheel_wraps() {
    // Three levels of 8 slots reach 512 ticks. A thousand times that far,
    // delays of every length fire as exactly as at the start.
    let geometry = || Geometry::new(8).unwrap().max_levels(3).unwrap();
    let mut wheel = Wheel::with_geometry(Tick(0), geometry());
    let mut random = Rng::with_seed(7);
    let mut expected = Vec::new();
    let mut seen = Vec::new();
    for _ in 0..20_000 {
        let now = wheel.now().0;
        let deadline = now + 1 + random.u64(..600);
        wheel.schedule_at(Tick(deadline), deadline);
        expected.push((deadline, deadline));
        seen.extend(fire(&mut wheel, now + random.u64(..52)));
    }
    let end = wheel.now().0 + 600;
    assert!(end > 900 * 512);
    seen.extend(fire(&mut wheel, end));
    expected.sort_unstable();
    assert_eq!(seen, expected);

    // And across the end of the levels that are not capped.
    let mut wheel = Wheel::starting_at(Tick(u64::MAX - 100), 256);
    wheel.schedule_after(99, 'a');
    assert_eq!(fire(&mut wheel, u64::MAX - 2), []);
    assert_eq!(fire(&mut wheel, u64::MAX), [(u64::MAX - 1, 'a')]);
}

#[test]
fn g_better_close_reports_what_it_dropped() {
    let (engine, clock) = engine_at_start();
    let waiting = Timer::after(9 * SECOND, 11).queue(1);
    let waiting = engine.schedule(waiting).unwrap();
    let beat = Timer::every(SECOND, 20).queue(2);
    let beat = engine.schedule(beat).unwrap();
    let gone = engine.schedule(Timer::after(SECOND, 12)).unwrap();
    clock.advance(SECOND);
    assert_eq!((take(&engine, 0).len(), take(&engine, 2).len()), (1, 1));
    let mut closed = engine.shutdown();
    closed.sort_by_key(|closed| closed.queue);
    let told: Vec<_> = closed
        .iter()
        .map(|c| (c.id, c.queue, c.payload, c.firings, c.tick.0, c.reason))
        .collect();
    let shut_down = CloseReason::ShutDown;
    assert_eq!(
        told,
        [
            (waiting, 1, Some(11), 0, START + 1, shut_down),
            (beat, 2, Some(20), 1, START + 1, shut_down),
        ]
    );
    assert_eq!(engine.cancel(gone), Cancel::Gone);
    assert!(engine.shutdown().is_empty(), "each is reported once");
    assert!(engine.ledger().is_balanced());
}

#[test]
fn g_better_order_within_a_tick_is_first_in_first_out() {
    // However many levels they cascade through on their way to one tick.
    for distance in [1, 63, 64, 5_000, 300_000, 20_000_000] {
        let mut wheel = Wheel::starting_at(Tick(START), 64);
        for n in 0..20 {
            wheel.schedule_at(Tick(START + distance), n);
        }
        fire(&mut wheel, START + distance / 2);
        for n in 20..40 {
            wheel.schedule_at(Tick(START + distance), n);
        }
        let fired = fire(&mut wheel, START + distance);
        assert!(fired.into_iter().map(|(_, n)| n).eq(0..40), "{distance}");
    }
}
