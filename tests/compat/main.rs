//! Behaviour that users of seven well-known timers rely on: one module per
//! system, one test per behaviour, numbered within its system. A `better` test
//! shows a deliberate difference. Time is virtual unless real time is the
//! subject.

#![cfg(not(any(loom, shuttle)))]

#[path = "../support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
#[path = "../support/epoll.rs"]
mod epoll;

mod kafka;
mod libco;
mod muduo;
mod reactor;
mod skynet;
mod tanjp;
mod workflow;

/// The server of the example, as it is.
#[cfg(target_os = "linux")]
#[path = "../../examples/sockets/src/bin/delayed_reply/server.rs"]
mod server;

use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use fastrand::Rng;
use support::{HOUR, MS, PATIENCE, SECOND, take, virtual_engine, wait_until};
use tickwheel::wheel::Advance;
use tickwheel::{Cancel, CloseReason, Engine, Firing, Task, TaskEngine};
use tickwheel::{Tick, Time, Timer, TimerId, VirtualClock, Wheel};

/// After which the example's server answers.
#[cfg(target_os = "linux")]
const DELAY: Duration = SECOND;

/// A task engine on a virtual clock, and a log for its callbacks.
fn virtual_tasks() -> (TaskEngine, VirtualClock, Log) {
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    (tasks, clock, Log::new())
}

/// Lets the workers finish what they have, without moving the clock.
fn settle(clock: &VirtualClock) {
    clock.run_until(clock.now());
}

/// What callbacks said, in the order in which they ran.
#[derive(Clone)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    maker: ThreadId,
}

impl Log {
    fn new() -> Log {
        let (lines, maker) = (Arc::default(), thread::current().id());
        Log { lines, maker }
    }

    fn say(&self, line: impl ToString) {
        self.lines.lock().unwrap().push(line.to_string());
    }

    /// A callback that says this line.
    fn saying(&self, line: &'static str) -> impl FnMut() + Send + use<> {
        let log = self.clone();
        move || log.say(line)
    }

    /// A callback that says at which tick it was due.
    fn ticks(&self, label: &'static str) -> impl FnMut(Firing) + Send + use<> {
        let log = self.clone();
        move |firing| log.say(format!("{label} {}", firing.tick()))
    }

    /// A callback that says how its timer ended, and whether it was called in the
    /// thread of the test.
    fn ending(&self, label: &'static str) -> impl FnMut(Firing) + Send + use<> {
        let log = self.clone();
        move |firing| {
            let inline = thread::current().id() == log.maker;
            let place = if inline { " inline" } else { "" };
            log.say(format!("{label} {:?}{place}", firing.outcome()));
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}

/// (deadline, payload) of everything in the wheel that is due by `to`.
fn fire<T>(wheel: &mut Wheel<T>, to: u64) -> Vec<(u64, T)> {
    std::iter::from_fn(|| wheel.pop_due(Tick(to)))
        .map(|expired| (expired.deadline.0, expired.payload))
        .collect()
}

/// Asserts that cancelling takes no longer with two hundred times as many timers
/// in the slot. The order suits no search from either end of a list.
fn assert_cancels_in_constant_time(wheel: fn() -> Wheel<u64>, deadline: u64) {
    let few = ten_cancels(wheel(), deadline, 1_000);
    let many = ten_cancels(wheel(), deadline, 200_000);
    // Memory that is out of reach of the nearest cache costs up to eight times as
    // much; a search, seventy times and more.
    assert!(many < 30 * few, "{few:?} became {many:?}");
}

/// How long it takes to cancel ten of `timers` in one slot, picked at random: long
/// enough for a coarse clock. Returns the median, so that no single interruption shows.
fn ten_cancels(mut wheel: Wheel<u64>, deadline: u64, timers: u64) -> Duration {
    let mut random = Rng::with_seed(timers);
    let ids = (0..timers).map(|n| wheel.schedule_at(Tick(deadline), n));
    let mut ids: Vec<TimerId> = ids.collect();
    // Under a sanitizer, memory that has been moved costs more at the first touch.
    assert!(ids.iter().all(|&id| wheel.contains(id)));
    let mut taken = [(); 50].map(|()| {
        let some = [(); 10].map(|()| ids.swap_remove(random.usize(..ids.len())));
        let begun = Instant::now();
        let cancelled = some.map(|id| wheel.cancel(id));
        let taken = begun.elapsed();
        assert!(cancelled.iter().all(Option::is_some));
        taken
    });
    taken.sort_unstable();
    taken[taken.len() / 2]
}

/// The level (counted from 0), the index and the first tick of the slot in
/// which a timer hangs, read from the wheel's own lists.
fn slot_of<T>(wheel: &Wheel<T>, id: TimerId) -> (usize, usize, u64) {
    let slot = wheel.slots().find(|slot| slot.timers.contains(&id));
    let slot = slot.expect("the timer hangs in a slot");
    (slot.level, slot.index, slot.start.0)
}

/// What the kernel says of this process's descriptors. The `clockid` of a timer descriptor
/// is 0 for the system's date, 1 for the monotonic clock, 7 for the boot-time one.
#[cfg(target_os = "linux")]
fn descriptors() -> String {
    let all = std::fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    // Other tests open and close descriptors meanwhile.
    all.filter_map(|one| std::fs::read_to_string(one.path()).ok()).collect()
}
