//! Promises 2, 12 and 13 to a loop that drives an engine itself: it is called in
//! time, it learns of the end, and it sleeps exactly as long as nothing is due.

use super::*;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use tickwheel::wheel::Advance;
use tickwheel::{Driver, Task, TaskEngine, Timer};

#[cfg(target_os = "linux")]
mod descriptor {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::sync::Barrier;
    use std::thread;
    use tickwheel::RecvError;

    /// Whether the descriptor becomes readable within `limit`.
    fn is_readable(fd: &impl AsRawFd, limit: Duration) -> bool {
        let mut polled = libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one valid entry, as the count says.
        let ready = unsafe { libc::poll(&mut polled, 1, limit.as_millis() as i32) };
        ready == 1
    }

    /// Drops the last handle while a loop goes round: sleep, look at the engine,
    /// look at the queue. Returns whether the loop found the end.
    fn finds_the_end(is_end: impl Fn(Advance, RecvError) -> bool + Sync) -> bool {
        let (engine, driver) = Engine::<u32>::builder().shards(2).start_driven().unwrap();
        let queue = engine.queue(0);
        let begin = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                begin.wait();
                drop(engine);
            });
            begin.wait();
            loop {
                let looked = driver.process_due(100);
                let taken = queue.try_recv();
                if is_end(looked, taken.unwrap_err()) {
                    return true;
                }
                if !is_readable(&driver, 5 * SECOND) {
                    return false;
                }
            }
        })
    }

    #[test]
    fn promise_12_a_loop_that_polls_never_misses_the_end() {
        for _ in 0..600 {
            assert!(finds_the_end(|looked, _| looked == Advance::ShutDown));
            assert!(finds_the_end(|_, taken| taken == RecvError::ShutDown));
        }
    }

    #[test]
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
}

#[test]
fn promise_12_a_loop_ends_when_every_task_was_notified() {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let hour = 3_600 * SECOND;
    for _ in 0..3 {
        let task = Timer::every(hour, |_| {}).notified();
        tasks.run(task).unwrap();
    }
    let shut_down = || (tasks.is_shut_down(), driver.is_shut_down());
    assert_eq!(
        (driver.run_due(9), shut_down()),
        (Advance::Done, (false, false))
    );
    let queue = tasks.engine().queue(0);
    assert!(!queue.is_shut_down());
    tasks.shutdown();
    assert_eq!(shut_down(), (true, true));
    assert!(queue.is_shut_down(), "also while there are some to be told");
    assert_eq!(driver.process_due(9), Advance::Done, "three are to be told");
    assert_eq!(driver.run_due(1), Advance::More);
    assert_eq!(driver.run_due(1), Advance::More);
    assert_eq!(driver.run_due(1), Advance::ShutDown);
    assert_eq!(driver.run_due(9), Advance::ShutDown);
    assert_eq!(driver.process_due(0), Advance::ShutDown);
}

#[test]
fn promise_12_an_engine_says_that_it_is_shut_down() {
    let engine = Engine::<u32>::builder().start().unwrap();
    let queue = engine.queue(0);
    assert!(!engine.is_shut_down() && !queue.is_shut_down());
    engine.schedule(Timer::after(SECOND, 1)).unwrap();
    drop(engine.clone());
    assert!(!engine.is_shut_down() && !queue.is_shut_down());
    drop(engine);
    assert!(queue.is_shut_down());
}

#[test]
fn promise_13_a_loop_sleeps_until_a_live_timer_is_due() {
    let (engine, driver) = Engine::<u32>::builder().shards(4).start_driven().unwrap();
    let hour = Duration::from_secs(3_600);
    let in_another_shard = |timer| {
        std::thread::scope(|scope| scope.spawn(|| engine.schedule(timer).unwrap()).join()).unwrap()
    };
    assert_eq!((driver.timeout(), driver.next_wakeup()), (None, None));
    let last = engine.schedule(Timer::after(hour, 1)).unwrap();
    let first = engine.schedule(Timer::after(SECOND, 2)).unwrap();
    let others: Vec<_> = (0..5)
        .map(|n| in_another_shard(Timer::after(2 * SECOND, n)))
        .collect();
    assert!(driver.timeout().unwrap() < 3 * SECOND / 2);
    // What was cancelled is slept over.
    engine.cancel(first).payload().unwrap();
    others.iter().for_each(|&id| _ = engine.cancel(id));
    let next = driver.timeout().unwrap();
    assert!(60 * SECOND < next && next < hour + SECOND, "{next:?}");
    engine.cancel(last).payload().unwrap();
    assert_eq!((driver.timeout(), driver.next_wakeup()), (None, None));
    // What was postponed as well.
    let moved = engine.schedule(Timer::after(SECOND, 3)).unwrap();
    assert!(driver.timeout().unwrap() < 3 * SECOND / 2);
    engine.cancel(moved).payload().unwrap();
    // Also what is due already.
    let due = engine.schedule(Timer::after(Duration::ZERO, 4)).unwrap();
    assert_eq!(driver.timeout(), Some(Duration::ZERO));
    engine.cancel(due).payload().unwrap();
    assert_eq!(driver.timeout(), None);
    engine.schedule(Timer::after(SECOND, 5)).unwrap();
    engine.shutdown();
    assert_eq!((driver.timeout(), driver.next_wakeup()), (None, None));
}

