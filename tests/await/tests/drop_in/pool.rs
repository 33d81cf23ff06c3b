//! Workers that take jobs at a limited rate, each with a limit of its own.

use super::time::{self, Duration, Instant, MissedTickBehavior, timeout};
use std::sync::Arc;
use tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::task::JoinSet;

const PERIOD: Duration = Duration::from_millis(5);
const LIMIT: Duration = Duration::from_millis(20);

/// Lets one caller pass in each period.
#[derive(Clone)]
struct RateLimit(Arc<Mutex<time::Interval>>);

impl RateLimit {
    fn new(period: Duration) -> RateLimit {
        let mut ticks = time::interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        RateLimit(Arc::new(Mutex::new(ticks)))
    }

    async fn pass(&self) -> Instant {
        self.0.lock().await.tick().await
    }
}

/// Every third job never ends by itself.
async fn work(job: usize) -> usize {
    if job % 3 == 2 {
        std::future::pending::<()>().await;
    }
    time::sleep(Duration::from_millis(1)).await;
    job
}

/// Works on some jobs with two workers. Returns what became of each, in the jobs' order,
/// and whether the workers kept to the rate.
pub async fn works(jobs: usize) -> (Vec<String>, bool) {
    let rate = RateLimit::new(PERIOD);
    let (sender, receiver) = mpsc::channel(2);
    let receiver = Arc::new(Mutex::new(receiver));
    let permits = Arc::new(Semaphore::new(2));
    let mut workers = JoinSet::new();
    for _ in 0..2 {
        let (rate, receiver, permits) = (rate.clone(), receiver.clone(), permits.clone());
        workers.spawn(async move {
            let mut done = Vec::new();
            loop {
                let job = receiver.lock().await.recv().await;
                let Some(job) = job else { return done };
                let passed = rate.pass().await;
                let _permit = permits.acquire().await.unwrap();
                let line = match timeout(LIMIT, work(job)).await {
                    Ok(job) => format!("{job} done"),
                    Err(elapsed) => format!("{job}: {elapsed}"),
                };
                done.push((passed, line));
            }
        });
    }
    for job in 0..jobs {
        sender.send(job).await.unwrap();
    }
    drop(sender);
    let mut done = workers.join_all().await.concat();
    done.sort();
    let kept = done.windows(2).all(|two| two[1].0 - two[0].0 >= PERIOD);
    let mut lines: Vec<_> = done.into_iter().map(|(_, line)| line).collect();
    lines.sort();
    (lines, kept)
}
