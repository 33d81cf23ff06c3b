//! Pairs of tasks on two workers. One task of a pair sends and the other answers,
//! with three time limits for each exchange: for sending, for the answer, and for
//! both.

use std::future::Future;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{mpsc, oneshot};

use crate::case::Case;
use crate::effort::Effort;
use crate::laps::Crew;
use crate::processors;
use crate::rival::Awaited;
use crate::rivals::awaited;

const WORKERS: usize = 2;
const PAIRS: [usize; 2] = [64, 512];

const SENDING: Duration = Duration::from_secs(10);
const ANSWERING: Duration = Duration::from_secs(30);
const EXCHANGE: Duration = Duration::from_secs(60);

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for pairs in PAIRS {
        for share_one in [false, true] {
            cases.extend(awaited!(oneshots(pairs, share_one, effort)));
            cases.extend(awaited!(streams(pairs, share_one, effort)));
        }
    }
    cases
}

fn oneshots<A: Awaited>(pairs: usize, share_one: bool, effort: Effort) -> Case {
    case::<A>("oneshot", pairs, share_one, effort, spawn_oneshots::<A>)
}

fn streams<A: Awaited>(pairs: usize, share_one: bool, effort: Effort) -> Case {
    case::<A>("duplex", pairs, share_one, effort, spawn_streams::<A>)
}

/// Spawns a pair that counts its exchanges.
type SpawnPair = fn(&mut Crew);

/// With `share_one`, all threads of the process share a processor.
fn case<A: Awaited>(
    metric: &'static str,
    pairs: usize,
    share_one: bool,
    effort: Effort,
    spawn_pair: SpawnPair,
) -> Case {
    let case = Case::new(A::NAME, true, pairs, move || {
        if share_one {
            processors::keep_to_next();
        }
        let mut crew = Crew::new::<A>(WORKERS);
        (0..pairs).for_each(|_| spawn_pair(&mut crew));
        let laps = crew.watch(effort);
        match share_one {
            true => vec![laps.on_one_processor(metric)],
            false => laps.together(metric),
        }
    });
    case.on_threads(WORKERS)
}

/// Awaits a future that always meets its limit.
async fn within<A: Awaited, F>(limit: Duration, future: F) -> F::Output
where
    F: Future<Output: Send> + Send,
{
    A::timeout(limit, future)
        .await
        .expect("no limit is so near")
}

fn spawn_oneshots<A: Awaited>(crew: &mut Crew) {
    let count = crew.count();
    let (requests, requested) = mpsc::channel(1);
    crew.spawn(answer_oneshots(requested));
    crew.spawn(async move {
        loop {
            within::<A, _>(EXCHANGE, ask::<A>(&requests)).await;
            count.add(1);
        }
    });
}

async fn ask<A: Awaited>(requests: &mpsc::Sender<oneshot::Sender<u64>>) {
    let (answer, answered) = oneshot::channel();
    let sent = within::<A, _>(SENDING, requests.send(answer)).await;
    sent.expect("the other task runs for good");
    let answer = within::<A, _>(ANSWERING, answered).await;
    answer.expect("the other task answers");
}

async fn answer_oneshots(mut requests: mpsc::Receiver<oneshot::Sender<u64>>) {
    while let Some(answer) = requests.recv().await {
        let _ = answer.send(1);
    }
}

fn spawn_streams<A: Awaited>(crew: &mut Crew) {
    let count = crew.count();
    let (mut ours, theirs) = duplex(64);
    crew.spawn(answer_bytes(theirs));
    crew.spawn(async move {
        loop {
            within::<A, _>(EXCHANGE, exchange::<A>(&mut ours)).await;
            count.add(1);
        }
    });
}

async fn exchange<A: Awaited>(stream: &mut DuplexStream) {
    let mut bytes = [1; 16];
    let sent = within::<A, _>(SENDING, stream.write_all(&bytes)).await;
    sent.expect("the other task reads");
    let read = within::<A, _>(ANSWERING, stream.read_exact(&mut bytes)).await;
    read.expect("the other task answers");
}

async fn answer_bytes(mut stream: DuplexStream) {
    let mut bytes = [0; 16];
    while stream.read_exact(&mut bytes).await.is_ok() {
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
