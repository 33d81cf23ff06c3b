//! A. Sogou Workflow: cancellable named timers, exactly-once outcome.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use super::SECOND;
use tickwheel::{Cancel, CloseReason, Engine, Firing, Task, TaskEngine, Time, Timer, VirtualClock};

const FOR_EVER: Duration = Duration::MAX;

/// What a callback said, by label, and on which thread.
type Entry = (&'static str, CloseReason, ThreadId);

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Entry>>>);

impl Log {
    /// A callback that writes its outcome down.
    fn entry(&self, label: &'static str) -> impl FnMut(Firing) + Send + use<> {
        let log = self.clone();
        move |firing| {
            let entry = (label, firing.outcome(), thread::current().id());
            log.0.lock().unwrap().push(entry);
        }
    }

    fn take(&self) -> Vec<(&'static str, CloseReason)> {
        let entries = std::mem::take(&mut *self.0.lock().unwrap());
        entries
            .into_iter()
            .map(|(label, outcome, _)| (label, outcome))
            .collect()
    }
}

fn start() -> (TaskEngine, VirtualClock<Task>, Log) {
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    (tasks, clock, Log::default())
}

/// Lets the workers finish what they have, without moving the clock.
fn settle(clock: &VirtualClock<Task>) {
    clock.run_until(clock.now());
}

#[test]
fn a1_expiry_runs_the_callback_once_with_completed() {
    let (tasks, clock, log) = start();
    tasks
        .run(Timer::after(SECOND, log.entry("t")).notified())
        .unwrap();
    clock.run_until(Time::from_secs(100));
    assert_eq!(log.take(), [("t", CloseReason::Completed)]);
}

#[test]
fn a2_cancel_runs_the_callback_once_with_cancelled_on_a_worker() {
    let (tasks, clock, log) = start();
    let id = tasks
        .run(Timer::after(SECOND, log.entry("t")).notified())
        .unwrap();
    assert_eq!(tasks.cancel(id), Cancel::Cancelled(()));
    assert_eq!(tasks.cancel(id), Cancel::Gone);
    clock.run_until(Time::from_secs(100));
    let entries = log.0.lock().unwrap().clone();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].1, CloseReason::Cancelled);
    assert_ne!(entries[0].2, thread::current().id(), "ran inline");
}

#[test]
fn a2_a_busy_worker_shows_that_nothing_runs_inline() {
    let tasks = TaskEngine::builder().start().unwrap();
    let (release, released) = mpsc::channel::<()>();
    let (running, is_running) = mpsc::channel();
    let block = move || {
        running.send(()).unwrap();
        let _ = released.recv();
    };
    tasks.run_after(Duration::ZERO, block).unwrap();
    is_running.recv().unwrap();
    let log = Log::default();
    let id = tasks
        .run(Timer::after(SECOND, log.entry("t")).notified())
        .unwrap();
    assert_eq!(tasks.cancel(id), Cancel::Cancelled(()));
    assert!(log.take().is_empty());
    drop(release);
    while log.0.lock().unwrap().is_empty() {
        thread::yield_now();
    }
    assert_eq!(log.take(), [("t", CloseReason::Cancelled)]);
}

#[test]
fn a3_stop_notifies_every_armed_timer_at_once() {
    let tasks = TaskEngine::builder().workers(2).start().unwrap();
    let log = Log::default();
    let far = Timer::after(10_000 * SECOND, log.entry("far")).notified();
    tasks.run(far).unwrap();
    tasks
        .run(Timer::after(FOR_EVER, log.entry("infinite")).notified())
        .unwrap();
    tasks
        .run(Timer::every(5_000 * SECOND, log.entry("repeating")).notified())
        .unwrap();
    let begun = std::time::Instant::now();
    assert_eq!(tasks.shutdown().len(), 3);
    while log.0.lock().unwrap().len() < 3 {
        assert!(begun.elapsed() < 20 * SECOND, "a timer was not told");
        thread::yield_now();
    }
    let mut told = log.take();
    told.sort_by_key(|&(label, _)| label);
    assert_eq!(
        told,
        ["far", "infinite", "repeating"].map(|label| (label, CloseReason::ShutDown))
    );
    assert!(tasks.ledger().is_balanced());
}

