//! tokio's `time_sleep.rs`.

use super::*;
use std::sync::Mutex;
use tickwheel::time::{Sleep, sleep, sleep_until};

/// `immediate_sleep`
#[test]
fn s01_a_sleep_until_now_ends_without_any_time_passing() {
    let (timers, _clock) = paused();
    let mut task = ByHand::new(timers.sleep_until(timers.now()));
    assert!(!task.is_elapsed());
    assert!(task.poll().is_ready());
    assert_eq!(timers.now(), at(0));
    assert!(task.is_elapsed());
}

/// `is_elapsed`
#[test]
fn s02_a_sleep_is_elapsed_once_it_is_due_and_not_before() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep(ms(10)));
    assert!(!task.is_elapsed());
    assert!(task.poll().is_pending());
    assert!(!task.is_elapsed());
    ends_at(&mut task, &clock, 10);
    assert!(task.is_elapsed());
}

/// `delayed_sleep_level_0`
#[test]
fn s03_sleeps_of_the_lowest_level_last_exactly_their_time() {
    let (timers, clock) = paused();
    let mut end = 0;
    for length in [1, 10, 60] {
        end += length;
        let mut task = ByHand::new(timers.sleep_until(at(end)));
        ends_at(&mut task, &clock, end);
    }
}

/// `sub_ms_delayed_sleep`
#[test]
fn s04_a_part_of_a_millisecond_is_rounded_up_by_less_than_one() {
    let (timers, clock) = paused();
    for round in 0..5 {
        let begin = timers.now();
        let deadline = begin + ms(1) + Duration::from_nanos(1);
        let mut task = ByHand::new(timers.sleep_until(deadline));
        ends_at(&mut task, &clock, 2 * (round + 1));
        assert!(timers.now().since(begin) <= ms(2));
    }
}

/// `delayed_sleep_wrapping_level_0`
#[test]
fn s05_a_sleep_that_wraps_round_its_level_lasts_exactly_its_time() {
    let (timers, clock) = paused();
    ends_at(&mut ByHand::new(timers.sleep(ms(5))), &clock, 5);
    ends_at(&mut ByHand::new(timers.sleep_until(at(65))), &clock, 65);
}

/// `reset_future_sleep_before_fire`
#[test]
fn s06_a_waiting_sleep_may_be_postponed() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep_until(at(100)));
    assert!(task.poll().is_pending());
    task.reset_at(timers.now() + ms(200));
    ends_at(&mut task, &clock, 200);
}

/// `reset_past_sleep_before_turn`
#[test]
fn s07_a_waiting_sleep_may_be_brought_forward() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep_until(at(100)));
    assert!(task.poll().is_pending());
    task.reset_at(at(80));
    ends_at(&mut task, &clock, 80);
}

/// `reset_past_sleep_before_fire`
#[test]
fn s08_a_waiting_sleep_may_be_brought_forward_after_some_time() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep_until(at(100)));
    assert!(task.poll().is_pending());
    ends_at(&mut ByHand::new(timers.sleep(ms(10))), &clock, 10);
    task.reset_at(at(80));
    ends_at(&mut task, &clock, 80);
}

/// `reset_future_sleep_after_fire`
#[test]
fn s09_a_sleep_that_has_ended_may_be_reset_and_sleeps_again() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep_until(at(100)));
    ends_at(&mut task, &clock, 100);
    task.reset_at(at(110));
    ends_at(&mut task, &clock, 110);
}

/// `reset_sleep_to_past`. Differs: tokio's sleep is ready at the next poll already.
#[test]
fn s10_differs_a_waiting_sleep_that_is_reset_to_the_past_is_woken_at_once() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep_until(at(100)));
    assert!(task.poll().is_pending());
    clock.advance(ms(50));
    assert!(!task.is_woken());
    task.reset_at(at(40));
    clock.advance(Duration::ZERO);
    assert!(task.is_woken());
    assert!(task.poll().is_ready());
}

/// `creating_sleep_outside_of_context`. Differs: a sleep needs no runtime.
#[test]
fn s11_differs_a_sleep_may_be_created_and_awaited_outside_of_any_runtime() {
    drop(sleep_until(Instant::now() + ms(500)));
    let begin = Instant::now();
    block_on(sleep(ms(5)));
    assert!(begin.elapsed() >= ms(5));
}

/// `greater_than_max`
#[test]
fn s12_a_sleep_may_be_longer_than_tokios_wheel() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep_until(at(5 * YEAR)));
    ends_at(&mut task, &clock, 5 * YEAR);
}

/// `short_sleeps`
#[test]
fn s13_a_thousand_sleeps_of_no_time_end() {
    block_on(async {
        for _ in 0..1_000 {
            sleep(Duration::ZERO).await;
        }
    });
}

/// `multi_long_sleeps`
#[test]
fn s14_sleeps_of_years_follow_each_other() {
    let (timers, clock) = paused();
    for year in 1..=5 {
        let mut task = ByHand::new(timers.sleep(ms(YEAR)));
        ends_at(&mut task, &clock, year * YEAR);
    }
    let mut task = ByHand::new(timers.sleep_until(at(15 * YEAR)));
    ends_at(&mut task, &clock, 15 * YEAR);
}

/// `long_sleeps`
#[test]
fn s15_a_sleep_of_ten_years_ends_on_time() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep_until(at(10 * YEAR)));
    ends_at(&mut task, &clock, 10 * YEAR);
}

