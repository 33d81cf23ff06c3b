//! C. The tutorial's reactor timer over epoll's timeout, and its timerfd timer.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::MS;
use tickwheel::wheel::Advance;
use tickwheel::{Cancel, Driver, Engine, Task, TaskEngine, Tick, Timer, Wheel};

#[test]
fn c1_order_by_deadline_and_equal_deadlines_first_in_first_out() {
    let mut wheel = Wheel::new(64);
    // More of one deadline than a slot has lists.
    wheel.schedule_at(Tick(3_000), 'z');
    for label in 'a'..='x' {
        wheel.schedule_at(Tick(1_000), label);
    }
    wheel.schedule_at(Tick(2_100), 'y');
    let fired: String = std::iter::from_fn(|| wheel.pop_due(Tick(5_000)))
        .map(|expired| expired.payload)
        .collect();
    assert_eq!(fired, ('a'..='z').collect::<String>());
}

#[test]
fn c2_delete_says_whether_it_removed_something() {
    let (engine, driver) = Engine::builder().start_driven().unwrap();
    let (other, _) = Engine::builder().start_driven().unwrap();
    let removed = |id| matches!(engine.cancel(id), Cancel::Cancelled(_));
    let pending = engine.schedule(Timer::after(1_000 * MS, 1)).unwrap();
    assert!(removed(pending));
    assert!(!removed(pending), "deleted before");
    let fired = engine.schedule(Timer::after(Duration::ZERO, 2)).unwrap();
    assert_eq!(driver.process_due(usize::MAX), Advance::Done);
    assert_eq!(engine.queue(0).try_recv().unwrap().into_payload(), 2);
    assert!(!removed(fired), "had fired");
    let foreign = other.schedule(Timer::after(1_000 * MS, 3)).unwrap();
    assert!(!removed(foreign), "never existed here");
}

#[test]
fn c3_handling_runs_due_tasks_within_its_budget() {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let (tell, told) = mpsc::channel();
    /// Adds another one that is due at once, `more` times over.
    fn chain(tasks: &TaskEngine, tell: mpsc::Sender<u32>, more: u32) {
        let inner = tasks.clone();
        let task = move || {
            tell.send(more).unwrap();
            if more > 0 {
                chain(&inner, tell, more - 1);
            }
        };
        tasks.run_after(Duration::ZERO, task).unwrap();
    }
    chain(&tasks, tell.clone(), 3);
    tasks.run_after(10_000 * MS, || panic!("not due")).unwrap();
    assert_eq!(driver.run_due(100), Advance::Done);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [3, 2, 1, 0]);

    chain(&tasks, tell, 9);
    assert_eq!(driver.run_due(4), Advance::More);
    assert_eq!(driver.timeout(), Some(Duration::ZERO));
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [9, 8, 7, 6]);
    assert_eq!(driver.run_due(100), Advance::Done);
    assert_eq!(told.try_iter().count(), 6);

    // Tasks that are left in the queue, while nothing is left in the wheel.
    (0..5).for_each(|_| drop(tasks.run_after(Duration::ZERO, || ())));
    assert_eq!(driver.run_due(2), Advance::More);
    assert_eq!(driver.timeout(), Some(Duration::ZERO));
    assert_eq!(driver.run_due(100), Advance::Done);
}

#[test]
fn c3_the_wheel_alone_serves_additions_in_the_same_pass() {
    let mut wheel = Wheel::new(64);
    wheel.schedule_at(Tick(5), 3u64);
    let mut fired = Vec::new();
    let done = wheel.advance(Tick(10), 100, |wheel, expired| {
        fired.push((expired.deadline.0, expired.payload));
        if expired.payload > 0 {
            wheel.schedule_at(Tick(expired.payload * 3), expired.payload - 1);
        }
    });
    // Due at 9, at 6 (which is past by then, so at once), at 3 (likewise).
    assert_eq!(
        (done, fired),
        (Advance::Done, vec![(5, 3), (9, 2), (9, 1), (9, 0)])
    );
}

#[test]
fn c4_time_to_sleep() {
    let (engine, driver) = Engine::builder().start_driven().unwrap();
    assert_eq!(driver.timeout(), None);
    let id = engine.schedule(Timer::after(5_000 * MS, ())).unwrap();
    let timeout = driver.timeout().unwrap();
    assert!(timeout <= 5_001 * MS, "{timeout:?}");
    engine.schedule(Timer::after(Duration::ZERO, ())).unwrap();
    assert_eq!(driver.timeout(), Some(Duration::ZERO));
    assert_eq!(driver.process_due(usize::MAX), Advance::Done);
    engine.cancel(id).payload().unwrap();
    // A lower bound: it may still name the cancelled timer, once.
    let deadline = Instant::now() + 20_000 * MS;
    while let Some(timeout) = driver.timeout() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(timeout.min(100 * MS));
        assert_eq!(driver.process_due(usize::MAX), Advance::Done);
        if timeout > 100 * MS {
            break;
        }
    }
}