#[test]
fn a3_a_task_running_at_the_stop_is_notified_afterwards() {
    let tasks = TaskEngine::builder().start().unwrap();
    let (tell, told) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let task = move |firing: Firing| {
        tell.send(firing.outcome()).unwrap();
        let _ = may_go_on.recv();
    };
    tasks
        .run(Timer::every(Duration::from_millis(1), task).notified())
        .unwrap();
    assert_eq!(told.recv().unwrap(), CloseReason::Completed);
    assert_eq!(tasks.shutdown().len(), 1);
    drop(go_on);
    assert_eq!(told.recv().unwrap(), CloseReason::ShutDown);
    assert!(told.recv().is_err(), "told twice");
    assert_eq!((tasks.ledger().live, tasks.ledger().shut_down), (0, 1));
}

/// A4 and A6 at once: threads that start, cancel by id and by name, and a stop
/// in the middle of it.
#[test]
fn a4_a6_exactly_one_outcome_each_and_counts_that_add_up() {
    for round in 0..20 {
        let tasks = TaskEngine::builder().workers(2).start().unwrap();
        let outcomes = Arc::new([const { AtomicU64::new(0) }; 3]);
        let started = AtomicU64::new(0);
        let cancelled: u64 = thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let (tasks, outcomes, started) = (&tasks, &outcomes, &started);
                    scope.spawn(move || race(tasks, outcomes, started, thread))
                })
                .collect();
            thread::sleep(Duration::from_millis(round));
            tasks.shutdown();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        let expected = started.load(Ordering::SeqCst);
        let sum = || {
            outcomes
                .iter()
                .map(|count| count.load(Ordering::SeqCst))
                .sum::<u64>()
        };
        let begun = std::time::Instant::now();
        while sum() < expected && begun.elapsed() < 20 * SECOND {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(2));
        assert_eq!(sum(), expected, "not one outcome for each started timer");
        assert_eq!(outcomes[1].load(Ordering::SeqCst), cancelled);
    }
}

/// Starts named timers and cancels some by name; returns how many, by what the
/// calls said.
fn race(
    tasks: &TaskEngine,
    outcomes: &Arc<[AtomicU64; 3]>,
    started: &AtomicU64,
    thread: u64,
) -> u64 {
    let mut cancelled = 0;
    for n in 0..300u64 {
        let outcomes = Arc::clone(outcomes);
        let count = move |firing: Firing| {
            let which = match firing.outcome() {
                CloseReason::Completed => 0,
                CloseReason::Cancelled => 1,
                _ => 2,
            };
            outcomes[which].fetch_add(1, Ordering::SeqCst);
        };
        let delay = Duration::from_micros(n * 37 % 4_000);
        let timer = Timer::after(delay, count).notified().named("shared");
        if tasks.run(timer).is_err() {
            break; // stopped
        }
        started.fetch_add(1, Ordering::SeqCst);
        if n % 3 == thread % 3 {
            cancelled += tasks.cancel_by_name("shared", 2) as u64;
        }
    }
    cancelled
}

#[test]
fn a5_many_timers_share_a_name_and_the_oldest_go_first() {
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    for n in 0..3 {
        // From different threads, and so in different shards.
        thread::scope(|scope| {
            scope.spawn(|| engine.schedule(Timer::after(SECOND, n).named("n")).unwrap());
        });
        engine
            .schedule(Timer::after(SECOND, n + 10).named("other"))
            .unwrap();
        engine
            .schedule(Timer::after(SECOND, n + 20).named("n"))
            .unwrap();
    }
    assert_eq!(engine.cancel_by_name("unknown", None).ids.len(), 0);
    assert_eq!(engine.cancel_by_name("n", 0).ids.len(), 0);
    assert_eq!(engine.cancel_by_name("n", 3).payloads, [0, 20, 1]);
    assert_eq!(engine.cancel_by_name("n", None).payloads, [21, 2, 22]);
    assert_eq!(engine.cancel_by_name("n", None).ids.len(), 0);
    assert_eq!(engine.ledger().live, 3);
}

#[test]
fn a5_a_name_is_forgotten_with_its_last_timer() {
    let (engine, clock) = Engine::builder().start_virtual().unwrap();
    for n in 0..4 {
        engine.schedule(Timer::after(SECOND, n).named("n")).unwrap();
    }
    clock.advance(SECOND);
    // Expired and not taken yet: still cancellable by name.
    assert_eq!(engine.cancel_by_name("n", 1).payloads, [0]);
    for n in 1..4 {
        assert_eq!(engine.queue(0).try_recv().unwrap().into_payload(), n);
    }
    assert_eq!(engine.cancel_by_name("n", None).ids.len(), 0);
}

