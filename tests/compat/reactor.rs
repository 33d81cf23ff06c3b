//! C. The tutorial's reactor timer over epoll's timeout, and its timerfd timer.

use super::*;
use tickwheel::Driver;

fn driven_tasks() -> (TaskEngine, Driver<Task>, Log) {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    (tasks, driver, Log::new())
}

#[test]
fn c1_order_by_deadline_and_equal_deadlines_first_in_first_out() {
    let mut wheel = Wheel::new(64);
    // More of one deadline than a slot has lists.
    wheel.schedule_at(Tick(3_000), 31);
    for n in 0..30 {
        wheel.schedule_at(Tick(1_000), n);
    }
    wheel.schedule_at(Tick(2_100), 30u64);
    let fired = fire(&mut wheel, 5_000);
    assert!(fired.into_iter().map(|(_, n)| n).eq(0..=31));
}

#[test]
fn c2_delete_says_whether_it_removed_something() {
    let (engine, driver) = Engine::builder().start_driven().unwrap();
    let (other, _) = Engine::builder().start_driven().unwrap();
    let removed = |id| engine.cancel(id).is_cancelled();
    let pending = engine.schedule(Timer::after(SECOND, 1u64)).unwrap();
    assert!(removed(pending));
    assert!(!removed(pending), "deleted before");
    let fired = engine.schedule(Timer::after(Duration::ZERO, 2)).unwrap();
    assert_eq!(driver.process_due(usize::MAX), Advance::Done);
    assert_eq!(engine.queue(0).try_recv().unwrap().into_payload(), 2);
    assert!(!removed(fired), "had fired");
    let foreign = other.schedule(Timer::after(SECOND, 3)).unwrap();
    assert!(!removed(foreign), "never existed here");
}

/// Adds a task that is due at once and adds another one, `more` times over.
fn chain(tasks: &TaskEngine, log: &Log, more: u32) {
    let (inner, said) = (tasks.clone(), log.clone());
    let task = move || {
        said.say(more);
        if more > 0 {
            chain(&inner, &said, more - 1);
        }
    };
    tasks.run_after(Duration::ZERO, task).unwrap();
}

#[test]
fn c3_handling_runs_due_tasks_within_its_budget() {
    let (tasks, driver, log) = driven_tasks();
    chain(&tasks, &log, 3);
    tasks.run_after(HOUR, || panic!("not due")).unwrap();
    assert_eq!(driver.process_due(100), Advance::Done);
    assert_eq!(log.take(), ["3", "2", "1", "0"]);

    chain(&tasks, &log, 5);
    assert_eq!(driver.process_due(4), Advance::More);
    assert_eq!(driver.timeout(), Some(Duration::ZERO));
    assert_eq!(log.take(), ["5", "4", "3", "2"]);
    assert_eq!(driver.process_due(100), Advance::Done);
    assert_eq!(log.take(), ["1", "0"]);

    // Tasks that are left in the queue, while nothing is left in the wheel.
    (0..5).for_each(|_| drop(tasks.run_after(Duration::ZERO, || ())));
    assert_eq!(driver.process_due(2), Advance::More);
    assert_eq!(driver.timeout(), Some(Duration::ZERO));
}

#[test]
fn c4_time_to_sleep() {
    let (engine, driver) = Engine::builder().start_driven().unwrap();
    assert_eq!(driver.timeout(), None);
    engine.schedule(Timer::after(5 * SECOND, "far")).unwrap();
    let timeout = driver.timeout().unwrap();
    assert!(timeout <= 5 * SECOND + MS, "{timeout:?}");
    engine.schedule(Timer::after(Duration::ZERO, "now")).unwrap();
    assert_eq!(driver.timeout(), Some(Duration::ZERO));
    assert_eq!(driver.process_due(usize::MAX), Advance::Done);
}

/// Asserts that the article's program fires in its order, at a hundredth of its times: two
/// timers at 10, one at 30, and never the deleted one at 21. `turn` waits, and runs what
/// is due.
fn assert_program_runs(tasks: &TaskEngine, log: &Log, mut turn: impl FnMut()) {
    let begun = tasks.now();
    let run = |millis, label| tasks.run_at(begun + millis * MS, log.saying(label)).unwrap();
    let _ = [(10, "1000 a"), (30, "3000"), (10, "1000 b")].map(|(at, label)| run(at, label));
    assert!(tasks.cancel(run(21, "deleted")).is_cancelled());
    while log.lines.lock().unwrap().len() < 3 {
        turn();
    }
    assert_eq!(log.take(), ["1000 a", "1000 b", "3000"]);
}

#[test]
fn c6_driven_by_frames() {
    let (tasks, driver, log) = driven_tasks();
    assert_program_runs(&tasks, &log, || {
        thread::sleep(2 * MS);
        let _ = driver.process_due(100);
    });
}

