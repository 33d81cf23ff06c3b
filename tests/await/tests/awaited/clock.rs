//! tokio's `time_pause.rs`. A paused clock is a virtual one here: of timers of one's own, not
//! of a runtime, so that there may be many.

use super::*;

/// `test_time_advance_sub_ms`, `test_time_advance_3ms_and_change`, `exact_1ms_advance`,
/// `advance_once_with_timer`, `advance_multi_with_timer`
#[test]
fn p16_steps_of_any_length_add_up_to_a_deadline_and_wake_its_sleep_at_the_last() {
    for steps in [
        &[1_000][..],
        &[250; 4],
        &[999, 1],
        &[250, 1_500],
        &[51_592, 1],
    ] {
        let (timers, clock) = paused();
        let mut task = ByHand::new(timers.sleep(ms(1)));
        for &step in steps {
            let before = timers.now();
            if before < at(1) {
                assert!(!task.is_woken());
                assert!(task.poll().is_pending());
            }
            clock.advance(Duration::from_micros(step));
            assert_eq!(timers.now().since(before), Duration::from_micros(step));
        }
        assert!(task.is_woken());
        assert!(task.poll().is_ready());
    }
}

/// `sleep_same_task`, `sleep_same_task_no_poll`
#[test]
fn p08_a_task_may_move_the_clock_between_two_polls_of_its_sleep() {
    for polls_before in [true, false] {
        let (timers, clock) = paused();
        let mut task = ByHand::new(timers.sleep_until(at(300)));
        task.enter(|sleep, context| {
            if polls_before {
                assert!(Pin::new(&mut *sleep).poll(context).is_pending());
            }
            clock.advance(ms(100));
            assert!(Pin::new(&mut *sleep).poll(context).is_pending());
            clock.advance(ms(200));
            assert!(Pin::new(sleep).poll(context).is_ready());
        });
    }
}
