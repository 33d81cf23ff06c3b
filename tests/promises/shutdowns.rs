//! Promise 12: shutdown and drain account for every timer.

use super::*;

#[test]
fn promise_12_shutdown_accounts_for_every_timer() {
    let (engine, clock) = virtual_engine();
    let waiting = engine.after(SECOND, "waiting");
    let ready = engine.after(MS, "ready");
    let running = engine.put(Timer::every(MS, "running").queue(1).named("beat"));
    let last = engine.put(Timer::every(MS, "last").times(1).queue(1));
    clock.advance(MS);
    let queue = engine.queue(1);
    let lent = [queue.recv().unwrap(), queue.recv().unwrap()];
    let left = engine.shutdown();
    assert!(left.iter().all(|it| it.reason == CloseReason::ShutDown));
    let mut left: Vec<_> = left.into_iter().map(|it| (it.payload, it.id)).collect();
    left.sort_unstable();
    let payloads = [None, Some("ready"), Some("waiting")];
    let expected = payloads.into_iter().zip([running, ready, waiting]);
    assert!(left.into_iter().eq(expected));
    assert_eq!(engine.ledger().live, 1); // the last firing ends by itself
    assert_eq!(lent[0].remaining(), Some(0));
    assert_eq!(engine.cancel(running), Cancel::Gone);
    assert_eq!(engine.find_by_name("beat").next(), None);
    drop(lent);
    assert_eq!(engine.cancel(last), Cancel::Gone);
    assert_eq!(ends(&engine), [0, 1, 0, 3, 0]);
    assert!(engine.shutdown().is_empty());
    assert_eq!(engine.queue(0).try_recv().unwrap_err(), RecvError::ShutDown);
}

#[test]
fn promise_12_a_drain_fires_the_one_shots_due_by_its_limit() {
    let engine = Engine::builder().start().unwrap();
    engine.every(5 * MS, 0);
    (1..=20).for_each(|n| _ = engine.after(n * MS, n));
    engine.after(HOUR, 99);
    let queue = engine.queue(0);
    let worker = thread::spawn(move || {
        let fired = queue.map(|expired| *expired.payload());
        fired.filter(|n| (1..100).contains(n)).collect::<Vec<_>>()
    });
    let (begun, drainer) = (Instant::now(), engine.clone());
    let left = thread::spawn(move || drainer.drain(PATIENCE));
    while engine.schedule(Timer::after(SECOND, 700)).is_ok() {
        thread::yield_now();
    }
    let left = left.join().unwrap().into_iter();
    // It has not waited for more than one-shots.
    assert!(begun.elapsed() < PATIENCE / 2);
    let payloads = left.filter_map(|closed| closed.payload);
    assert!(payloads.filter(|n| (1..700).contains(n)).eq([99]));
    assert!(worker.join().unwrap().into_iter().eq(1..=20));
    assert!(engine.ledger().is_balanced());
}

#[test]
fn promise_12_a_task_engine_drains_and_joins_its_workers() {
    let builder = TaskEngine::builder().workers(3);
    let (tasks, _clock) = builder.start_virtual().unwrap();
    let told = told();
    let tell = told.tell();
    let slow = move || {
        thread::sleep(50 * MS);
        tell.send("ran").unwrap();
    };
    tasks.run_after(MS, slow).unwrap();
    tasks.run_after(SECOND, told.say("late")).unwrap();
    let left = tasks.drain(10 * MS);
    assert_eq!((left.len(), left[0].reason), (1, CloseReason::ShutDown));
    drop(left);
    tasks.join();
    assert_eq!(told.all(), ["ran"], "a worker is still at work");
    assert_eq!(ends(&tasks), [0, 1, 0, 1, 0]);
}

#[test]
fn promise_12_a_reported_task_is_dropped_when_it_has_run() {
    let (tasks, clock) = virtual_tasks();
    let held = Arc::new(());
    let task = |act: fn(&TaskEngine, &Firing)| {
        let (mine, inner) = (Arc::clone(&held), tasks.clone());
        move |firing: Firing| {
            act(&inner, &firing);
            assert!(Arc::strong_count(&mine) > 1);
        }
    };
    let returns = Timer::after(MS, task(|_, _| ()));
    let panics = task(|_, firing| assert_ne!(firing.number(), 2, "on purpose"));
    let panics = Timer::every(MS, panics).times(2);
    let cancelled = task(|tasks, firing| assert_eq!(tasks.cancel(firing.id()), Cancel::Running));
    let shut_down = task(|tasks, _| assert!(!tasks.shutdown().is_empty()));
    let run = |timer: Timer<_>| _ = tasks.run(timer.reported()).unwrap();
    run(returns);
    run(panics);
    run(Timer::every(MS, cancelled));
    run(Timer::every(5 * MS, shut_down));
    clock.run_until(at(5));
    tasks.join();
    assert_eq!(Arc::strong_count(&held), 1, "in an unread report");
    let mut reports = tasks.reports();
    assert!(reports.all(|closed| closed.payload.is_none()));
    assert_eq!(ends(&tasks), [0, 1, 1, 1, 1]);
}

