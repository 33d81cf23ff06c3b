//! D. skynet's timer, which a tutorial holds up for many threads.

use super::*;
use tickwheel::Expired;

#[test]
fn d1_many_threads_submit_and_each_service_gets_its_own() {
    let engine = Engine::builder().queues(2).start().unwrap();
    // Odd numbers are for service 1.
    let send = |number: u64| {
        let timer = Timer::after(number as u32 % 20 * MS, number);
        engine.schedule(timer.queue(number as usize % 2)).unwrap();
    };
    thread::scope(|scope| {
        for sender in 0..4 {
            scope.spawn(move || (400 * sender..400 * (sender + 1)).for_each(send));
        }
    });
    // No service is at work yet: the wheel's thread posts all by itself.
    wait_until(|| [0, 1].iter().all(|&n| engine.queue(n).len() == 800));
    // Service 0 hangs; the other gets its own all the same.
    let received = engine.queue(1).take(800).map(Expired::into_payload);
    let mut received: Vec<_> = received.collect();
    received.sort_unstable();
    assert!(received.into_iter().eq((0..1_600).filter(|number| number % 2 == 1)));
    assert_eq!(engine.queue(0).len(), 800);
}

#[test]
fn d2_a_zero_or_negative_delay_posts_behind_due_timers() {
    let (engine, clock) = virtual_engine();
    clock.advance(10 * MS);
    let schedule = |timer| engine.schedule(timer).unwrap();
    schedule(Timer::after(5 * MS, "due"));
    clock.advance(5 * MS);
    schedule(Timer::after(Duration::ZERO, "zero"));
    // A negative delay cannot be expressed; a time that has passed can.
    schedule(Timer::at(Time::from_millis(3), "negative"));
    schedule(Timer::after(MS, "later"));
    clock.advance(Duration::ZERO);
    let expected = [(15, "due"), (3, "negative"), (15, "zero")];
    assert_eq!(take(&engine, 0), expected);
}

#[test]
fn d3_unseen_time_is_caught_up_tick_by_tick() {
    let (engine, clock) = virtual_engine();
    let mut random = Rng::with_seed(3);
    let mut expected = [0; 300].map(|_| (1 + random.u64(..5_000), "once"));
    for &(tick, payload) in &expected {
        let timer = Timer::at(Time::from_millis(tick), payload);
        engine.schedule(timer).unwrap();
    }
    expected.sort_unstable();
    clock.advance_to(Time::from_secs(5));
    assert_eq!(take(&engine, 0), expected);
}

#[test]
fn d_better_no_polling() {
    let engine = Engine::builder().start().unwrap();
    engine.schedule(Timer::after(HOUR, "far")).unwrap();
    thread::sleep(20 * MS);
    let before = engine.snapshot().wakeups;
    thread::sleep(100 * MS); // 40 polls of 2.5 ms each
    assert_eq!(engine.snapshot().wakeups, before);
}

#[test]
fn d_better_a_tick_of_any_length() {
    for tick in [Duration::from_nanos(1), MS / 20, 5 * MS / 2, 10 * MS, HOUR] {
        let (engine, clock) = Engine::builder().tick(tick).start_virtual().unwrap();
        for ticks in [1, 3, 1_000] {
            let timer = Timer::after(ticks * tick, u64::from(ticks));
            engine.schedule(timer).unwrap();
        }
        for ticks in [1, 3, 1_000] {
            let due = Time::START + ticks * tick;
            clock.advance_to(Time::from_nanos(due.as_nanos() - 1));
            assert!(engine.queue(0).is_empty(), "early, with {tick:?}");
            clock.advance_to(due);
            assert_eq!(take(&engine, 0), [(ticks.into(), ticks.into())]);
        }
    }
}
