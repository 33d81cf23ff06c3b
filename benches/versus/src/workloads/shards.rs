//! Which calls cost more if an engine has more shards: an engine with one timer in
//! each shard, and a thread for each shard.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use tickwheel::{Engine, Time, Timer, TimerId, VirtualClock};

use super::setup::SPAN;
use crate::allocator::Watch;
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::processors;
use crate::rival::TICK;
use crate::stopwatch::Stopwatch;

const ENGINE: &str = "tickwheel engine";

/// The numbers of shards.
pub const SHARDS: [usize; 4] = [1, 4, 16, 64];

const HOUR: Duration = Duration::from_secs(3_600);

/// The timers in flight of each thread.
const IN_FLIGHT: usize = 1_024;

/// The number of wake-ups of the ticker that are watched.
const WAKE_UPS: u32 = 200;

pub fn cases(effort: Effort) -> Vec<Case> {
    let of = |shards| {
        let steps = effort.either(2_000, 20_000);
        let calls = Case::new(ENGINE, true, shards, move || calls(shards, steps));
        let lives = Case::new(ENGINE, true, shards, move || lives(shards));
        let pairs = effort.either(1_000_000, 6_400_000) / shards;
        let pair = Case::new(ENGINE, true, shards, move || vec![pair(shards, pairs)]);
        [calls, lives, pair.on_threads(shards)]
    };
    SHARDS.into_iter().flat_map(of).collect()
}

fn builder(shards: usize) -> tickwheel::Builder<Engine<u64>> {
    Engine::builder().tick(TICK).shards(shards)
}

pub fn started(shards: usize) -> Engine<u64> {
    builder(shards).start().expect("a tick and shards")
}

/// Calls `work` on as many threads as there are shards, all at once: each has a shard
/// of its own. One of them is the calling thread.
pub fn in_each_shard<R: Send>(shards: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let all = Barrier::new(shards);
    let one = |thread| {
        all.wait();
        let done = work(thread);
        // A thread that ended would leave its shard to a thread that has just begun.
        all.wait();
        done
    };
    thread::scope(|scope| {
        let one = &one;
        let others: Vec<_> = (1..shards)
            .map(|thread| scope.spawn(move || one(thread)))
            .collect();
        let first = one(0);
        let others = others.into_iter().map(|other| other.join().unwrap());
        std::iter::once(first).chain(others).collect()
    })
}

/// Schedules a timer in each shard, due in an hour.
fn far_timers(engine: &Engine<u64>, shards: usize) -> Vec<TimerId> {
    let due = engine.now() + HOUR;
    in_each_shard(shards, |_| schedule(engine, due))
}

fn schedule(engine: &Engine<u64>, due: Time) -> TimerId {
    let scheduled = engine.schedule(Timer::at(due, 0));
    scheduled.expect("there is no bound")
}

/// Returns the processor time of the calling thread for each of `steps` calls.
fn each(metric: &str, steps: usize, mut call: impl FnMut(usize)) -> Reading {
    let begun = Stopwatch::start();
    (0..steps).for_each(&mut call);
    Reading::per_step(metric, begun.elapsed(), steps)
}

/// Measures calls in an engine that has one far timer in each shard.
fn calls(shards: usize, steps: usize) -> Vec<Reading> {
    let mut readings = ticker(shards, steps);
    let engine = started(shards);
    let timers = far_timers(&engine, shards);
    // The ticker goes to sleep, and arms its descriptor, only when it has a processor.
    thread::sleep(20 * TICK);
    let queue = engine.queue(0);
    let far = engine.now() + 2 * HOUR;
    let stale = schedule(&engine, far);
    engine.cancel(stale);
    let other = started(1);
    let forged = schedule(&other, far);
    let soon = engine.now() + HOUR / 2;
    let earliest = |n: usize| soon + TICK * (steps - n) as u32;
    let cancel = |id| {
        engine.cancel(id);
    };
    readings.extend([
        each("schedule and cancel", steps, |_| {
            cancel(schedule(&engine, far))
        }),
        each("cancel, stale id", steps, |_| cancel(stale)),
        each("cancel, id of another engine", steps, |_| cancel(forged)),
        // Each of these re-arms the descriptor on which the ticker sleeps.
        each("schedule earliest and cancel", steps, |n| {
            cancel(schedule(&engine, earliest(n)))
        }),
        each("earliest_deadline", steps, |_| {
            std::hint::black_box(engine.earliest_deadline());
        }),
        each("len of a queue", steps, |_| {
            std::hint::black_box(queue.len());
        }),
        each("ledger", steps, |_| {
            std::hint::black_box(engine.ledger());
        }),
        each("snapshot", steps / 10, |_| {
            std::hint::black_box(engine.snapshot());
        }),
        // The last one, because the calls before it need these timers.
        each("cancel, another thread's timer", shards, |n| {
            cancel(timers[n])
        }),
    ]);
    readings
}

