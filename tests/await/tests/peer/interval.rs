//! tokio's `time_interval.rs`. tokio's tests begin a millisecond late, because its timers
//! are not quite due at their own time; here they are.

use super::*;
use tickwheel::time::{Interval, MissedTickBehavior, interval};

/// An interval that starts now, with a period of 300 ms, polled by hand.
struct Beat<'a> {
    task: ByHand<Interval<&'a Timers>>,
    clock: &'a TimersClock,
}

impl<'a> Beat<'a> {
    fn new(timers: &'a Timers, clock: &'a TimersClock) -> Beat<'a> {
        let task = ByHand::new(timers.interval_at(timers.now(), ms(300)));
        Beat { task, clock }
    }

    /// Lets time pass, and asserts which ticks follow before the task has to wait.
    fn ticks(&mut self, after: u64, expected: &[u64]) {
        self.clock.advance(ms(after));
        for &tick in expected {
            assert_eq!(self.poll(), Poll::Ready(at(tick)));
        }
        assert_eq!(self.poll(), Poll::Pending);
    }

    fn poll(&mut self) -> Poll<Time> {
        self.task
            .enter(|interval, context| interval.poll_tick(context))
    }
}

/// `interval_zero_duration`
#[test]
#[should_panic = "period"]
fn i01_a_period_of_no_time_panics() {
    let (timers, _clock) = paused();
    let _ = timers.interval_at(timers.now(), Duration::ZERO);
}

/// `burst`
#[test]
fn i02_missed_ticks_follow_at_once_by_default() {
    let (timers, clock) = paused();
    let mut beat = Beat::new(&timers, &clock);
    beat.ticks(0, &[0]);
    beat.ticks(100, &[]);
    beat.ticks(200, &[300]);
    beat.ticks(650, &[600, 900]);
    beat.ticks(200, &[]);
    beat.ticks(100, &[1_200]);
    beat.ticks(250, &[1_500]);
    beat.ticks(300, &[1_800]);
}

/// `delay`
#[test]
fn i03_delay_counts_a_full_period_from_a_late_tick() {
    let (timers, clock) = paused();
    let mut beat = Beat::new(&timers, &clock);
    beat.task
        .set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat.ticks(0, &[0]);
    beat.ticks(100, &[]);
    beat.ticks(200, &[300]);
    beat.ticks(650, &[600]);
    beat.ticks(100, &[]);
    beat.ticks(200, &[1_250]);
    beat.ticks(300, &[1_550]);
    beat.ticks(300, &[1_850]);
}

/// `skip`
#[test]
fn i04_skip_leaves_missed_ticks_out_and_keeps_the_phase() {
    let (timers, clock) = paused();
    let mut beat = Beat::new(&timers, &clock);
    beat.task.set_missed_tick_behavior(MissedTickBehavior::Skip);
    beat.ticks(0, &[0]);
    beat.ticks(100, &[]);
    beat.ticks(200, &[300]);
    beat.ticks(650, &[600]);
    beat.ticks(250, &[1_200]);
    beat.ticks(300, &[1_500]);
    beat.ticks(300, &[1_800]);
}

/// `reset_doesnt_panic_max_duration`
#[test]
fn i05_a_reset_with_the_longest_period_does_not_panic() {
    let mut beat = interval(Duration::MAX);
    beat.reset();

    let (timers, _clock) = paused();
    timers.interval(Duration::MAX).reset();
}

/// `reset_after_doesnt_panic_max_duration`
#[test]
fn i06_a_reset_after_the_longest_time_does_not_panic() {
    let mut beat = interval(ms(1));
    beat.reset_after(Duration::MAX);
    assert!(ByHand::new(Box::pin(beat.tick())).poll().is_pending());

    let (timers, _clock) = paused();
    timers.interval(ms(1)).reset_after(Duration::MAX);
}

