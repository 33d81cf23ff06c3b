//! Promises 10, 11 and 12 to tasks that await a queue or the reports. No test has a
//! runtime: each polls by itself and counts the calls of its wakers.

use super::*;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use tickwheel::{CloseReason, Closed, Queue, RecvError, Timer, WeakEngine};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Count>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    /// The number of calls since it was last read.
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }

    fn poll<F: Future + Unpin>(self: &Arc<Count>, future: &mut F) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(self));
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }
}

fn count() -> Arc<Count> {
    Arc::default()
}

fn payload<T>(polled: Poll<Result<Expired<T>, RecvError>>) -> T {
    match polled {
        Poll::Ready(Ok(expired)) => expired.into_payload(),
        Poll::Ready(Err(error)) => panic!("{error}"),
        Poll::Pending => panic!("not ready"),
    }
}

fn queues<const N: usize>(engine: &Engine<u32>) -> [Queue<u32>; N] {
    [(); N].map(|()| engine.queue(0))
}

#[test]
fn promise_11_awaiting_tasks_share_a_queue() {
    let (engine, clock) = virtual_engine();
    let [mut first, mut second] = queues(&engine);
    let (one, other) = (count(), count());
    let mut first = first.recv_async();
    let mut second = second.recv_async();
    assert!(one.poll(&mut first).is_pending() && other.poll(&mut second).is_pending());
    for n in 1..=2 {
        engine.schedule(Timer::after(n * MS, n)).unwrap();
    }
    clock.advance(MS);
    assert_eq!((one.take(), other.take()), (1, 0));
    assert_eq!(payload(one.poll(&mut first)), 1);
    clock.advance(MS);
    assert_eq!((one.take(), other.take()), (0, 1));
    assert_eq!(payload(other.poll(&mut second)), 2);
}

#[test]
fn promise_11_a_burst_wakes_task_after_task() {
    let (engine, clock) = virtual_engine();
    let [mut first, mut second] = queues(&engine);
    let (one, other) = (count(), count());
    let mut first = first.recv_async();
    let mut second = second.recv_async();
    assert!(one.poll(&mut first).is_pending() && other.poll(&mut second).is_pending());
    for n in 1..=2 {
        engine.schedule(Timer::after(MS, n)).unwrap();
    }
    clock.advance(MS);
    assert_eq!((one.take(), other.take()), (1, 0));
    assert_eq!(payload(one.poll(&mut first)), 1);
    assert_eq!((one.take(), other.take()), (0, 1));
    assert_eq!(payload(other.poll(&mut second)), 2);
}

#[test]
fn promise_11_a_future_that_is_dropped_after_its_call_loses_nothing() {
    let (engine, clock) = virtual_engine();
    let [mut first, mut second] = queues(&engine);
    let (one, other) = (count(), count());
    let mut dropped = first.recv_async();
    let mut second = second.recv_async();
    assert!(one.poll(&mut dropped).is_pending() && other.poll(&mut second).is_pending());
    engine.schedule(Timer::after(MS, 7)).unwrap();
    clock.advance(MS);
    assert_eq!((one.take(), other.take()), (1, 0));
    drop(dropped);
    assert_eq!(other.take(), 1);
    assert_eq!(payload(other.poll(&mut second)), 7);
}

#[test]
fn promise_11_a_waiting_task_holds_up_no_bounded_queue() {
    let bounded = Engine::builder().shards(1).queue_bound(1);
    let (engine, clock) = bounded.start_virtual().unwrap();
    let [mut first, mut second, third] = queues(&engine);
    let (one, other) = (count(), count());
    let mut first = first.recv_async();
    let mut second = second.recv_async();
    assert!(one.poll(&mut first).is_pending() && other.poll(&mut second).is_pending());
    for n in 1..=3 {
        engine.schedule(Timer::after(MS, n)).unwrap();
    }
    clock.advance(MS);
    assert_eq!((one.take(), other.take()), (1, 0));

    // A third takes the permit, which is the only one: the bell calls for the second.
    let held = third.try_recv().unwrap();
    assert!(one.poll(&mut first).is_pending());
    assert_eq!((one.take(), other.take()), (0, 1));
    assert!(other.poll(&mut second).is_pending());
    assert_eq!(held.into_payload(), 1);
    assert_eq!((one.take(), other.take()), (1, 0), "the permit is back");
    let Poll::Ready(Ok(held)) = one.poll(&mut first) else {
        panic!("not ready");
    };
    drop(held);
    assert_eq!(other.take(), 1);
    assert_eq!(payload(other.poll(&mut second)), 3);
}

