//! tokio's `time_pause.rs` and `rt_time_start_paused.rs`. A paused clock is a virtual one
//! here: of timers of one's own, not of a runtime.

use super::*;
use tickwheel::time::Sleep;

/// Waits for a sleep on virtual time from within a task.
async fn virtual_sleep_in_a_task() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep(ms(1)));
    ends_at(&mut task, &clock, 1);
}

/// `pause_time_in_main`
#[tokio::test]
async fn p01_time_may_be_virtual_in_a_runtimes_main_future() {
    virtual_sleep_in_a_task().await;
}

/// `pause_time_in_task`
#[tokio::test]
async fn p02_time_may_be_virtual_in_a_task() {
    tokio::spawn(virtual_sleep_in_a_task()).await.unwrap();
}

/// `pause_time_in_main_threads`. Differs: tokio's pause panics.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn p03_differs_time_may_be_virtual_in_the_main_future_of_a_runtime_with_threads() {
    virtual_sleep_in_a_task().await;
}

/// `pause_time_in_spawn_threads`. Differs: tokio's pause panics.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn p04_differs_time_may_be_virtual_in_a_task_of_a_runtime_with_threads() {
    tokio::spawn(virtual_sleep_in_a_task()).await.unwrap();
}

/// The times at which ten thousand sleeps of random length end.
fn ends_of_random_sleeps() -> Vec<Time> {
    let (timers, clock) = paused();
    let mut random = 1_u64;
    let ends = (0..10_000).map(|_| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let length = Duration::from_nanos(random >> 34);
        let mut task = ByHand::new(timers.sleep(length));
        while task.poll().is_pending() {
            clock.advance(Duration::from_micros(100_500));
        }
        timers.now()
    });
    ends.collect()
}

/// `paused_time_is_deterministic`
#[test]
fn p05_random_sleeps_end_at_the_same_times_in_every_run() {
    assert_eq!(ends_of_random_sleeps(), ends_of_random_sleeps());
}

/// `advance_after_poll`
#[test]
fn p06_a_clock_moves_by_its_step_past_a_sleep_that_waits() {
    let (timers, clock) = paused();
    ends_at(&mut ByHand::new(timers.sleep(ms(1))), &clock, 1);
    let mut task = ByHand::new(timers.sleep_until(at(301)));
    assert!(task.poll().is_pending());
    clock.advance(ms(100));
    assert_eq!(timers.now(), at(101));
    assert!(task.poll().is_pending());
}

/// `sleep_no_poll`
#[test]
fn p07_a_sleep_that_is_first_polled_after_a_step_waits_for_the_rest() {
    let (timers, clock) = paused();
    clock.advance(ms(1));
    let mut task = ByHand::new(timers.sleep_until(at(300)));
    clock.advance(ms(100));
    assert_eq!(timers.now(), at(101));
    ends_at(&mut task, &clock, 300);
}

/// A task that moves the clock itself, while it polls its sleep.
fn move_the_clock_in_a_poll(polls_before: bool) {
    let (timers, clock) = paused();
    clock.advance(ms(1));
    let mut task = ByHand::new(timers.sleep_until(at(300)));
    task.enter(|sleep, context| {
        let mut poll = |sleep: &mut Sleep<&Timers>| Pin::new(sleep).poll(context);
        if polls_before {
            assert!(poll(sleep).is_pending());
        }
        clock.advance(ms(100));
        assert_eq!(timers.now(), at(101));
        assert!(poll(sleep).is_pending());
        clock.advance(ms(199));
        assert!(poll(sleep).is_ready());
    });
}

/// `sleep_same_task`
#[test]
fn p08_a_task_may_move_the_clock_between_two_polls_of_its_sleep() {
    move_the_clock_in_a_poll(true);
}

/// `sleep_same_task_no_poll`
#[test]
fn p09_a_task_may_move_the_clock_before_the_first_poll_of_its_sleep() {
    move_the_clock_in_a_poll(false);
}

