//! Where threads leave ids for other threads.

use std::sync::{Arc, Mutex};

use tickwheel::TimerId;

use crate::book::lock;
use crate::record::Record;

/// A timer that somebody knows of.
#[derive(Clone)]
pub struct Known {
    pub id: TimerId,
    pub record: Arc<Record>,
}

/// Ids that stay here go stale, which is what some are left for.
const PLACES: usize = 256;

pub struct Board(Mutex<Vec<Known>>);

impl Board {
    pub fn new() -> Board {
        Board(Mutex::new(Vec::new()))
    }

    /// Leaves an id, in the place of another if the board is full.
    pub fn leave(&self, known: Known, place: usize) {
        let mut all = lock(&self.0);
        if all.len() < PLACES {
            all.push(known);
        } else {
            all[place % PLACES] = known;
        }
    }

    /// An id that somebody left; it stays for others, too.
    pub fn find(&self, place: usize) -> Option<Known> {
        let all = lock(&self.0);
        let len = all.len().max(1);
        all.get(place % len).cloned()
    }
}