#[test]
fn promise_11_a_future_that_is_dropped_hands_its_permit_on() {
    let bounded = Engine::builder().shards(1).queue_bound(1);
    let (engine, clock) = bounded.start_virtual().unwrap();
    let [mut first, mut second, third] = queues(&engine);
    let (one, other) = (count(), count());
    for n in 1..=2 {
        engine.schedule(Timer::after(MS, n)).unwrap();
    }
    clock.advance(MS);
    let held = third.recv().unwrap();
    let mut dropped = first.recv_async();
    let mut second = second.recv_async();
    assert!(one.poll(&mut dropped).is_pending() && other.poll(&mut second).is_pending());
    drop(held);
    assert_eq!((one.take(), other.take()), (1, 0));
    drop(dropped);
    assert_eq!(other.take(), 1);
    assert_eq!(payload(other.poll(&mut second)), 2);
}

#[test]
fn promise_12_a_shutdown_wakes_every_awaiting_task() {
    for bound in [None, Some(1)] {
        let mut builder = Engine::<u32>::builder();
        if let Some(bound) = bound {
            builder = builder.queue_bound(bound);
        }
        let (engine, _clock) = builder.start_virtual().unwrap();
        let mut handles: [Queue<u32>; 3] = queues(&engine);
        let mut reports = engine.reports();
        let counts = [(); 4].map(|()| count());
        let mut futures = handles.each_mut().map(Queue::recv_async);
        let mut report = reports.recv_async();
        for (future, count) in futures.iter_mut().zip(&counts) {
            assert!(count.poll(future).is_pending());
        }
        assert!(counts[3].poll(&mut report).is_pending());
        engine.shutdown();
        for (future, count) in futures.iter_mut().zip(&counts) {
            assert!(count.take() > 0);
            let polled = count.poll(future);
            assert!(matches!(polled, Poll::Ready(Err(RecvError::ShutDown))));
        }
        assert!(counts[3].take() > 0);
        let polled = counts[3].poll(&mut report);
        assert!(matches!(polled, Poll::Ready(Err(RecvError::ShutDown))));
    }
}

#[test]
fn promise_08_reports_can_be_awaited() {
    let (engine, _clock) = virtual_engine();
    let (mut first, mut second) = (engine.reports(), engine.reports());
    let (one, other) = (count(), count());
    let mut dropped = first.recv_async();
    let mut second = second.recv_async();
    assert!(one.poll(&mut dropped).is_pending() && other.poll(&mut second).is_pending());
    let id = engine.schedule(Timer::after(SECOND, 1).reported()).unwrap();
    assert!(engine.cancel(id).is_cancelled());
    assert_eq!((one.take(), other.take()), (1, 0));
    drop(dropped);
    assert_eq!(other.take(), 1);
    let Poll::Ready(Ok(Closed { id: of, reason, .. })) = other.poll(&mut second) else {
        panic!("no report");
    };
    assert_eq!((of, reason), (id, CloseReason::Cancelled));
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Panics>) {
        panic!("on purpose");
    }
}

#[test]
fn promise_10_a_waker_that_panics_does_not_end_the_ticker() {
    let engine = Engine::builder().start().unwrap();
    let mut queue = engine.queue(0);
    for n in 0..3_u32 {
        let mut future = queue.recv_async();
        let waker = Waker::from(Arc::new(Panics));
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut future).poll(&mut context).is_pending());
        engine.schedule(Timer::after(MS, n)).unwrap();
        support::wait_until(|| engine.snapshot().panics == u64::from(n) + 1);
        assert_eq!(payload(count().poll(&mut future)), n);
    }
}

