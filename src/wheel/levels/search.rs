//! The search for the slot whose turn comes next, and the leap of a capped wheel that
//! finds none within a rotation.

use super::{Levels, WORD};
use crate::wheel::geometry::Place;

/// A slot of level 0 whose turn comes next, and what the level's bitmaps say.
pub(crate) struct Turn {
    pub(crate) start: u64,
    pub(crate) slot: usize,
    /// A set bit for each non-empty lane of the slot.
    pub(crate) open: u32,
    /// A set bit for each other occupied slot of the level.
    pub(crate) others: u64,
}

impl Levels {
    /// Returns the slot whose turn comes next. It is in the first level that is not
    /// empty, because the slots of a level come before those of the next level.
    pub(crate) fn next_occupied(&self, now: u64) -> Option<Place> {
        self.next_occupied_from(0, now)
    }

    /// Returns the next slot as [`Levels::next_occupied`] does, if all levels before
    /// this one are empty.
    fn next_occupied_from(&self, level: usize, now: u64) -> Option<Place> {
        let level = (level..self.geometry.levels()).find(|&level| self.is_occupied(level))?;
        self.next_in_level(level, now)
    }

    /// Returns whether any slot of a level is occupied.
    #[inline]
    fn is_occupied(&self, level: usize) -> bool {
        if self.first_head(level).is_none() {
            return false;
        }
        match self.can_have_lanes() {
            true => self.slots_of(level) != 0,
            false => self.words_of(level).iter().any(|&word| word != 0),
        }
    }

    /// Returns the start of the slot whose turn comes next, or the end of time.
    #[inline]
    pub(crate) fn next_start(&self, now: u64) -> u64 {
        match self.is_innermost_plain {
            true => self.next_start_after(now, self.innermost_slots()),
            false => self.next_start_from(0, now),
        }
    }

    /// Returns a set bit for each occupied slot of level 0, except the one that has its
    /// turn now.
    #[inline]
    pub(crate) fn innermost_but(&self, now: u64) -> Option<u64> {
        let slot = now as usize & (self.geometry.size() - 1);
        let slots = || self.innermost_slots() & !(1 << slot);
        self.is_innermost_plain.then(slots)
    }

    /// Returns the next start as [`Levels::next_start`] does, if level 0 is plain and
    /// exactly these of its slots are occupied.
    #[inline]
    pub(crate) fn next_start_after(&self, now: u64, slots: u64) -> u64 {
        // All slots of the level that are occupied lie ahead.
        let ahead = slots >> (now as usize & (self.geometry.size() - 1));
        match ahead {
            0 => self.next_start_from(1, now),
            _ => now + u64::from(ahead.trailing_zeros()),
        }
    }

    #[inline(never)]
    fn next_start_from(&self, level: usize, now: u64) -> u64 {
        let next = self.next_occupied_from(level, now);
        next.map_or(u64::MAX, |next| next.start)
    }

    #[inline]
    fn innermost_slots(&self) -> u64 {
        self.slots_of(0)
    }

    /// Returns a set bit for each occupied slot of a level whose slots fit one word.
    #[inline]
    fn slots_of(&self, level: usize) -> u64 {
        let words = self.lane_words(level);
        match self.lanes() {
            1 => words[0],
            _ => words.iter().fold(0, |all, word| all | word),
        }
    }

    /// Returns the slot that starts at `start`, later than `now`, if it is in level 0.
    /// Reads the bitmaps once for the slot and for the one after it. If they were read
    /// again after a store to one of their words, a load of two words at once would wait
    /// for that store.
    #[inline(always)]
    pub(crate) fn innermost_turn(&self, now: u64, start: u64) -> Option<Turn> {
        let size = self.geometry.size() as u64;
        if !self.is_innermost_plain || (now ^ start) >= size {
            return None;
        }
        let slot = (start & (size - 1)) as usize;
        Some(Turn {
            start,
            slot,
            open: self.occupied_lanes(0, slot),
            others: self.innermost_slots() & !(1 << slot),
        })
    }

    /// Notes that the only non-empty lane of a slot of level 0 has become empty.
    #[inline]
    pub(crate) fn close_sole_lane(&mut self, turn: &Turn) {
        let word = self.word(0, turn.slot, turn.open.trailing_zeros() as usize);
        self.occupied[word] &= !(1 << (turn.slot % WORD));
    }

    /// Returns whether only the top level of a capped wheel is occupied, and `to`
    /// lies a whole rotation of that level ahead.
    #[inline]
    pub(crate) fn is_rotation_ahead(&self, now: u64, to: u64) -> bool {
        let unit = self.geometry.capped_unit();
        unit.is_some_and(|unit| self.is_rotation_of_ahead(unit, now, to))
    }

    /// Returns the same for a capped top level, whose slots cover `unit` ticks.
    fn is_rotation_of_ahead(&self, unit: u64, now: u64, to: u64) -> bool {
        let rotations = (to / unit).saturating_sub(now / unit) / self.geometry.size() as u64;
        let next = || self.next_occupied(now);
        rotations > 0 && next().is_some_and(|next| next.level + 1 == self.geometry.levels())
    }