/// The article's program at a hundredth of its times: two timers at 10 in
/// order, one at 30, and never the deleted one at 21.
fn program(tasks: &TaskEngine) -> mpsc::Receiver<&'static str> {
    let (tell, told) = mpsc::channel();
    let say = |label| {
        let tell = tell.clone();
        move || tell.send(label).unwrap()
    };
    tasks.run_after(10 * MS, say("1000 a")).unwrap();
    tasks.run_after(30 * MS, say("3000")).unwrap();
    tasks.run_after(10 * MS, say("1000 b")).unwrap();
    let deleted = tasks.run_after(21 * MS, say("deleted")).unwrap();
    assert_eq!(tasks.cancel(deleted), Cancel::Cancelled(()));
    told
}

const PROGRAM: [&str; 3] = ["1000 a", "1000 b", "3000"];

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use crate::epoll::{Epoll, Trigger};
    use tickwheel::{CloseReason, Firing, TimerId};

    const TIMERS: u64 = 0;
    const SOCKET: u64 = 1;

    fn socket(epoll: &Epoll) -> (UnixStream, UnixStream) {
        let (near, far) = UnixStream::pair().unwrap();
        epoll.add(&near, SOCKET, Trigger::Level);
        (near, far)
    }

    #[test]
    fn c5_both_programs_over_the_timeout_of_epoll() {
        let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
        let epoll = Epoll::new();
        let (mut near, mut far) = socket(&epoll);
        let told = program(&tasks);
        far.write_all(b"x").unwrap();
        let (mut fired, mut read) = (Vec::new(), 0);
        while fired.len() < 3 || read == 0 {
            if epoll.wait(driver.timeout()).contains(&SOCKET) {
                read += near.read(&mut [0; 8]).unwrap();
            }
            let _ = driver.run_due(100);
            fired.extend(told.try_iter());
        }
        assert_eq!((fired, read), (PROGRAM.to_vec(), 1));
    }

    fn over_the_descriptor(trigger: Trigger) {
        let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
        let epoll = Epoll::new();
        epoll.add(&driver, TIMERS, trigger);
        let (mut near, mut far) = socket(&epoll);
        let told = program(&tasks);
        far.write_all(b"x").unwrap();
        let (mut fired, mut read) = (Vec::new(), 0);
        while fired.len() < 3 || read == 0 {
            for token in epoll.wait(Some(20_000 * MS)) {
                match token {
                    SOCKET => read += near.read(&mut [0; 8]).unwrap(),
                    // A budget of one: the descriptor must say it again.
                    _ => {
                        let _ = driver.run_due(1);
                    }
                }
            }
            fired.extend(told.try_iter());
        }
        assert_eq!((fired, read), (PROGRAM.to_vec(), 1));
        // Nothing is left, so it is disarmed: no event comes.
        assert_eq!(driver.run_due(9), Advance::Done);
        assert!(epoll.wait(Some(20 * MS)).is_empty());
    }

    #[test]
    fn c5_both_programs_over_the_timerfd_level_triggered() {
        over_the_descriptor(Trigger::Level);
    }

    #[test]
    fn c5_both_programs_over_the_timerfd_edge_triggered() {
        over_the_descriptor(Trigger::Edge);
    }

    #[test]
    fn c5_with_mio() {
        use mio::unix::SourceFd;
        use mio::{Events, Interest, Poll, Token};
        let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
        let mut poll = Poll::new().unwrap();
        let fd = driver.as_raw_fd();
        let mut source = SourceFd(&fd);
        let registry = poll.registry();
        registry
            .register(&mut source, Token(0), Interest::READABLE)
            .unwrap();
        let told = program(&tasks);
        let (mut events, mut fired) = (Events::with_capacity(8), Vec::new());
        while fired.len() < 3 {
            poll.poll(&mut events, Some(20_000 * MS)).unwrap();
            assert!(!events.is_empty(), "not told");
            let _ = driver.run_due(100);
            fired.extend(told.try_iter());
        }
        assert_eq!(fired, PROGRAM);
    }

    #[test]
    fn c4_an_earlier_timer_of_another_thread_wakes_the_loop() {
        let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
        let epoll = Epoll::new();
        epoll.add(&driver, TIMERS, Trigger::Level);
        tasks.run_after(3_600_000 * MS, || ()).unwrap();
        let _ = driver.run_due(1);
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            let tasks = &tasks;
            scope.spawn(move || {
                std::thread::sleep(20 * MS);
                tasks
                    .run_after(5 * MS, move || tell.send(()).unwrap())
                    .unwrap();
            });
            while told.try_recv().is_err() {
                assert!(!epoll.wait(Some(20_000 * MS)).is_empty(), "not woken");
                let _ = driver.run_due(100);
            }
        });
    }

    /// A far task that tells how it ended.
    fn far(tasks: &TaskEngine, tell: &mpsc::Sender<CloseReason>) -> TimerId {
        let tell = tell.clone();
        let task = move |firing: Firing| tell.send(firing.outcome()).unwrap();
        let far = Timer::after(3_600_000 * MS, task).notified();
        tasks.run(far.named("far")).unwrap()
    }

    fn is_called_after(cancel: impl Fn(&TaskEngine, TimerId)) {
        let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
        let epoll = Epoll::new();
        epoll.add(&driver, TIMERS, Trigger::Edge);
        let (tell, told) = mpsc::channel();
        let id = far(&tasks, &tell);
        assert_eq!(driver.run_due(9), Advance::Done);
        cancel(&tasks, id);
        assert_eq!(driver.timeout(), Some(Duration::ZERO));
        assert!(!epoll.wait(Some(20_000 * MS)).is_empty(), "not called");
        assert_eq!(driver.run_due(9), Advance::Done);
        assert_eq!(told.try_recv(), Ok(CloseReason::Cancelled));
    }

    #[test]
    fn c_better_a_cancel_wakes_the_loop_to_notify_the_task() {
        is_called_after(|tasks, id| assert_eq!(tasks.cancel(id), Cancel::Cancelled(())));
    }

    #[test]
    fn c_better_a_cancel_by_name_wakes_the_loop_too() {
        is_called_after(|tasks, _| assert_eq!(tasks.cancel_by_name("far", 1), 1));
    }

    #[test]
    fn c_better_a_shutdown_wakes_the_loop_until_all_are_notified() {
        let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
        let epoll = Epoll::new();
        epoll.add(&driver, TIMERS, Trigger::Edge);
        let (tell, told) = mpsc::channel();
        for _ in 0..3 {
            far(&tasks, &tell);
        }
        tasks.shutdown();
        for _ in 0..3 {
            assert!(!epoll.wait(Some(20_000 * MS)).is_empty(), "not called");
            let _ = driver.run_due(1);
            assert_eq!(told.try_recv(), Ok(CloseReason::ShutDown));
        }
    }

    #[test]
    fn b1_a_driven_engine_runs_callbacks_in_the_loops_thread() {
        let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
        let (tell, told) = mpsc::channel();
        let submitter = tasks.clone();
        let elsewhere = std::thread::spawn(move || {
            let say = move || tell.send(std::thread::current().id()).unwrap();
            submitter.run_after(MS, say).unwrap();
        });
        elsewhere.join().unwrap();
        let ran = loop {
            std::thread::sleep(driver.timeout().unwrap_or_default());
            let _ = driver.run_due(9);
            if let Ok(ran) = told.try_recv() {
                break ran;
            }
        };
        assert_eq!(ran, std::thread::current().id());
    }
}

/// Runs the article's program with a way of waiting that the test brings.
fn drive(wait: impl Fn(&Driver<Task>)) {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let told = program(&tasks);
    let mut fired = Vec::new();
    while fired.len() < 3 {
        wait(&driver);
        let _ = driver.run_due(100);
        fired.extend(told.try_iter());
    }
    assert_eq!(fired, PROGRAM);
}

#[test]
fn c6_driven_by_frames() {
    drive(|_| std::thread::sleep(2 * MS));
}

#[test]
fn c6_driven_by_sleeping() {
    drive(|driver| std::thread::sleep(driver.timeout().unwrap_or_default()));
}

#[test]
fn c_better_a_timer_may_delete_itself_in_its_callback() {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let (tell, told) = mpsc::channel();
    let inner = tasks.clone();
    let task = move |firing: tickwheel::Firing| {
        tell.send(inner.cancel(firing.id())).unwrap();
    };
    tasks.run_every(MS, task).unwrap();
    while tasks.ledger().live > 0 {
        std::thread::sleep(MS);
        let _ = driver.run_due(9);
    }
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [Cancel::Running]);
    assert_eq!(tasks.ledger().cancelled, 1);
}
