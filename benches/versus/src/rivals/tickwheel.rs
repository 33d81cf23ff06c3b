//! tickwheel: its wheel alone, its engine, and its engine of closures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Engine, Queue, TaskEngine, Tick, Time, Timer, TimerId, Wheel};

use crate::rival::{Caller, Closures, Punctual, Rival, Shared, Sleepers, TICK, Timers};
use crate::stopwatch::Stopwatch;

pub struct Alone(Wheel<u64>);

impl Rival for Alone {
    const NAME: &'static str = "tickwheel";
}

impl Timers for Alone {
    type Id = TimerId;

    fn new() -> Alone {
        Alone(Wheel::new(64))
    }

    fn schedule(&mut self, deadline: u64, payload: u64) -> TimerId {
        self.0.schedule_at(Tick(deadline), payload)
    }

    fn cancel(&mut self, id: TimerId) {
        self.0.cancel(id);
    }

    fn postpone(&mut self, id: TimerId, deadline: u64, _: u64) -> TimerId {
        let moved = self.0.reschedule(id, Tick(deadline));
        debug_assert!(moved);
        id
    }

    fn advance(&mut self, now: u64, fired: &mut Vec<u64>) {
        while let Some(expired) = self.0.pop_due(Tick(now)) {
            fired.push(expired.payload);
        }
    }

    fn shrink(&mut self) {
        self.0.shrink();
    }
}

fn engine<T: Send + 'static>(tick: Duration) -> Engine<T> {
    let builder = Engine::builder().tick(tick);
    builder.start().expect("a tick is all that was set")
}

fn schedule<T>(engine: &Engine<T>, timer: Timer<T>) -> TimerId {
    engine.schedule(timer).expect("there is no bound")
}

/// An engine with a shard per thread, a ticker and a queue.
pub struct Shards(Engine<u64>);

impl Rival for Shards {
    const NAME: &'static str = "tickwheel";
}

impl Shared for Shards {
    type Id = TimerId;
    type Caller<'a> = Thread<'a>;

    fn start() -> Shards {
        Shards(engine(TICK))
    }

    fn caller(&self) -> Thread<'_> {
        let Shards(engine) = self;
        let (now, calls) = (engine.now(), 0);
        Thread { engine, now, calls }
    }

    fn shrink(&self) {
        self.0.shrink();
    }

    fn take_until(&self, is_over: &AtomicBool) {
        let queue = self.0.queue(0);
        while !is_over.load(Ordering::Relaxed) {
            drop(queue.recv_timeout(Duration::from_millis(20)));
        }
    }
}

pub struct Thread<'a> {
    engine: &'a Engine<u64>,
    now: Time,
    calls: u32,
}

impl Thread<'_> {
    /// A caller that knows a deadline has read a clock at some time: here, before the last
    /// thousand calls, as for tokio.
    fn deadline(&mut self, delay_ticks: u64) -> Time {
        self.calls += 1;
        if self.calls.is_multiple_of(1_024) {
            self.now = self.engine.now();
        }
        self.now + Duration::from_millis(delay_ticks)
    }
}

impl Caller for Thread<'_> {
    type Id = TimerId;

    fn schedule(&mut self, delay_ticks: u64, payload: u64) -> TimerId {
        let deadline = self.deadline(delay_ticks);
        schedule(self.engine, Timer::at(deadline, payload))
    }

    fn schedule_after(&mut self, delay_ticks: u64, payload: u64) -> TimerId {
        let delay = Duration::from_millis(delay_ticks);
        schedule(self.engine, Timer::after(delay, payload))
    }

    fn cancel(&mut self, id: TimerId) {
        self.engine.cancel(id);
    }

    fn postpone(&mut self, id: TimerId, delay_ticks: u64, _: u64) -> TimerId {
        let deadline = self.deadline(delay_ticks);
        let moved = self.engine.reschedule(id, deadline);
        debug_assert!(moved.is_ok());
        id
    }
}

impl Sleepers for Shards {
    fn count(delays: &[Duration]) -> Duration {
        count_with(one_by_one, delays)
    }
}

impl Punctual for Shards {
    fn lateness(tick: Duration, delays: &[Duration]) -> Vec<u64> {
        let engine = engine::<Instant>(tick);
        let queue = engine.queue(0).take(delays.len());
        let late = |expired: tickwheel::Expired<Instant>| expired.payload().elapsed();
        let worker = thread::spawn(move || queue.map(|it| late(it).as_nanos() as u64).collect());
        for &delay in delays {
            let deadline = Instant::now() + delay;
            schedule(&engine, Timer::at(deadline, deadline));
        }
        worker.join().expect("the worker only reads the clock")
    }
}

/// The same engine with a worker that takes many timers at a time.
pub struct Many;

impl Rival for Many {
    const NAME: &'static str = "tickwheel, many at a time";
}

impl Sleepers for Many {
    fn count(delays: &[Duration]) -> Duration {
        count_with(many_at_a_time, delays)
    }
}

/// Takes a number of timers and adds up their payloads.
type Worker = fn(Queue<u64>, usize) -> u64;

fn one_by_one(queue: Queue<u64>, count: usize) -> u64 {
    queue.take(count).map(|expired| *expired.payload()).sum()
}

fn many_at_a_time(queue: Queue<u64>, count: usize) -> u64 {
    let (mut left, mut sum, mut payloads) = (count, 0, Vec::new());
    while left > 0 {
        let taken = queue.recv_many(&mut payloads, left);
        assert!(taken.is_ok(), "the engine runs");
        left -= payloads.len();
        sum += payloads.drain(..).sum::<u64>();
    }
    sum
}

/// Does what [`Sleepers::count`] does, with this worker.
fn count_with(worker: Worker, delays: &[Duration]) -> Duration {
    let engine = engine(TICK);
    let (queue, count) = (engine.queue(0), delays.len());
    let worker = thread::spawn(move || worker(queue, count));
    let start = engine.now();
    for &delay in delays {
        schedule(&engine, Timer::at(start + delay, 1));
    }
    let begun = Stopwatch::start_all();
    let counted = worker.join().expect("the worker only counts");
    assert_eq!(counted, count as u64);
    begun.elapsed()
}

impl Rival for TaskEngine {
    const NAME: &'static str = "tickwheel";
}

impl Closures for TaskEngine {
    type Id = TimerId;

    fn start() -> TaskEngine {
        TaskEngine::builder().start().expect("the defaults start")
    }

    fn run_after(&self, delay: Duration, closure: impl FnOnce() + Send + 'static) -> TimerId {
        TaskEngine::run_after(self, delay, closure).expect("there is no bound")
    }

    fn run_at(&self, time: Instant, closure: impl FnOnce() + Send + 'static) -> TimerId {
        TaskEngine::run_at(self, time, closure).expect("there is no bound")
    }

    fn cancel(&self, id: TimerId) {
        TaskEngine::cancel(self, id);
    }
}