    /// Returns the tick from which a capped wheel continues on its way from `now`
    /// to `to`, which lies at least a rotation ahead. That tick is later than `now`
    /// by the whole rotations, if any, in which no timer can be due.
    ///
    /// After whole rotations, a slot has the same timers and the same place among
    /// the slots, so no entry needs to be touched.
    #[cold]
    pub(crate) fn leap(&mut self, now: u64, to: u64) -> u64 {
        let Some(next) = self.next_occupied(now) else {
            return now;
        };
        let unit = self.geometry.unit(self.geometry.levels() - 1);
        let rotation = unit * self.geometry.size() as u64;
        self.far.leap(now, to, next.start, rotation)
    }

    /// Returns the occupied slots of `level`, in the order of their turns.
    pub(crate) fn occupied_in_level(
        &self,
        level: usize,
        now: u64,
    ) -> impl Iterator<Item = Place> + '_ {
        let current = self.geometry.slot(level, now);
        let from = move |least: usize| {
            let slot = self.occupied_from(level, (current + least) % self.geometry.size())?;
            let ahead = self.geometry.distance(current, slot);
            // A slot that is nearer has been passed already.
            (ahead >= least).then(|| self.place_ahead(level, slot, ahead, now))
        };
        let last = self.geometry.size() - 1;
        let ahead = move |slot: usize| self.geometry.distance(current, slot);
        core::iter::successors(from(0), move |place| {
            let ahead = ahead(place.slot);
            (ahead < last).then(|| from(ahead + 1)).flatten()
        })
    }

    fn next_in_level(&self, level: usize, now: u64) -> Option<Place> {
        let current = self.geometry.slot(level, now);
        let slot = self.occupied_from(level, current)?;
        let ahead = self.geometry.distance(current, slot);
        Some(self.place_ahead(level, slot, ahead, now))
    }

    /// Returns the first occupied slot of `level` from slot `first` on, wrapping around.
    #[inline(always)]
    fn occupied_from(&self, level: usize, first: usize) -> Option<usize> {
        if self.can_have_lanes() {
            return next_bit(self.slots_of(level), first);
        }
        next_bit_in(self.words_of(level), first)
    }

    fn place_ahead(&self, level: usize, slot: usize, ahead: usize, now: u64) -> Place {
        Place {
            level,
            slot,
            start: self.geometry.start_ahead(level, now, ahead),
        }
    }
}

/// Returns the first set bit from `from` on, wrapping around.
fn next_bit(word: u64, from: usize) -> Option<usize> {
    (word != 0).then(|| (from + word.rotate_right(from as u32).trailing_zeros() as usize) % WORD)
}

/// Returns the first set bit of several words, as [`next_bit`] does for one.
fn next_bit_in(words: &[u64], from: usize) -> Option<usize> {
    let first = from / WORD;
    let ahead = words[first] & u64::MAX << (from % WORD);
    if ahead != 0 {
        return Some(first * WORD + ahead.trailing_zeros() as usize);
    }
    let find = |mut range: core::ops::Range<usize>| range.find(|&word| words[word] != 0);
    let word = find(first + 1..words.len()).or_else(|| find(0..first + 1))?;
    Some(word * WORD + words[word].trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel::entries::{Entries, Stamp};
    use crate::wheel::geometry::Geometry;

    #[test]
    fn the_search_for_the_next_bit_wraps_around() {
        assert_eq!(next_bit(0, 5), None);
        assert_eq!(next_bit(1 << 5, 5), Some(5));
        assert_eq!(next_bit(1 << 4, 5), Some(4));
        assert_eq!(next_bit(1 << 4 | 1 << 63, 5), Some(63));
        let words = [1 << 3, 0, 1 << 7];
        assert_eq!(next_bit_in(&words, 3), Some(3));
        assert_eq!(next_bit_in(&words, 4), Some(135));
        assert_eq!(next_bit_in(&words, 136), Some(3));
        assert_eq!(next_bit_in(&[0, 0], 70), None);
    }

    /// Creates levels of four slots, with an entry in the slot of each deadline.
    fn levels_with(cap: usize, deadlines: &[u64]) -> Levels {
        let mut levels = Levels::new(Geometry::new(4).unwrap().max_levels(cap).unwrap());
        let (mut entries, _) = Entries::new();
        for &deadline in deadlines {
            let place = levels.place(0, deadline);
            let entry = entries.insert(deadline, Stamp::new(1, 0), ());
            levels.append(&mut entries, place, entry);
        }
        levels
    }

    #[test]
    fn a_rotation_is_ahead_if_only_a_capped_top_level_is_occupied() {
        let top = levels_with(2, &[99]);
        assert!(!top.is_rotation_ahead(0, 15));
        assert!(top.is_rotation_ahead(0, 16) && top.is_rotation_ahead(0, 32));
        assert!(!top.is_rotation_ahead(160, 175) && top.is_rotation_ahead(160, 176));
        assert!(!levels_with(2, &[3, 99]).is_rotation_ahead(0, 16));
        assert!(!levels_with(2, &[]).is_rotation_ahead(0, 16));
        assert!(!levels_with(32, &[u64::MAX]).is_rotation_ahead(0, u64::MAX));
    }
}
