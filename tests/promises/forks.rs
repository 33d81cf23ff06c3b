//! Promise 12 where a process forks, or starts another program.

#[path = "../support/child.rs"]
mod child;

use super::*;
use child::Child;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

static IN_CHILD: AtomicBool = AtomicBool::new(false);

/// A payload that a child must not drop: it is the parent's.
struct NotInChild;

impl Drop for NotInChild {
    fn drop(&mut self) {
        if IN_CHILD.load(Ordering::Relaxed) {
            child::exit_unless(false);
        }
    }
}

/// Drops a copy of what is given in a forked child. Returns the parent's.
fn drop_in_a_child<T>(parents: T) -> T {
    let parents = ManuallyDrop::new(parents);
    let child = Child::fork(|| {
        IN_CHILD.store(true, Ordering::Relaxed);
        // SAFETY: in the child it is dropped once, here; the parent returns it below.
        drop(unsafe { std::ptr::read(&*parents) });
    });
    assert!(child.ends_by_itself(), "stuck, or dropped payloads");
    ManuallyDrop::into_inner(parents)
}

#[test]
fn promise_12_a_forked_child_that_drops_its_engine_disturbs_nobody() {
    let engine = Engine::builder().start().unwrap();
    engine.after(HOUR, NotInChild);
    engine.after(300 * MS, NotInChild);
    let engine = drop_in_a_child(engine);
    let fired = engine.queue(0).recv_timeout(PATIENCE);
    fired.expect("nothing fires any more");
    assert_eq!(engine.shutdown().len(), 1);
}

/// Where no thread of the engine's keeps the child from dropping all of it: timers, one
/// that is not started, and a report that nobody reads.
#[test]
fn promise_12_a_forked_child_drops_no_payload_of_its_parent() {
    let (engine, driver) = Engine::builder().start_driven().unwrap();
    engine.every(HOUR, NotInChild);
    engine.after(HOUR, NotInChild);
    engine.put(Timer::every(MS, NotInChild).times(1).reported());
    thread::sleep(2 * MS);
    let _ = driver.process_due(usize::MAX);
    drop(engine.next());
    assert_eq!(engine.reports().len(), 1);
    let unstarted = engine.create(Timer::after(HOUR, NotInChild)).unwrap();
    let (engine, _driver, unstarted) = drop_in_a_child((engine, driver, unstarted));
    assert!(unstarted.start().is_ok());
    assert_eq!(engine.shutdown().len(), 3);
}

#[test]
fn promise_12_a_program_that_is_started_inherits_no_descriptor() {
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