#[test]
fn a6_a_running_repeating_timer_is_counted_once() {
    let (tasks, clock, _) = start();
    let (tell, told) = mpsc::channel();
    let inner = tasks.clone();
    let task = move |firing: Firing| {
        let counts = match firing.outcome() {
            CloseReason::Completed => [(); 2].map(|()| inner.cancel_by_name("self", 9)),
            _ => [7, 7],
        };
        tell.send((firing.outcome(), counts)).unwrap();
    };
    tasks
        .run(Timer::every(SECOND, task).named("self").notified())
        .unwrap();
    clock.run_until(Time::from_secs(9));
    let told: Vec<_> = told.try_iter().collect();
    assert_eq!(
        told,
        [
            (CloseReason::Completed, [1, 0]),
            (CloseReason::Cancelled, [7, 7])
        ]
    );
    tasks.shutdown();
}

#[test]
fn a7_cancelled_before_it_is_started() {
    let (tasks, clock, log) = start();
    let timer = || Timer::after(SECOND, log.entry("t")).named("n").notified();
    let by_name = tasks.create(timer()).unwrap();
    let by_id = tasks.create(timer()).unwrap();
    assert_eq!(tasks.cancel_by_name("n", 1), 1);
    assert_eq!(tasks.cancel(by_id.id()), Cancel::Cancelled(()));
    assert_eq!(tasks.cancel_by_name("n", 9), 0);
    settle(&clock);
    assert!(log.take().is_empty(), "told before it was started");
    by_name.start().unwrap();
    by_id.start().unwrap();
    settle(&clock);
    let entries = log.0.lock().unwrap().clone();
    assert!(
        entries
            .iter()
            .all(|entry| entry.2 != thread::current().id())
    );
    assert_eq!(log.take(), [("t", CloseReason::Cancelled); 2]);
    assert_eq!((tasks.ledger().accepted, tasks.ledger().cancelled), (2, 2));
}

#[test]
fn a7_an_unstarted_timer_counts_its_delay_from_the_start() {
    let (tasks, clock, log) = start();
    let unstarted = tasks.create(Timer::after(SECOND, log.entry("t"))).unwrap();
    clock.run_until(Time::from_secs(10));
    unstarted.start().unwrap();
    clock.run_until(Time::from_nanos(10_999_999_999));
    assert!(log.take().is_empty());
    clock.run_until(Time::from_secs(11));
    assert_eq!(log.take(), [("t", CloseReason::Completed)]);
}

#[test]
fn a8_a_timer_that_is_never_started_can_be_dismissed() {
    let alive = Arc::new(());
    let (engine, _clock) = Engine::builder()
        .max_timers(1)
        .shards(1)
        .start_virtual()
        .unwrap();
    let timer = || Timer::after(SECOND, alive.clone()).named("n");
    for _ in 0..3 {
        drop(engine.create(timer()).unwrap());
        assert!(engine.create(timer()).unwrap().dismiss().is_some());
    }
    assert_eq!(Arc::strong_count(&alive), 1, "leaked");
    assert_eq!(engine.cancel_by_name("n", 9).ids.len(), 0);
    assert_eq!((engine.ledger().accepted, engine.live().count()), (0, 0));

    let (tasks, clock, log) = start();
    drop(
        tasks
            .create(Timer::after(SECOND, log.entry("t")).notified())
            .unwrap(),
    );
    tasks.shutdown();
    settle(&clock);
    assert!(log.take().is_empty(), "a dismissed timer's callback ran");

    // Cancelled and then dismissed: never started, so no callback either.
    let (tasks, clock, log) = start();
    let unstarted = tasks
        .create(Timer::after(SECOND, log.entry("t")).notified())
        .unwrap();
    assert_eq!(tasks.cancel(unstarted.id()), Cancel::Cancelled(()));
    drop(unstarted);
    settle(&clock);
    assert!(log.take().is_empty());
}

#[test]
fn a8_starting_after_stop_gives_the_timer_back() {
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    let timer = Timer::every(SECOND, "mine").times(3).named("n");
    let unstarted = engine.create(timer.clone()).unwrap();
    assert!(engine.shutdown().is_empty());
    let refused = unstarted.start().unwrap_err();
    assert_eq!(refused.reason(), tickwheel::Refusal::ShutDown);
    assert_eq!(refused.into_timer(), timer);
}

