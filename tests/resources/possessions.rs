//! What a process has: bytes, descriptors, threads.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::Engine;

use crate::counting;

/// Dropping an engine waits for no thread, so the test does.
const PATIENCE: Duration = Duration::from_secs(20);
/// Until everything that is made once, and stays, has been made.
const REHEARSALS: usize = 20;
/// Until the test harness has come to rest in its own thread.
const SETTLING: Duration = Duration::from_millis(100);
/// So few at a time that threads which are on their way out do not pile up.
const AT_A_TIME: usize = 50;

#[derive(PartialEq, Eq, Debug)]
pub struct Possessions {
    bytes: i64,
    pub descriptors: usize,
    threads: usize,
}

impl Possessions {
    pub fn now() -> Possessions {
        Possessions {
            bytes: counting::bytes(),
            descriptors: entries("/proc/self/fd"),
            threads: threads(),
        }
    }
}

/// Does something `times` times, and asserts that nothing is left of it.
pub fn leaves_nothing(times: usize, mut act: impl FnMut()) {
    thread::sleep(SETTLING);
    let before = threads();
    wait_once();
    wait_for_threads(before);
    (0..REHEARSALS).for_each(|_| act());
    wait_for_threads(before);
    let before = Possessions::now();
    for n in 1..=times {
        act();
        if n % AT_A_TIME == 0 {
            wait_for_threads(before.threads);
        }
    }
    wait_for_threads(before.threads);
    let end = Instant::now() + PATIENCE;
    // A thread frees the last of its memory when the system has let go of it.
    while Possessions::now() != before && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(Possessions::now(), before, "after {times} times");
}

/// Who has to wait keeps what it waits with for good. On a busy machine a timer
/// may have come in time in each rehearsal, and no more in what is counted.
fn wait_once() {
    let engine = Engine::<()>::builder().start().expect("no limit yet");
    let nothing = engine.queue(0).recv_timeout(Duration::from_millis(1));
    assert!(nothing.is_err());
}

/// How many threads this process has.
pub fn threads() -> usize {
    entries("/proc/self/task")
}

/// Waits until no more than `count` threads are left.
pub fn wait_for_threads(count: usize) {
    let end = Instant::now() + PATIENCE;
    while threads() > count {
        assert!(Instant::now() < end, "{} threads, not {count}", threads());
        thread::sleep(Duration::from_millis(1));
    }
}

fn entries(directory: &str) -> usize {
    fs::read_dir(directory).expect("a process sees itself").count()
}
