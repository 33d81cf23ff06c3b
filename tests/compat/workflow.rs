//! A. Sogou Workflow: cancellable named timers, exactly-once outcome. That the path of
//! unnamed timers has no global lock, `f_better_submitters_share_no_lock` shows.

use super::*;

const FOR_EVER: Duration = Duration::MAX;

#[test]
fn a1_expiry_runs_the_callback_once_with_completed() {
    let (tasks, clock, log) = virtual_tasks();
    let timer = Timer::after(SECOND, log.ending("t")).notified();
    tasks.run(timer).unwrap();
    clock.run_until(Time::from_secs(100));
    assert_eq!(log.take(), ["t Completed"]);
}

#[test]
fn a2_cancel_runs_the_callback_once_with_cancelled_on_a_worker() {
    let (tasks, clock, log) = virtual_tasks();
    let timer = Timer::after(SECOND, log.ending("t")).notified();
    let id = tasks.run(timer).unwrap();
    assert_eq!(tasks.cancel(id), Cancel::Cancelled(()));
    assert_eq!(tasks.cancel(id), Cancel::Gone);
    clock.run_until(Time::from_secs(100));
    assert_eq!(log.take(), ["t Cancelled"]);
}

#[test]
fn a3_stop_notifies_every_armed_timer_at_once() {
    let tasks = TaskEngine::builder().workers(2).start().unwrap();
    let log = Log::new();
    for timer in [
        Timer::after(10_000 * SECOND, log.ending("far")),
        Timer::after(FOR_EVER, log.ending("infinite")),
        Timer::every(5_000 * SECOND, log.ending("repeating")),
    ] {
        tasks.run(timer.notified()).unwrap();
    }
    assert_eq!(tasks.shutdown().len(), 3);
    tasks.join();
    let mut told = log.take();
    told.sort();
    let expected = ["far ShutDown", "infinite ShutDown", "repeating ShutDown"];
    assert_eq!(told, expected);
}

#[test]
fn a3_a_task_running_at_the_stop_is_notified_afterwards() {
    let (tasks, clock, log) = virtual_tasks();
    let (inner, mut ending) = (tasks.clone(), log.ending("t"));
    let task = move |firing: Firing| {
        inner.shutdown();
        ending(firing);
    };
    tasks.run(Timer::every(SECOND, task).notified()).unwrap();
    clock.advance(SECOND);
    tasks.join();
    assert_eq!(log.take(), ["t Completed", "t ShutDown"]);
}

/// A4 and A6 at once: threads that start, cancel by name, and a stop in the middle
/// of it.
#[test]
fn a4_a6_exactly_one_outcome_each_and_counts_that_add_up() {
    for round in 0..10 {
        let tasks = TaskEngine::builder().workers(2).start().unwrap();
        let (tell, told) = mpsc::channel();
        // Returns how many timers were started, and how many cancelled by name.
        let race = || {
            let mut cancelled = 0;
            for n in 0..300 {
                let tell = tell.clone();
                let task = move |firing: Firing| tell.send(firing.outcome()).unwrap();
                let timer = Timer::after(n as u32 * 37 % 80 * MS / 20, task).notified();
                if tasks.run(timer.named("shared")).is_err() {
                    return (n, cancelled); // stopped
                }
                if n % 3 == 0 {
                    let answers = tasks.cancel_by_name("shared", 2).into_iter();
                    cancelled += answers.filter(|(_, answer)| answer.is_cancelled()).count();
                }
            }
            (300, cancelled)
        };
        let counts = thread::scope(|scope| {
            let threads = [(); 3].map(|()| scope.spawn(race));
            thread::sleep(2 * round * MS);
            tasks.shutdown();
            threads.map(|thread| thread.join().unwrap())
        });
        tasks.join();
        let outcomes: Vec<_> = told.try_iter().collect();
        let sum = |sum: (usize, usize), of: (usize, usize)| (sum.0 + of.0, sum.1 + of.1);
        let (started, cancelled) = counts.into_iter().fold((0, 0), sum);
        let says_cancelled = |outcome: &&CloseReason| **outcome == CloseReason::Cancelled;
        assert_eq!(outcomes.len(), started);
        assert_eq!(outcomes.iter().filter(says_cancelled).count(), cancelled);
    }
}

#[test]
fn a5_many_timers_share_a_name_and_the_oldest_go_first() {
    let (engine, clock) = Engine::builder().start_virtual().unwrap();
    let timer = |n, name| Timer::after(SECOND, n).named(name);
    let schedule = |n, name| engine.schedule(timer(n, name)).unwrap();
    for n in 0..3u64 {
        // From different threads, and so in different shards.
        thread::scope(|scope| drop(scope.spawn(|| schedule(n, "n"))));
        schedule(n + 10, "other");
        schedule(n + 20, "n");
    }
    let cancel = |name, max| -> Vec<u64> {
        let answers = engine.cancel_by_name(name, max).into_iter();
        answers.filter_map(|(_, answer)| answer.into_payload()).collect()
    };
    assert_eq!(cancel("unknown", usize::MAX), []);
    assert_eq!(cancel("n", 0), []);
    assert_eq!(cancel("n", 3), [0, 20, 1]);
    // Expired and not taken yet, the others can still be cancelled.
    clock.advance(SECOND);
    assert_eq!(cancel("n", usize::MAX), [21, 2, 22]);
    assert_eq!(cancel("n", usize::MAX), []);
    assert_eq!(engine.ledger().live, 3);
}

