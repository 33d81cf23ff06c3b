//! Where threads leave ids for other threads.

use std::sync::{Arc, Mutex};

use tickwheel::TimerId;

use crate::book::lock;
use crate::random::Random;
use crate::record::Record;

/// A timer whose id is known.
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

    /// An id that a thread left here; it stays for others, too.
    pub fn find(&self, place: usize) -> Option<Known> {
        let all = lock(&self.0);
        let len = all.len().max(1);
        all.get(place % len).cloned()
    }

    /// Some of them: a few, or more than one hold of a shard's lock cancels;
    /// perhaps one of them twice.
    pub fn find_some(&self, random: &mut Random) -> Vec<Known> {
        let most = if random.once_in(8) { 80 } else { 8 };
        let count = 1 + random.index(most);
        let find = |_| self.find(random.index(1 << 20));
        let mut some: Vec<Known> = (0..count).filter_map(find).collect();
        // Sorted by id, timers of one shard stand side by side.
        if random.once_in(2) {
            some.sort_by_key(|known| known.id);
        }
        some
    }
}
