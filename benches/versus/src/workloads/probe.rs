//! The wait of a thread that calls now and then in a shard that others call
//! without pause. With one such thread each has a processor; with sixteen they do
//! not.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::setup::SPAN;
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::{Caller, Shared};
use crate::rivals::locked_wheel::LockedWheel;
use crate::rivals::tickwheel_engine::OneShard;

/// The pause between two calls of the watched thread.
const BETWEEN: Duration = Duration::from_micros(200);

/// The numbers of threads that call without pause, and the names of the settings.
const SETTINGS: [(usize, &str); 2] = [(1, "free"), (16, "oversubscribed")];

const SHARES: [(&str, f64); 4] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

pub fn cases(effort: Effort) -> Vec<Case> {
    let watched = effort.either(Duration::from_secs(1), Duration::from_secs(4));
    let settings = SETTINGS.into_iter();
    settings
        .flat_map(|(hot, setting)| {
            [
                case::<OneShard>(hot, setting, watched),
                case::<LockedWheel>(hot, setting, watched),
            ]
        })
        .collect()
}

fn case<E: Shared>(hot: usize, setting: &'static str, watched: Duration) -> Case {
    let case = Case::new(E::NAME, E::THREAD_SAFE, 0, move || {
        let (mut waits, hot_pairs) = beside::<E>(hot, watched);
        waits.sort_unstable();
        let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
        let wait = |(name, share)| {
            let micros = at(share).as_nanos() as f64 / 1_000.0;
            Reading::new(format!("{setting}, {name}"), "µs", micros)
        };
        let mut readings: Vec<Reading> = SHARES.into_iter().map(wait).collect();
        let hot_pair = format!("{setting}, a pair of the others");
        readings.push(Reading::per_step(hot_pair, watched, hot_pairs as usize));
        readings
    });
    case.on_threads(hot + 1)
}

/// Returns the time of each call of the watched thread, and the number of pairs
/// that the others made meanwhile.
fn beside<E: Shared>(hot: usize, watched: Duration) -> (Vec<Duration>, u64) {
    let engine = E::start();
    let is_over = AtomicBool::new(false);
    let hot_pairs = AtomicU64::new(0);
    let waits = thread::scope(|scope| {
        for n in 0..hot {
            let (engine, is_over, hot_pairs) = (&engine, &is_over, &hot_pairs);
            scope.spawn(move || {
                let mut caller = engine.caller();
                let mut rng = Rng::with_seed(20 + n as u64);
                let mut pairs = 0;
                while !is_over.load(Ordering::Relaxed) {
                    pair(&mut caller, &mut rng);
                    pairs += 1;
                }
                hot_pairs.fetch_add(pairs, Ordering::Relaxed);
            });
        }
        let waits = watch(&engine, watched);
        is_over.store(true, Ordering::Relaxed);
        waits
    });
    (waits, hot_pairs.into_inner())
}

fn watch<E: Shared>(engine: &E, watched: Duration) -> Vec<Duration> {
    let mut caller = engine.caller();
    let mut rng = Rng::with_seed(19);
    let begun = Instant::now();
    let mut waits = Vec::new();
    while begun.elapsed() < watched {
        thread::sleep(BETWEEN);
        let called = Instant::now();
        pair(&mut caller, &mut rng);
        waits.push(called.elapsed());
    }
    waits
}

fn pair<C: Caller>(caller: &mut C, rng: &mut Rng) {
    let id = caller.schedule(rng.u64(1..=SPAN), 0);
    caller.cancel(id);
}
