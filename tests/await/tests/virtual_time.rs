//! A virtual clock for tasks on runtimes with several threads: time moves only when all
//! tasks are idle, so that every run logs the same.
//!
//! A hundred tasks sleep, send, and wait with a limit for a virtual hour. What each of
//! them must log is computed without timers. The tasks run on tokio with two and with four
//! workers and on smol with two threads. The clock knows that they are idle either because
//! it tracks them or, on tokio, by the runtime's metrics.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc as blocking};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::Time;
use tickwheel::time::{Timers, TimersClock};
use tokio::runtime::{Builder, Runtime, RuntimeMetrics};
use tokio::sync::mpsc;

const RUNS: usize = 20;
const HOUR: Time = Time::from_secs(3_600);

/// The limit of a task that waits for messages. A message never comes at its very end,
/// because the order of two events at one tick is the scheduler's.
const LIMIT: Duration = Duration::from_millis(20_003);

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The things that a task has noted, each with its time.
type Log = Vec<(Time, &'static str)>;

/// Groups of five tasks: a sleeper, a sender and its receiver, a sender and its receiver
/// with a limit.
const GROUPS: usize = 20;

/// Returns the delay before each message of sender `n`, for an hour.
fn gaps(n: u64) -> impl Iterator<Item = Duration> {
    let gaps = (0..).map(move |i| Duration::from_secs(1 + (7 * n + 11 * i) % 150));
    let mut left = Duration::from_secs(3_600);
    gaps.map_while(move |gap| {
        left = left.checked_sub(gap)?;
        Some(gap)
    })
}

/// Returns the times of these messages.
fn times(n: u64) -> Vec<Time> {
    let mut time = Time::START;
    let next = |gap| {
        time = time + gap;
        time
    };
    gaps(n).map(next).collect()
}

/// A run: the engine, and the logs of its tasks.
#[derive(Clone)]
struct Run {
    timers: Timers,
    logs: Arc<Mutex<Vec<Log>>>,
}

impl Run {
    fn note(&self, task: usize, what: &'static str) {
        let time = self.timers.now();
        self.logs.lock().unwrap()[task].push((time, what));
    }

    async fn sleep(self, task: usize) {
        for gap in gaps(task as u64) {
            self.timers.sleep(gap).await;
            self.note(task, "slept");
        }
    }

    async fn send(self, task: usize, sender: mpsc::UnboundedSender<()>) {
        for gap in gaps(task as u64) {
            self.timers.sleep(gap).await;
            sender.send(()).unwrap();
            self.note(task, "sent");
        }
    }

    async fn receive(self, task: usize, mut receiver: mpsc::UnboundedReceiver<()>) {
        while receiver.recv().await.is_some() {
            self.note(task, "received");
        }
        self.note(task, "closed");
    }

    async fn receive_limited(self, task: usize, mut receiver: mpsc::UnboundedReceiver<()>) {
        loop {
            match self.timers.timeout(LIMIT, receiver.recv()).await {
                Ok(Some(())) => self.note(task, "received"),
                Ok(None) => return self.note(task, "closed"),
                Err(_) => self.note(task, "elapsed"),
            }
        }
    }

    fn tasks(&self) -> Vec<Task> {
        let groups = (0..GROUPS).map(|group| self.group(5 * group));
        groups.flatten().collect()
    }

    /// Returns five tasks with the numbers from `n` on.
    fn group(&self, n: usize) -> [Task; 5] {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (other, limited) = mpsc::unbounded_channel();
        let run = || self.clone();
        [
            Box::pin(run().sleep(n)),
            Box::pin(run().send(n + 1, sender)),
            Box::pin(run().receive(n + 2, receiver)),
            Box::pin(run().send(n + 3, other)),
            Box::pin(run().receive_limited(n + 4, limited)),
        ]
    }
}

/// Computes the logs that the tasks must write.
fn expected() -> Vec<Log> {
    (0..GROUPS)
        .flat_map(|group| logs_of_group(5 * group))
        .collect()
}

fn logs_of_group(n: usize) -> [Log; 5] {
    let all = |n: usize, what| times(n as u64).into_iter().map(move |time| (time, what));
    let closed = |n: usize| times(n as u64).last().map(|&time| (time, "closed"));
    [
        all(n, "slept").collect(),
        all(n + 1, "sent").collect(),
        all(n + 1, "received").chain(closed(n + 1)).collect(),
        all(n + 3, "sent").collect(),
        limited(&times(n as u64 + 3))
            .into_iter()
            .chain(closed(n + 3))
            .collect(),
    ]
}

/// Returns the log of a receiver with a limit, up to the last of the messages.
fn limited(messages: &[Time]) -> Log {
    let (mut log, mut begun) = (Log::new(), Time::START);
    for &message in messages {
        while begun + LIMIT < message {
            begun = begun + LIMIT;
            log.push((begun, "elapsed"));
        }
        begun = message;
        log.push((message, "received"));
    }
    log
}

/// Starts the tasks with `spawn`, moves the clock with `pass`, and returns their logs.
fn run(spawn: impl Fn(&TimersClock, Task), pass: impl Fn(&TimersClock)) -> Vec<Log> {
    let (timers, clock) = Timers::builder().start_virtual().unwrap();
    let logs = Arc::new(Mutex::new(vec![Log::new(); 5 * GROUPS]));
    let run = Run {
        timers,
        logs: Arc::clone(&logs),
    };
    run.tasks().into_iter().for_each(|task| spawn(&clock, task));
    pass(&clock);
    let logs = logs.lock().unwrap();
    logs.clone()
}

/// Checks that twenty of twenty runs write the expected logs.
fn check(spawn: impl Fn(&TimersClock, Task), pass: impl Fn(&TimersClock)) {
    let expected = expected();
    for n in 0..RUNS {
        let logs = run(&spawn, &pass);
        for (task, log) in logs.iter().enumerate() {
            assert_eq!(log, &expected[task], "task {task} of run {n}");
        }
    }
}

fn runtime(workers: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).build().unwrap()
}

