//! Promises 2, 10, 12 and 13 to a loop that drives an engine itself: it is called in
//! time, it learns of the end, and it sleeps exactly as long as nothing is due.

use super::*;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Whether the descriptor becomes readable within `limit`.
#[cfg(target_os = "linux")]
pub(super) fn is_readable(fd: &impl std::os::fd::AsRawFd, limit: Duration) -> bool {
    let mut polled = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry, as the count says.
    let ready = unsafe { libc::poll(&mut polled, 1, limit.as_millis() as i32) };
    ready == 1
}

#[test]
#[cfg(target_os = "linux")]
fn promise_12_the_descriptor_stays_readable_after_the_end() {
    let (engine, driver) = Engine::<()>::builder().start_driven().unwrap();
    assert!(!is_readable(&driver, Duration::ZERO));
    engine.shutdown();
    for _ in 0..3 {
        assert!(is_readable(&driver, Duration::ZERO));
        assert_eq!(driver.process_due(1), Advance::ShutDown);
    }
    drop(engine);
    assert!(is_readable(&driver, Duration::ZERO));
}

#[test]
fn promise_12_a_loop_ends_when_every_task_was_notified() {
    let (tasks, driver) = driven_tasks();
    let (driver, told) = (Arc::new(driver), told());
    for _ in 0..3 {
        let nested = Arc::clone(&driver);
        let task = told.of(move |firing| (firing.is_cancelled(), nested.process_due(9)));
        tasks.run(Timer::every(HOUR, task).notified()).unwrap();
    }
    assert_eq!(driver.process_due(9), Advance::Done);
    assert!(!tasks.is_shut_down());
    tasks.shutdown();
    // Also while there are some to be told.
    assert!(tasks.is_shut_down());
    for answer in [Advance::More, Advance::More, Advance::ShutDown] {
        assert_eq!(driver.process_due(1), answer);
    }
    let nested = [Advance::Done, Advance::Done, Advance::ShutDown];
    assert_eq!(told.all(), nested.map(|answer| (true, answer)));
    assert_eq!(driver.process_due(9), Advance::ShutDown);
    assert_eq!(driver.process_due(0), Advance::ShutDown);
}

#[test]
fn promise_13_a_loop_sleeps_until_a_live_timer_is_due() {
    let (engine, driver) = Engine::<u32>::builder().shards(4).start_driven().unwrap();
    let sleeps = || (driver.timeout(), driver.next_wakeup());
    let soon = || driver.timeout().unwrap() < 3 * SECOND / 2;
    assert_eq!((sleeps(), engine.earliest_deadline()), ((None, None), None));
    let last = engine.after(HOUR, 1);
    let first = engine.after(SECOND, 2);
    let in_another_shard = |n| {
        let schedule = || engine.after(2 * SECOND, n);
        thread::scope(|scope| scope.spawn(schedule).join().unwrap())
    };
    let others: Vec<_> = (0..5).map(in_another_shard).collect();
    assert!(soon());
    // What was cancelled is slept over.
    engine.cancel(first).into_payload().unwrap();
    others.iter().for_each(|&id| _ = engine.cancel(id));
    let next = driver.timeout().unwrap();
    assert!(60 * SECOND < next && next < HOUR + SECOND, "{next:?}");
    engine.cancel(last).into_payload().unwrap();
    assert_eq!(sleeps(), (None, None));
    // What was postponed is not forgotten: a bound, and the exact deadline.
    let hour = Time::START + HOUR;
    let moved = engine.put(Timer::at(hour, 3));
    engine.reschedule(moved, hour + HOUR).unwrap();
    assert!(driver.next_wakeup().unwrap() <= hour);
    assert_eq!(engine.earliest_deadline(), Some(hour + HOUR));
    engine.cancel(moved).into_payload().unwrap();
    assert_eq!((sleeps(), engine.earliest_deadline()), ((None, None), None));
    // Also what is due already.
    let due = engine.after(Duration::ZERO, 4);
    assert_eq!(driver.timeout(), Some(Duration::ZERO));
    engine.cancel(due).into_payload().unwrap();
    assert_eq!(driver.timeout(), None);
    // Nor is the descriptor armed for what was cancelled before the last call.
    engine.cancel(engine.after(20 * MS, 5)).into_payload().unwrap();
    assert_eq!(driver.process_due(1), Advance::Done);
    #[cfg(target_os = "linux")]
    assert!(!is_readable(&driver, 40 * MS));
    engine.after(SECOND, 6);
    assert!(soon());
    engine.shutdown();
    assert_eq!(sleeps(), (None, None));
}

