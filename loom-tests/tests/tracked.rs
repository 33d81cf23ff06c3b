//! A virtual clock that waits until tracked futures are idle.

#![cfg(loom)]

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, Waker};
use std::time::Duration;

use loom::sync::{Arc, Mutex};
use loom::thread;
use tickwheel::Time;
use tickwheel_loom_tests::{Bell, tick, timers_model};

const TICK: Duration = Duration::from_millis(1);

/// A place through which a task waits for another.
#[derive(Clone)]
struct Gate(Arc<Mutex<(bool, Option<Waker>)>>);

impl Gate {
    fn new() -> Gate {
        Gate(Arc::new(Mutex::new((false, None))))
    }

    fn open(&self) {
        let mut gate = self.0.lock().unwrap();
        gate.0 = true;
        let waker = gate.1.take();
        drop(gate);
        waker.into_iter().for_each(Waker::wake);
    }

    async fn pass(self) {
        poll_fn(|cx| {
            let mut gate = self.0.lock().unwrap();
            match gate.0 {
                true => Poll::Ready(()),
                false => {
                    gate.1 = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
    }
}

/// Time does not move between a wake-up during a poll and the poll that follows.
#[test]
fn a_wake_up_during_a_poll() {
    timers_model(|timers, clock| {
        let mut polls = 0;
        let tracked = clock.track(poll_fn(move |cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            match polls {
                1 => Poll::Pending,
                _ => Poll::Ready(timers.now()),
            }
        }));
        let executor = thread::spawn(move || Bell::default().block_on(tracked));
        clock.run_until(tick(1));
        assert_eq!(executor.join().unwrap(), Time::START);
    });
}

/// Time does not move between a wake-up by another task and the poll that follows.
#[test]
fn a_wake_up_by_a_task_of_another_thread() {
    timers_model(|timers, clock| {
        let gate = Gate::new();
        let (open, bell) = (gate.clone(), Bell::default());
        let mut passes = clock.track(async move {
            gate.pass().await;
            timers.now()
        });
        assert!(bell.poll(Pin::new(&mut passes)).is_pending());
        let opens = clock.track(async move { open.open() });
        let executors = (
            thread::spawn(move || bell.block_on(passes)),
            thread::spawn(move || Bell::default().block_on(opens)),
        );
        clock.run_until(tick(1));
        assert_eq!(executors.0.join().unwrap(), Time::START);
        executors.1.join().unwrap();
    });
}

/// A task that sleeps twice is awake at each of its two times.
#[test]
fn a_task_that_sleeps_twice() {
    timers_model(|timers, clock| {
        let tracked = clock.track(async move {
            timers.sleep(TICK).await;
            let first = timers.now();
            timers.sleep(TICK).await;
            [first, timers.now()]
        });
        let executor = thread::spawn(move || Bell::default().block_on(tracked));
        clock.run_until(tick(3));
        assert_eq!(executor.join().unwrap(), [1, 2].map(tick));
    });
}

/// The clock does not wait for a task that is dropped while another thread wakes it.
#[test]
fn a_wake_up_beside_a_drop() {
    timers_model(|_timers, clock| {
        let gate = Gate::new();
        let open = gate.clone();
        let mut tracked = clock.track(gate.pass());
        assert!(Bell::default().poll(Pin::new(&mut tracked)).is_pending());
        let dropper = thread::spawn(move || drop(tracked));
        let opener = thread::spawn(move || open.open());
        clock.run_until(tick(1));
        dropper.join().unwrap();
        opener.join().unwrap();
        clock.run_until(tick(2));
    });
}