/// Blocks until no worker of a tokio runtime has a task to run.
///
/// A worker's count is odd from before it parks until after it unparks and before it takes
/// a task. If no count has changed from one look to the next, all workers were parked at
/// once, and at that time no task was queued outside of them.
///
/// # Panics
/// Panics if the workers are not idle within thirty seconds.
fn settle(metrics: &RuntimeMetrics) {
    let counts = || -> Vec<u64> {
        let workers = 0..metrics.num_workers();
        workers
            .map(|n| metrics.worker_park_unpark_count(n))
            .collect()
    };
    let begun = Instant::now();
    loop {
        let before = counts();
        let parked = before.iter().all(|count| count % 2 == 1);
        if parked && metrics.global_queue_depth() == 0 && counts() == before {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "a task does not wait"
        );
        thread::yield_now();
    }
}

fn check_tracked_on_tokio(workers: usize) {
    let runtime = runtime(workers);
    let spawn = |clock: &TimersClock, task| drop(runtime.spawn(clock.track(task)));
    check(spawn, |clock| clock.run_until(HOUR));
}

fn check_watched_on_tokio(workers: usize) {
    let runtime = runtime(workers);
    let metrics = runtime.handle().metrics();
    let spawn = |_: &TimersClock, task| drop(runtime.spawn(task));
    check(spawn, |clock| {
        clock.run_until_settled(HOUR, || settle(&metrics));
    });
}

#[test]
fn tracked_tasks_log_the_same_in_every_run_on_two_workers_of_tokio() {
    check_tracked_on_tokio(2);
}

#[test]
fn tracked_tasks_log_the_same_in_every_run_on_four_workers_of_tokio() {
    check_tracked_on_tokio(4);
}

#[test]
fn tasks_log_the_same_in_every_run_on_two_workers_of_tokio_by_its_metrics() {
    check_watched_on_tokio(2);
}

#[test]
fn tasks_log_the_same_in_every_run_on_four_workers_of_tokio_by_its_metrics() {
    check_watched_on_tokio(4);
}

#[test]
fn tracked_tasks_log_the_same_in_every_run_on_two_threads_of_smol() {
    let executor = smol::Executor::new();
    let (stop, stopped) = smol::channel::unbounded::<()>();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| smol::block_on(executor.run(stopped.recv())));
        }
        // Ends the threads even if the check panics.
        let _stop = stop;
        let spawn = |clock: &TimersClock, task| executor.spawn(clock.track(task)).detach();
        check(spawn, |clock| clock.run_until(HOUR));
    });
}

