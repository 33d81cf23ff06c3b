//! tokio's `time_interval.rs`. tokio's tests begin a millisecond late, because its timers
//! are not quite due at their own time; here they are.

use super::*;
use std::panic::Location;
use tickwheel::time::{MissedTickBehavior as Missed, interval, interval_at};

/// An interval with a period of 300 ms, polled by hand.
struct Beat<'a>(ByHand<Interval<&'a Timers>>, &'a VirtualClock);

impl Beat<'_> {
    /// Lets time pass, and asserts which ticks follow before the task has to wait.
    fn ticks(&mut self, after: u64, expected: &[u64]) {
        self.1.advance(ms(after));
        for &tick in expected {
            assert_eq!(poll_tick(&mut self.0), Poll::Ready(at(tick)));
        }
        assert_eq!(poll_tick(&mut self.0), Poll::Pending);
    }
}

/// An interval that has ticked at 0 and at 300.
fn begun<'a>(timers: &'a Timers, clock: &'a VirtualClock) -> Beat<'a> {
    let mut beat = Beat(ByHand::new(timers.interval_at(at(0), ms(300))), clock);
    beat.ticks(0, &[0]);
    beat.ticks(100, &[]);
    beat.ticks(200, &[300]);
    beat
}

/// `burst`, `delay`, `skip`
#[test]
fn i02_missed_ticks_follow_at_once_or_a_period_later_or_never() {
    // What is polled at 950, after how long the next tick comes, and when it was due.
    for (missed, late, wait, next) in [
        (Missed::Burst, &[600, 900][..], 250, 1_200),
        (Missed::Delay, &[600], 300, 1_250),
        (Missed::Skip, &[600], 250, 1_200),
    ] {
        let (timers, clock) = paused();
        let mut beat = begun(&timers, &clock);
        assert_eq!(beat.0.missed_tick_behavior(), Missed::Burst);
        beat.0.set_missed_tick_behavior(missed);
        let mut owned = timers.interval_at(at(0), ms(300));
        owned.set_missed_tick_behavior(missed);
        assert_eq!(owned.into_owned().missed_tick_behavior(), missed);
        beat.ticks(650, late);
        beat.ticks(wait - 1, &[]);
        beat.ticks(1, &[next]);
        beat.ticks(300, &[next + 300]);
    }
}

/// A tick counts as missed if it is more than 5 ms late. tokio's tests are never between.
#[test]
fn i04_a_tick_that_is_a_little_late_is_not_missed() {
    for (late, next) in [(5, 900), (6, 906)] {
        let (timers, clock) = paused();
        let mut beat = begun(&timers, &clock);
        beat.0.set_missed_tick_behavior(Missed::Delay);
        beat.ticks(300 + late, &[600]);
        beat.ticks(next - (600 + late), &[next]);
    }
}

/// `reset_doesnt_panic_max_duration`, `reset_after_doesnt_panic_max_duration`,
/// `interval_doesnt_panic_max_duration_when_polling`
#[test]
fn i05_the_longest_times_do_not_panic() {
    let mut beat = ByHand::new(interval(Duration::MAX));
    assert!(poll_tick(&mut beat).is_ready());
    assert!(poll_tick(&mut beat).is_pending());
    beat.reset();
    let mut beat = interval(ms(1));
    beat.reset_after(Duration::MAX);
    assert!(ByHand::new(Box::pin(beat.tick())).poll().is_pending());
}

/// `reset`, `reset_after`, `reset_at`, `reset_at_bigger_than_interval`
#[test]
fn i07_a_reset_says_when_the_next_tick_comes() {
    type Reset = fn(&mut Interval<&Timers>);
    let resets: [(Reset, u64); 4] = [
        (|beat| beat.reset(), 300),
        (|beat| beat.reset_after(ms(20)), 20),
        (|beat| beat.reset_at(at(440)), 40),
        (|beat| beat.reset_at(at(1_400)), 1_000),
    ];
    for (reset, next) in resets {
        let (timers, clock) = paused();
        let mut beat = begun(&timers, &clock);
        beat.ticks(100, &[]);
        reset(&mut beat.0);
        beat.ticks(next - 1, &[]);
        beat.ticks(1, &[400 + next]);
        beat.ticks(300, &[700 + next]);
    }
}

/// `reset_immediately`
#[test]
fn i08_a_reset_may_tick_at_once() {
    let (timers, clock) = paused();
    let mut beat = begun(&timers, &clock);
    // It may have begun before it was made.
    Beat(ByHand::new(timers.interval_at(at(0), ms(200))), &clock).ticks(100, &[0, 200, 400]);
    beat.0.reset_immediately();
    beat.ticks(0, &[400]);
    beat.ticks(300, &[700]);
}

/// `stream_with_interval_poll_tick_no_waking`
#[test]
fn i13_a_tick_that_is_ready_leaves_no_waker_behind() {
    let (timers, clock) = paused();
    let mut beat = ByHand::new(timers.interval(ms(10)));
    assert!(poll_tick(&mut beat).is_ready());
    clock.advance(ms(100));
    assert!(!beat.is_woken());
}

/// `interval_zero_duration`, and `interval_panic_caller` and `interval_at_panic_caller` of
/// `time_panic.rs`
#[test]
fn c03_a_period_of_no_time_panics_in_the_callers_file() {
    let places = Arc::new(Mutex::new(Vec::new()));
    let (hook, seen) = (std::panic::take_hook(), Arc::clone(&places));
    let this = thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        // Other tests panic, too.
        if thread::current().id() == this {
            seen.lock().unwrap().extend(info.location().map(Location::to_string));
        }
    }));
    let begins: [fn(Duration); 4] = [
        |zero| drop(interval(zero)),
        |zero| drop(interval_at(Instant::now(), zero)),
        |zero| drop(paused().0.interval(zero)),
        |zero| drop(paused().0.interval_at(at(0), zero)),
    ];
    let caught = begins.map(|begin| std::panic::catch_unwind(|| begin(Duration::ZERO)));
    std::panic::set_hook(hook);
    assert!(caught.iter().all(Result::is_err));
    let places = places.lock().unwrap();
    assert_eq!(places.len(), 4);
    assert!(places.iter().all(|place| place.starts_with(file!())), "{places:?}");
}
