//! Promises 8, 10, 11 and 12 to tasks that await a queue or the reports. No test has a
//! runtime: each polls by itself and counts the calls of its wakers.

use super::*;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Count>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Something that is polled, and the calls of its waker.
struct Polled<F>(F, Arc<Count>);

impl<F: Future + Unpin> Polled<F> {
    /// Polls for the first time, in vain.
    fn begin(future: F) -> Polled<F> {
        let mut polled = Polled(future, Arc::default());
        assert!(polled.poll().is_pending());
        polled
    }

    fn poll(&mut self) -> Poll<F::Output> {
        poll(&mut self.0, &Waker::from(Arc::clone(&self.1)))
    }

    /// The number of calls since it was last read.
    fn calls(&self) -> usize {
        self.1.0.swap(0, Ordering::Relaxed)
    }
}

impl<T, F: Future<Output = Result<Expired<T>, RecvError>> + Unpin> Polled<F> {
    fn payload(&mut self) -> T {
        match self.poll() {
            Poll::Ready(received) => received.unwrap().into_payload(),
            Poll::Pending => panic!("not ready"),
        }
    }
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

fn queues<const N: usize>(engine: &Engine<u32>) -> [Queue<u32>; N] {
    [(); N].map(|()| engine.queue(0))
}

#[test]
fn promise_11_a_future_that_is_dropped_after_its_call_loses_nothing() {
    let (engine, clock) = virtual_engine();
    let mut both = queues(&engine);
    let [dropped, mut other] = both.each_mut().map(|it| Polled::begin(it.recv_async()));
    engine.after(MS, 7);
    clock.advance(MS);
    assert_eq!((dropped.calls(), other.calls()), (1, 0));
    drop(dropped);
    assert_eq!((other.calls(), other.payload()), (1, 7));
}

#[test]
fn promise_12_a_shutdown_wakes_every_awaiting_task() {
    let (engine, _clock) = virtual_engine();
    let mut handles: [Queue<u32>; 3] = queues(&engine);
    let mut reports = engine.reports();
    let futures = handles.each_mut().map(|it| Polled::begin(it.recv_async()));
    let mut report = Polled::begin(reports.recv_async());
    engine.shutdown();
    for mut future in futures {
        assert!(future.calls() > 0);
        assert!(matches!(future.poll(), Poll::Ready(Err(RecvError::ShutDown))));
    }
    assert!(report.calls() > 0);
    assert!(matches!(report.poll(), Poll::Ready(Err(RecvError::ShutDown))));
}

#[test]
fn promise_08_reports_can_be_awaited() {
    let (engine, _clock) = virtual_engine();
    let (mut first, mut second) = (engine.reports(), engine.reports());
    let dropped = Polled::begin(first.recv_async());
    let mut other = Polled::begin(second.recv_async());
    let id = engine.put(Timer::after(SECOND, 1).reported());
    assert!(engine.cancel(id).is_cancelled());
    assert_eq!((dropped.calls(), other.calls()), (1, 0));
    drop(dropped);
    assert_eq!(other.calls(), 1);
    let Poll::Ready(Ok(report)) = other.poll() else {
        panic!("no report");
    };
    assert_eq!((report.id, report.reason), (id, CloseReason::Cancelled));
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
        assert!(poll(&mut future, &Waker::from(Arc::new(Panics))).is_pending());
        engine.after(MS, n);
        wait_until(|| engine.snapshot().panics == u64::from(n) + 1);
        assert_eq!(Polled(future, Arc::default()).payload(), n);
    }
}

#[test]
fn promise_15_run_until_waits_for_no_task() {
    let (engine, clock) = virtual_engine();
    let [mut queue, worker] = queues(&engine);
    // It was a worker before, and is none while it is awaited.
    engine.after(MS, 0);
    clock.advance(MS);
    drop(queue.recv());
    let mut future = Polled::begin(queue.recv_async());
    engine.after(MS, 1);
    clock.run_until(clock.now() + SECOND);
    assert_eq!(engine.queue(0).len(), 1);
    assert_eq!(future.payload(), 1);
    drop(future);

    // A worker takes what a task is not polled for.
    let mut future = Polled::begin(queue.recv_async());
    engine.queue(0).expect_workers(2);
    let worker = thread::spawn(move || worker.recv().map(Expired::into_payload));
    engine.after(MS, 2);
    clock.run_until(clock.now() + SECOND);
    assert_eq!(worker.join().unwrap(), Ok(2));
    assert!(future.poll().is_pending());
}

/// A waker that calls the engine, as the task would on a runtime that polls in place.
struct Caller {
    engine: WeakEngine<Engine<u32>>,
    calls: AtomicUsize,
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
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn promise_10_a_waker_is_called_under_no_lock() {
    let (engine, clock) = virtual_engine();
    let (weak, calls) = (engine.downgrade(), AtomicUsize::new(0));
    let caller = Arc::new(Caller { engine: weak, calls });
    let waker = Waker::from(Arc::clone(&caller));
    let called = || caller.calls.swap(0, Ordering::Relaxed);
    let mut queue = engine.queue(0);
    let mut future = queue.recv_async();
    assert!(poll(&mut future, &waker).is_pending());
    engine.after(MS, 1);
    clock.advance(MS);
    assert_eq!(called(), 1, "expired");
    assert!(poll(&mut future, &waker).is_pending(), "taken");
    let mut reports = engine.reports();
    let mut report = reports.recv_async();
    assert!(poll(&mut report, &waker).is_pending());
    engine.put(Timer::after(SECOND, 2).named("crew").reported());
    assert_eq!(engine.cancel_by_name("crew", None).len(), 1);
    assert_eq!(called(), 1, "cancelled by name");
    engine.shutdown();
    assert_eq!(called(), 1, "shut down");
    assert!(poll(&mut future, &waker).is_ready());
    assert_eq!(engine.snapshot().panics, 0);
}