/// The control: a clock that does not wait moves on while a task works.
#[test]
fn without_settling_time_passes_while_a_task_works() {
    let runtime = runtime(2);
    let (timers, clock) = Timers::builder().start_virtual().unwrap();
    let (work, works) = blocking::channel::<()>();
    let (begun, has_begun) = blocking::channel();
    let task = runtime.spawn(async move {
        begun.send(()).unwrap();
        works.recv().unwrap();
        timers.now()
    });
    has_begun.recv().unwrap();
    clock.run_until_settled(HOUR, || ());
    work.send(()).unwrap();
    assert_eq!(runtime.block_on(task).unwrap(), HOUR);
}

/// Most runs of the hundred tasks differ as well.
#[test]
fn without_settling_the_logs_differ() {
    let runtime = runtime(2);
    let expected = expected();
    let spawn = |_: &TimersClock, task| drop(runtime.spawn(task));
    let differs = |_| run(spawn, |clock| clock.run_until_settled(HOUR, || ())) != expected;
    assert!((0..RUNS).any(differs));
}

/// A clock may be moved from within a runtime, because the future of `block_on` is not a
/// task of a worker.
#[test]
fn a_test_of_tokio_moves_the_clock_itself() {
    let runtime = runtime(2);
    runtime.block_on(async {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        let (sender, mut receiver) = mpsc::unbounded_channel();
        tokio::spawn(clock.track(async move {
            timers.sleep(Duration::from_secs(5)).await;
            sender.send(timers.now()).unwrap();
        }));
        clock.run_until(Time::from_secs(10));
        assert_eq!(receiver.recv().await, Some(Time::from_secs(5)));
        assert_eq!(clock.now(), Time::from_secs(10));
    });
}

/// A task may await another one's handle if the clock watches the runtime, because a
/// worker is busy until it has woken the awaiting task.
#[test]
fn tasks_that_join_log_the_same_in_every_run_by_the_metrics() {
    let runtime = runtime(2);
    let metrics = runtime.handle().metrics();
    for _ in 0..RUNS {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&log);
        runtime.spawn(async move {
            for seconds in 1..=100 {
                let sleeper = timers.clone();
                let slept = tokio::spawn(async move {
                    sleeper.sleep(Duration::from_secs(seconds)).await;
                    tokio::task::yield_now().await;
                });
                slept.await.unwrap();
                noted.lock().unwrap().push(timers.now());
            }
        });
        clock.run_until_settled(Time::from_secs(5_050), || settle(&metrics));
        let mut sum = 0;
        let sums = (1..=100).map(|seconds| {
            sum += seconds;
            Time::from_secs(sum)
        });
        assert_eq!(*log.lock().unwrap(), sums.collect::<Vec<_>>());
    }
}

/// tokio's own `pause` needs a runtime with one thread, and does not move this clock.
#[test]
fn the_clock_of_tokio_does_not_move_this_one() {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (timers, clock) = Timers::builder().start_virtual().unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(timers.now(), Time::START);
        clock.advance(Duration::from_secs(1));
        assert_eq!(timers.now(), Time::from_secs(1));
    });
}

/// A task on a thread for blocking work is not tracked: time passes while it works.
#[test]
fn blocking_work_counts_as_idle() {
    let runtime = runtime(2);
    let (timers, clock) = Timers::builder().start_virtual().unwrap();
    let (work, works) = blocking::channel::<()>();
    let task = runtime.spawn(clock.track(async move {
        tokio::task::spawn_blocking(move || works.recv().unwrap())
            .await
            .unwrap();
        timers.now()
    }));
    clock.run_until(HOUR);
    work.send(()).unwrap();
    assert_eq!(runtime.block_on(task).unwrap(), HOUR);
}

#[test]
fn a_task_that_moves_the_clock_that_waits_for_it_panics() {
    let runtime = runtime(2);
    let (_timers, clock) = Timers::builder().start_virtual().unwrap();
    let clock = Arc::new(clock);
    let own = Arc::clone(&clock);
    let task = runtime.spawn(clock.track(async move {
        let moved = catch_unwind(AssertUnwindSafe(|| own.run_until(HOUR)));
        *moved.unwrap_err().downcast::<String>().unwrap()
    }));
    let said = runtime.block_on(task).unwrap();
    assert!(said.contains("would wait for itself"), "{said}");
}