#[test]
fn promise_12_every_join_returns() {
    for _ in 0..3 {
        let tasks = TaskEngine::builder().workers(2).start().unwrap();
        let (end, ended) = channel::<()>();
        let slow = move || assert!(ended.recv().is_err());
        tasks.run_after(Duration::ZERO, slow).unwrap();
        let joiner = tasks.clone();
        each_returns_after(
            move |_| joiner.join(),
            || {
                tasks.shutdown();
                thread::sleep(20 * MS);
                drop(end);
            },
        );
    }
}

#[test]
fn promise_12_a_drain_does_not_wait_for_timers_that_catch_up() {
    let builder = Engine::builder().shards(1);
    let engine = builder.tick(Duration::from_nanos(100)).start().unwrap();
    // They are behind for ever: the ready list is never empty.
    (0..2).for_each(|_| _ = engine.every(Duration::from_nanos(1), "beat"));
    engine.after(MS, "once");
    let queue = engine.queue(0);
    let worker = thread::spawn(move || {
        thread::sleep(50 * MS); // the drain has looked, and waits
        queue.filter(|fired| *fired.payload() == "once").count()
    });
    let begun = Instant::now();
    assert_eq!(engine.drain(PATIENCE).len(), 2);
    assert!(begun.elapsed() < PATIENCE / 2, "waited for what repeats");
    assert_eq!(worker.join().unwrap(), 1);
}

#[test]
fn promise_12_a_drain_waits_for_nothing_that_never_comes() {
    let engine = Engine::builder().start().unwrap();
    engine.after(Duration::MAX, "never");
    assert_eq!(engine.drain(Duration::MAX).len(), 1);

    // Nor for a report that nobody reads, or for a repeating timer. The fastest of a few: a busy
    // machine may hold one up.
    let drains = (0..5).map(|_| {
        let (engine, clock) = virtual_engine();
        engine.put(Timer::after(MS, 0).reported());
        engine.cancel(engine.put(Timer::after(MS, 2).reported()));
        clock.advance(MS);
        assert_eq!((payloads(&engine), engine.reports().len()), (vec![0], 2));
        engine.every(MS, 1);
        let begun = Instant::now();
        assert_eq!(engine.drain(MS).len(), 1);
        begun.elapsed()
    });
    let fastest = drains.min().unwrap();
    assert!(fastest < SECOND / 2, "waited for {fastest:?}");

    // Nor for what another thread has shut down; nor does a clock wait for its workers.
    let (engine, clock) = virtual_engine::<u32>();
    engine.queue(0).expect_workers(1);
    let (real, inner) = (Engine::builder().start().unwrap(), engine.clone());
    real.after(HOUR, 7);
    let (drained, clock) = (real.clone(), Arc::new(clock));
    let wait = move |n: usize| match n % 2 {
        0 => drop(drained.drain(2 * HOUR)),
        _ => clock.run_until(inner.now() + MS),
    };
    let begun = Instant::now();
    each_returns_after(wait, || {
        real.shutdown();
        engine.shutdown();
    });
    assert!(begun.elapsed() < PATIENCE / 4);
}

/// The drain's limit is in the middle of a tick, and so is the deadline.
#[test]
fn promise_12_a_drain_includes_the_tick_of_its_limit() {
    let clock = VirtualClock::starting_at(Time::START + MS / 2);
    let engine = Engine::builder().start_on(&clock).unwrap();
    (0..1_000).for_each(|n| _ = engine.after(MS, n));
    let queue = engine.queue(0);
    let worker = thread::spawn(move || {
        thread::sleep(20 * MS);
        queue.map(Expired::into_payload).collect::<Vec<_>>()
    });
    assert_eq!(engine.drain(MS), []);
    assert!(worker.join().unwrap().into_iter().eq(0..1_000));
}

/// That it leaks nothing is seen in tests/resources.
#[test]
fn promise_12_dropping_the_last_handle_neither_waits_nor_leaks() {
    let (told, tasks) = (told(), TaskEngine::builder().start().unwrap());
    let (release, stuck) = told.hold(());
    tasks.run_after(Duration::ZERO, stuck).unwrap();
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    tasks.run_after(HOUR, move || drop(held)).unwrap();
    told.next();
    let begun = Instant::now();
    drop(tasks);
    assert!(begun.elapsed() < 5 * SECOND, "waited for a running task");
    assert_eq!(Arc::strong_count(&alive), 1);
    drop(release);
}

#[test]
#[cfg(target_os = "linux")]
fn promise_12_a_program_that_is_started_inherits_no_descriptor() {
    use std::os::fd::AsRawFd;

    let (_engine, driver) = Engine::<()>::builder().start_driven().unwrap();
    // SAFETY: the descriptor is open, and the call takes no pointers.
    let flags = unsafe { libc::fcntl(driver.as_raw_fd(), libc::F_GETFD) };
    assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);

    let _engine = Engine::<()>::builder().start().unwrap();
    let mut list = std::process::Command::new("ls");
    let listed = list.args(["-l", "/proc/self/fd"]).output().unwrap();
    let inherited = String::from_utf8(listed.stdout).unwrap();
    assert!(!inherited.contains("timerfd"), "{inherited}");
}
