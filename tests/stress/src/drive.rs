//! What moves a round's time, and what gets in the way of all its threads.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tickwheel::wheel::Advance;
use tickwheel::{Builder, Driver, Family, VirtualClock};

use crate::epoll::{Epoll, Trigger};
use crate::plan::{Drive, Fault, Plan, processors};

/// What the engine calls the thread that moves its time.
pub const TICKER: &str = "tickwheel-tick";

/// The time line by which deliveries are judged, in nanoseconds.
pub type TimeLine = Arc<dyn Fn() -> u64 + Send + Sync>;

pub enum Mover<T> {
    /// The engine has a thread for it.
    Ticker,
    Clock(VirtualClock),
    Loop(Driver<T>),
}

/// Starts an engine, or an engine of tasks, and returns it with the mover of its time.
pub fn start<E: Family>(builder: Builder<E>, drive: Drive) -> (E, Mover<E::Payload>)
where
    E::Payload: Send + 'static,
{
    match drive {
        Drive::TimerFd => (builder.start().expect("in range"), Mover::Ticker),
        Drive::Portable => {
            let builder = builder.portable_ticker();
            (builder.start().expect("in range"), Mover::Ticker)
        }
        Drive::Virtual => {
            let (engine, clock) = builder.start_virtual().expect("in range");
            (engine, Mover::Clock(clock))
        }
        _ => {
            let (engine, driver) = builder.start_driven().expect("in range");
            (engine, Mover::Loop(driver))
        }
    }
}

impl<T: Send + 'static> Mover<T> {
    pub fn time_line(&self) -> TimeLine {
        if let Mover::Clock(clock) = self {
            let clock = clock.clone();
            return Arc::new(move || clock.now().as_nanos());
        }
        let epoch = Instant::now();
        Arc::new(move || epoch.elapsed().as_nanos() as u64)
    }

    /// Starts the thread that moves time, if that takes one, until `over` is set. A loop that
    /// only moves what is due is starved, and judged, as a ticker is: it drops no payload.
    pub fn start(self, plan: &Plan, over: &Arc<AtomicBool>) -> Option<JoinHandle<()>> {
        let (plan, over) = (plan.clone(), Arc::clone(over));
        let is_ticker = !plan.has_tasks;
        let name = if is_ticker { TICKER } else { "loop" };
        let thread = thread::Builder::new().name(name.into());
        let started = match self {
            Mover::Ticker => return None,
            Mover::Clock(clock) => {
                thread::Builder::new().spawn(move || move_clock(&plan, &clock, &over))
            }
            Mover::Loop(driver) => thread.spawn(move || go_round(&plan, &driver, &over)),
        };
        Some(started.expect("threads are left"))
    }
}

fn move_clock(plan: &Plan, clock: &VirtualClock, over: &AtomicBool) {
    let mut random = plan.random(&[98]);
    until(over, Duration::from_micros(300), || {
        let by = if plan.has(Fault::Jumps) && random.once_in(400) {
            Duration::from_secs(random.below(10_000))
        } else {
            random.micros(2_000)
        };
        // Only the engine's own workers are sure to come back for more.
        if plan.has_tasks && random.once_in(4) {
            clock.run_until(clock.now() + by)
        } else {
            clock.advance(by)
        }
    });
}

/// A caller's loop. One that waits for the descriptor serves once each time that it becomes
/// readable: the descriptor must say when there is more, as nothing makes up for a lost event.
fn go_round<T>(plan: &Plan, driver: &Driver<T>, over: &AtomicBool) {
    let (frame, limit) = (Duration::from_millis(2), Duration::from_millis(50));
    let trigger = match plan.drive {
        Drive::EdgeTriggered => Trigger::Edge,
        _ => Trigger::Level,
    };
    let (epoll, mut random) = (Epoll::new(), plan.random(&[97]));
    epoll.add(driver, 0, trigger);
    // From an entry at a time to more than there are.
    let budget = random.one_of(&[1, 3, 20, 1_000, usize::MAX]);
    until(over, Duration::ZERO, || match plan.drive {
        Drive::Frames => {
            thread::sleep(driver.timeout().unwrap_or(frame).min(frame));
            while driver.process_due(budget) == Advance::More {}
        }
        _ if epoll.wait(Some(limit)).is_empty() => {}
        _ => _ = driver.process_due(budget),
    });
}

/// Starts the threads that disturb all others until `over` is set.
pub fn disturb(plan: &Plan, over: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    let mut spawn = |millis, disturb: fn()| {
        let over = Arc::clone(over);
        let pause = Duration::from_millis(millis);
        threads.push(thread::spawn(move || until(&over, pause, disturb)));
    };
    if plan.has(Fault::Signals) {
        spawn(1, nudge_all);
    }
    if plan.has(Fault::Starved) {
        spawn(5, starve_tickers);
        (0..processors()).for_each(|_| spawn(3, spin));
    }
    threads
}

fn until(over: &AtomicBool, pause: Duration, mut act: impl FnMut()) {
    while !over.load(Ordering::Relaxed) {
        act();
        thread::sleep(pause);
    }
}

fn spin() {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(20) {
        std::hint::spin_loop();
    }
}

/// The threads of this process, as the system numbers them.
fn all_threads() -> Vec<i32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    tasks.flatten().filter_map(number).collect()
}

/// From now on the signal that `nudge_all` sends interrupts and does nothing else.
pub fn ignore_nudges() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: all zeros is a valid sigaction, without SA_RESTART; the handler touches nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
}

/// Interrupts whatever system calls the threads of this process are in.
fn nudge_all() {
    for thread in all_threads() {
        // SAFETY: no pointers; a thread that has ended is an error that concerns nobody.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR1) };
    }
}

/// Lets tickers run only when nobody else wants to.
fn starve_tickers() {
    let lowest = libc::sched_param { sched_priority: 0 };
    for thread in all_threads() {
        let name = fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
        if name.is_ok_and(|name| name.trim_end() == TICKER) {
            // SAFETY: the pointer is valid; a thread that has ended is an error that concerns
            // nobody.
            unsafe { libc::sched_setscheduler(thread, libc::SCHED_IDLE, &lowest) };
        }
    }
}
