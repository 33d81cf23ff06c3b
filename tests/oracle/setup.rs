//! Engines of every shape, and where on the time line they start.

use std::time::Duration;

use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use tickwheel::{Engine, Time, VirtualClock};

use crate::scripts::start_offsets;

pub const QUEUES: usize = 2;

/// What an engine is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    pub size: u64,
    pub max_levels: Option<usize>,
    /// Nanoseconds per tick.
    pub tick: u64,
    /// What the clock says at first, in ticks.
    pub start: u64,
    pub shards: usize,
    pub max_timers: Option<usize>,
}

impl Setup {
    pub fn engine(&self) -> (Engine<u64>, VirtualClock) {
        let mut builder = Engine::builder()
            .tick(Duration::from_nanos(self.tick))
            .wheel_size(self.size as usize)
            .shards(self.shards)
            .queues(QUEUES);
        if let Some(levels) = self.max_levels {
            builder = builder.max_levels(levels);
        }
        if let Some(max) = self.max_timers {
            builder = builder.max_timers(max);
        }
        let clock = VirtualClock::starting_at(Time::from_nanos(self.start_nanos()));
        (builder.start_on(&clock).unwrap(), clock)
    }

    pub fn start_nanos(&self) -> u64 {
        self.start.saturating_mul(self.tick)
    }
}

pub fn setup() -> impl Strategy<Value = Setup> {
    let sizes = prop_oneof![40 => select(vec![2, 3, 20, 64, 100, 256]), 1 => Just(60_000)];
    let shape = (sizes, weighted(0.2, 1..4usize), 0..13usize);
    let tick = select(vec![1, 1, 7, 1_000_000]);
    let shards = select(vec![1, 1, 1, 4]);
    let max_timers = weighted(0.3, 1..9usize);
    (shape, tick, shards, max_timers).prop_map(|(shape, tick, shards, max_timers)| Setup {
        size: shape.0,
        max_levels: shape.1,
        tick,
        start: start_offsets(shape.0)[shape.2],
        shards,
        max_timers,
    })
}