#[test]
fn a9_an_infinite_timer_ends_only_by_cancel_or_stop() {
    let (tasks, clock, log) = start();
    let id = tasks
        .run(Timer::after(FOR_EVER, log.entry("cancelled")).notified())
        .unwrap();
    tasks
        .run(Timer::after(FOR_EVER, log.entry("stopped")).notified())
        .unwrap();
    clock.run_until(Time::from_secs(86_400 * 365 * 500));
    assert!(log.take().is_empty());
    assert_eq!(tasks.cancel(id), Cancel::Cancelled(()));
    settle(&clock);
    assert_eq!(log.take(), [("cancelled", CloseReason::Cancelled)]);
    tasks.shutdown();
    settle(&clock);
    assert_eq!(log.take(), [("stopped", CloseReason::ShutDown)]);
}

#[test]
fn a10_a_callback_may_create_start_and_cancel_by_name() {
    let (tasks, clock, log) = start();
    let victim = Timer::after(9 * SECOND, log.entry("victim"))
        .named("v")
        .notified();
    tasks.run(victim).unwrap();
    let (inner, inner_log) = (tasks.clone(), log.clone());
    let task = move |_| {
        assert_eq!(inner.cancel_by_name("v", 9), 1);
        let created = inner.create(Timer::after(SECOND, inner_log.entry("created")));
        created.unwrap().start().unwrap();
    };
    tasks.run(Timer::after(SECOND, task)).unwrap();
    clock.run_until(Time::from_secs(20));
    assert_eq!(
        log.take(),
        [
            ("victim", CloseReason::Cancelled),
            ("created", CloseReason::Completed)
        ]
    );
    assert_eq!(tasks.engine().snapshot().panics, 0);
    tasks.shutdown();
}

#[test]
fn a_better_cancel_by_id_as_well_as_by_name() {
    let (engine, _clock) = Engine::builder().start_virtual().unwrap();
    let id = engine.schedule(Timer::after(SECOND, 1).named("n")).unwrap();
    engine.schedule(Timer::after(SECOND, 2).named("n")).unwrap();
    assert_eq!(engine.cancel(id), Cancel::Cancelled(1));
    assert_eq!(engine.cancel_by_name("n", 9).payloads, [2]);
}

#[test]
fn a_better_a_bad_duration_cannot_be_expressed() {
    // Every `Duration` is a delay, from the shortest to the longest.
    let (engine, clock) = Engine::builder().start_virtual().unwrap();
    for delay in [Duration::ZERO, Duration::from_nanos(1), FOR_EVER] {
        engine.schedule(Timer::after(delay, delay)).unwrap();
    }
    clock.advance(SECOND);
    assert_eq!(engine.queue(0).len(), 2);
}

/// The article's closing program, over real sockets: the server is that of
/// `examples/sockets/src/bin/delayed_reply`.
#[cfg(target_os = "linux")]
mod a11 {
    use super::*;
    use crate::{DELAY, PATIENCE, server};
    use std::io::{BufRead, BufReader, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::time::Instant;

    const CLIENTS: usize = 40;
    const SERVER: &str = "a11-server";

    /// Starts the server, in a thread whose name its own threads have too.
    fn serve(engine: &Engine<server::Reply>) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let engine = engine.clone();
        thread::Builder::new()
            .name(SERVER.into())
            .spawn(move || server::serve(listener, &engine))
            .unwrap();
        address
    }

    fn threads_of_the_server() -> usize {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.trim() == SERVER).count()
    }

    struct Client(BufReader<TcpStream>, Instant);

    impl Client {
        /// Sends two requests at once.
        fn ask(address: SocketAddr, n: usize) -> Client {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let sent = Instant::now();
            stream
                .write_all(format!("first {n}\nsecond {n}\n").as_bytes())
                .unwrap();
            Client(BufReader::new(stream), sent)
        }

        fn reply(&mut self) -> String {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("no reply");
            line
        }
    }

    #[test]
    fn a11_a_server_delays_its_replies_on_one_thread() {
        let engine = Engine::builder().start().unwrap();
        let address = serve(&engine);
        // A client that disconnects disturbs no other.
        drop(Client::ask(address, CLIENTS));
        let begun = Instant::now();
        let mut clients: Vec<Client> = (0..CLIENTS).map(|n| Client::ask(address, n)).collect();
        crate::wait_until(|| engine.ledger().accepted >= 2 * CLIENTS as u64);
        assert_eq!(threads_of_the_server(), 2, "one reads, one answers");
        for (n, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.reply(), format!("first {n}\n"));
            assert!(client.1.elapsed() >= DELAY, "early");
            assert_eq!(client.reply(), format!("second {n}\n"));
        }
        // One after the other they would have waited for each other.
        assert!(begun.elapsed() < DELAY * CLIENTS as u32 / 2);
        assert!(engine.ledger().is_balanced());
        engine.shutdown();
    }
}