/// Not even if the memory of the timer that was next has been given back.
#[test]
fn promise_12_a_loop_waits_for_no_timer_after_a_shutdown() {
    let (engine, driver) = Engine::builder().shards(1).start_driven().unwrap();
    (0..5_000).for_each(|n| _ = engine.after(HOUR + n * SECOND, n));
    engine.after(SECOND, 0);
    assert_eq!(engine.shutdown().len(), 5_001);
    assert_eq!(driver.next_wakeup(), None);
}

/// How many tasks run inside each other at most, if each of `count` tasks drives the
/// engine until nothing is left.
fn deepest(tasks: &TaskEngine, driver: &Arc<Driver<Task>>, count: u32) -> u32 {
    let (depth, deepest) = (Arc::default(), Arc::default());
    for _ in 0..count {
        let (driver, depth) = (Arc::clone(driver), Arc::<AtomicU32>::clone(&depth));
        let deepest = Arc::<AtomicU32>::clone(&deepest);
        let task = move || {
            deepest.fetch_max(depth.fetch_add(1, Relaxed) + 1, Relaxed);
            while driver.process_due(9) == Advance::More {}
            depth.fetch_sub(1, Relaxed);
        };
        tasks.run_after(Duration::ZERO, task).unwrap();
    }
    while driver.process_due(9) == Advance::More {}
    deepest.load(Relaxed)
}

#[test]
fn promise_10_a_task_that_drives_its_own_engine_runs_no_other_inside_itself() {
    let (tasks, driver) = driven_tasks();
    let driver = Arc::new(driver);
    assert_eq!(deepest(&tasks, &driver, 300), 1);
    assert_eq!(tasks.ledger().completed, 300);
    // The thread may drive again, also after a task that panicked in a nested call.
    let panics = || panic!("on purpose");
    tasks.run_after(Duration::ZERO, panics).unwrap();
    assert_eq!(driver.process_due(9), Advance::Done);
    assert_eq!(deepest(&tasks, &driver, 3), 1);
    assert_eq!(tasks.ledger().completed, 303);
}

#[test]
fn promise_10_a_nested_call_runs_no_task_and_says_that_the_engine_was_shut_down() {
    let (tasks, driver) = driven_tasks();
    let driver = Arc::new(driver);
    let (inner, nested, told) = (tasks.clone(), Arc::clone(&driver), told());
    let task = told.of(move |_| {
        inner.run_after(Duration::ZERO, || ()).unwrap();
        let moved = nested.process_due(9);
        let [first, then] = [0, 1].map(|_| (nested.process_due(9), inner.shutdown().len()));
        (moved, first, then)
    });
    tasks.run(Timer::after(Duration::ZERO, task)).unwrap();
    assert_eq!(driver.process_due(9), Advance::ShutDown);
    let expected = (Advance::Done, (Advance::Done, 1), (Advance::ShutDown, 0));
    assert_eq!(told.all(), [expected]);
}

#[test]
fn promise_10_a_task_may_drive_another_engine() {
    let ((tasks, driver), (others, other)) = (driven_tasks(), driven_tasks());
    let told = told();
    others.run_after(Duration::ZERO, told.say("driven")).unwrap();
    tasks.run_after(Duration::ZERO, move || _ = other.process_due(9)).unwrap();
    assert_eq!(driver.process_due(9), Advance::Done);
    assert_eq!(told.all(), ["driven"]);
}

#[test]
fn promise_10_a_slow_task_does_not_keep_another_thread_from_driving() {
    let (tasks, driver) = driven_tasks();
    let told = told();
    let (go_on, slow) = told.hold("the slow one");
    tasks.run_after(Duration::ZERO, slow).unwrap();
    let another = told.say("another");
    tasks.run_after(Duration::ZERO, another).unwrap();
    thread::scope(|scope| {
        let slow = scope.spawn(|| driver.process_due(9));
        assert_eq!(told.next(), "the slow one");
        let answer = (driver.process_due(9), told.all());
        drop(go_on);
        assert_eq!(answer, (Advance::Done, vec!["another"]));
        assert_eq!(slow.join().unwrap(), Advance::Done);
    });
}
