//! A sorted map of deadlines.

use std::collections::BTreeMap;

use crate::rival::{Rival, Timers};

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
