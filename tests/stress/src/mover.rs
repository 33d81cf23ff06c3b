//! What moves a round's time: the engine's own ticker, a thread that moves a
//! virtual clock, or a loop of the caller's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use tickwheel::{Builder, Driver, Engine, VirtualClock};

use crate::event_loop::EventLoop;
use crate::fault::Fault;
use crate::plan::{Drive, Kind, Plan};
use crate::random::Random;
use crate::threads;

/// The time line by which deliveries are judged.
pub type TimeLine = Arc<dyn Fn() -> u64 + Send + Sync>;

pub enum Mover<T> {
    /// The engine has a thread for it.
    Ticker,
    Clock(Arc<VirtualClock<T>>),
    Loop(EventLoop<T>),
}

/// Starts an engine and returns it with the mover of its time.
pub fn start<T: Send + 'static>(builder: Builder<T>, drive: Drive) -> (Engine<T>, Mover<T>) {
    match drive {
        Drive::TimerFd => (builder.start().expect("in range"), Mover::Ticker),
        Drive::Portable => {
            let engine = builder.portable_ticker().start().expect("in range");
            (engine, Mover::Ticker)
        }
        Drive::Virtual => {
            let (engine, clock) = builder.start_virtual().expect("in range");
            (engine, Mover::of_clock(clock))
        }
        Drive::Loop(waits) => {
            let (engine, driver) = builder.start_driven().expect("in range");
            let event_loop = EventLoop::new(driver, waits, Driver::process_due);
            (engine, Mover::Loop(event_loop))
        }
    }
}

impl<T: Send + 'static> Mover<T> {
    pub fn of_clock(clock: VirtualClock<T>) -> Mover<T> {
        Mover::Clock(Arc::new(clock))
    }

    pub fn time_line(&self) -> TimeLine {
        if let Mover::Clock(clock) = self {
            let clock = Arc::clone(clock);
            return Arc::new(move || clock.now().as_nanos());
        }
        let epoch = Instant::now();
        Arc::new(move || epoch.elapsed().as_nanos() as u64)
    }

    /// Starts what has to be done so that time passes; it ends when `over` is
    /// set.
    pub fn start<'scope>(
        self,
        plan: &'scope Plan,
        over: &'scope AtomicBool,
        scope: &'scope Scope<'scope, '_>,
    ) {
        match self {
            Mover::Ticker => {}
            Mover::Clock(clock) => {
                scope.spawn(move || move_clock(plan, &clock, over));
            }
            Mover::Loop(event_loop) => {
                let thread = thread::Builder::new().name(thread_name(plan).into());
                let run = move || event_loop.run(plan.random(97), over);
                thread.spawn_scoped(scope, run).expect("threads are left");
            }
        }
    }
}

/// A loop that only moves what is due is starved, and judged, as a ticker is:
/// it drops no payload either. One that runs tasks drops them, too.
fn thread_name(plan: &Plan) -> &'static str {
    match plan.kind {
        Kind::Tasks => "loop",
        Kind::Engine | Kind::Late | Kind::Busy => threads::TICKER,
    }
}

fn move_clock<T>(plan: &Plan, clock: &VirtualClock<T>, over: &AtomicBool) {
    let mut random = plan.random(98);
    while !over.load(Ordering::Relaxed) {
        let by = step(plan, &mut random);
        // Only the engine's own workers are sure to come back for more.
        if plan.kind == Kind::Tasks && random.once_in(4) {
            clock.run_until(clock.now() + by);
        } else {
            clock.advance(by);
        }
        thread::sleep(Duration::from_micros(300));
    }
}

fn step(plan: &Plan, random: &mut Random) -> Duration {
    let jumps = plan.has(Fault::Jumps) && random.once_in(400);
    match jumps {
        true => Duration::from_secs(random.below(10_000)),
        false => random.micros(2_000),
    }
}
