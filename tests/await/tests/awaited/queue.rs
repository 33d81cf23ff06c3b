//! Queues and reports are awaited on tokio's runtimes, and are streams.

use super::*;
use futures_util::{FutureExt, StreamExt};
use tickwheel::{CloseReason, Engine, Queue, RecvError, Timer};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

const TIMERS: u32 = 1_000;

type Taken = mpsc::UnboundedSender<u32>;

/// Takes what is due until the shutdown, but drops its future whenever another taker has
/// taken something.
async fn take_distracted(mut queue: Queue<u32>, taken: Taken, distraction: Arc<Notify>) {
    loop {
        tokio::select! {
            biased;
            () = distraction.notified() => {}
            received = queue.recv_async() => match received {
                Ok(expired) => taken.send(expired.into_payload()).unwrap(),
                Err(error) => return assert_eq!(error, RecvError::ShutDown),
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

/// Tasks and blocking workers take every timer once, whatever is dropped meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn tasks_and_threads_share_a_queue() {
    let engine = Engine::builder().start().unwrap();
    let (taken, mut received) = mpsc::unbounded_channel();
    let distraction = Arc::new(Notify::new());
    let mut takers: Vec<JoinHandle<()>> = Vec::new();
    for _ in 0..2 {
        let (queue, tell) = (|| engine.queue(0), || taken.clone());
        takers.push(tokio::spawn(take_streamed(queue(), tell())));
        let distracted = take_distracted(queue(), tell(), Arc::clone(&distraction));
        takers.push(tokio::spawn(distracted));
        let (queue, tell, distraction) = (queue(), tell(), Arc::clone(&distraction));
        takers.push(tokio::task::spawn_blocking(move || {
            for expired in queue {
                tell.send(expired.into_payload()).unwrap();
                distraction.notify_one();
            }
        }));
    }
    for n in 0..TIMERS {
        let timer = Timer::after(n * ms(1) / 10, n);
        engine.schedule(timer).unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..TIMERS {
        let next = tokio::time::timeout(PATIENCE, received.recv());
        seen.extend(next.await.expect("a timer was lost"));
    }
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..TIMERS));
    assert!(engine.shutdown().is_empty());
    for taker in takers {
        let ended = tokio::time::timeout(PATIENCE, taker).await;
        ended.expect("a taker did not learn of the end").unwrap();
    }
}

/// A stream that was woken and is not polled keeps no timer from others.
#[tokio::test]
async fn a_stream_that_is_no_longer_polled_keeps_nothing() {
    let (engine, clock) = Engine::builder().start_virtual().unwrap();
    let mut kept = engine.queue(0).into_stream();
    assert!(kept.next().now_or_never().is_none());
    let mut queue = engine.queue(0);
    let take_one = async move { queue.recv_async().await.unwrap().into_payload() };
    let other = tokio::spawn(take_one);
    yield_now().await;
    engine.schedule(Timer::after(ms(1), 7)).unwrap();
    clock.advance(ms(1));
    let taken = tokio::time::timeout(PATIENCE, other).await;
    assert_eq!(taken.expect("the timer is lost").unwrap(), 7);
    assert!(engine.queue(0).is_empty());
}

#[tokio::test]
async fn reports_are_a_stream_that_ends_with_the_engine() {
    let (engine, clock) = Engine::builder().start_virtual().unwrap();
    let reports = engine.reports().into_stream();
    let reasons = tokio::spawn(reports.map(|closed| closed.reason).collect::<Vec<_>>());
    yield_now().await;
    let schedule = || engine.schedule(Timer::after(ms(1), ()).reported()).unwrap();
    assert!(engine.cancel(schedule()).is_cancelled());
    schedule();
    clock.advance(ms(1));
    drop(engine.queue(0).recv_async().await);
    schedule();
    engine.shutdown();
    use CloseReason::{Cancelled, Completed, ShutDown};
    assert_eq!(reasons.await.unwrap(), [Cancelled, Completed, ShutDown]);
}

#[test]
fn an_interval_is_a_stream_that_ends_with_its_timers() {
    let (timers, clock) = paused();
    let mut beats = timers.interval(ms(1)).into_owned();
    for tick in 0..4 {
        clock.advance_to(at(tick));
        assert_eq!(beats.next().now_or_never(), Some(Some(at(tick))));
        assert_eq!(beats.next().now_or_never(), None);
    }
    timers.shutdown();
    assert_eq!(beats.next().now_or_never(), Some(None));
}
