//! tokio's `time_sleep.rs` and `time_pause.rs`. A paused clock is a virtual one here: of
//! timers of one's own, not of a runtime, so that there may be many.

use super::*;
use tickwheel::time::{sleep, timeout};

/// `immediate_sleep`, `is_elapsed`
#[test]
fn s01_a_sleep_until_now_ends_without_any_time_passing() {
    let (timers, _clock) = paused();
    let mut task = ByHand::new(timers.sleep_until(timers.now()));
    assert!(!task.is_elapsed());
    assert!(task.poll().is_ready());
    assert_eq!(timers.now(), at(0));
    assert!(task.is_elapsed());
}

/// `delayed_sleep_level_0`, `delayed_sleep_wrapping_level_0`, `greater_than_max`,
/// `multi_long_sleeps`, `long_sleeps`
#[test]
fn s03_sleeps_of_any_length_last_exactly_their_time() {
    let (timers, clock) = paused();
    let mut end = 0;
    for length in [1, 10, 60, 5, 65, YEAR, YEAR, 10 * YEAR] {
        end += length;
        let mut task = ByHand::new(timers.sleep(ms(length)));
        ends_at(&mut task, &clock, end);
        assert!(task.is_elapsed());
        end += length;
        ends_at(&mut ByHand::new(timers.sleep_until(at(end))), &clock, end);
    }
}

/// `sub_ms_delayed_sleep`
#[test]
fn s04_a_part_of_a_millisecond_is_rounded_up_by_less_than_one() {
    let (timers, clock) = paused();
    for round in 1..=5 {
        let deadline = timers.now() + ms(1) + Duration::from_nanos(1);
        let mut task = ByHand::new(timers.sleep_until(deadline));
        ends_at(&mut task, &clock, 2 * round);
    }
}

/// `reset_future_sleep_before_fire`, `reset_past_sleep_before_turn`,
/// `reset_past_sleep_before_fire`
#[test]
fn s06_a_waiting_sleep_may_be_postponed_and_brought_forward() {
    for (passed, reset_to) in [(0, 200), (0, 80), (10, 80), (99, 300)] {
        let (timers, clock) = paused();
        let mut task = ByHand::new(timers.sleep_until(at(100)));
        assert!(task.poll().is_pending());
        clock.advance(ms(passed));
        task.reset_at(at(reset_to));
        assert!(!task.is_elapsed());
        // It keeps its timer, whoever owns it.
        let mut other = timers.sleep_until(at(reset_to));
        assert!(poll_with(&mut other, Waker::noop()).is_pending());
        let other = other.into_owned();
        assert_eq!(timers.ledger().live, 2);
        drop(other);
        assert_eq!(timers.ledger().live, 1);
        ends_at(&mut task, &clock, reset_to);
    }
}

/// `reset_future_sleep_after_fire`
#[test]
fn s09_a_sleep_that_has_ended_may_be_reset_and_sleeps_again() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep_until(at(100)));
    ends_at(&mut task, &clock, 100);
    assert!(task.poll().is_ready(), "it stays so until it is reset");
    task.reset_at(at(110));
    assert_eq!(task.deadline(), at(110));
    ends_at(&mut task, &clock, 110);
}

/// Also for a thread whose own timers are in another shard, which may be behind.
#[test]
fn s09_a_sleep_that_has_ended_is_ready_for_every_thread() {
    let timers = Timers::builder().shards(64).start().unwrap();
    let mut task = ByHand::new(timers.sleep(ms(5)));
    while task.poll().is_pending() {
        thread::yield_now();
    }
    thread::scope(|scope| assert!(scope.spawn(|| task.poll().is_ready()).join().unwrap()));
}

/// `reset_sleep_to_past`. Differs: tokio's sleep is ready at the next poll already.
#[test]
fn s10_differs_a_waiting_sleep_that_is_reset_to_the_past_is_woken_at_once() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep_until(at(100)));
    assert!(task.poll().is_pending());
    clock.advance(ms(50));
    task.reset_at(at(40));
    clock.advance(Duration::ZERO);
    assert!(task.is_woken());
    assert!(task.poll().is_ready());
}

/// `creating_sleep_outside_of_context`, and `timeout_panic_caller` of `time_panic.rs`.
/// Differs: sleeps and limits need no runtime.
#[test]
fn s11_differs_a_sleep_may_be_created_and_awaited_outside_of_any_runtime() {
    let begin = Instant::now();
    block_on(sleep(ms(5)));
    assert!(begin.elapsed() >= ms(5));
    let without_time = tokio::runtime::Builder::new_current_thread().build();
    let limited = async { timeout(ms(5), pending::<()>()).await };
    assert!(without_time.unwrap().block_on(limited).is_err());
    assert!(begin.elapsed() >= ms(10));
}

/// `exactly_max`, `no_out_of_bounds_close_to_max`. Differs: a sleep without end never ends;
/// tokio's ends after 30 years.
#[test]
fn s17_differs_the_longest_sleep_never_ends() {
    for length in [Duration::MAX, Duration::MAX - ms(1)] {
        let (timers, clock) = paused();
        let mut task = ByHand::new(timers.sleep(length));
        assert!(task.poll().is_pending());
        clock.advance_to(at(100 * YEAR));
        assert!(!task.is_woken());
        assert!(task.poll().is_pending());
        assert!(ByHand::new(sleep(length)).poll().is_pending());
    }
}

/// `test_time_advance_sub_ms`, `test_time_advance_3ms_and_change`,
/// `exact_1ms_advance`, `advance_once_with_timer`, `advance_multi_with_timer`
#[test]
fn p16_steps_of_the_clock_that_add_up_to_a_deadline_wake_its_sleep_at_the_last() {
    for steps in [&[1_000][..], &[250; 4], &[999, 1], &[250, 1_500], &[51_592]] {
        let (timers, clock) = paused();
        let mut task = ByHand::new(timers.sleep(ms(1)));
        for step in steps.iter().map(|&step| Duration::from_micros(step)) {
            let before = timers.now();
            assert!(task.poll().is_pending());
            clock.advance(step);
            assert_eq!(timers.now().since(before), step);
            assert_eq!(task.is_woken(), timers.now() >= at(1));
        }
        assert!(task.poll().is_ready());
    }
}
