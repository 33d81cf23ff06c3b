//! A virtual clock that waits until tracked futures are idle.

#![cfg(loom)]

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc as StdArc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use loom::sync::{Arc, Mutex, Notify};
use loom::thread;
use tickwheel::Time;
use tickwheel::time::Tracked;
use tickwheel_loom_tests::{tick, timers_model};

const TICK: Duration = Duration::from_millis(1);

/// An executor's waker, for which a thread waits.
#[derive(Clone)]
struct Bell(StdArc<Ringing>);

struct Ringing(Notify);

impl Wake for Ringing {
    fn wake(self: StdArc<Ringing>) {
        self.0.notify();
    }
}

impl Bell {
    fn new() -> Bell {
        Bell(StdArc::new(Ringing(Notify::new())))
    }

    fn poll<F: Future>(&self, future: &mut Tracked<F>) -> Poll<F::Output> {
        let waker = Waker::from(StdArc::clone(&self.0));
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }

    fn block_on<F: Future>(&self, mut future: Tracked<F>) -> F::Output {
        loop {
            match self.poll(&mut future) {
                Poll::Ready(output) => return output,
                Poll::Pending => self.0.0.wait(),
            }
        }
    }
}

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
        let executor = thread::spawn(move || Bell::new().block_on(tracked));
        clock.run_until(tick(1));
        assert_eq!(executor.join().unwrap(), Time::START);
    });
}

/// Time does not move between a wake-up by another task and the poll that follows.
#[test]
fn a_wake_up_by_a_task_of_another_thread() {
    timers_model(|timers, clock| {
        let gate = Gate::new();
        let (open, bell) = (gate.clone(), Bell::new());
        let mut passes = clock.track(async move {
            gate.pass().await;
            timers.now()
        });
        assert!(bell.poll(&mut passes).is_pending());
        let opens = clock.track(async move { open.open() });
        let executors = (
            thread::spawn(move || bell.block_on(passes)),
            thread::spawn(move || Bell::new().block_on(opens)),
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
        let executor = thread::spawn(move || Bell::new().block_on(tracked));
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
        assert!(Bell::new().poll(&mut tracked).is_pending());
        let dropper = thread::spawn(move || drop(tracked));
        let opener = thread::spawn(move || open.open());
        clock.run_until(tick(1));
        dropper.join().unwrap();
        opener.join().unwrap();
        clock.run_until(tick(2));
    });
}