/// `reset_after_firing`
#[test]
fn s16_a_sleep_that_has_ended_stays_ready_until_it_is_reset() {
    let mut task = ByHand::new(sleep(ms(1)));
    let deadline = task.deadline();
    block_on(&mut *task);
    assert!(task.poll().is_ready());
    task.reset(Instant::now() + ms(600_000));
    assert_ne!(task.deadline(), deadline);
    assert!(task.poll().is_pending());
    assert!(task.poll().is_pending());
}

/// `exactly_max`. Differs: a sleep without end never ends; tokio's ends after 30 years.
#[test]
fn s17_differs_the_longest_sleep_never_ends() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep(Duration::MAX));
    assert!(task.poll().is_pending());
    clock.advance_to(at(100 * YEAR));
    assert!(!task.is_woken());
    assert!(task.poll().is_pending());
    assert_eq!(task.deadline(), Time::MAX);

    let mut task = ByHand::new(sleep(Duration::MAX));
    assert!(task.poll().is_pending());
    assert!(task.deadline() > Instant::now());
}

/// `issue_5183`
#[tokio::test]
async fn s18_a_short_sleep_wins_against_one_without_end() {
    let big = Duration::from_secs(u64::MAX / 10);
    tokio::select! {
        biased;
        () = sleep(big) => panic!("the longer one ended"),
        () = sleep(Duration::from_nanos(1)) => {}
    }
}

/// `no_out_of_bounds_close_to_max`
#[test]
fn s19_a_sleep_close_to_the_longest_waits() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep(Duration::MAX - ms(1)));
    assert!(task.poll().is_pending());
    clock.advance(ms(YEAR));
    assert!(task.poll().is_pending());
    assert!(
        ByHand::new(sleep(Duration::MAX - ms(1)))
            .poll()
            .is_pending()
    );
}

/// `long_wait_sleep_does_not_break_other_timers`
#[test]
fn s20_a_very_long_sleep_leaves_others_on_time() {
    let (timers, clock) = paused();
    let mut long = ByHand::new(timers.sleep(ms(10 << 36)));
    assert!(long.poll().is_pending());
    let begin = (1 << 30) - 1;
    clock.advance(ms(begin));
    ends_at(&mut ByHand::new(timers.sleep(ms(10))), &clock, begin + 10);
}

/// `long_wait_sleep_does_not_corrupt_wheel`
#[test]
fn s21_sleeps_beside_a_very_long_one_may_be_dropped_late() {
    let (timers, clock) = paused();
    let mut long = ByHand::new(timers.sleep(ms(10 << 36)));
    assert!(long.poll().is_pending());
    clock.advance(ms((1 << 30) - 1));
    let mut first = ByHand::new(timers.sleep(ms(10)));
    assert!(first.poll().is_pending());
    let mut second = ByHand::new(timers.sleep(ms(20)));
    assert!(second.poll().is_pending());
    clock.advance(ms(30));
    drop(first);
    clock.advance(ms(1 << 31));
    drop(second);
    assert!(long.poll().is_pending());
    assert_eq!(timers.ledger().live, 1);
}

/// `drop_after_reschedule_at_new_scheduled_time`
#[test]
fn s22_a_sleep_that_was_moved_to_the_tick_of_another_may_be_dropped() {
    let (timers, clock) = paused();
    let mut a = ByHand::new(timers.sleep(ms(5)));
    let mut b = ByHand::new(timers.sleep(ms(5)));
    let mut c = ByHand::new(timers.sleep(ms(10)));
    for task in [&mut a, &mut b, &mut c] {
        assert!(task.poll().is_pending());
    }
    b.reset_at(at(10));
    ends_at(&mut a, &clock, 5);
    drop(b);
    ends_at(&mut c, &clock, 10);
}

/// `drop_from_wake`
#[test]
fn s23_a_wake_up_may_drop_all_sleeps_even_its_own() {
    struct DropAll(Mutex<Vec<Sleep<Timers>>>);
    impl Wake for DropAll {
        fn wake(self: Arc<DropAll>) {
            drop(std::mem::take(&mut *self.0.lock().unwrap()));
        }
    }

    let (timers, clock) = paused();
    let sleeps = Arc::new(DropAll(Mutex::default()));
    let waker = Waker::from(Arc::clone(&sleeps));
    for _ in 0..100 {
        let mut sleep = timers.sleep(ms(10)).into_owned();
        let polled = Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        sleeps.0.lock().unwrap().push(sleep);
    }
    clock.advance(ms(11));
    assert!(sleeps.0.lock().unwrap().is_empty());
    assert_eq!(timers.snapshot().panics, 0);
    assert_eq!(timers.ledger().live, 0);
}

/// `drop_from_waker_drop`
#[test]
fn s24_a_waker_that_owns_another_sleep_may_be_dropped_with_its_sleep() {
    struct Owner(#[allow(dead_code)] Sleep<Timers>);
    impl Wake for Owner {
        fn wake(self: Arc<Owner>) {}
    }

    let (timers, _clock) = paused();
    let hour = ms(3_600_000);
    let mut secondary = ByHand::new(timers.sleep(hour).into_owned());
    assert!(secondary.poll().is_pending());
    let waker = Waker::from(Arc::new(Owner(secondary.into_inner())));
    let mut primary = timers.sleep(hour);
    let polled = Pin::new(&mut primary).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    drop(waker);
    assert_eq!(timers.ledger().live, 2);
    drop(primary);
    assert_eq!(timers.ledger().live, 0);
}
