//! The cache lines that a call takes away from other cores, on 1 to 128 threads with a
//! core for each: counted in a model, from the accesses of real calls. See `lines`.

mod alternate;
mod party;
mod ring;
mod ticker;

use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::lines::{self, Counts};
use crate::rival::Shared;
use crate::rivals::btreemap::LockedMap;
use crate::rivals::floor::WheelPerThread;
use crate::rivals::locked_wheel::LockedWheel;
use crate::rivals::tickwheel_engine::Shards;
use crate::rivals::tokio::Sleeps;
use party::{Party, Phase, Shelves};
use ring::ring;

const THREADS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
const FEW_THREADS: [usize; 3] = [1, 2, 16];

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for &threads in effort.either(&FEW_THREADS[..], &THREADS[..]) {
        cases.extend([
            case::<Shards>(threads),
            case::<Sleeps>(threads),
            case::<LockedMap>(threads),
            case::<LockedWheel>(threads),
            case::<WheelPerThread>(threads),
            ticker::case(threads),
        ]);
    }
    cases.extend([
        alternate::case::<Shards>(effort),
        alternate::case::<Sleeps>(effort),
        alternate::case::<LockedMap>(effort),
        alternate::case::<LockedWheel>(effort),
    ]);
    let missing = lines::missing();
    cases.into_iter().map(|case| case.unless(missing)).collect()
}

fn case<E: Shared>(threads: usize) -> Case {
    let case = Case::new(E::NAME, E::THREAD_SAFE, 1, move || {
        let counts = counts::<E>(threads);
        let mut readings: Vec<Reading> = Phase::of::<E>()
            .map(|phase| Reading::new(phase.name, "lines", transfers(&counts, phase)))
            .collect();
        let own = &counts[Phase::OWN.cancel()];
        let lines = own.lines + counts[Phase::OWN.schedule()].lines;
        let used = lines as f64 / own.calls as f64;
        readings.push(Reading::new("own timers, lines used", "lines", used));
        readings
    });
    case.on_threads(threads)
}

/// Traces all phases of one engine.
fn counts<E: Shared>(threads: usize) -> Counts {
    let counts = lines::trace(|| {
        let engine = E::start_for(threads);
        let shelves = Shelves::<E>::new(threads);
        let laps = Phase::laps_of::<E>(threads);
        let make = |me| Party::<E, true>::new(&engine, &shelves, me);
        ring(threads, laps.len(), make, |party, lap| party.lap(laps[lap]));
    });
    counts.expect("valgrind runs, as it did before")
}

/// Returns the lines that a pair takes from other caches.
fn transfers(counts: &Counts, phase: Phase) -> f64 {
    let (schedule, cancel) = (counts[phase.schedule()], counts[phase.cancel()]);
    let pairs = cancel.calls;
    schedule.transfers_per(pairs) + cancel.transfers_per(pairs)
}
