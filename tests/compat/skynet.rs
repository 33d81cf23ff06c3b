//! skynet's timer, which a tutorial holds up for many threads.

use super::*;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};
use tickwheel::{MissedTicks, Timer};

const SERVICES: usize = 3;

/// A message that notes on which thread it was dropped.
struct Message {
    service: usize,
    sender: usize,
    number: u32,
    dropped_on: Arc<Mutex<Vec<ThreadId>>>,
}

impl Drop for Message {
    fn drop(&mut self) {
        let mut dropped_on = self.dropped_on.lock().unwrap();
        dropped_on.push(thread::current().id());
    }
}

#[test]
fn d1_many_threads_submit_and_each_service_gets_its_own() {
    const SENDERS: usize = 4;
    const EACH: u32 = 200;
    let engine = Engine::builder().queues(SERVICES).start().unwrap();
    let dropped_on = Arc::new(Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (engine, dropped_on) = (&engine, &dropped_on);
            scope.spawn(move || {
                for number in 0..EACH {
                    for service in 0..SERVICES {
                        let message = Message {
                            service,
                            sender,
                            number,
                            dropped_on: Arc::clone(dropped_on),
                        };
                        let timer = Timer::after((number % 20) * MS, message);
                        engine.schedule(timer.queue(service)).unwrap();
                    }
                }
            });
        }
    });

    // No service is at work yet: the wheel's thread posts all by itself.
    let expected = SENDERS * EACH as usize;
    wait_until(|| (0..SERVICES).all(|n| engine.queue(n).len() == expected));
    // Detecting and posting is all it does: nothing was run, or dropped.
    assert!(dropped_on.lock().unwrap().is_empty());

    // Service 0 hangs; the others get theirs all the same.
    for service in 1..SERVICES {
        let mut seen = Vec::new();
        for expired in engine.queue(service).take(expected) {
            let message = expired.payload();
            assert_eq!((message.service, expired.queue()), (service, service));
            seen.push((message.sender, message.number));
        }
        seen.sort_unstable();
        let sent = (0..SENDERS).flat_map(|sender| (0..EACH).map(move |n| (sender, n)));
        assert!(seen.into_iter().eq(sent), "each message once");
    }
    assert_eq!(engine.queue(0).len(), expected);
    let dropped_on = dropped_on.lock().unwrap();
    assert_eq!(dropped_on.len(), 2 * expected);
    let me = thread::current().id();
    assert!(dropped_on.iter().all(|&thread| thread == me));
    drop(dropped_on);
}

#[test]
fn d2_a_zero_or_negative_delay_posts_behind_due_timers() {
    let (engine, clock) = virtual_engine();
    clock.advance(10 * MS);
    engine.schedule(Timer::after(5 * MS, "due")).unwrap();
    clock.advance(5 * MS);
    engine
        .schedule(Timer::after(Duration::ZERO, "zero"))
        .unwrap();
    // A negative delay cannot be expressed; a time that has passed can.
    engine
        .schedule(Timer::at(Time::from_millis(3), "negative"))
        .unwrap();
    engine.schedule(Timer::after(MS, "later")).unwrap();
    clock.advance(Duration::ZERO);
    assert_eq!(
        take(&engine, 0),
        [(15, "due"), (15, "zero"), (3, "negative")]
    );

    let mut wheel = Wheel::starting_at(Tick(10), 64);
    wheel.schedule_after(5, "due");
    assert!(wheel.pop_due(Tick(14)).is_none());
    let mut order = Vec::new();
    let advance = wheel.advance(Tick(15), usize::MAX, |wheel, expired| {
        if expired.payload == "due" {
            wheel.schedule_after(0, "zero");
            wheel.schedule_at(Tick(3), "negative");
        }
        order.push(expired.payload);
    });
    assert_eq!(advance, Advance::Done);
    assert_eq!(order, ["due", "zero", "negative"]);
}

#[test]
fn d2_at_once_does_not_mean_at_the_next_tick() {
    let hour = 3_600 * SECOND;
    let (engine, clock) = Engine::builder().tick(hour).start_virtual().unwrap();
    clock.advance(hour / 4);
    engine
        .schedule(Timer::after(Duration::ZERO, "zero"))
        .unwrap();
    let moved = engine.schedule(Timer::after(hour, "moved")).unwrap();
    engine.reschedule(moved, Duration::ZERO).unwrap();
    clock.advance(Duration::ZERO);
    assert_eq!(take(&engine, 0), [(0, "zero"), (0, "moved")]);

    // In real time too, where the next tick is an hour away.
    let engine = Engine::builder().tick(hour).start().unwrap();
    thread::sleep(MS);
    engine
        .schedule(Timer::after(Duration::ZERO, "zero"))
        .unwrap();
    assert!(engine.queue(0).recv_timeout(PATIENCE).is_ok());
}