/// How many tasks run inside each other at most, if each of `tasks` tasks drives the
/// engine until nothing is left.
fn deepest(tasks: &TaskEngine, driver: &Arc<Driver<Task>>, count: u32) -> u32 {
    let (depth, deepest) = (Arc::default(), Arc::default());
    for _ in 0..count {
        let (driver, depth) = (Arc::clone(driver), Arc::<AtomicU32>::clone(&depth));
        let deepest = Arc::<AtomicU32>::clone(&deepest);
        let task = move || {
            deepest.fetch_max(depth.fetch_add(1, Relaxed) + 1, Relaxed);
            while driver.run_due(9) == Advance::More {}
            depth.fetch_sub(1, Relaxed);
        };
        tasks.run_after(Duration::ZERO, task).unwrap();
    }
    while driver.run_due(9) == Advance::More {}
    deepest.load(Relaxed)
}

#[test]
fn promise_10_a_task_that_drives_its_own_engine_runs_no_other_inside_itself() {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let driver = Arc::new(driver);
    assert_eq!(deepest(&tasks, &driver, 300), 1);
    assert_eq!(tasks.ledger().completed, 300);
    // The thread may drive again, also after a task that panicked in a nested call.
    tasks
        .run_after(Duration::ZERO, || panic!("on purpose"))
        .unwrap();
    assert_eq!(driver.run_due(9), Advance::Done);
    assert_eq!(deepest(&tasks, &driver, 3), 1);
    assert_eq!(tasks.ledger().completed, 303);
}

#[test]
fn promise_10_a_nested_call_says_that_the_engine_was_shut_down() {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let driver = Arc::new(driver);
    let (inner, nested) = (tasks.clone(), Arc::clone(&driver));
    let (tell, told) = mpsc::channel();
    let task = move || {
        tell.send(nested.run_due(9)).unwrap();
        inner.shutdown();
        tell.send(nested.run_due(9)).unwrap();
    };
    tasks.run_after(Duration::ZERO, task).unwrap();
    assert_eq!(driver.run_due(9), Advance::ShutDown);
    let answers: Vec<_> = told.try_iter().collect();
    assert_eq!(answers, [Advance::Done, Advance::ShutDown]);
}

#[test]
fn promise_10_a_task_may_move_due_timers_into_their_queues() {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let driver = Arc::new(driver);
    let (inner, nested) = (tasks.clone(), Arc::clone(&driver));
    let (tell, told) = mpsc::channel();
    let task = move || {
        let tell_it = tell.clone();
        let next = move || tell_it.send(2).unwrap();
        inner.run_after(Duration::ZERO, next).unwrap();
        assert_eq!(nested.process_due(9), Advance::Done);
        tell.send(1).unwrap();
    };
    tasks.run_after(Duration::ZERO, task).unwrap();
    assert_eq!(driver.run_due(9), Advance::Done);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(tasks.engine().snapshot().panics, 0);
}

#[test]
fn promise_10_a_slow_task_does_not_keep_another_thread_from_driving() {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let (tell, told) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let begun = tell.clone();
    let slow = move || {
        begun.send("the slow one").unwrap();
        let _ = wait.recv();
    };
    tasks.run_after(Duration::ZERO, slow).unwrap();
    let other = move || tell.send("another").unwrap();
    tasks.run_after(Duration::ZERO, other).unwrap();
    thread::scope(|scope| {
        let slow = scope.spawn(|| driver.run_due(9));
        assert_eq!(told.recv().unwrap(), "the slow one");
        let answer = driver.run_due(9);
        let ran = told.try_recv();
        drop(go_on);
        assert_eq!((answer, ran), (Advance::Done, Ok("another")));
        assert_eq!(slow.join().unwrap(), Advance::Done);
    });
}

#[test]
fn promise_03_threads_that_share_a_driver_run_each_task_once() {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let ran: Arc<[AtomicU32]> = (0..2_000).map(|_| AtomicU32::new(0)).collect();
    for n in 0..ran.len() {
        let ran = Arc::clone(&ran);
        let task = move || _ = ran[n].fetch_add(1, Relaxed);
        tasks.run_after(Duration::ZERO, task).unwrap();
    }
    thread::scope(|scope| {
        for budget in [1, 7, 100] {
            let driver = &driver;
            scope.spawn(move || while driver.run_due(budget) == Advance::More {});
        }
    });
    while driver.run_due(100) == Advance::More {}
    assert!(ran.iter().all(|times| times.load(Relaxed) == 1));
}