#[test]
fn promise_15_run_until_waits_for_no_task() {
    let (engine, clock) = virtual_engine();
    let [mut queue, worker] = queues(&engine);
    // It was a worker before, and is none while it is awaited.
    engine.schedule(Timer::after(MS, 0)).unwrap();
    clock.advance(MS);
    drop(queue.recv());
    let counter = count();
    let mut future = queue.recv_async();
    assert!(counter.poll(&mut future).is_pending());
    engine.schedule(Timer::after(MS, 1)).unwrap();
    clock.run_until(clock.now() + SECOND);
    assert_eq!(engine.queue(0).len(), 1);
    assert_eq!(payload(counter.poll(&mut future)), 1);
    drop(future);

    // A worker takes what a task is not polled for.
    let mut future = queue.recv_async();
    assert!(counter.poll(&mut future).is_pending());
    clock.expect_workers(0, 2);
    let worker = thread::spawn(move || worker.recv().map(Expired::into_payload));
    engine.schedule(Timer::after(MS, 2)).unwrap();
    clock.run_until(clock.now() + SECOND);
    assert_eq!(worker.join().unwrap(), Ok(2));
    assert!(counter.poll(&mut future).is_pending());
}

#[test]
fn promise_12_what_is_awaited_may_cross_threads() {
    fn assert_send<T: Send + Unpin>(_: &T) {}
    let (engine, _clock) = virtual_engine::<std::cell::Cell<u32>>();
    let (mut queue, mut reports) = (engine.queue(0), engine.reports());
    assert_send(&queue.recv_async());
    assert_send(&reports.recv_async());
}

/// A waker that calls the engine, as the task would on a runtime that polls in place.
struct Caller {
    engine: WeakEngine<u32>,
    calls: Count,
}

impl Wake for Caller {
    fn wake(self: Arc<Caller>) {
        let engine = self.engine.upgrade().unwrap();
        if let Ok(id) = engine.schedule(Timer::after(SECOND, 0)) {
            assert!(engine.cancel(id).is_cancelled());
        }
        engine.cancel_by_name("crew", Some(0));
        let _ = engine.schedule(Timer::after(Duration::ZERO, 0).queue(1));
        drop(engine.queue(0).try_recv());
        if engine.is_shut_down() {
            engine.shutdown();
        }
        self.calls.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn promise_10_a_waker_is_called_under_no_lock() {
    let (engine, clock) = virtual_engine();
    let caller = Arc::new(Caller {
        engine: engine.downgrade(),
        calls: Count::default(),
    });
    let waker = Waker::from(Arc::clone(&caller));
    let mut context = Context::from_waker(&waker);
    let mut queue = engine.queue(0);
    let mut future = queue.recv_async();
    assert!(Pin::new(&mut future).poll(&mut context).is_pending());
    engine.schedule(Timer::after(MS, 1)).unwrap();
    clock.advance(MS);
    assert_eq!(caller.calls.take(), 1, "expired");
    assert!(
        Pin::new(&mut future).poll(&mut context).is_pending(),
        "taken"
    );
    let mut reports = engine.reports();
    let mut report = reports.recv_async();
    assert!(Pin::new(&mut report).poll(&mut context).is_pending());
    let crew = || Timer::after(SECOND, 2).named("crew").reported();
    engine.schedule(crew()).unwrap();
    assert_eq!(engine.cancel_by_name("crew", None).payloads, [2]);
    assert_eq!(caller.calls.take(), 1, "cancelled by name");
    engine.shutdown();
    assert_eq!(caller.calls.take(), 1, "shut down");
    assert!(Pin::new(&mut future).poll(&mut context).is_ready());
    assert_eq!(engine.snapshot().panics, 0);
}
