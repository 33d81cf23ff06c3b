//! A sorted map of deadlines, and the same behind a lock.

use std::collections::BTreeMap;
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

/// An engine without a library: a lock around a map. No thread sleeps until its next
/// deadline, so it pays nothing for that.
pub struct LockedMap {
    map: Mutex<Map>,
    start: Instant,
}

impl LockedMap {
    fn with<R>(&self, work: impl FnOnce(&mut Map) -> R) -> R {
        work(&mut self.map.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Rival for LockedMap {
    const NAME: &'static str = "Mutex<BTreeMap>";
    const LESS: &'static str = "nothing fires by itself";
}

impl Shared for LockedMap {
    const FIRES: bool = false;
    type Id = Key;
    type Caller<'a> = &'a LockedMap;

    fn start() -> LockedMap {
        LockedMap {
            map: Mutex::default(),
            start: Instant::now(),
        }
    }

    fn caller(&self) -> &LockedMap {
        self
    }
}

impl Caller for &LockedMap {
    type Id = Key;

    fn schedule(&mut self, delay_ticks: u64, payload: u64) -> Key {
        self.with(|map| map.schedule(delay_ticks, payload))
    }

    fn schedule_after(&mut self, delay_ticks: u64, payload: u64) -> Key {
        let now = self.start.elapsed().as_millis() as u64;
        self.schedule(now + delay_ticks, payload)
    }

    fn cancel(&mut self, id: Key) {
        self.with(|map| map.cancel(id));
    }
}
