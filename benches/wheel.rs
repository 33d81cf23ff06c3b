//! Benches of the bare wheel, with a sorted map for comparison.
//!
//! In a bench that is not about time, the wheel's clock stands still, so no timer
//! expires by accident.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

mod common;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use common::{IN_FLIGHT, SPAN, delay, sized};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fastrand::Rng;
use tickwheel::{Tick, TimerId, Wheel};

const WHEEL_SIZE: usize = 64;

/// The number of steps of `postpone_later` per tick of the clock.
const STEPS_PER_TICK: u64 = 100;

fn filled(timers: usize) -> (Wheel<u64>, Vec<TimerId>) {
    let mut rng = Rng::with_seed(1);
    let mut wheel = Wheel::new(WHEEL_SIZE);
    let ids = (0..timers as u64).map(|n| wheel.schedule_after(delay(&mut rng), n)).collect();
    (wheel, ids)
}

/// A deadline and a running number, because a deadline alone is not unique.
type Key = (u64, u64);

fn filled_map(timers: usize) -> BTreeMap<Key, u64> {
    let mut rng = Rng::with_seed(1);
    (0..timers as u64).map(|n| ((delay(&mut rng), n), n)).collect()
}

/// Cancels the oldest of [`IN_FLIGHT`] timers and schedules a new one, while a
/// background of other timers stays in the wheel.
fn pair(c: &mut Criterion) {
    let mut group = c.benchmark_group("wheel/pair");
    for size in [0, 1_000_000] {
        let background = sized(size);
        let id = |name| BenchmarkId::new(name, size);
        group.bench_function(id("wheel"), |b| {
            let (mut wheel, _) = filled(background);
            let mut rng = Rng::with_seed(2);
            let mut oldest: Vec<TimerId> =
                (0..IN_FLIGHT).map(|_| wheel.schedule_after(delay(&mut rng), 0)).collect();
            let mut at = 0;
            b.iter(|| {
                black_box(wheel.cancel(oldest[at]));
                oldest[at] = wheel.schedule_after(delay(&mut rng), 0);
                at = (at + 1) % IN_FLIGHT;
            });
        });
        group.bench_function(id("btreemap"), |b| {
            let mut map = filled_map(background);
            let mut rng = Rng::with_seed(2);
            let mut number = background as u64;
            let mut insert = |map: &mut BTreeMap<Key, u64>| {
                number += 1;
                let key = (delay(&mut rng), number);
                map.insert(key, 0);
                key
            };
            let mut oldest: Vec<Key> = (0..IN_FLIGHT).map(|_| insert(&mut map)).collect();
            let mut at = 0;
            b.iter(|| {
                black_box(map.remove(&oldest[at]));
                oldest[at] = insert(&mut map);
                at = (at + 1) % IN_FLIGHT;
            });
        });
    }
    group.finish();
}

/// Fills an empty wheel, which grows meanwhile, and cancels in random order.
fn fill_cancel(c: &mut Criterion) {
    let mut group = c.benchmark_group("wheel/fill-cancel");
    for size in [10_000, 1_000_000] {
        let timers = sized(size);
        group.throughput(Throughput::Elements(timers as u64));
        group.bench_function(BenchmarkId::new("fill", size), |b| {
            b.iter_batched(|| timers, filled, BatchSize::PerIteration);
        });
        group.bench_function(BenchmarkId::new("cancel", size), |b| {
            let shuffled = || {
                let (wheel, mut ids) = filled(timers);
                Rng::with_seed(3).shuffle(&mut ids);
                (wheel, ids)
            };
            let cancel_all = |(mut wheel, ids): (Wheel<u64>, Vec<TimerId>)| {
                for &id in &ids {
                    black_box(wheel.cancel(id));
                }
                (wheel, ids)
            };
            b.iter_batched(shuffled, cancel_all, BatchSize::PerIteration);
        });
    }
    group.finish();
}

