//! Calls and types that programs use, one by one.

use super::time::{self, Duration, Instant, MissedTickBehavior};
use super::time::{interval, interval_at, sleep, sleep_until, timeout, timeout_at};
use std::future::{Future, pending, ready};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::sync::oneshot;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3_600);

pub async fn sleeps() -> Vec<bool> {
    let begin = Instant::now();
    time::sleep(time::Duration::from_millis(2)).await;
    let mut held = vec![begin.elapsed() >= 2 * MS];

    // An idle timer that is postponed, and then brought forward.
    let idle = sleep(HOUR);
    tokio::pin!(idle);
    let deadline = Instant::now() + 2 * HOUR;
    idle.as_mut().reset(deadline);
    held.push(idle.deadline() == deadline && !idle.is_elapsed());
    tokio::select! {
        () = &mut idle => held.push(false),
        () = sleep(MS) => idle.as_mut().reset(Instant::now() + MS),
    }
    idle.as_mut().await;
    held.push(idle.is_elapsed());

    // Without a macro of tokio's.
    let mut pinned = pin!(sleep_until(begin));
    pinned.as_mut().await;
    let boxed: Pin<Box<dyn Future<Output = ()> + Send + Sync>> = Box::pin(sleep(MS));
    boxed.await;

    // Armed only now and then.
    let mut armed: Option<Pin<Box<time::Sleep>>> = None;
    for _ in 0..2 {
        tokio::select! {
            () = async { armed.as_mut().unwrap().await }, if armed.is_some() => held.push(true),
            () = ready(()), if armed.is_none() => armed = Some(Box::pin(sleep(MS))),
        }
    }
    tokio::join!(sleep(MS), sleep(2 * MS));
    held
}

/// A future that wraps a sleep, with a projection by hand.
struct Within<F> {
    future: F,
    limit: Pin<Box<time::Sleep>>,
}

impl<F: Future + Unpin> Future for Within<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = Pin::new(&mut self.future).poll(cx) {
            return Poll::Ready(Some(output));
        }
        Future::poll(self.limit.as_mut(), cx).map(|()| None)
    }
}

struct Request {
    answer: Pin<Box<time::Timeout<oneshot::Receiver<u32>>>>,
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = T>,
) -> Result<T, time::error::Elapsed> {
    timeout(limit, work).await
}

pub async fn limits() -> Vec<String> {
    let mut seen = Vec::new();
    let elapsed = within(MS, pending::<()>()).await.unwrap_err();
    seen.push(elapsed.to_string());
    seen.push(format!("{:?}", std::io::Error::from(elapsed).kind()));
    assert_eq!(
        within(MS, pending::<()>()).await,
        within(MS, pending()).await
    );

    let (sender, receiver) = oneshot::channel();
    let mut answer: time::Timeout<oneshot::Receiver<u32>> = timeout(HOUR, receiver);
    assert!(answer.get_mut().try_recv().is_err());
    assert!(!answer.get_ref().is_terminated());
    let mut request = Request {
        answer: Box::pin(answer),
    };
    sender.send(7).unwrap();
    seen.push(format!("{:?}", request.answer.as_mut().await));
    let (_sender, receiver) = oneshot::channel::<u32>();
    drop(timeout(HOUR, receiver).into_inner());

    // A limit for what goes on after it.
    let (sender, receiver) = oneshot::channel();
    let mut task = tokio::spawn(receiver);
    seen.push(timeout(MS, &mut task).await.is_err().to_string());
    sender.send(8).unwrap();
    seen.push(format!(
        "{:?}",
        timeout(HOUR, task).await.unwrap().unwrap().unwrap()
    ));
    seen.push(format!(
        "{:?}",
        timeout_at(Instant::now() + MS, pending::<()>())
            .await
            .is_err()
    ));
    let limit = Box::pin(sleep(MS));
    seen.push(format!(
        "{:?}",
        Within {
            future: pending::<()>(),
            limit
        }
        .await
    ));
    seen.push(format!(
        "{:?}",
        timeout(Duration::ZERO, ready(9)).await.ok()
    ));
    seen
}

fn name(missed: MissedTickBehavior) -> &'static str {
    match missed {
        MissedTickBehavior::Burst => "burst",
        MissedTickBehavior::Delay => "delay",
        MissedTickBehavior::Skip => "skip",
    }
}

pub async fn intervals() -> Vec<String> {
    let mut ticks = interval(2 * MS);
    let mut seen = vec![name(ticks.missed_tick_behavior()), name(Default::default())];
    for missed in [
        MissedTickBehavior::Skip,
        MissedTickBehavior::Delay,
        MissedTickBehavior::Burst,
    ] {
        ticks.set_missed_tick_behavior(missed);
        seen.push(name(ticks.missed_tick_behavior()));
    }
    let mut seen: Vec<_> = seen.into_iter().map(str::to_string).collect();

    let first: Instant = ticks.tick().await;
    let second = ticks.tick().await;
    seen.push(format!("{:?}", second.duration_since(first)));
    seen.push(format!("{:?}", ticks.period()));
    ticks.reset();
    assert!(ticks.tick().await >= second);
    ticks.reset_immediately();
    ticks.reset_after(MS);
    ticks.reset_at(Instant::now() + MS);
    ticks.tick().await;

    let start = Instant::now() + MS;
    let mut ticks = interval_at(start, HOUR);
    seen.push((ticks.tick().await == start).to_string());
    seen.push(timeout(MS, ticks.tick()).await.is_err().to_string());
    seen
}

/// Types that programs write down, and bounds that they need.
pub async fn types() -> Vec<bool> {
    fn is_send<T: Send + 'static>(value: T) -> T {
        value
    }
    let begin = Instant::now();
    let task = tokio::spawn(is_send(async move {
        let mut ticks: time::Interval = interval(MS);
        ticks.tick().await;
        time::sleep_until(begin + MS).await;
        std::future::poll_fn(|cx| ticks.poll_tick(cx)).await
    }));
    let tick: Instant = task.await.unwrap();
    vec![
        tick.saturating_duration_since(begin) >= MS,
        begin.checked_add(MS).is_some_and(|later| later <= tick),
        Instant::now() - begin >= MS,
    ]
}
