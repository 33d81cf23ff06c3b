//! Benches of the engine, with several threads, a running ticker and worker queues.
//!
//! All benches but `expire` run on the real clock, with a ticker thread.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

mod common;

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use common::{IN_FLIGHT, SPAN, delay, sized};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fastrand::Rng;
use tickwheel::{Engine, Time, Timer, TimerId};

const TICK: Duration = Duration::from_millis(1);
const TICK_NANOS: u64 = TICK.as_nanos() as u64;

/// The number of ids that one thread hands to another at a time.
const HANDOVER: usize = 256;

fn start() -> Engine<u64> {
    let builder = Engine::builder().tick(TICK);
    builder.start().expect("an engine with the default settings")
}

/// A caller's way of stating the time, which is one of two.
trait Deadlines {
    fn timer(&mut self, engine: &Engine<u64>, delay: u64) -> Timer<u64>;
}

/// The caller gives a deadline, so scheduling does not read the clock. The caller
/// reads the current time once per thousand timers.
struct Given {
    now: Time,
    used: usize,
}

impl Given {
    fn new(engine: &Engine<u64>) -> Given {
        let now = engine.now();
        Given { now, used: 0 }
    }

    fn after(&mut self, engine: &Engine<u64>, ticks: u64) -> Time {
        self.used += 1;
        if self.used == 1_000 {
            *self = Given::new(engine);
        }
        Time::from_nanos(self.now.as_nanos() + ticks * TICK_NANOS)
    }
}

impl Deadlines for Given {
    fn timer(&mut self, engine: &Engine<u64>, delay: u64) -> Timer<u64> {
        Timer::at(self.after(engine, delay), delay)
    }
}

/// The caller gives a delay, so the engine reads its clock.
struct Delay;

impl Deadlines for Delay {
    fn timer(&mut self, _: &Engine<u64>, delay: u64) -> Timer<u64> {
        Timer::after(Duration::from_millis(delay), delay)
    }
}

fn schedule(engine: &Engine<u64>, timer: Timer<u64>) -> TimerId {
    engine.schedule(timer).expect("the engine has no bound")
}

/// Cancels the oldest timer of this thread and schedules a new one, `pairs` times.
fn run_pairs(
    engine: &Engine<u64>,
    when: &mut impl Deadlines,
    pairs: u64,
    start: &Barrier,
) -> Duration {
    let mut rng = Rng::with_seed(7);
    let mut oldest: Vec<TimerId> =
        (0..IN_FLIGHT).map(|_| schedule(engine, when.timer(engine, delay(&mut rng)))).collect();
    start.wait();
    let begun = Instant::now();
    for pair in 0..pairs as usize {
        let oldest = &mut oldest[pair % IN_FLIGHT];
        black_box(engine.cancel(*oldest).into_payload());
        *oldest = schedule(engine, when.timer(engine, delay(&mut rng)));
    }
    let elapsed = begun.elapsed();
    for id in oldest {
        black_box(engine.cancel(id).into_payload());
    }
    elapsed
}

/// Measures the time per pair on the slowest thread. With perfect scaling this
/// time is the same for any number of threads.
fn pair(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine/pair");
    for threads in [1, 2] {
        group.bench_function(BenchmarkId::new("at", threads), |b| {
            let engine = start();
            b.iter_custom(|pairs| {
                on_threads(threads, |start| {
                    run_pairs(&engine, &mut Given::new(&engine), pairs, start)
                })
            });
        });
        group.bench_function(BenchmarkId::new("after", threads), |b| {
            let engine = start();
            b.iter_custom(|pairs| {
                on_threads(threads, |start| run_pairs(&engine, &mut Delay, pairs, start))
            });
        });
    }
    group.finish();
}

fn on_threads(threads: usize, run: impl Fn(&Barrier) -> Duration + Sync) -> Duration {
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| run(&start))).collect();
        let elapsed = running.into_iter().map(|thread| thread.join().unwrap());
        elapsed.max().unwrap_or_default()
    })
}

