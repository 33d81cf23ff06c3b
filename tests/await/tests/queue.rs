//! Queues and reports are awaited on tokio's runtimes, and are streams.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use tickwheel::time::Timers;
use tickwheel::{CloseReason, Engine, Queue, RecvError, Time, Timer};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

const MS: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(60);
const TIMERS: u32 = 3_000;

type Taken = mpsc::UnboundedSender<u32>;

/// Takes what is due until the shutdown.
async fn take(mut queue: Queue<u32>, taken: Taken) {
    while let Ok(expired) = queue.recv_async().await {
        taken.send(expired.into_payload()).unwrap();
    }
}

/// Does the same, but drops its future whenever another taker has taken something.
async fn take_distracted(mut queue: Queue<u32>, taken: Taken, distraction: Arc<Notify>) {
    loop {
        tokio::select! {
            biased;
            () = distraction.notified() => {}
            received = queue.recv_async() => match received {
                Ok(expired) => taken.send(expired.into_payload()).unwrap(),
                Err(RecvError::ShutDown) => break,
                Err(RecvError::Empty) => unreachable!("a future waits"),
            },
        }
    }
}

async fn take_streamed(queue: Queue<u32>, taken: Taken) {
    let mut due = queue.into_stream();
    while let Some(expired) = due.next().await {
        taken.send(expired.into_payload()).unwrap();
    }
}

fn take_blocking(queue: Queue<u32>, taken: Taken, distraction: &Notify) {
    while let Ok(expired) = queue.recv() {
        taken.send(expired.into_payload()).unwrap();
        distraction.notify_one();
    }
}

/// Tasks and blocking workers take every timer once, whatever is dropped meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn tasks_and_threads_share_a_queue() {
    share(Engine::builder().start().unwrap()).await;
}

/// The same where at most two firings may be out.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn tasks_and_threads_share_a_bounded_queue() {
    share(Engine::builder().queue_bound(2).start().unwrap()).await;
}

async fn share(engine: Engine<u32>) {
    let (taken, mut received) = mpsc::unbounded_channel();
    let distraction = Arc::new(Notify::new());
    let mut takers: Vec<JoinHandle<()>> = Vec::new();
    for _ in 0..2 {
        let distraction = Arc::clone(&distraction);
        takers.push(tokio::spawn(take(engine.queue(0), taken.clone())));
        takers.push(tokio::spawn(take_streamed(engine.queue(0), taken.clone())));
        let distracted = take_distracted(engine.queue(0), taken.clone(), distraction.clone());
        takers.push(tokio::spawn(distracted));
        let (queue, taken) = (engine.queue(0), taken.clone());
        takers.push(tokio::task::spawn_blocking(move || {
            take_blocking(queue, taken, &distraction);
        }));
    }
    for n in 0..TIMERS {
        let delay = Duration::from_micros(u64::from(n) * 100);
        engine.schedule(Timer::after(delay, n)).unwrap();
    }
    let mut seen = vec![false; TIMERS as usize];
    for _ in 0..TIMERS {
        let next = tokio::time::timeout(PATIENCE, received.recv());
        let n = next.await.expect("a timer was lost").unwrap();
        assert!(!std::mem::replace(&mut seen[n as usize], true), "{n} twice");
    }
    assert!(engine.shutdown().is_empty());
    for taker in takers {
        let ended = tokio::time::timeout(PATIENCE, taker).await;
        ended.expect("a taker did not learn of the end").unwrap();
    }
    assert_eq!(engine.ledger().completed, u64::from(TIMERS));
}

/// A stream that was woken and is not polled keeps no timer from others.
#[tokio::test]
async fn a_stream_that_is_no_longer_polled_keeps_nothing() {
    let (engine, clock) = Engine::builder().start_virtual().unwrap();
    let mut kept = engine.queue(0).into_stream();
    assert!(kept.next().now_or_never().is_none());
    let other = tokio::spawn(take_one(engine.queue(0)));
    tokio::task::yield_now().await;
    engine.schedule(Timer::after(MS, 7)).unwrap();
    clock.advance(MS);
    let taken = tokio::time::timeout(PATIENCE, other).await;
    assert_eq!(taken.expect("the timer is lost").unwrap(), 7);
    assert_eq!(kept.get_ref().len(), 0);
}

async fn take_one(mut queue: Queue<u32>) -> u32 {
    queue.recv_async().await.unwrap().into_payload()
}

#[tokio::test]
async fn reports_are_a_stream_that_ends_with_the_engine() {
    let (engine, clock) = Engine::builder().start_virtual().unwrap();
    let reports = engine.reports().into_stream();
    let reasons = reports.map(|closed| closed.reason).collect::<Vec<_>>();
    let reasons = tokio::spawn(reasons);
    tokio::task::yield_now().await;
    let cancelled = engine.schedule(Timer::after(MS, 1).reported()).unwrap();
    assert!(engine.cancel(cancelled).is_cancelled());
    engine.schedule(Timer::after(MS, 2).reported()).unwrap();
    clock.advance(MS);
    drop(engine.queue(0).recv_async().await);
    engine.schedule(Timer::after(MS, 3).reported()).unwrap();
    engine.shutdown();
    let expected = [
        CloseReason::Cancelled,
        CloseReason::Completed,
        CloseReason::ShutDown,
    ];
    assert_eq!(reasons.await.unwrap(), expected);
}

#[tokio::test]
async fn an_interval_is_a_stream_that_ends_with_its_timers() {
    let (timers, clock) = Timers::builder().start_virtual().unwrap();
    let beats = timers.interval(MS).into_owned();
    let ticks = tokio::spawn(beats.collect::<Vec<_>>());
    for _ in 0..3 {
        tokio::task::yield_now().await;
        clock.advance(MS);
    }
    tokio::task::yield_now().await;
    timers.shutdown();
    assert_eq!(ticks.await.unwrap(), [0, 1, 2, 3].map(Time::from_millis));
}