/// `interval`
#[test]
fn p10_an_interval_ticks_as_its_clock_is_moved() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.interval_at(at(0), ms(300)));
    let steps: [(u64, &[u64]); 5] = [
        (0, &[0]),
        (100, &[]),
        (200, &[300]),
        (400, &[600]),
        (500, &[900, 1_200]),
    ];
    for (step, ticks) in steps {
        let before = timers.now();
        clock.advance(ms(step));
        assert_eq!(timers.now().since(before), ms(step));
        for &tick in ticks {
            let polled = task.enter(|beat, context| beat.poll_tick(context));
            assert_eq!(polled, Poll::Ready(at(tick)));
        }
        assert!(
            task.enter(|beat, context| beat.poll_tick(context))
                .is_pending()
        );
    }
}

/// Asserts that the clock moves by exactly these numbers of microseconds.
fn moves_exactly(micros: [u64; 2]) {
    let (timers, clock) = paused();
    for step in micros.map(Duration::from_micros) {
        let before = timers.now();
        clock.advance(step);
        assert_eq!(timers.now().since(before), step);
    }
}

/// `test_time_advance_sub_ms`
#[test]
fn p11_a_clock_may_be_moved_by_less_than_a_millisecond() {
    moves_exactly([51_592, 1]);
}

/// `test_time_advance_3ms_and_change`
#[test]
fn p12_a_clock_may_be_moved_by_odd_steps() {
    moves_exactly([3_141_592, 3_123_456]);
}

/// `regression_3710_with_submillis_advance`
#[test]
fn p13_an_odd_step_does_not_end_a_sleep_of_a_minute() {
    let (timers, clock) = paused();
    clock.advance(ms(1));
    let mut task = ByHand::new(timers.sleep_until(at(60_000)));
    assert!(task.poll().is_pending());
    clock.advance(Duration::from_micros(51_592));
    assert_eq!(timers.now(), Time::from_micros(52_592));
    assert!(task.poll().is_pending());
}

/// `exact_1ms_advance`
#[test]
fn p14_a_clock_may_be_moved_by_a_millisecond_at_a_time() {
    moves_exactly([1_000, 1_000]);
}

/// `advance_once_with_timer`
#[test]
fn p15_a_step_across_a_deadline_wakes_its_sleep() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep(ms(1)));
    assert!(task.poll().is_pending());
    clock.advance(Duration::from_micros(250));
    assert!(task.poll().is_pending());
    clock.advance(Duration::from_micros(1_500));
    assert!(task.is_woken());
    assert!(task.poll().is_ready());
}

/// `advance_multi_with_timer`
#[test]
fn p16_steps_that_add_up_to_a_deadline_wake_its_sleep_at_the_last() {
    let (timers, clock) = paused();
    let mut task = ByHand::new(timers.sleep(ms(1)));
    for _ in 0..4 {
        assert!(task.poll().is_pending());
        assert!(!task.is_woken());
        clock.advance(Duration::from_micros(250));
    }
    assert!(task.is_woken());
    assert!(task.poll().is_ready());
}

/// `paused_time_join_unix_datagram_and_sleep`
#[cfg(unix)]
#[tokio::test]
async fn p17_a_datagram_arrives_while_virtual_time_stands_still() {
    let (timers, clock) = paused();
    let (one, other) = tokio::net::UnixDatagram::pair().unwrap();
    tokio::join!(
        async {
            one.send(&[1]).await.unwrap();
            timers.sleep(ms(100)).await;
            assert_eq!(timers.now(), at(100));
        },
        async {
            other.recv(&mut [0]).await.unwrap();
            assert_eq!(timers.now(), at(0));
            clock.advance(ms(100));
        },
    );
}

/// `paused_time_spawn_unix_datagram_and_sleep`
#[cfg(unix)]
#[tokio::test]
async fn p18_a_spawned_task_receives_while_virtual_time_stands_still() {
    let (timers, clock) = paused();
    let (one, other) = tokio::net::UnixDatagram::pair().unwrap();
    one.send(&[1]).await.unwrap();
    let receives = tokio::spawn({
        let timers = timers.clone();
        async move {
            other.recv(&mut [0]).await.unwrap();
            assert_eq!(timers.now(), at(0));
            clock.advance(ms(100));
        }
    });
    timers.sleep(ms(100)).await;
    receives.await.unwrap();
    assert_eq!(timers.now(), at(100));
}

/// `test_start_paused`
#[test]
fn p19_virtual_time_stands_still_while_real_time_passes() {
    let (timers, _clock) = paused();
    let begin = timers.now();
    for _ in 0..5 {
        std::thread::sleep(ms(1));
        assert_eq!(timers.now(), begin);
    }
}
