//! The entries of the timers that are not where their ids say.
//!
//! An id has the index of the entry in which its timer was first stored. A timer
//! that shrinking moves to another entry, or that is re-armed in another one, keeps
//! its id, and is found here. A bit in its stamp says that it was moved.
//!
//! The timers stand in short *runs*, sorted by sequence number. A single array would
//! be shifted as a whole, and a hash map grows all at once, which takes too long under
//! a lock. A sorted map of timers takes twice the memory, because a map that is filled
//! in order has half-empty parts.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::block::EntryIndex;

/// The tag bit of a moved timer.
pub(super) const MOVED: u16 = 1 << 1;

/// The largest number of timers in a run. In unit tests it is small, so that they see
/// runs that are divided and joined.
const MOST: usize = if cfg!(test) { 8 } else { 64 };

/// The number of timers for which a full run gets more room.
const ROOM: usize = MOST / 8;

/// The moved timers. A run has a key that is not greater than its sequence numbers,
/// and that is greater than those of the run before.
#[derive(Default)]
pub(super) struct Moved(BTreeMap<u64, Vec<Way>>);

struct Way {
    sequence: u64,
    /// The index in the timer's id.
    from: u32,
    to: EntryIndex,
}

impl Moved {
    /// Notes that a timer was moved from the entry at `from` to another one. The entry
    /// at `from` may exist no longer.
    pub(super) fn note(&mut self, sequence: u64, from: u32, to: EntryIndex) {
        let key = self.key_for(sequence);
        let run = self.0.entry(key).or_default();
        match position(run, sequence) {
            Ok(at) => run[at].to = to,
            Err(at) if run.len() < MOST => insert(run, at, Way { sequence, from, to }),
            Err(at) => {
                self.divide(key, at, sequence);
                self.note(sequence, from, to);
            }
        }
    }

    /// Returns the key of the run to which a sequence number belongs.
    fn key_for(&self, sequence: u64) -> u64 {
        let run = self.0.range(..=sequence).next_back();
        run.map_or(0, |(&key, _)| key)
    }

    /// Divides a full run, into which a sequence number is to be inserted. A run that
    /// only grows at one end stays full.
    fn divide(&mut self, key: u64, at: usize, sequence: u64) {
        let Some(run) = self.0.get_mut(&key) else {
            return;
        };
        let (kept, next) = match at {
            0 => (0, run[0].sequence),
            MOST => (MOST, sequence),
            _ => (MOST / 2, run[MOST / 2].sequence),
        };
        let rest = run.split_off(kept);
        run.shrink_to_fit();
        self.0.insert(next, rest);
    }

    /// Forgets a timer that has ended.
    #[cold]
    #[inline(never)]
    pub(super) fn forget(&mut self, sequence: u64) {
        let key = self.key_for(sequence);
        let Some(run) = self.0.get_mut(&key) else {
            return;
        };
        if let Ok(at) = position(run, sequence) {
            run.remove(at);
            if run.capacity() > run.len() + 2 * ROOM {
                run.shrink_to(run.len() + ROOM);
            }
            if run.len() <= MOST / 4 {
                self.join(key);
            }
        }
    }

    /// Joins a short run and the runs beside it, unless those are long. Removes an empty
    /// run.
    fn join(&mut self, key: u64) {
        self.join_next(key);
        if self.0.get(&key).is_some_and(Vec::is_empty) {
            self.0.remove(&key);
        } else if let Some((&before, _)) = self.0.range(..key).next_back() {
            self.join_next(before);
        }
    }

    /// Joins a run and the next one, if neither is long.
    fn join_next(&mut self, key: u64) {
        let mut runs = self.0.range(key..).take(2);
        let is_short = runs.clone().all(|(_, run)| run.len() <= MOST / 2);
        let next = runs.nth(1).filter(|_| is_short).map(|(&next, _)| next);
        let rest = next.and_then(|next| self.0.remove(&next));
        if let Some(run) = self.0.get_mut(&key) {
            run.extend(rest.into_iter().flatten());
        }
    }

    /// Returns the timer's entry.
    pub(super) fn find(&self, sequence: u64) -> Option<EntryIndex> {
        self.way_of(sequence).map(|way| way.to)
    }

    /// Returns the index in a moved timer's id.
    pub(super) fn first_index(&self, sequence: u64) -> Option<u32> {
        self.way_of(sequence).map(|way| way.from)
    }

    fn way_of(&self, sequence: u64) -> Option<&Way> {
        let (_, run) = self.0.range(..=sequence).next_back()?;
        position(run, sequence).ok().map(|at| &run[at])
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}

/// Returns the position of a sequence number in a run, or that at which it would be
/// inserted.
fn position(run: &[Way], sequence: u64) -> Result<usize, usize> {
    run.binary_search_by_key(&sequence, |way| way.sequence)
}

fn insert(run: &mut Vec<Way>, at: usize, way: Way) {
    if run.len() == run.capacity() {
        run.reserve_exact(ROOM);
    }
    run.insert(at, way);
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u32 = 500;

    /// Notes and forgets timers in the given order, and compares with a map.
    fn is_a_map(order: impl Fn(u64) -> u64) {
        let (mut moved, mut expected) = (Moved::default(), BTreeMap::new());
        let check = |moved: &Moved, expected: &BTreeMap<u64, u32>| {
            assert_eq!(moved.len(), expected.len());
            for sequence in 0..=u64::from(COUNT) {
                let index = expected.get(&sequence).copied();
                assert_eq!(moved.first_index(sequence), index);
                assert_eq!(
                    moved.find(sequence).map(EntryIndex::index),
                    index.map(|_| 0)
                );
            }
            assert!(moved.0.values().all(|run| (1..=MOST).contains(&run.len())));
        };
        for n in 0..COUNT {
            let sequence = order(u64::from(n));
            // A second move leaves the index of the id as it is.
            for from in [n, COUNT] {
                moved.note(sequence, from, EntryIndex::FIRST);
            }
            expected.entry(sequence).or_insert(n);
            check(&moved, &expected);
        }
        for n in 0..COUNT {
            let sequence = order(u64::from(n * 7 % COUNT));
            moved.forget(sequence);
            expected.remove(&sequence);
            check(&moved, &expected);
            moved.forget(sequence);
        }
        assert!(moved.0.is_empty());
    }

    #[test]
    fn moved_timers_are_found_by_their_sequence_numbers() {
        is_a_map(|n| n);
        is_a_map(|n| u64::from(COUNT) - n);
        is_a_map(|n| n * 7_919 % 499);
    }

    /// Returns the number of timers in each run.
    fn fill(order: impl Fn(u64) -> u64) -> (Moved, usize) {
        let mut moved = Moved::default();
        for n in 0..COUNT {
            moved.note(order(u64::from(n)), n, EntryIndex::FIRST);
        }
        let runs = moved.0.len();
        (moved, runs)
    }

    #[test]
    fn runs_are_full_if_timers_come_in_order_and_are_joined_when_they_are_short() {
        let least = (COUNT as usize).div_ceil(MOST);
        assert_eq!(fill(|n| n).1, least);
        assert_eq!(fill(|n| u64::from(COUNT) - n).1, least);
        let (mut moved, runs) = fill(|n| n * 7_919 % 499);
        assert!(runs <= 2 * least);
        (0..499)
            .filter(|n| n % 9 != 0)
            .for_each(|n| moved.forget(n));
        assert!(moved.0.len() <= moved.len().div_ceil(MOST / 4));
        let room: usize = moved.0.values().map(Vec::capacity).sum();
        assert!(room <= moved.len() * 2, "{room} for {}", moved.len());
    }
}
