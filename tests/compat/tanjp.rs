//! G. tanjp's timing wheel: repeat counts and closed reports.

use super::*;
use tickwheel::wheel::{Geometry, KeyedWheel};
use tickwheel::{ClockSource, Closed, Refusal};

/// The date at which the article's run starts.
const START: u64 = 1_587_848_614;

/// An engine with ticks of one second that starts at that date.
fn engine_at_start<T: Send + 'static>() -> (Engine<T>, VirtualClock) {
    let builder = Engine::builder().tick(SECOND).shards(1).queues(3);
    let clock = VirtualClock::starting_at(Time::from_secs(START));
    (builder.start_on(&clock).unwrap(), clock)
}

fn reports<T>(engine: &Engine<T>) -> Vec<Closed<T>> {
    engine.reports().try_iter().collect()
}

#[test]
fn g1_nothing_can_be_added_before_start_or_after_close() {
    // Before the start there is only a builder, which has no call for it.
    let (engine, _clock) = virtual_engine();
    engine.shutdown();
    let timer = Timer::every(MS, "every").times(3);
    let refused = engine.schedule(timer.clone()).unwrap_err();
    assert_eq!(refused.reason(), Refusal::ShutDown);
    assert_eq!(refused.into_inner(), timer, "it comes back as it was");
    assert_eq!(engine.ledger().accepted, 0);
}

#[test]
fn g1_a_tid_may_be_used_once_at_a_time() {
    let mut wheel = KeyedWheel::starting_at(Tick(START), 256);
    wheel.try_insert(11, Tick(START + 3), "eleven").unwrap();
    let refused = wheel.try_insert(11, Tick(START + 9), "another").unwrap_err();
    assert_eq!((refused.key, refused.payload), (11, "another"));
    let says = refused.to_string();
    assert!(says.contains("11") && says.contains("cancel"), "{says}");
    // The one that is there has not noticed.
    assert_eq!(wheel.deadline(&11), Some(Tick(START + 3)));
}

#[test]
fn g1_a_tid_may_be_used_again_after_it_closed() {
    let mut wheel = KeyedWheel::new(20);
    wheel.try_insert(11, Tick(5), "cancelled").unwrap();
    assert_eq!(wheel.cancel(&11), Some("cancelled"));
    for payload in ["expired", "expired, too"] {
        let to = wheel.now().after(5);
        wheel.try_insert(11, to, payload).unwrap();
        assert_eq!(wheel.pop_due(to).unwrap().payload, payload);
        assert!(!wheel.contains_key(&11) && wheel.is_empty());
    }
}

#[test]
fn g2_repeat_n_fires_n_times_and_0_for_ever() {
    for (times, expected) in [(1, 1), (2, 2), (5, 5), (0, 1_000)] {
        // Tick by tick, and many at once.
        for step in [1, 100] {
            let (engine, clock) = engine_at_start();
            let timer = Timer::every(3 * SECOND, "beat").times(times);
            engine.schedule(timer).unwrap();
            let mut seen = Vec::new();
            for _ in 0..3_000 / step {
                clock.advance(step * SECOND);
                seen.extend(take(&engine, 0));
            }
            // First after one period, and then every period, without drift.
            let due = (1..=expected).map(|k| (START + 3 * k, "beat"));
            assert!(seen.into_iter().eq(due), "{times} times");
            assert_eq!(engine.ledger().live, u64::from(times == 0));
        }
    }
}

#[test]
fn g3_calculating_k_ticks_advances_exactly_k() {
    let (engine, clock) = engine_at_start();
    let timer = Timer::after(5 * SECOND, "payload").queue(2);
    let id = engine.schedule(timer).unwrap();
    // Whether anything fired is the length of the queue; 0 ticks do nothing.
    let mut now = START;
    for (ticks, waiting) in [(0, 0), (4, 0), (0, 0), (9, 1)] {
        clock.advance(ticks * SECOND);
        now += u64::from(ticks);
        assert_eq!(engine.current_tick(), Tick(now));
        assert_eq!(engine.queue(2).len(), waiting);
    }
    // Each firing carries receiver, id, its own tick, payload.
    let expired = engine.queue(2).recv().unwrap();
    assert_eq!((expired.queue(), expired.id()), (2, id));
    assert_eq!(expired.tick(), Tick(START + 5));
    assert_eq!(expired.into_payload(), "payload");
}