#[test]
fn d3_unseen_time_is_caught_up_tick_by_tick() {
    let (engine, clock) = virtual_engine();
    let mut expected = Vec::new();
    let mut random = Rng::with_seed(3);
    for n in 0..300 {
        let tick = 1 + random.u64(..5_000);
        engine
            .schedule(Timer::at(Time::from_millis(tick), n))
            .unwrap();
        expected.push((tick, n));
    }
    expected.sort_unstable();
    clock.advance_to(Time::from_millis(5_000));
    assert_eq!(take(&engine, 0), expected);

    // A repeating timer is caught up with one firing for each due tick.
    let beat = Timer::every(7 * MS, 0).missed(MissedTicks::CatchUp);
    engine.schedule(beat.times(20)).unwrap();
    clock.advance(SECOND);
    let due = (1..=20).map(|k| (5_000 + 7 * k, 0));
    assert!(take(&engine, 0).into_iter().eq(due));
}

#[test]
fn d3_each_tick_is_finished_before_the_next_begins() {
    let mut wheel = Wheel::new(64);
    wheel.schedule_at(Tick(100), "first");
    wheel.schedule_at(Tick(4_000), "last");
    let mut seen = Vec::new();
    // One jump; what a firing adds takes its own place on the way.
    let advance = wheel.advance(Tick(10_000), usize::MAX, |wheel, expired| {
        assert_eq!(wheel.now(), expired.deadline, "the wheel ran ahead");
        if expired.payload == "first" {
            wheel.schedule_after(50, "added");
        }
        seen.push((expired.deadline.0, expired.payload));
    });
    assert_eq!(advance, Advance::Done);
    assert_eq!(seen, [(100, "first"), (150, "added"), (4_000, "last")]);
}

#[test]
fn d_better_no_polling() {
    let engine = Engine::builder().start().unwrap();
    engine.schedule(Timer::after(3_600 * SECOND, ())).unwrap();
    thread::sleep(20 * MS);
    let before = engine.snapshot().wakeups;
    thread::sleep(100 * MS); // 40 polls of 2.5 ms each
    assert_eq!(engine.snapshot().wakeups, before);
}

#[test]
fn d_better_a_tick_of_any_length() {
    for tick in [
        Duration::from_nanos(1),
        Duration::from_micros(50),
        Duration::from_micros(2_500),
        10 * MS,
        3_600 * SECOND,
    ] {
        let (engine, clock) = Engine::builder().tick(tick).start_virtual().unwrap();
        for ticks in [1, 3, 1_000] {
            engine.schedule(Timer::after(ticks * tick, ticks)).unwrap();
        }
        for ticks in [1, 3, 1_000] {
            let due = Time::START + ticks * tick;
            clock.advance_to(Time::from_nanos(due.as_nanos() - 1));
            assert!(engine.queue(0).is_empty(), "early, with {tick:?}");
            clock.advance_to(due);
            assert_eq!(take(&engine, 0), [(u64::from(ticks), ticks)]);
        }
    }
    // A delay that is no multiple of the tick is rounded up, never down.
    let (engine, clock) = Engine::builder().tick(10 * MS).start_virtual().unwrap();
    clock.advance(3 * MS);
    engine.schedule(Timer::after(9 * MS, ())).unwrap();
    clock.advance_to(Time::from_millis(19));
    assert!(engine.queue(0).is_empty());
    clock.advance_to(Time::from_millis(20));
    assert_eq!(take(&engine, 0), [(2, ())]);

    // And for real: ticks of 0.1 ms and of 30 ms side by side.
    let (tell, told) = mpsc::channel();
    for tick in [MS / 10, 30 * MS] {
        let engine = Engine::builder().tick(tick).start().unwrap();
        engine.schedule(Timer::after(tick, tick)).unwrap();
        let expired = engine.queue(0).recv_timeout(PATIENCE).unwrap();
        assert!(engine.now() >= Time::START + tick);
        tell.send(expired.into_payload()).unwrap();
    }
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [MS / 10, 30 * MS]);
}
