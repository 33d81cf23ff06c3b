//! Failures of processes that fork.

#[path = "../support/child.rs"]
mod child;

use super::*;
use child::{Child, exit_unless};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use tickwheel::Timer;

/// A process forked. The child had the timers and the descriptor but no thread
/// to serve them, and its calls on the descriptor reached the parent. Here the
/// child may drop its engine without any effect on the parent.
#[test]
fn f18_a_forked_child_that_drops_its_engine_disturbs_nobody() {
    let engine = Engine::builder().start().unwrap();
    engine
        .schedule(Timer::after(HOUR, NotInChild::new()))
        .unwrap();
    engine
        .schedule(Timer::after(300 * MS, NotInChild::new()))
        .unwrap();
    let queue = engine.queue(0);
    assert!(Child::fork(|| ()).ends_by_itself());

    let engine = std::mem::ManuallyDrop::new(engine);
    let drops = Child::fork(|| {
        IN_CHILD.store(true, Ordering::Relaxed);
        // SAFETY: in the child the engine is dropped once, here; in the parent
        // once, below.
        drop(unsafe { std::ptr::read(&*engine) });
    });
    assert!(
        drops.ends_by_itself(),
        "the child is stuck, or dropped payloads"
    );
    let expired = queue
        .recv_timeout(PATIENCE)
        .expect("nothing fires any more");
    assert!(expired.lateness() < PATIENCE / 2);
    drop(expired);
    assert_eq!((engine.ledger().live, engine.shutdown().len()), (1, 1));
    drop(std::mem::ManuallyDrop::into_inner(engine));
}

/// As above, where no thread of the engine's keeps the child from dropping all
/// of it.
#[test]
fn f18_a_forked_child_drops_no_payload_of_its_parent() {
    let (engine, driver) = Engine::builder().start_driven().unwrap();
    let beat = Timer::every(HOUR, NotInChild::new());
    engine.schedule(beat).unwrap();
    engine
        .schedule(Timer::after(HOUR, NotInChild::new()))
        .unwrap();
    // And a report that nobody reads, with its payload.
    let last = Timer::every(MS, NotInChild::new()).times(1);
    engine.schedule(last.reported()).unwrap();
    thread::sleep(2 * MS);
    let _ = driver.process_due(usize::MAX);
    drop(engine.queue(0).try_recv().unwrap());
    assert_eq!(engine.reports().len(), 1);
    let both = std::mem::ManuallyDrop::new((engine, driver));
    let drops = Child::fork(|| {
        IN_CHILD.store(true, Ordering::Relaxed);
        // SAFETY: in the child they are dropped once, here; in the parent once,
        // below.
        drop(unsafe { std::ptr::read(&*both) });
    });
    assert!(drops.ends_by_itself(), "the child dropped payloads");
    let (engine, _driver) = std::mem::ManuallyDrop::into_inner(both);
    assert_eq!(engine.shutdown().len(), 2);
}

/// As above, for a timer that has not been started.
#[test]
fn f18_a_forked_child_that_drops_an_unstarted_timer_leaves_it_to_its_parent() {
    let engine = Engine::builder().start().unwrap();
    let timer = Timer::after(HOUR, NotInChild::new());
    let unstarted = std::mem::ManuallyDrop::new(engine.create(timer).unwrap());
    let drops = Child::fork(|| {
        IN_CHILD.store(true, Ordering::Relaxed);
        // SAFETY: in the child the timer is dropped once, here; in the parent it is
        // started once, below.
        drop(unsafe { std::ptr::read(&*unstarted) });
    });
    assert!(drops.ends_by_itself(), "the child dropped the payload");
    let unstarted = std::mem::ManuallyDrop::into_inner(unstarted);
    assert!(unstarted.start().is_ok());
    assert_eq!(engine.shutdown().len(), 1);
}

/// As above, where the child has its parent's process id: each is the first of a
/// PID namespace of its own. Needs the right to make one; without it there is
/// nothing to be seen here.
#[test]
fn f18_a_forked_child_with_its_parents_id_is_no_owner() {
    let outer = Child::fork(|| {
        if !enter_pid_namespace() {
            return;
        }
        let parent = Child::fork(|| {
            let (engine, driver) = Engine::builder().start_driven().unwrap();
            engine
                .schedule(Timer::after(HOUR, NotInChild::new()))
                .unwrap();
            assert!(enter_pid_namespace());
            let parents_id = std::process::id();
            let child = Child::fork(|| {
                IN_CHILD.store(true, Ordering::Relaxed);
                assert_eq!(std::process::id(), parents_id);
                drop((engine, driver));
            });
            // What the child does not drop is left to the system here, too.
            exit_unless(child.ends_by_itself());
        });
        exit_unless(parent.ends_by_itself());
    });
    assert!(outer.ends_by_itself(), "the child dropped payloads");
}

/// Makes the next child the first of a PID namespace.
fn enter_pid_namespace() -> bool {
    // SAFETY: the call takes no pointers, and changes where the caller's
    // children are.
    unsafe { libc::unshare(libc::CLONE_NEWPID) == 0 }
}

/// The child shared the parent's timer, and armed it for a deadline of its own,
/// which was later than what the parent had armed it for meanwhile.
#[test]
fn f18_a_forked_child_postpones_no_wakeup_of_its_parent() {
    let engine = Engine::builder().start().unwrap();
    engine.schedule(Timer::after(2 * HOUR, "far")).unwrap();
    thread::sleep(50 * MS); // the ticker sleeps, and holds no lock
    let (mut begin, may_begin) = UnixStream::pair().unwrap();
    let child = Child::fork(|| {
        let _ = (&may_begin).read(&mut [0]);
        let _ = engine.schedule(Timer::after(HOUR, "the child's"));
    });
    engine.schedule(Timer::after(500 * MS, "soon")).unwrap();
    begin.write_all(&[1]).unwrap();
    assert!(child.ends_by_itself(), "the child is stuck");
    let expired = engine.queue(0).recv_timeout(PATIENCE);
    assert_eq!(expired.expect("slept over it").into_payload(), "soon");
}

/// A process that another program was started in kept the timer's descriptor.
#[test]
fn f18_a_program_that_is_started_inherits_no_descriptor() {
    let (_engine, driver) = Engine::<()>::builder().start_driven().unwrap();
    // SAFETY: the descriptor is open, and the call takes no pointers.
    let flags = unsafe { libc::fcntl(driver.as_raw_fd(), libc::F_GETFD) };
    assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);

    let _engine = Engine::<()>::builder().start().unwrap();
    let output = std::process::Command::new("ls")
        .args(["-l", "/proc/self/fd"])
        .output()
        .unwrap();
    let inherited = String::from_utf8(output.stdout).unwrap();
    assert!(!inherited.contains("timerfd"), "{inherited}");
}

static IN_CHILD: AtomicBool = AtomicBool::new(false);

/// A payload that a child must not drop: it is the parent's.
struct NotInChild(());

impl NotInChild {
    fn new() -> NotInChild {
        NotInChild(())
    }
}

impl Drop for NotInChild {
    fn drop(&mut self) {
        if IN_CHILD.load(Ordering::Relaxed) {
            // SAFETY: ends the child, which then has not ended well.
            unsafe { libc::_exit(1) }
        }
    }
}
