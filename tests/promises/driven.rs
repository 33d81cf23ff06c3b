//! Promises 2, 12 and 13 to a loop that drives an engine itself: it is called in
//! time, it learns of the end, and it sleeps exactly as long as nothing is due.

use super::*;
use tickwheel::wheel::Advance;
use tickwheel::{RecvError, TaskEngine, Timer};

#[cfg(target_os = "linux")]
mod descriptor {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::sync::Barrier;
    use std::thread;

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