/// Three ticks as all tests of resets begin, at 0, 300 and not yet 600; it is 400.
fn begun<'a>(timers: &'a Timers, clock: &'a TimersClock) -> Beat<'a> {
    let mut beat = Beat::new(timers, clock);
    beat.ticks(0, &[0]);
    beat.ticks(100, &[]);
    beat.ticks(200, &[300]);
    beat.ticks(100, &[]);
    beat
}

/// `reset`
#[test]
fn i07_a_reset_counts_a_full_period_from_now() {
    let (timers, clock) = paused();
    let mut beat = begun(&timers, &clock);
    beat.task.reset();
    beat.ticks(250, &[]);
    beat.ticks(50, &[700]);
    beat.ticks(300, &[1_000]);
}

/// `reset_immediately`
#[test]
fn i08_a_reset_may_tick_at_once() {
    let (timers, clock) = paused();
    let mut beat = begun(&timers, &clock);
    beat.task.reset_immediately();
    beat.ticks(0, &[400]);
    beat.ticks(100, &[]);
    beat.ticks(200, &[700]);
}

/// `reset_after`
#[test]
fn i09_a_reset_may_tick_after_a_time_of_its_own() {
    let (timers, clock) = paused();
    let mut beat = begun(&timers, &clock);
    beat.task.reset_after(ms(20));
    beat.ticks(20, &[420]);
    beat.ticks(100, &[]);
    beat.ticks(200, &[720]);
}

/// `reset_at`
#[test]
fn i10_a_reset_may_tick_at_a_time_of_its_own() {
    let (timers, clock) = paused();
    let mut beat = begun(&timers, &clock);
    beat.task.reset_at(timers.now() + ms(40));
    beat.ticks(40, &[440]);
    beat.ticks(100, &[]);
    beat.ticks(200, &[740]);
}

/// `reset_at_bigger_than_interval`
#[test]
fn i11_a_reset_may_tick_later_than_after_a_period() {
    let (timers, clock) = paused();
    let mut beat = begun(&timers, &clock);
    beat.task.reset_at(timers.now() + ms(1_000));
    for _ in 0..3 {
        beat.ticks(300, &[]);
    }
    beat.ticks(100, &[1_400]);
    beat.ticks(300, &[1_700]);
}

/// Counts ticks in a task that yields every fourth. If it wakes itself at each other tick,
/// it sees them all; returns what it has yielded after 150 ms.
fn yielded(wakes_itself: bool) -> Vec<u32> {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.interval(ms(10)));
    let (mut count, mut yielded) = (0, Vec::new());
    for millis in 0..150 {
        clock.advance_to(at(millis));
        // As an executor does: polls once at first, and then for each wake-up.
        while (millis == 0 && count == 0) || task.is_woken() {
            let polled = task.enter(|interval, context| {
                let polled = interval.poll_tick(context);
                if polled.is_ready() && (wakes_itself || (count + 1) % 4 == 0) {
                    context.waker().wake_by_ref();
                }
                polled
            });
            if polled.is_ready() {
                count += 1;
                if count % 4 == 0 {
                    yielded.push(count);
                }
            }
        }
    }
    yielded
}

/// `stream_with_interval_poll_tick_self_waking`
#[test]
fn i12_a_task_that_wakes_itself_after_each_tick_sees_them_all() {
    assert_eq!(yielded(true), [4, 8, 12]);
}

/// `stream_with_interval_poll_tick_no_waking`
#[test]
fn i13_a_tick_that_is_ready_leaves_no_waker_behind() {
    assert_eq!(yielded(false), []);
}

/// `interval_doesnt_panic_max_duration_when_polling`
#[test]
fn i14_the_first_tick_of_the_longest_period_comes_at_once() {
    let mut task = ByHand::new(interval(Duration::MAX));
    assert!(
        task.enter(|beat, context| beat.poll_tick(context))
            .is_ready()
    );
    assert!(
        task.enter(|beat, context| beat.poll_tick(context))
            .is_pending()
    );
}
