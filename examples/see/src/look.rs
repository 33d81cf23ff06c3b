//! Everything that one frame shows of an engine, read once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tickwheel::stats::{Inspection, Snapshot};
use tickwheel::{Engine, Tick, Time};

/// The number up to which the timers of a slot are counted: a hold of a shard's lock may be
/// that long.
pub(crate) const MOST: usize = 16_384;

/// Slots are counted again after this many times the time that it took to count them.
const REST: u32 = 19;

/// The steps that a history goes back, and the looks of a step: a quarter of a second.
const HISTORY: usize = 400;
const LOOKS_PER_STEP: u64 = 5;

/// The length of time over which a rate is an average.
const WINDOW: Duration = Duration::from_secs(1);

/// An engine at one moment.
#[derive(Clone, Debug)]
pub struct Look {
    /// The engine's time.
    pub now: Time,
    /// The tick at that time.
    pub tick: Tick,
    /// The engine's counts.
    pub snapshot: Snapshot,
    /// Where its timers wait. A little older than the rest if it takes long to count them.
    pub inspection: Inspection,
    /// Timers scheduled, cancelled and fired a second, and those that wait for a worker: at
    /// several of the last looks, the present one last.
    pub history: [Vec<u64>; 4],
}

#[derive(Clone, Copy, Debug)]
struct Totals {
    at: Time,
    /// Scheduled, cancelled, and fired so far.
    events: [u64; 3],
}

impl Totals {
    fn per_second_since(&self, earlier: &Totals) -> [u64; 3] {
        let seconds = self.at.since(earlier.at).as_secs_f64();
        let rate = |now: u64, then: u64| (now.saturating_sub(then) as f64 / seconds).round() as u64;
        std::array::from_fn(|it| rate(self.events[it], earlier.events[it]))
    }
}

/// Looks at one engine again and again.
#[derive(Default, Debug)]
pub struct Eye {
    counted: Option<(Inspection, Instant)>,
    /// The totals of the last second.
    seen: VecDeque<Totals>,
    history: [VecDeque<u64>; 4],
    looks: u64,
}

impl Eye {
    /// Looks at the engine. Takes at most a twentieth of the time between two looks, however
    /// many timers there are, unless [`Eye::refresh`] was called.
    pub fn look<T>(&mut self, engine: &Engine<T>) -> Look {
        let inspection = match &self.counted {
            Some((inspection, next)) if Instant::now() < *next => inspection.clone(),
            _ => {
                let begun = Instant::now();
                let inspection = engine.inspect(MOST);
                let next = Instant::now() + begun.elapsed() * REST;
                self.counted.insert((inspection, next)).0.clone()
            }
        };
        let (snapshot, now) = (engine.snapshot(), engine.now());
        self.note(&snapshot, now);
        Look {
            now,
            tick: engine.current_tick(),
            snapshot,
            inspection,
            history: self.history.clone().map(Vec::from),
        }
    }

    /// Makes the next look count all slots, although this may take long.
    pub fn refresh(&mut self) {
        self.counted = None;
    }

    fn note(&mut self, snapshot: &Snapshot, at: Time) {
        let ledger = &snapshot.ledger;
        let events = [ledger.accepted, ledger.cancelled, snapshot.lateness.count()];
        let totals = Totals { at, events };
        self.seen.retain(|seen| seen.at < at);
        let is_over = |seen: &Totals| at.since(seen.at) >= WINDOW;
        while self.seen.get(1).is_some_and(is_over) {
            self.seen.pop_front();
        }
        self.seen.push_back(totals);
        let first = self.seen.front().filter(|first| first.at < at);
        let rates = first.map_or([0; 3], |first| totals.per_second_since(first));
        let waiting = snapshot.queued.iter().sum::<usize>() as u64;
        let present = rates.into_iter().chain([waiting]);
        for (history, value) in self.history.iter_mut().zip(present) {
            if !self.looks.is_multiple_of(LOOKS_PER_STEP) {
                history.pop_back();
            } else if history.len() == HISTORY {
                history.pop_front();
            }
            history.push_back(value);
        }
        self.looks += 1;
    }
}