/// The last repetition is expired first, then closed, with the same tick.
#[test]
fn g4_ticks_are_the_same_when_many_are_calculated_at_once() {
    for (timer, firings, last) in [
        (Timer::every(3 * SECOND, 11u64).times(4), 4, START + 12),
        (Timer::after(5 * SECOND, 11), 1, START + 5),
    ] {
        let (engine, clock) = engine_at_start();
        let id = engine.schedule(timer.queue(1).reported()).unwrap();
        clock.advance(100 * SECOND);
        assert!(reports(&engine).is_empty(), "closed before it was expired");
        assert_eq!(take(&engine, 1).last(), Some(&(last, 11)));
        let closed = reports(&engine).pop().unwrap();
        assert_eq!((closed.id, closed.queue), (id, 1));
        assert_eq!((closed.tick, closed.firings), (Tick(last), firings));
        assert_eq!(closed.reason, CloseReason::Completed);
    }
}

#[test]
fn g5_the_article_s_run() {
    let (engine, clock) = engine_at_start();
    for (queue, tid, every, times) in [(1, 11u64, 3, 4), (1, 12, 1, 5), (2, 20, 3, 0)] {
        let timer = Timer::every(every * SECOND, tid).times(times);
        engine.schedule(timer.queue(queue).reported()).unwrap();
    }
    let mut lines = Vec::new();
    for now in START + 1..=START + 15 {
        clock.advance(SECOND);
        // Queue 1 is the receiver of 11 and 12, queue 2 of 20.
        let expired = [take(&engine, 1), take(&engine, 2)].concat();
        assert!(expired.iter().all(|&(tick, _)| tick == now));
        let closed = reports(&engine);
        assert!(closed.iter().all(|closed| closed.tick == Tick(now)));
        if !expired.is_empty() {
            let expired: Vec<_> = expired.into_iter().map(|(_, tid)| tid).collect();
            let closed: Vec<_> = closed.into_iter().filter_map(|c| c.payload).collect();
            lines.push(format!("{} {expired:?} {closed:?}", now % 1_000));
        }
    }
    // Within a tick and a queue: in the order in which they were scheduled. In
    // the article it is last in, first out, turned round by each cascade.
    let expected = "615 [12] [] · 616 [12] [] · 617 [11, 12, 20] [] · 618 [12] [] · \
                    619 [12] [12] · 620 [11, 20] [] · 623 [11, 20] [] · \
                    626 [11, 20] [11] · 629 [20] []";
    assert_eq!(lines.join(" · "), expected);
}

#[test]
fn g6_wheel_time_follows_the_monotonic_clock() {
    for source in [ClockSource::Monotonic, ClockSource::BootTime] {
        let before = Instant::now();
        let engine = Engine::<u64>::builder().clock(source).start().unwrap();
        let after = Instant::now();
        for _ in 0..20 {
            thread::sleep(MS);
            let at_least = after.elapsed().as_millis() as u64;
            let tick = engine.current_tick();
            let at_most = before.elapsed().as_millis() as u64;
            assert!((at_least..=at_most).contains(&tick.0));
        }
    }
}

#[test]
fn g6_in_tests_time_can_be_sped_up_and_never_goes_back() {
    let begun = Instant::now();
    let (engine, clock) = engine_at_start();
    let year = 365 * 24 * HOUR;
    engine.schedule(Timer::after(year, "t")).unwrap();
    clock.advance(year);
    assert_eq!(take(&engine, 0).len(), 1);
    // The monotonic clock is elsewhere.
    assert!(begun.elapsed() < PATIENCE);
    assert_eq!(engine.time_of(begun), None);

    let now = clock.now();
    clock.advance_to(Time::from_secs(START));
    assert_eq!((clock.now(), engine.now()), (now, now));
}

