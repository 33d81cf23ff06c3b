//! What the ticker takes away from the threads that schedule, and they from it.

use std::time::Duration;

use tickwheel::{Engine, Queue, Time, Timer, TimerId};

use super::ring::ring;
use crate::case::{Case, Reading};
use crate::lines::marks::{self, Kind};
use crate::lines::{self, Counts};
use crate::rival::TICK;

const WARM: Kind = 1;
/// The ticker's look at all shards, none of which has a due timer.
const LOOK: Kind = 2;
/// A pair after that look.
const PAIR: Kind = 3;
/// The ticker's round in which a timer of each shard is due.
const VISIT: Kind = 4;
/// A worker's take of one timer.
const TAKE: Kind = 5;
/// A pair in a shard that the ticker and the worker have visited.
const PAIR_AFTER: Kind = 6;

/// The delay of timers that are never due.
const FAR: Duration = Duration::from_secs(3_600);

/// A cycle has two laps. No timer is due at the end of the first.
const LAPS: usize = 2 * 8;
/// The laps that bring caches to their usual state.
const WARM_LAPS: usize = 4;

pub fn case(threads: usize) -> Case {
    let name = "tickwheel engine";
    let case = Case::new(name, true, 1, move || {
        let counts = lines::trace(|| run(threads));
        readings(&counts.expect("valgrind runs, as it did before"), threads)
    });
    case.on_threads(threads)
}

/// Returns figures for each shard. As many threads as there are shards schedule.
fn readings(counts: &Counts, shards: usize) -> Vec<Reading> {
    let reading = |name, kind: Kind, calls: usize| {
        Reading::new(name, "lines", counts[kind].transfers_per(calls))
    };
    let pairs = |kind: Kind| counts[kind].calls / 2;
    let of_each_shard = |kind: Kind| counts[kind].calls * shards;
    vec![
        reading("ticker: look, for each shard", LOOK, of_each_shard(LOOK)),
        reading("pair after a look", PAIR, pairs(PAIR)),
        reading("ticker: due timer", VISIT, of_each_shard(VISIT)),
        // The last take of a lap finds nothing.
        reading("worker: take a timer", TAKE, counts[VISIT].calls * shards),
        reading("pair after a due timer", PAIR_AFTER, pairs(PAIR_AFTER)),
    ]
}

/// Runs the threads that schedule, one that moves the clock, and one that takes timers.
fn run(shards: usize) {
    let builder = Engine::<u64>::builder().tick(TICK).shards(shards);
    let (engine, clock) = builder.start_virtual().expect("a tick and shards");
    let make = |me: usize| match me.checked_sub(shards) {
        None => Role::Schedules(Vec::new()),
        Some(0) => Role::Ticks,
        Some(_) => Role::Takes(engine.queue(0)),
    };
    ring(shards + 2, LAPS, make, |role, lap| match role {
        Role::Schedules(ids) => schedule(&engine, ids, lap),
        Role::Ticks => marks::call(usual([LOOK, VISIT], lap), || clock.advance(TICK)),
        Role::Takes(queue) => take(queue, lap),
    });
}

/// What a thread does in its turn.
enum Role {
    /// Schedules and cancels. Has the ids of its timers.
    Schedules(Vec<TimerId>),
    Ticks,
    Takes(Queue<u64>),
}

/// Returns the kind of a call in the first or second lap of a cycle.
fn usual([first, second]: [Kind; 2], lap: usize) -> Kind {
    match lap {
        0..WARM_LAPS => WARM,
        _ if lap.is_multiple_of(2) => first,
        _ => second,
    }
}

fn schedule(engine: &Engine<u64>, ids: &mut Vec<TimerId>, lap: usize) {
    // Each lap takes a tick.
    let now = Time::START + TICK * lap as u32;
    let at = |kind, time| {
        let scheduled = marks::call(kind, || engine.schedule(Timer::at(time, 0)));
        scheduled.expect("there is no bound")
    };
    let kind = usual([PAIR_AFTER, PAIR], lap);
    ids.push(at(kind, now + FAR));
    if let Some(id) = ids.get(ids.len().wrapping_sub(2)) {
        marks::call(kind, || engine.cancel(*id));
    }
    if lap % 2 == 1 {
        at(WARM, now + TICK);
    }
}

fn take(queue: &Queue<u64>, lap: usize) {
    while let Ok(expired) = marks::call(usual([WARM, TAKE], lap), || queue.try_recv()) {
        drop(expired);
    }
}
