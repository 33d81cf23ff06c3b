//! A connection that the server pings, and closes once nothing has come for a while.

use super::time::{self, Duration, Instant, Interval, MissedTickBehavior, Sleep};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

const PERIOD: Duration = Duration::from_millis(5);
/// Far longer than any machine takes to answer a ping.
const IDLE: Duration = Duration::from_secs(1);

/// Serves one client, which answers some pings and then falls silent. Returns what the
/// server saw.
pub async fn serves(answers: usize) -> Vec<String> {
    let (to_client, mut pings) = mpsc::channel::<usize>(1);
    let (to_server, mut pongs) = mpsc::channel::<&'static str>(1);
    let client = tokio::spawn(async move {
        while let Some(number) = pings.recv().await {
            if number <= answers {
                to_server.send("pong").await.unwrap();
            }
        }
    });

    let mut log = Vec::new();
    let mut heartbeat = time::interval(PERIOD);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut number = 0;
    let begin = Instant::now();
    let idle = time::sleep(IDLE);
    tokio::pin!(idle);
    loop {
        tokio::select! {
            biased;
            Some(pong) = pongs.recv() => {
                log.push(pong.to_string());
                idle.as_mut().reset(Instant::now() + IDLE);
            }
            _ = heartbeat.tick(), if log.len() == 2 * number => {
                number += 1;
                if number <= answers {
                    log.push(format!("ping {number}"));
                }
                to_client.send(number).await.unwrap();
            }
            () = &mut idle => break,
        }
    }
    assert!(idle.is_elapsed());
    assert!(begin.elapsed() >= IDLE + PERIOD * (answers as u32 - 1));
    log.push("idle".into());
    drop(to_client);
    client.await.unwrap();
    log
}

/// Returns the distances between ticks of which the thread misses some, in periods.
pub async fn distances(missed: MissedTickBehavior) -> Vec<f64> {
    let period = 10 * PERIOD;
    let mut ticks = time::interval_at(Instant::now() + PERIOD, period);
    ticks.set_missed_tick_behavior(missed);
    let mut seen = vec![ticks.tick().await, ticks.tick().await];
    std::thread::sleep(period * 5 / 2);
    for _ in 0..2 {
        seen.push(ticks.tick().await);
    }
    let distances = seen.windows(2).map(|two| two[1].duration_since(two[0]));
    distances
        .map(|distance| distance.div_duration_f64(period))
        .collect()
}

/// A connection as a future, which is how such programs look without `select!`.
struct Connection {
    heartbeat: Interval,
    idle: Pin<Box<Sleep>>,
    beats: usize,
}

impl Future for Connection {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        while self.heartbeat.poll_tick(cx).is_ready() {
            self.beats += 1;
            if self.beats <= 3 {
                let next = Instant::now() + 50 * PERIOD;
                self.idle.as_mut().reset(next);
            } else {
                self.heartbeat.reset_after(IDLE);
            }
        }
        match self.idle.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(self.beats),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Returns after how many beats a connection is idle that is not kept alive any more.
pub async fn beats_of_a_connection() -> usize {
    let connection = Connection {
        heartbeat: time::interval(PERIOD),
        idle: Box::pin(time::sleep(IDLE)),
        beats: 0,
    };
    connection.await
}
