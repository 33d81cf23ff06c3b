//! tokio's `time_interval.rs`. tokio's tests begin a millisecond late, because its timers
//! are not quite due at their own time; here they are.

use super::*;
use std::panic::Location;
use tickwheel::time::{Interval, MissedTickBehavior, interval, interval_at};

/// An interval with a period of 300 ms, polled by hand.
struct Beat<'a>(ByHand<Interval<&'a Timers>>, &'a TimersClock);

impl Beat<'_> {
    /// Lets time pass, and asserts which ticks follow before the task has to wait.
    fn ticks(&mut self, after: u64, expected: &[u64]) {
        self.1.advance(ms(after));
        let mut poll = || {
            self.0
                .enter(|interval, context| interval.poll_tick(context))
        };
        for &tick in expected {
            assert_eq!(poll(), Poll::Ready(at(tick)));
        }
        assert_eq!(poll(), Poll::Pending);
    }
}

/// An interval that has ticked at 0 and at 300.
fn begun<'a>(timers: &'a Timers, clock: &'a TimersClock) -> Beat<'a> {
    let mut beat = Beat(ByHand::new(timers.interval_at(at(0), ms(300))), clock);
    beat.ticks(0, &[0]);
    beat.ticks(100, &[]);
    beat.ticks(200, &[300]);
    beat
}

/// `burst`, `delay`, `skip`
#[test]
fn i02_missed_ticks_follow_at_once_or_a_period_later_or_never() {
    // After a late poll at 950.
    type Steps = [(u64, &'static [u64]); 4];
    let burst: Steps = [
        (0, &[600, 900]),
        (200, &[]),
        (50, &[1_200]),
        (300, &[1_500]),
    ];
    let delay: Steps = [(0, &[600]), (299, &[]), (1, &[1_250]), (300, &[1_550])];
    let skip: Steps = [(0, &[600]), (249, &[]), (1, &[1_200]), (300, &[1_500])];
    for (missed, steps) in [
        (MissedTickBehavior::Burst, burst),
        (MissedTickBehavior::Delay, delay),
        (MissedTickBehavior::Skip, skip),
    ] {
        let (timers, clock) = paused();
        let mut beat = begun(&timers, &clock);
        assert_eq!(beat.0.missed_tick_behavior(), MissedTickBehavior::Burst);
        beat.0.set_missed_tick_behavior(missed);
        clock.advance(ms(650));
        for (after, expected) in steps {
            beat.ticks(after, expected);
        }
    }
}

/// `reset_doesnt_panic_max_duration`, `reset_after_doesnt_panic_max_duration`,
/// `interval_doesnt_panic_max_duration_when_polling`
#[test]
fn i05_the_longest_times_do_not_panic() {
    let mut beat = ByHand::new(interval(Duration::MAX));
    let mut poll = || beat.enter(|beat, context| beat.poll_tick(context));
    assert!(poll().is_ready());
    assert!(poll().is_pending());
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
    beat.ticks(100, &[]);
    beat.0.reset_immediately();
    beat.ticks(0, &[400]);
    beat.ticks(300, &[700]);
}

/// `stream_with_interval_poll_tick_no_waking`
#[test]
fn i13_a_tick_that_is_ready_leaves_no_waker_behind() {
    let (timers, clock) = paused();
    let mut beat = ByHand::new(timers.interval(ms(10)));
    assert!(
        beat.enter(|beat, context| beat.poll_tick(context))
            .is_ready()
    );
    clock.advance(ms(100));
    assert!(!beat.is_woken());
}

/// Returns the place that the panic of a call names.
fn place_of_panic(panics: impl FnOnce() + std::panic::UnwindSafe) -> Option<String> {
    let place = Arc::new(Mutex::new(None));
    let (hook, seen) = (std::panic::take_hook(), Arc::clone(&place));
    let this = thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        // Other tests panic, too.
        if thread::current().id() == this {
            *seen.lock().unwrap() = info.location().map(Location::to_string);
        }
    }));
    assert!(std::panic::catch_unwind(panics).is_err(), "no panic");
    std::panic::set_hook(hook);
    place.lock().unwrap().take()
}

/// `interval_zero_duration`, and `interval_panic_caller` and `interval_at_panic_caller` of
/// `time_panic.rs`
#[test]
fn c03_a_period_of_no_time_panics_in_the_callers_file() {
    let zero = Duration::ZERO;
    let of_its_own: [fn(Duration); 2] = [
        |zero| drop(paused().0.interval(zero)),
        |zero| drop(paused().0.interval_at(at(0), zero)),
    ];
    let global: [fn(Duration); 2] = [
        |zero| drop(interval(zero)),
        |zero| drop(interval_at(Instant::now(), zero)),
    ];
    for begin in of_its_own.into_iter().chain(global) {
        let place = place_of_panic(move || begin(zero)).unwrap();
        assert!(place.starts_with(file!()), "{place}");
    }
}
