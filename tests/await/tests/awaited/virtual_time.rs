//! A virtual clock for tasks on runtimes with several threads: time moves only when all
//! tasks are idle, so that every run logs the same. The runtime's metrics tell that they are.

use super::*;
use tokio::runtime::{Handle, RuntimeMetrics};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const END: Time = Time::from_secs(3_600);

/// The limit of a task that waits for messages. A message never comes at its very end,
/// because the order of two events at one tick is the scheduler's.
const LIMIT: Duration = ms(20_003);

/// The number of senders, and of receivers with a limit.
const PAIRS: usize = 20;

type Log = Vec<(Time, &'static str)>;

/// The times at which sender `n` sends, for an hour.
fn times(n: u64) -> impl Iterator<Item = Time> {
    let mut time = Time::START;
    let times = (0..).map(move |i| {
        time += Duration::from_secs(1 + (7 * n + 11 * i) % 150);
        time
    });
    times.take_while(|&time| time < END)
}

async fn send(timers: Timers, n: u64, sender: UnboundedSender<()>) {
    for time in times(n) {
        timers.sleep(time.since(timers.now())).await;
        sender.send(()).unwrap();
    }
}

async fn receive(timers: Timers, mut receiver: UnboundedReceiver<()>, log: Arc<Mutex<Log>>) {
    loop {
        let received = timers.timeout(LIMIT, receiver.recv()).await;
        let what = match received {
            Ok(Some(())) => "received",
            Ok(None) => return,
            Err(_) => "elapsed",
        };
        log.lock().unwrap().push((timers.now(), what));
    }
}

/// Computes what a receiver must log, without timers.
fn expected(n: u64) -> Log {
    let (mut log, mut begun) = (Log::new(), Time::START);
    for message in times(n) {
        while begun + LIMIT < message {
            begun += LIMIT;
            log.push((begun, "elapsed"));
        }
        begun = message;
        log.push((message, "received"));
    }
    log
}

/// Checks in each of some runs that every receiver has logged what it must.
fn check(pass: impl Fn(&VirtualClock)) {
    for _ in 0..5 {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        let logs = [(); PAIRS].map(|()| Arc::default());
        for (n, log) in (0..).zip(&logs) {
            let (sender, receiver) = unbounded_channel();
            tokio::spawn(send(timers.clone(), n, sender));
            tokio::spawn(receive(timers.clone(), receiver, Arc::clone(log)));
        }
        pass(&clock);
        for (n, log) in (0..).zip(logs) {
            assert_eq!(*log.lock().unwrap(), expected(n));
        }
    }
}

/// Blocks until no worker of a tokio runtime has a task to run.
///
/// A worker's count is odd from before it parks until after it unparks and before it takes
/// a task. If no count has changed from one look to the next, all workers were parked at
/// once, and at that time no task was queued outside of them.
fn settle(metrics: &RuntimeMetrics) {
    let count = |n| metrics.worker_park_unpark_count(n);
    let counts = || (0..metrics.num_workers()).map(count).collect::<Vec<_>>();
    let begun = Instant::now();
    loop {
        let before = counts();
        let parked = before.iter().all(|count| count % 2 == 1);
        if parked && metrics.global_queue_depth() == 0 && counts() == before {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "a task does not wait");
        thread::yield_now();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_log_the_same_in_every_run_on_four_workers_of_tokio() {
    let metrics = Handle::current().metrics();
    check(|clock| clock.run_until_settled(END, || settle(&metrics)));
}

/// A clock may be moved from within a runtime, because the future of `block_on` is not a
/// task of a worker. A task may await another one's handle if the clock watches the
/// runtime, because a worker is busy until it has woken the awaiting task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_of_tokio_moves_the_clock_itself() {
    let metrics = Handle::current().metrics();
    let (timers, clock) = Timers::builder().start_virtual().unwrap();
    let joins = tokio::spawn(async move {
        let mut ends = Vec::new();
        for seconds in 1..=100 {
            let sleep = timers.sleep(Duration::from_secs(seconds)).into_owned();
            tokio::spawn(sleep).await.unwrap();
            ends.push(timers.now());
        }
        ends
    });
    clock.run_until_settled(Time::from_secs(5_050), || settle(&metrics));
    let mut end = Time::START;
    for (seconds, ended) in (1..).zip(joins.await.unwrap()) {
        end += Duration::from_secs(seconds);
        assert_eq!(ended, end);
    }
    assert_eq!(clock.now(), end);
}