/// Measures one thread that schedules while another one cancels.
fn remote(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine/remote");
    group.bench_function("at", |b| {
        let engine = start();
        b.iter_custom(|pairs| run_remote(&engine, pairs as usize));
    });
    group.finish();
}

fn run_remote(engine: &Engine<u64>, pairs: usize) -> Duration {
    let (full, filled) = sync_channel(4);
    let (empty, emptied) = sync_channel(8);
    (0..4).for_each(|_| empty.send(Vec::with_capacity(HANDOVER)).unwrap());
    thread::scope(|scope| {
        scope.spawn(move || cancel_batches(engine, &filled, &empty));
        let mut rng = Rng::with_seed(8);
        let mut when = Given::new(engine);
        let begun = Instant::now();
        let mut left = pairs;
        while left > 0 {
            let mut batch: Vec<TimerId> = emptied.recv().unwrap();
            let timers = left.min(HANDOVER);
            left -= timers;
            batch
                .extend((0..timers).map(|_| schedule(engine, when.timer(engine, delay(&mut rng)))));
            full.send(batch).unwrap();
        }
        drop(full);
        // The cancelling thread drops its end after the last cancel.
        while emptied.recv().is_ok() {}
        begun.elapsed()
    })
}

fn cancel_batches(
    engine: &Engine<u64>,
    filled: &Receiver<Vec<TimerId>>,
    empty: &SyncSender<Vec<TimerId>>,
) {
    for mut batch in filled {
        for id in batch.drain(..) {
            black_box(engine.cancel(id).into_payload());
        }
        empty.send(batch).unwrap();
    }
}

/// Measures keep-alives. The clock is read once per thousand steps. No timer
/// expires, because each begins with a longer delay than a measurement takes.
fn postpone(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine/postpone-later");
    for size in [1_000, 1_000_000] {
        let timers = sized(size);
        group.bench_function(BenchmarkId::new("at", size), |b| {
            let engine = start();
            let mut rng = Rng::with_seed(9);
            let mut when = Given::new(&engine);
            let ids: Vec<TimerId> = (0..timers)
                .map(|_| schedule(&engine, when.timer(&engine, SPAN + delay(&mut rng))))
                .collect();
            b.iter(|| {
                let time = when.after(&engine, 2 * SPAN);
                black_box(engine.reschedule(ids[rng.usize(..timers)], time)).unwrap();
            });
        });
    }
    group.finish();
}

/// Measures expiry through the engine to a worker that counts, on the virtual
/// clock. The thread that moves the clock replaces the ticker. The engine does the
/// same work as on the real clock, except for the kernel's wake-up, and a minute of
/// timers takes less than a minute.
fn expire(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine/expire");
    for (name, span) in [("one tick", 1), ("spread", SPAN)] {
        for size in [1_000, 100_000, 1_000_000] {
            let timers = sized(size);
            group.throughput(Throughput::Elements(timers as u64));
            group.bench_function(BenchmarkId::new(name, size), |b| {
                b.iter_custom(|rounds| (0..rounds).map(|_| run_expire(timers, span)).sum());
            });
        }
    }
    group.finish();
}

fn run_expire(timers: usize, span: u64) -> Duration {
    let builder = Engine::<u64>::builder().tick(TICK);
    let (engine, clock) = builder.start_virtual().expect("the default settings");
    let mut rng = Rng::with_seed(10);
    for _ in 0..timers {
        let tick = rng.u64(1..=span);
        schedule(&engine, Timer::at(Time::from_nanos(tick * TICK_NANOS), tick));
    }
    let queue = engine.queue(0);
    let ready = Barrier::new(2);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            ready.wait();
            let count = queue.take(timers).map(|expired| *expired.payload()).sum::<u64>();
            black_box(count);
        });
        ready.wait();
        let begun = Instant::now();
        (0..span).for_each(|_| clock.advance(TICK));
        worker.join().unwrap();
        begun.elapsed()
    })
}

criterion_group! {
    name = engine;
    config = common::settings();
    targets = pair, remote, postpone, expire
}
criterion_main!(engine);
