//! A cache whose entries expire unless they are used: each use extends the entry's time.
//!
//! The answer of `reschedule` decides whether an entry was used in time. An entry whose
//! timer a worker has taken is gone, although it may still be in the map for a moment.

use std::collections::BTreeMap;

use tickwheel::{Engine, Expired, Time, Timer, TimerId};

use crate::threads::sync::Mutex;

pub struct Cache {
    timers: Engine<u32>,
    /// A `BTreeMap`, because the order of a `HashMap` differs from run to run, and loom
    /// repeats runs.
    entries: Mutex<BTreeMap<u32, Entry>>,
}

struct Entry {
    value: &'static str,
    timer: TimerId,
}

impl Cache {
    pub fn new(timers: Engine<u32>) -> Cache {
        Cache { timers, entries: Mutex::default() }
    }

    /// Stores a value until `end`, in place of the key's old one.
    pub fn insert(&self, key: u32, value: &'static str, end: Time) {
        let mut entries = self.entries.lock().unwrap();
        let timer = self.timers.schedule(Timer::at(end, key)).unwrap();
        if let Some(old) = entries.insert(key, Entry { value, timer }) {
            // If a worker has taken the old timer, `expire` compares the ids.
            self.timers.cancel(old.timer);
        }
    }

    /// Returns the value, and keeps it until `end`. Returns `None` if it has expired.
    pub fn get(&self, key: u32, end: Time) -> Option<&'static str> {
        let entries = self.entries.lock().unwrap();
        let entry = entries.get(&key)?;
        self.timers.reschedule(entry.timer, end).ok()?;
        Some(entry.value)
    }

    /// What a worker does with an expired timer.
    pub fn expire(&self, expired: Expired<u32>) {
        let mut entries = self.entries.lock().unwrap();
        let key = *expired.payload();
        if entries.get(&key).is_some_and(|entry| entry.timer == expired.id()) {
            entries.remove(&key);
        }
    }

    /// Returns the stored value without using it.
    pub fn stored(&self, key: u32) -> Option<&'static str> {
        let entries = self.entries.lock().unwrap();
        entries.get(&key).map(|entry| entry.value)
    }
}