#[test]
fn a7_cancelled_before_it_is_started() {
    let (tasks, clock, log) = virtual_tasks();
    let timer = || Timer::after(SECOND, log.ending("t")).named("n").notified();
    let by_name = tasks.create(timer()).unwrap();
    let by_id = tasks.create(timer()).unwrap();
    assert_eq!(tasks.cancel_by_name("n", 1).len(), 1);
    assert_eq!(tasks.cancel(by_id.id()), Cancel::Cancelled(()));
    assert_eq!(tasks.cancel_by_name("n", 9), []);
    settle(&clock);
    assert!(log.take().is_empty(), "told before it was started");
    by_name.start().unwrap();
    by_id.start().unwrap();
    settle(&clock);
    assert_eq!(log.take(), ["t Cancelled"; 2]);
}

#[test]
fn a8_a_timer_that_is_never_started_can_be_dismissed() {
    let (tasks, clock, log) = virtual_tasks();
    let timer = || Timer::after(SECOND, log.ending("t")).named("n").notified();
    drop(tasks.create(timer()).unwrap());
    assert!(tasks.create(timer()).unwrap().dismiss().is_some());
    // Cancelled and then dismissed: never started, so no callback either.
    let cancelled = tasks.create(timer()).unwrap();
    assert_eq!(tasks.cancel(cancelled.id()), Cancel::Cancelled(()));
    drop(cancelled);
    assert_eq!(tasks.cancel_by_name("n", 9), []);
    tasks.shutdown();
    settle(&clock);
    assert!(log.take().is_empty(), "a dismissed timer's callback ran");
    // The log is all that is left of it.
    assert_eq!(Arc::strong_count(&log.lines), 1, "leaked");
}

#[test]
fn a9_an_infinite_timer_ends_only_by_cancel_or_stop() {
    let (tasks, clock, log) = virtual_tasks();
    let infinite = |label| Timer::after(FOR_EVER, log.ending(label)).notified();
    let id = tasks.run(infinite("one")).unwrap();
    tasks.run(infinite("other")).unwrap();
    clock.run_until(Time::from_secs(86_400 * 365 * 500));
    assert!(log.take().is_empty());
    assert_eq!(tasks.cancel(id), Cancel::Cancelled(()));
    settle(&clock);
    assert_eq!(log.take(), ["one Cancelled"]);
    tasks.shutdown();
    settle(&clock);
    assert_eq!(log.take(), ["other ShutDown"]);
}

#[test]
fn a10_a_callback_may_create_start_and_cancel_by_name() {
    let (tasks, clock, log) = virtual_tasks();
    let victim = Timer::after(9 * SECOND, log.ending("victim"));
    tasks.run(victim.named("v").notified()).unwrap();
    let (inner, inner_log) = (tasks.clone(), log.clone());
    let task = move |_| {
        assert_eq!(inner.cancel_by_name("v", 9).len(), 1);
        let created = inner.create(Timer::after(SECOND, inner_log.ending("created")));
        created.unwrap().start().unwrap();
    };
    tasks.run(Timer::after(SECOND, task)).unwrap();
    clock.run_until(Time::from_secs(20));
    assert_eq!(log.take(), ["victim Cancelled", "created Completed"]);
}

/// The article's closing program, over real sockets: the server is that of
/// `examples/sockets/src/bin/delayed_reply`.
#[cfg(target_os = "linux")]
#[test]
fn a11_a_server_delays_its_replies_on_one_thread() {
    use std::io::{BufRead, BufReader, Write};
    use std::net::{TcpListener, TcpStream};

    const CLIENTS: u32 = 40;
    const SERVER: &str = "a11-server";
    let engine = Engine::builder().start().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let served = engine.clone();
    // Its own threads have its name, too.
    let server = thread::Builder::new().name(SERVER.into());
    let serve = move || server::serve(listener, &served);
    server.spawn(serve).unwrap();

    let ask = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let asked = Instant::now();
        stream.write_all(b"first\nsecond\n").unwrap();
        (asked, BufReader::new(stream).lines())
    };
    let begun = Instant::now();
    let clients: Vec<_> = (0..CLIENTS).map(|_| ask()).collect();
    wait_until(|| engine.ledger().accepted >= 2 * u64::from(CLIENTS));
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = threads.filter_map(|one| std::fs::read_to_string(one.path().join("comm")).ok());
    let threads = names.filter(|name| name.trim() == SERVER).count();
    assert_eq!(threads, 2, "one reads, one answers");
    for (asked, mut replies) in clients {
        assert_eq!(replies.next().unwrap().unwrap(), "first");
        assert!(asked.elapsed() >= DELAY, "early");
        assert_eq!(replies.next().unwrap().unwrap(), "second");
    }
    // One after the other they would have waited for each other.
    assert!(begun.elapsed() < DELAY * CLIENTS / 2);
    engine.shutdown();
}

#[test]
fn a_better_cancel_by_id_as_well_as_by_name() {
    let (engine, _clock) = virtual_engine();
    let schedule = |n| engine.schedule(Timer::after(SECOND, n).named("n")).unwrap();
    let (id, other) = (schedule(1u64), schedule(2));
    assert_eq!(engine.cancel(id), Cancel::Cancelled(1));
    let cancelled = engine.cancel_by_name("n", 9);
    assert_eq!(cancelled, [(other, Cancel::Cancelled(2))]);
}

#[test]
fn a_better_a_bad_duration_cannot_be_expressed() {
    // Every `Duration` is a delay, from the shortest to the longest.
    let (engine, clock) = virtual_engine();
    for delay in [Duration::ZERO, Duration::from_nanos(1), FOR_EVER] {
        engine.schedule(Timer::after(delay, "t")).unwrap();
    }
    clock.advance(SECOND);
    assert_eq!(engine.queue(0).len(), 2);
}