#[test]
fn c6_driven_by_sleeping() {
    let (tasks, driver, log) = driven_tasks();
    assert_program_runs(&tasks, &log, || {
        thread::sleep(driver.timeout().unwrap_or_default());
        let _ = driver.process_due(100);
    });
}

#[test]
fn c_better_a_timer_may_delete_itself_in_its_callback() {
    let (tasks, driver, log) = driven_tasks();
    let (inner, said) = (tasks.clone(), log.clone());
    let task = move |firing: Firing| said.say(format!("{:?}", inner.cancel(firing.id())));
    tasks.run_every(MS, task).unwrap();
    wait_until(|| driver.process_due(9) == Advance::Done && tasks.ledger().live == 0);
    assert_eq!(log.take(), ["Running"]);
    assert_eq!(tasks.ledger().cancelled, 1);
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use crate::epoll::{Epoll, Trigger};

    const TIMERS: u64 = 0;
    const SOCKET: u64 = 1;

    /// The article's program beside a socket that becomes readable.
    fn both_programs(timers: Option<Trigger>) {
        let (tasks, driver, log) = driven_tasks();
        let epoll = Epoll::new();
        if let Some(trigger) = timers {
            epoll.add(&driver, TIMERS, trigger);
        }
        let (mut near, mut far) = UnixStream::pair().unwrap();
        epoll.add(&near, SOCKET, Trigger::Level);
        far.write_all(b"x").unwrap();
        let mut read = 0;
        assert_program_runs(&tasks, &log, || {
            let limit = timers.map_or_else(|| driver.timeout(), |_| Some(PATIENCE));
            let events = epoll.wait(limit);
            if events.contains(&SOCKET) {
                read += near.read(&mut [0; 8]).unwrap();
            }
            if timers.is_none() || events.contains(&TIMERS) {
                // A budget of one: the descriptor must say it again.
                let _ = driver.process_due(1);
            }
        });
        assert_eq!(read, 1);
        // Nothing is left, so it is disarmed: no event comes.
        assert_eq!(driver.process_due(9), Advance::Done);
        assert!(epoll.wait(Some(20 * MS)).is_empty());
    }

    #[test]
    fn c5_both_programs_over_the_timeout_of_epoll() {
        both_programs(None);
    }

    #[test]
    fn c5_both_programs_over_the_timerfd_level_triggered() {
        both_programs(Some(Trigger::Level));
    }

    #[test]
    fn c5_both_programs_over_the_timerfd_edge_triggered() {
        both_programs(Some(Trigger::Edge));
    }

    #[test]
    fn b1_c4_an_earlier_timer_of_another_thread_wakes_the_loop_and_runs_in_it() {
        let (tasks, driver, log) = driven_tasks();
        let epoll = Epoll::new();
        epoll.add(&driver, TIMERS, Trigger::Level);
        tasks.run_after(HOUR, || ()).unwrap();
        let _ = driver.process_due(1);
        let task = Timer::after(5 * MS, log.ending("t"));
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(20 * MS);
                tasks.run(task).unwrap();
            });
            while log.lines.lock().unwrap().is_empty() {
                assert!(!epoll.wait(Some(PATIENCE)).is_empty(), "not woken");
                let _ = driver.process_due(100);
            }
        });
        assert_eq!(log.take(), ["t Completed inline"]);
    }

    /// Asserts that the loop is called, once for each of three tasks or one, to tell them
    /// how they ended.
    fn is_called_after(end: impl Fn(&TaskEngine, TimerId), told: &[&str]) {
        let (tasks, driver, log) = driven_tasks();
        let epoll = Epoll::new();
        epoll.add(&driver, TIMERS, Trigger::Edge);
        let far = || Timer::after(HOUR, log.ending("far")).notified().named("n");
        let ids = [(); 3].map(|()| tasks.run(far()).unwrap());
        assert_eq!(driver.process_due(9), Advance::Done);
        end(&tasks, ids[0]);
        for told in told {
            assert_eq!(driver.timeout(), Some(Duration::ZERO));
            assert!(!epoll.wait(Some(PATIENCE)).is_empty(), "not called");
            let _ = driver.process_due(1);
            assert_eq!(log.take(), [*told]);
        }
    }

    #[test]
    fn c_better_a_cancel_wakes_the_loop_to_notify_the_task() {
        let cancel = |tasks: &TaskEngine, id| assert!(tasks.cancel(id).is_cancelled());
        is_called_after(cancel, &["far Cancelled inline"]);
    }

    #[test]
    fn c_better_a_cancel_by_name_wakes_the_loop_too() {
        let cancel = |tasks: &TaskEngine, _| assert_eq!(tasks.cancel_by_name("n", 2).len(), 2);
        is_called_after(cancel, &["far Cancelled inline"; 2]);
    }

    #[test]
    fn c_better_a_shutdown_wakes_the_loop_until_all_are_notified() {
        let shut_down = |tasks: &TaskEngine, _| assert_eq!(tasks.shutdown().len(), 3);
        is_called_after(shut_down, &["far ShutDown inline"; 3]);
    }
}