#[test]
#[cfg(target_os = "linux")]
fn g6_a_step_of_the_system_date_changes_nothing() {
    // A step cannot be staged here; but what could follow it can be seen: of the timer
    // descriptors of both kinds of engine, none is on the clock of the system's date. That
    // the engine's own reading of time is the monotonic clock is shown above.
    let sources = [ClockSource::Monotonic, ClockSource::BootTime];
    let _engines = sources.map(|source| Engine::<u64>::builder().clock(source).start().unwrap());
    let clocks = [1, 7, 0].map(|clock| descriptors().contains(&format!("clockid: {clock}")));
    assert_eq!(clocks, [true, true, false]);
}

#[test]
fn g_better_cancel_exists() {
    let (engine, clock) = engine_at_start();
    let timer = Timer::every(SECOND, 20u64).reported();
    let id = engine.schedule(timer).unwrap();
    clock.advance(SECOND);
    assert_eq!(take(&engine, 0), [(START + 1, 20)]);
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
    clock.advance(SECOND / 4);
    engine.schedule(Timer::after(Duration::ZERO, "a")).unwrap();
    let twice = Timer::every(3 * SECOND, "b").times(2);
    engine.schedule(twice.starting(Duration::ZERO)).unwrap();
    // At once, not at the next tick.
    clock.advance(Duration::ZERO);
    assert_eq!(take(&engine, 0), [(START, "a"), (START, "b")]);
}

#[test]
fn g_better_the_top_wheel_wraps() {
    // Three levels of 8 slots reach 512 ticks. A thousand times that far,
    // delays of every length fire as exactly as at the start.
    let geometry = Geometry::new(8).unwrap().max_levels(3).unwrap();
    let mut wheel = Wheel::with_geometry(Tick(0), geometry);
    let mut random = Rng::with_seed(7);
    while wheel.now().0 < 1_000 * 512 {
        let deadline = wheel.now().0 + 1 + random.u64(..600);
        wheel.schedule_at(Tick(deadline), deadline);
        assert_eq!(fire(&mut wheel, deadline - 1), []);
        assert_eq!(fire(&mut wheel, deadline), [(deadline, deadline)]);
    }
}

#[test]
fn g_better_close_reports_what_it_dropped() {
    let (engine, clock) = engine_at_start();
    engine.schedule(Timer::after(9 * SECOND, 11u64)).unwrap();
    engine.schedule(Timer::every(SECOND, 20).queue(2)).unwrap();
    clock.advance(SECOND);
    assert_eq!(take(&engine, 2), [(START + 1, 20)]);
    let mut closed = engine.shutdown();
    closed.sort_by_key(|closed| closed.queue);
    let told = |c: &Closed<u64>| (c.queue, c.payload.unwrap(), c.firings, c.tick.0);
    let expected = [(0, 11, 0, START + 1), (2, 20, 1, START + 1)];
    assert!(closed.iter().map(told).eq(expected));
    assert!(closed.iter().all(|c| c.reason == CloseReason::ShutDown));
    assert!(engine.shutdown().is_empty(), "each is reported once");
}

#[test]
fn g_better_order_within_a_tick_is_first_in_first_out() {
    // However many levels they cascade through on their way to one tick.
    for distance in [1, 63, 64, 5_000, 300_000, 20_000_000] {
        let mut wheel = Wheel::starting_at(Tick(START), 64);
        for n in 0..40u64 {
            if n == 20 {
                fire(&mut wheel, START + distance / 2);
            }
            wheel.schedule_at(Tick(START + distance), n);
        }
        let fired = fire(&mut wheel, START + distance);
        assert!(fired.into_iter().map(|(_, n)| n).eq(0..40), "{distance}");
    }
}
