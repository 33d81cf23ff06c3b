//! Everything that one frame shows of an engine, read once.

use tickwheel::{Engine, Inspection, Snapshot, Tick, Time};

use crate::rates::{PerSecond, Rates};

/// The number of entries that one look may visit, over all slots of all shards.
const VISITS_PER_LOOK: usize = 32_768;

/// An engine at one moment.
#[derive(Clone, Debug)]
pub struct Look {
    /// The engine's time.
    pub now: Time,
    /// The tick at that time.
    pub tick: Tick,
    /// The engine's counts.
    pub snapshot: Snapshot,
    /// Where its timers wait.
    pub inspection: Inspection,
    /// The number up to which the timers of a slot were counted.
    pub most: usize,
    /// Events per second, over the last second.
    pub rates: PerSecond,
}

/// Looks at one engine again and again.
#[derive(Default, Debug)]
pub struct Eye {
    rates: Rates,
    /// The number of slots of all levels and shards, at the last look.
    slots: usize,
}

impl Eye {
    /// Looks at the engine. Costs the same for ten timers and for ten million.
    pub fn look<T>(&mut self, engine: &Engine<T>) -> Look {
        if self.slots == 0 {
            self.slots = slots(&engine.inspect(0));
        }
        // Such a number per slot that the look stays bounded.
        let most = (VISITS_PER_LOOK / self.slots.max(1)).clamp(1, 256);
        let inspection = engine.inspect(most);
        self.slots = slots(&inspection);
        let snapshot = engine.snapshot();
        let now = engine.now();
        Look {
            now,
            tick: engine.current_tick(),
            rates: self.rates.note(&snapshot, now),
            snapshot,
            inspection,
            most,
        }
    }
}

fn slots(inspection: &Inspection) -> usize {
    let levels = inspection.shards.iter().map(|shard| shard.levels.len());
    levels.sum::<usize>() * inspection.wheel_size
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tickwheel::Timer;

    /// The counts that a look returns are a bound on the entries that it has visited.
    #[test]
    fn a_look_counts_a_bounded_number_of_timers() {
        let (engine, _clock) = Engine::builder().shards(1).start_virtual().unwrap();
        for n in 0..100_000 {
            let delay = Duration::from_millis(n % 4_000 + 1);
            engine.schedule(Timer::after(delay, ())).unwrap();
        }
        let mut eye = Eye::default();
        for _ in 0..3 {
            let look = eye.look(&engine);
            let levels = look
                .inspection
                .shards
                .iter()
                .flat_map(|shard| &shard.levels);
            let counted: usize = levels.flat_map(|level| &level.timers).sum();
            assert!((10_000..=VISITS_PER_LOOK).contains(&counted), "{counted}");
        }
    }
}
