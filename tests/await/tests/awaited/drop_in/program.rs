//! A client that tries again, and the calls and types that programs use.

use super::time::error::Elapsed;
use super::time::{self, Duration, Instant, MissedTickBehavior};
use super::time::{interval, interval_at, sleep, sleep_until, timeout, timeout_at};
use std::error::Error;
use std::future::{Future, pending, ready};
use std::io;
use std::pin::{Pin, pin};
use tokio::sync::oneshot;

const MS: Duration = Duration::from_millis(1);
const LIMIT: Duration = Duration::from_millis(20);
const HOUR: Duration = Duration::from_secs(3_600);

/// What a server does at each request: it answers, refuses, or keeps silent.
struct Server(std::slice::Iter<'static, &'static str>);

impl Server {
    async fn request(&mut self) -> io::Result<&'static str> {
        match self.0.next().copied() {
            Some("answer") => Ok("answered"),
            Some("refusal") => Err(io::ErrorKind::ConnectionRefused.into()),
            _ => pending().await,
        }
    }
}

/// For callers that know only one error.
async fn request_io(server: &mut Server) -> io::Result<&'static str> {
    timeout(LIMIT, server.request()).await?
}

/// For callers that know any error.
async fn request_any(server: &mut Server) -> Result<&'static str, Box<dyn Error + Send + Sync>> {
    Ok(timeout(LIMIT, server.request()).await??)
}

/// Fetches from a server, four times at most. Returns what happened at each try.
pub async fn fetches(answers: &'static [&'static str]) -> Vec<String> {
    let mut server = Server(answers.iter());
    let (mut log, mut pause) = (Vec::new(), 5 * MS);
    for _ in 0..4 {
        let begin = Instant::now();
        match request_any(&mut server).await {
            Ok(answer) => {
                log.push(answer.to_string());
                return log;
            }
            Err(failure) => log.push(failure.to_string()),
        }
        sleep_until(begin + pause).await;
        pause = (pause * 2).min(LIMIT);
    }
    log.push("gave up".into());
    log
}

/// The kinds of error that callers of the other forms see.
pub async fn fails_in_other_ways() -> [String; 2] {
    let io = request_io(&mut Server([].iter())).await.unwrap_err();
    let any = request_any(&mut Server([].iter())).await.unwrap_err();
    let is_elapsed = any.downcast_ref::<Elapsed>().is_some();
    [format!("{:?}", io.kind()), is_elapsed.to_string()]
}

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

async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    timeout(limit, work).await
}

pub async fn limits() -> String {
    let elapsed = within(MS, pending::<()>()).await.unwrap_err();
    let kind = io::Error::from(elapsed).kind();
    assert!(within(MS, pending::<()>()).await == within(MS, pending()).await);

    let (sender, receiver) = oneshot::channel();
    let mut answer: time::Timeout<oneshot::Receiver<u32>> = timeout(HOUR, receiver);
    assert!(answer.get_mut().try_recv().is_err());
    assert!(!answer.get_ref().is_terminated());
    sender.send(7).unwrap();
    let seven = Box::pin(answer).as_mut().await;
    let (_sender, receiver) = oneshot::channel::<u32>();
    drop(timeout(HOUR, receiver).into_inner());

    // A limit for what goes on after it.
    let (sender, receiver) = oneshot::channel();
    let mut task = tokio::spawn(receiver);
    let late = timeout(MS, &mut task).await.is_err();
    sender.send(8).unwrap();
    let eight = timeout(HOUR, task).await.unwrap();
    let deadline = Instant::now() + MS;
    let passed = timeout_at(deadline, pending::<()>()).await.is_err();
    let nine = timeout(Duration::ZERO, ready(9)).await.ok();
    format!("{kind:?} {seven:?} {late} {eight:?} {passed} {nine:?}")
}

pub async fn intervals() -> String {
    let mut ticks: time::Interval = interval(2 * MS);
    assert_eq!(ticks.missed_tick_behavior(), Default::default());
    assert_eq!(ticks.missed_tick_behavior(), MissedTickBehavior::Burst);
    use MissedTickBehavior as Missed;
    for missed in [Missed::Skip, Missed::Delay, Missed::Burst] {
        ticks.set_missed_tick_behavior(missed);
        assert_eq!(ticks.missed_tick_behavior(), missed);
    }
    let first: Instant = ticks.tick().await;
    let task = tokio::spawn(async move {
        let second = std::future::poll_fn(|cx| ticks.poll_tick(cx)).await;
        (ticks, second)
    });
    let (mut ticks, second) = task.await.unwrap();
    let (distance, period) = (second.duration_since(first), ticks.period());
    ticks.reset();
    let is_later = ticks.tick().await >= second;
    ticks.reset_immediately();
    ticks.reset_after(MS);
    ticks.reset_at(Instant::now() + MS);
    ticks.tick().await;

    let start = Instant::now() + MS;
    let mut ticks = interval_at(start, HOUR);
    let is_due = ticks.tick().await == start && Instant::now() - start < HOUR;
    let waits = timeout(MS, ticks.tick()).await.is_err();
    format!("{distance:?} {period:?} {is_later} {is_due} {waits}")
}
