//! A sorted map of deadlines, and several of them behind locks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::rival::{Caller, Rival, Shared, Timers};

/// A deadline and a running number: a deadline alone is not unique.
type Key = (u64, u64);

#[derive(Default)]
pub struct Map {
    timers: BTreeMap<Key, u64>,
    number: u64,
}

impl Rival for Map {
    const NAME: &'static str = "BTreeMap";
}

impl Timers for Map {
    type Id = Key;

    fn new() -> Map {
        Map::default()
    }

    fn schedule(&mut self, deadline: u64, payload: u64) -> Key {
        self.number += 1;
        let key = (deadline, self.number);
        self.timers.insert(key, payload);
        key
    }

    fn cancel(&mut self, id: Key) {
        self.timers.remove(&id);
    }

    fn advance(&mut self, now: u64, fired: &mut Vec<u64>) {
        while let Some(first) = self.timers.first_entry() {
            if first.key().0 > now {
                return;
            }
            fired.push(first.remove());
        }
    }
}

/// A map behind a lock, in a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct LockedMap(Mutex<Map>);

impl LockedMap {
    fn with<R>(&self, work: impl FnOnce(&mut Map) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An engine without a library: each thread schedules into a map that it shares with few. No
/// thread sleeps until the next deadline, so the engine pays nothing for that.
pub struct LockedMaps {
    maps: [LockedMap; 16],
    callers: AtomicUsize,
    start: Instant,
}

impl Rival for LockedMaps {
    const NAME: &'static str = "Mutex<BTreeMap> per thread";
    const LESS: &'static str = "nothing fires by itself";
}

impl Shared for LockedMaps {
    const FIRES: bool = false;
    type Id = (usize, Key);
    type Caller<'a> = Thread<'a>;

    fn start() -> LockedMaps {
        LockedMaps { maps: Default::default(), callers: AtomicUsize::new(0), start: Instant::now() }
    }

    fn caller(&self) -> Thread<'_> {
        let own = self.callers.fetch_add(1, Ordering::Relaxed) % self.maps.len();
        Thread { engine: self, own }
    }
}

pub struct Thread<'a> {
    engine: &'a LockedMaps,
    own: usize,
}

impl Caller for Thread<'_> {
    type Id = (usize, Key);

    fn schedule(&mut self, delay_ticks: u64, payload: u64) -> (usize, Key) {
        let key = self.engine.maps[self.own].with(|map| map.schedule(delay_ticks, payload));
        (self.own, key)
    }

    fn schedule_after(&mut self, delay_ticks: u64, payload: u64) -> (usize, Key) {
        let now = self.engine.start.elapsed().as_millis() as u64;
        self.schedule(now + delay_ticks, payload)
    }

    fn cancel(&mut self, (map, key): (usize, Key)) {
        self.engine.maps[map].with(|map| map.cancel(key));
    }
}
