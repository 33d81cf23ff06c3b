//! tickwheel's engine: a shard per thread, a ticker, worker queues.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tickwheel::{Engine, Queue, Time, Timer, TimerId};

use crate::rival::{Caller, Shared, Sleepers, TICK};

pub struct Shards(Engine<u64>);

/// The name of the engine with a worker that takes many payloads at a time.
pub const MANY: &str = "tickwheel engine, many";

/// The number of calls between two readings of the clock: a caller that knows a
/// deadline has read a clock at some time.
const CALLS_PER_READING: u32 = 1_000;

/// The longest wait of a worker before it checks whether the run is over.
const PATIENCE: Duration = Duration::from_millis(20);

pub struct Thread<'a> {
    engine: &'a Engine<u64>,
    now: Time,
    calls: u32,
}

impl Thread<'_> {
    fn deadline(&mut self, delay_ticks: u64) -> Time {
        self.calls += 1;
        if self.calls == CALLS_PER_READING {
            self.calls = 0;
            self.now = self.engine.now();
        }
        Time::from_nanos(self.now.as_nanos() + delay_ticks * TICK.as_nanos() as u64)
    }
}

impl Shared for Shards {
    const NAME: &'static str = "tickwheel engine";
    type Id = TimerId;
    type Caller<'a> = Thread<'a>;

    fn start() -> Shards {
        Shards(engine(TICK))
    }

    fn start_for(threads: usize) -> Shards {
        let builder = Engine::builder().tick(TICK).shards(threads);
        Shards(builder.start().expect("a tick and shards"))
    }

    fn caller(&self) -> Thread<'_> {
        Thread {
            engine: &self.0,
            now: self.0.now(),
            calls: 0,
        }
    }

    fn shrink(&self) {
        self.0.shrink();
    }

    fn take_until(&self, is_over: &AtomicBool) {
        let queue = self.0.queue(0);
        while !is_over.load(Ordering::Relaxed) {
            drop(queue.recv_timeout(PATIENCE));
        }
    }
}

/// An engine in which all threads share one shard.
pub struct OneShard(Shards);

impl Shared for OneShard {
    const NAME: &'static str = "tickwheel engine";
    type Id = TimerId;
    type Caller<'a> = Thread<'a>;

    fn start() -> OneShard {
        OneShard(Shards::start_for(1))
    }

    fn caller(&self) -> Thread<'_> {
        self.0.caller()
    }
}

fn engine(tick: Duration) -> Engine<u64> {
    let builder = Engine::builder().tick(tick);
    builder.start().expect("a tick is all that was set")
}

impl Caller for Thread<'_> {
    type Id = TimerId;

    fn schedule(&mut self, delay_ticks: u64, payload: u64) -> TimerId {
        let timer = Timer::at(self.deadline(delay_ticks), payload);
        self.engine.schedule(timer).expect("there is no bound")
    }

    fn schedule_after(&mut self, delay_ticks: u64, payload: u64) -> TimerId {
        let timer = Timer::after(Duration::from_millis(delay_ticks), payload);
        self.engine.schedule(timer).expect("there is no bound")
    }

    fn cancel(&mut self, id: TimerId) {
        self.engine.cancel(id);
    }

    fn cancel_all(&mut self, ids: &mut Vec<TimerId>) {
        drop(self.engine.cancel_many(ids));
        ids.clear();
    }

    fn postpone(&mut self, id: TimerId, delay_ticks: u64, _: u64) -> TimerId {
        let deadline = self.deadline(delay_ticks);
        let moved = self.engine.reschedule(id, deadline);
        debug_assert!(moved.is_ok());
        id
    }

    fn disarm(&mut self, id: TimerId) -> Option<TimerId> {
        self.engine.reschedule(id, Time::MAX).is_ok().then_some(id)
    }
}

impl Sleepers for Shards {
    const NAME: &'static str = "tickwheel engine";

    fn lateness(tick: Duration, delays: &[Duration]) -> Vec<i64> {
        let engine = engine(tick);
        let queue = engine.queue(0);
        let count = delays.len();
        thread::scope(|scope| {
            // The payload is the requested deadline, before rounding.
            let late = move || {
                let one = |expired: tickwheel::Expired<u64>| {
                    let fired = (expired.deadline() + expired.lateness()).as_nanos();
                    fired as i64 - *expired.payload() as i64
                };
                let mut late = Vec::with_capacity(count);
                late.extend(queue.take(count).map(one));
                late
            };
            let worker = scope.spawn(late);
            for &delay in delays {
                let deadline = engine.now() + delay;
                let timer = Timer::at(deadline, deadline.as_nanos());
                engine.schedule(timer).expect("there is no bound");
            }
            worker.join().expect("the worker only counts")
        })
    }

    fn count(delays: &[Duration]) {
        count_with(one_by_one, delays);
    }

    fn beat(period: Duration, watch: impl FnOnce()) {
        let engine = engine(TICK);
        let queue = engine.queue(0);
        thread::scope(|scope| {
            scope.spawn(move || queue.for_each(drop));
            let timer = Timer::every(period, 0);
            engine.schedule(timer).expect("there is no bound");
            watch();
            engine.shutdown();
        });
    }

    fn idle(delay: Option<Duration>, watch: impl FnOnce()) {
        let engine = engine(TICK);
        if let Some(delay) = delay {
            let timer = Timer::after(delay, 0);
            engine.schedule(timer).expect("there is no bound");
        }
        watch();
    }
}

/// Takes a number of timers and adds up their payloads.
pub type Worker = fn(Queue<u64>, usize) -> u64;

pub fn one_by_one(queue: Queue<u64>, count: usize) -> u64 {
    let payloads = queue.take(count).map(|expired| *expired.payload());
    payloads.sum()
}

/// Takes what has expired into a buffer.
pub fn many_at_a_time(queue: Queue<u64>, count: usize) -> u64 {
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
pub fn count_with(worker: Worker, delays: &[Duration]) {
    let engine = engine(TICK);
    let queue = engine.queue(0);
    let count = delays.len();
    thread::scope(|scope| {
        scope.spawn(move || std::hint::black_box(worker(queue, count)));
        let start = engine.now();
        for &delay in delays {
            let timer = Timer::at(start + delay, 1);
            engine.schedule(timer).expect("there is no bound");
        }
    });
}

/// Expires timers through a worker that counts, on the virtual clock: the work of
/// the real clock except for the kernel's wake-up, and a minute of timers takes
/// less than a minute. Returns the time from the first tick to the last timer.
pub fn expire_through_worker(
    worker: Worker,
    deadlines: impl Iterator<Item = u64>,
    ticks: u64,
) -> Duration {
    let builder = Engine::<u64>::builder().tick(TICK);
    let (engine, clock) = builder.start_virtual().expect("a tick is all that was set");
    let mut count = 0;
    for deadline in deadlines {
        let time = Time::from_nanos(deadline * TICK.as_nanos() as u64);
        let timer = Timer::at(time, deadline);
        engine.schedule(timer).expect("there is no bound");
        count += 1;
    }
    let queue = engine.queue(0);
    thread::scope(|scope| {
        let worker = scope.spawn(move || std::hint::black_box(worker(queue, count)));
        let begun = std::time::Instant::now();
        (0..ticks).for_each(|_| clock.advance(TICK));
        worker.join().expect("the worker only counts");
        begun.elapsed()
    })
}