/// Measures the work of the ticker: its look at every shard, on a virtual clock; its
/// visits to shards in which a timer is due; and a whole wake-up on the real clock, with
/// the system's calls, when a single timer is due.
fn ticker(shards: usize, steps: usize) -> Vec<Reading> {
    let (engine, clock) = virtual_engine(shards);
    far_timers(&engine, shards);
    let look = each("ticker: look, nothing due", steps, |_| clock.advance(TICK));
    let rounds = (steps / shards).max(10);
    let visits = due_at_once(&engine, &clock, shards, rounds);
    vec![look, visits, wake_up(shards)]
}

fn virtual_engine(shards: usize) -> (Engine<u64>, VirtualClock) {
    let started = builder(shards).start_virtual();
    started.expect("a tick and shards")
}

/// Lets a timer of each shard fire on the same tick, again and again.
fn due_at_once(
    engine: &Engine<u64>,
    clock: &VirtualClock,
    shards: usize,
    rounds: usize,
) -> Reading {
    let queue = engine.queue(0);
    in_each_shard(shards, |_| {
        let beat = engine.schedule(Timer::every(10 * TICK, 0));
        beat.expect("there is no bound")
    });
    let beat = |_| {
        clock.advance(10 * TICK);
        assert_eq!(queue.try_iter().map(drop).count(), shards);
    };
    let all = each("", rounds, beat);
    let each = all.value.map(|nanos| nanos / shards as f64);
    Reading {
        value: each,
        ..Reading::new("timer in every shard: fire, take, return", "ns", 0.0)
    }
}

/// Wakes the ticker once per tick for a timer of one shard. All other shards have one far
/// timer each.
fn wake_up(shards: usize) -> Reading {
    let engine = started(shards);
    far_timers(&engine, shards);
    let begun = engine.now() + 20 * TICK;
    for n in 0..WAKE_UPS {
        schedule(&engine, begun + TICK * n);
    }
    let before = ticker_time();
    thread::sleep(TICK * (WAKE_UPS + 60));
    let used = ticker_time().saturating_sub(before);
    Reading::per_step("ticker: wake-up for one timer", used, WAKE_UPS as usize)
}

fn ticker_time() -> Duration {
    processors::used_by("-tick")
}

/// Measures the beginning and the ends of engines, and their memory.
fn lives(shards: usize) -> Vec<Reading> {
    let micros = |metric: &str, elapsed: Duration| {
        Reading::new(metric, "µs", elapsed.as_nanos() as f64 / 1_000.0)
    };
    let end = |metric: &str, end: fn(&Engine<u64>)| {
        let engine = started(shards);
        far_timers(&engine, shards);
        let begun = Stopwatch::start();
        end(&engine);
        micros(metric, begun.elapsed())
    };
    // First, before other engines free memory. The first engine of a process also
    // measures the processor's pauses.
    let memory = memory(shards);
    let begun = Stopwatch::start();
    let engine = started(shards);
    let start = micros("start", begun.elapsed());
    drop(engine);
    let mut readings = vec![
        start,
        end("cancel_all", |engine| drop(engine.cancel_all())),
        end("shutdown", |engine| drop(engine.shutdown())),
        end("drain, nothing due", |engine| {
            drop(engine.drain(Duration::ZERO))
        }),
        end("shrink", Engine::shrink),
    ];
    readings.extend(memory);
    readings
}

fn memory(shards: usize) -> [Reading; 2] {
    let kib = |metric, bytes: i64| Reading::new(metric, "KiB", bytes as f64 / 1_024.0);
    let watch = Watch::start();
    let engine = started(shards);
    let empty = watch.bytes();
    far_timers(&engine, shards);
    [
        kib("memory, no timer", empty),
        kib("memory, a timer in each shard", watch.bytes()),
    ]
}

/// Returns the processor time of all threads for each pair, with a thread for each shard.
fn pair(shards: usize, pairs: usize) -> Reading {
    let engine = started(shards);
    let times = in_each_shard(shards, |thread| {
        let mut rng = Rng::with_seed(thread as u64);
        let far = engine.now() + HOUR;
        let mut one = || schedule(&engine, far + TICK * rng.u32(1..=SPAN as u32));
        let mut ids: Vec<TimerId> = (0..IN_FLIGHT).map(|_| one()).collect();
        let begun = Stopwatch::start();
        for n in 0..pairs {
            let id = &mut ids[n % IN_FLIGHT];
            engine.cancel(*id);
            *id = one();
        }
        begun.elapsed()
    });
    let all: Duration = times.iter().sum();
    Reading::per_step("pair, a thread for each shard, CPU", all, shards * pairs)
}
