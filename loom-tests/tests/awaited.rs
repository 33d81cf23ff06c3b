//! Awaited timers are polled, reset and dropped while they come due.

#![cfg(loom)]

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread::{self, JoinHandle};
use std::future::{Future, Pending, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tickwheel::VirtualClock;
use tickwheel::time::{Sleep, Timeout, Timers};
use tickwheel_loom_tests::{assert_all_ended, tick, timers_model};

/// A task that counts its wake-ups.
#[derive(Default)]
struct Task(AtomicUsize);

impl Task {
    fn new() -> Arc<Task> {
        Arc::default()
    }

    fn poll<F: Future + Unpin>(self: &Arc<Task>, future: &mut F) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(self));
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }

    fn is_woken(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

impl Wake for Task {
    fn wake(self: Arc<Task>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Moves the clock from another thread.
fn pass_beside(clock: VirtualClock, to: u64) -> JoinHandle<VirtualClock> {
    thread::spawn(move || {
        clock.advance_to(tick(to));
        clock
    })
}

fn sleep_of(timers: &Timers, to: u64) -> Sleep<Timers> {
    timers.sleep_until(tick(to)).into_owned()
}

/// A poll from another task is ready, or that task is woken.
#[test]
fn another_task_polls_beside_the_expiry() {
    timers_model(|timers, clock| {
        let mut sleep = sleep_of(&timers, 1);
        let (first, second) = (Task::new(), Task::new());
        assert!(first.poll(&mut sleep).is_pending());
        let passing = pass_beside(clock, 1);
        let polled = second.poll(&mut sleep);
        passing.join().unwrap();
        assert!(polled.is_ready() || second.is_woken());
        assert!(second.poll(&mut sleep).is_ready());
        assert!(sleep.is_elapsed());
    });
}

/// A dropped sleep leaves neither a timer nor a waker behind.
#[test]
fn drop_beside_the_expiry() {
    timers_model(|timers, clock| {
        let mut sleep = sleep_of(&timers, 1);
        let task = Task::new();
        assert!(task.poll(&mut sleep).is_pending());
        let passing = pass_beside(clock, 1);
        drop(sleep);
        assert_eq!(timers.ledger().live, 0);
        passing.join().unwrap();
        assert_eq!(Arc::strong_count(&task), 1);
        assert_all_ended(timers.ledger());
    });
}

/// A sleep that was reset is not ready before its new deadline, and is woken then.
#[test]
fn reset_beside_the_expiry() {
    timers_model(|timers, clock| {
        let mut sleep = sleep_of(&timers, 1);
        let (before, after) = (Task::new(), Task::new());
        assert!(before.poll(&mut sleep).is_pending());
        let passing = pass_beside(clock, 1);
        sleep.reset_at(tick(3));
        assert!(after.poll(&mut sleep).is_pending());
        let clock = passing.join().unwrap();
        clock.advance_to(tick(2));
        assert!(!after.is_woken());
        clock.advance_to(tick(3));
        assert!(after.is_woken());
        assert!(after.poll(&mut sleep).is_ready());
    });
}

/// A wait that is polled beside a shutdown learns of it.
#[test]
fn poll_beside_a_shutdown() {
    timers_model(|timers, _clock| {
        let limit = Duration::from_millis(1);
        let mut wait: Timeout<Pending<()>, Timers> = timers.timeout(limit, pending()).into_owned();
        let task = Task::new();
        let ending = thread::spawn(move || timers.shutdown());
        let polled = task.poll(&mut wait);
        let woken = ending.join().unwrap();
        let ended = match polled {
            Poll::Ready(ended) => ended,
            Poll::Pending => {
                assert!(woken == 1 && task.is_woken());
                let Poll::Ready(ended) = task.poll(&mut wait) else {
                    panic!("the wait does not end");
                };
                ended
            }
        };
        assert!(ended.unwrap_err().is_shut_down());
    });
}

/// A shutdown beside a second poll does not look like the passing of the deadline.
#[test]
fn second_poll_beside_a_shutdown() {
    timers_model(|timers, _clock| {
        let mut sleep = sleep_of(&timers, 1);
        let task = Task::new();
        assert!(task.poll(&mut sleep).is_pending());
        let other = timers.clone();
        let ending = thread::spawn(move || other.shutdown());
        let _ = task.poll(&mut sleep);
        ending.join().unwrap();
        assert!(task.is_woken());
        assert!(task.poll(&mut sleep).is_ready());
        assert!(!sleep.is_elapsed());
    });
}

/// Of two sleeps that come due together, each wakes its own task, although the other is
/// dropped meanwhile.
#[test]
fn two_sleeps_of_one_tick() {
    timers_model(|timers, clock| {
        let (mut stays, mut goes) = (sleep_of(&timers, 1), sleep_of(&timers, 1));
        let (waits, leaves) = (Task::new(), Task::new());
        assert!(leaves.poll(&mut goes).is_pending());
        assert!(waits.poll(&mut stays).is_pending());
        let passing = pass_beside(clock, 1);
        drop(goes);
        passing.join().unwrap();
        assert!(waits.is_woken());
        assert!(waits.poll(&mut stays).is_ready());
        assert_all_ended(timers.ledger());
    });
}