/// Fires timers that are spread over [`SPAN`] ticks, tick by tick.
fn expire(c: &mut Criterion) {
    let mut group = c.benchmark_group("wheel/expire");
    for size in [1_000, 100_000, 1_000_000] {
        let timers = sized(size);
        group.throughput(Throughput::Elements(timers as u64));
        group.bench_function(BenchmarkId::new("wheel", size), |b| {
            let run = |(mut wheel, ids): (Wheel<u64>, Vec<TimerId>)| {
                for tick in 1..=SPAN {
                    while let Some(expired) = wheel.pop_due(Tick(tick)) {
                        black_box(expired.payload);
                    }
                }
                assert!(wheel.is_empty());
                (wheel, ids)
            };
            b.iter_batched(|| filled(timers), run, BatchSize::PerIteration);
        });
        group.bench_function(BenchmarkId::new("btreemap", size), |b| {
            let run = |mut map: BTreeMap<Key, u64>| {
                for tick in 1..=SPAN {
                    while let Some(first) = map.first_entry() {
                        if first.key().0 > tick {
                            break;
                        }
                        black_box(first.remove());
                    }
                }
                assert!(map.is_empty());
                map
            };
            b.iter_batched(|| filled_map(timers), run, BatchSize::PerIteration);
        });
    }
    group.finish();
}

/// Measures keep-alives: each step gives a random timer its full delay again. Time
/// moves on meanwhile, so the figure includes relinking the postponed timers.
fn postpone_later(c: &mut Criterion) {
    let mut group = c.benchmark_group("wheel/postpone-later");
    for size in [1_000, 1_000_000] {
        let timers = sized(size);
        group.bench_function(BenchmarkId::new("wheel", size), |b| {
            let (mut wheel, mut ids) = filled(timers);
            let mut rng = Rng::with_seed(4);
            let mut step = 0;
            b.iter(|| {
                step += 1;
                if step % STEPS_PER_TICK == 0 {
                    tick(&mut wheel, &mut ids);
                }
                let deadline = wheel.now().after(SPAN);
                black_box(wheel.reschedule(ids[rng.usize(..timers)], deadline));
            });
        });
    }
    group.finish();
}

/// Advances by a tick, and schedules expired timers anew to keep the number of
/// timers the same.
fn tick(wheel: &mut Wheel<u64>, ids: &mut [TimerId]) {
    let now = wheel.now().after(1);
    while let Some(expired) = wheel.pop_due(now) {
        ids[expired.payload as usize] = wheel.schedule_after(SPAN, expired.payload);
    }
}

/// Moves each timer once, in random order, from the second span to the first.
/// Moving the timers to the second span is not timed.
fn postpone_earlier(c: &mut Criterion) {
    let mut group = c.benchmark_group("wheel/postpone-earlier");
    for size in [1_000, 1_000_000] {
        let timers = sized(size);
        group.bench_function(BenchmarkId::new("wheel", size), |b| {
            let (mut wheel, mut ids) = filled(timers);
            let mut rng = Rng::with_seed(5);
            rng.shuffle(&mut ids);
            b.iter_custom(|iterations| bring_forward(&mut wheel, &ids, &mut rng, iterations));
        });
    }
    group.finish();
}

fn bring_forward(
    wheel: &mut Wheel<u64>,
    ids: &[TimerId],
    rng: &mut Rng,
    iterations: u64,
) -> Duration {
    let mut left = iterations as usize;
    let mut elapsed = Duration::ZERO;
    while left > 0 {
        let round = &ids[..left.min(ids.len())];
        left -= round.len();
        for &id in round {
            let deadline = Tick(SPAN + delay(rng));
            assert!(wheel.reschedule(id, deadline));
        }
        let begun = Instant::now();
        for &id in round {
            black_box(wheel.reschedule(id, Tick(delay(rng))));
        }
        elapsed += begun.elapsed();
    }
    elapsed
}

criterion_group! {
    name = wheel;
    config = common::settings();
    targets = pair, fill_cancel, expire, postpone_later, postpone_earlier
}
criterion_main!(wheel);
