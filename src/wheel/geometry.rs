//! The level and the slot that a deadline belongs to.
//!
//! Level k has slots of `size^k` ticks. Placement is aligned: a deadline goes to
//! the level of the highest digit, in base `size`, in which it differs from now.
//! Therefore all deadlines of a level lie in the current slot of the level above
//! it. When a slot's turn comes, every lower level is empty, and cascading the slot
//! does not disturb the order of its timers.

use core::fmt;

/// The shape of a wheel: the number of slots per level and the number of levels.
///
/// ```
/// use tickwheel::wheel::Geometry;
///
/// let kafka = Geometry::new(20)?;
/// let flat = Geometry::new(60_000)?.max_levels(1)?;
/// assert_eq!(kafka.size(), 20);
/// assert_eq!(flat.levels(), 1);
/// assert!(Geometry::new(1).is_err());
/// # Ok::<(), tickwheel::wheel::InvalidGeometry>(())
/// ```
#[derive(Clone, Debug)]
pub struct Geometry {
    /// The number of slots per level, less one. Of a power of two, it is the mask.
    last_slot: u32,
    levels: u32,
    /// Whether the levels together reach every u64. If not, the top level wraps
    /// around, and timers beyond its reach wait in its farthest slot.
    complete: bool,
    /// The binary logarithm of the size, if the size is a power of two.
    bits: Option<u32>,
    /// The level of a deadline and the shift to its slot, by the highest bit in
    /// which the deadline differs from now. Present only if the size is a power of
    /// two and the levels are complete.
    by_highest_bit: Option<[(u8, u8); 64]>,
    /// The number of ticks per slot, by level.
    units: [u64; MAX_LEVELS],
}

/// With two slots per level, 64 levels are needed to reach every u64.
pub(crate) const MAX_LEVELS: usize = 64;
const SIZES: core::ops::RangeInclusive<usize> = 2..=65_536;

/// The slot for a deadline, and the first tick that the slot covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) level: usize,
    pub(crate) slot: usize,
    pub(crate) start: u64,
}

/// A place in two words: the first tick, and the level beside the slot.
pub(crate) type TwoWords = (u64, u64);

impl From<Place> for TwoWords {
    fn from(place: Place) -> TwoWords {
        (place.start, (place.level as u64) << 32 | place.slot as u64)
    }
}

impl From<TwoWords> for Place {
    #[inline]
    fn from((start, place): TwoWords) -> Place {
        Place {
            level: (place >> 32) as usize,
            slot: place as u32 as usize,
            start,
        }
    }
}

impl Geometry {
    /// Creates a shape with `size` slots per level and as many levels as deadlines
    /// need.
    ///
    /// A size of 64, the default of an engine, is the fastest. Powers of two are
    /// faster than other sizes.
    ///
    /// # Errors
    /// Returns an error if `size` is not between 2 and 65,536.
    pub fn new(size: usize) -> Result<Geometry, InvalidGeometry> {
        if !SIZES.contains(&size) {
            return Err(InvalidGeometry::Size(size));
        }
        let mut units = [1u64; MAX_LEVELS];
        let mut levels = 1;
        while let Some(unit) = units[levels - 1].checked_mul(size as u64) {
            units[levels] = unit;
            levels += 1;
        }
        let bits = size.is_power_of_two().then(|| size.trailing_zeros());
        let by_highest_bit = bits.map(|bits| {
            core::array::from_fn(|bit| {
                let level = bit as u32 / bits;
                (level as u8, (level * bits) as u8)
            })
        });
        Ok(Geometry {
            last_slot: size as u32 - 1,
            levels: levels as u32,
            complete: true,
            bits,
            by_highest_bit,
            units,
        })
    }

    /// Limits the number of levels.
    ///
    /// A timer beyond their reach waits in the farthest slot of the top level. Each
    /// time that slot's turn comes, the timer is re-filed, until it is within
    /// reach. It never fires early. An advance over many rotations of the top level
    /// skips rotations in which no timer can be due, without touching any timer.
    ///
    /// # Errors
    /// Returns an error if `levels` is zero.
    pub fn max_levels(mut self, levels: usize) -> Result<Geometry, InvalidGeometry> {
        if levels == 0 {
            return Err(InvalidGeometry::NoLevels);
        }
        if levels < self.levels as usize {
            self.levels = levels as u32;
            self.complete = false;
            self.by_highest_bit = None;
        }
        Ok(self)
    }

    /// Returns the number of slots per level.
    #[must_use]
    pub fn size(&self) -> usize {
        self.last_slot as usize + 1
    }

    /// Returns the maximum number of levels.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels as usize
    }

    /// Returns the number of ticks that a slot of `level` covers.
    #[inline]
    pub(crate) fn unit(&self, level: usize) -> u64 {
        self.units[level & (MAX_LEVELS - 1)]
    }

    /// Returns the number of ticks that a slot of the top level covers, if that
    /// level wraps around.
    pub(crate) fn capped_unit(&self) -> Option<u64> {
        (!self.complete).then(|| self.units[self.levels as usize - 1])
    }

    /// Returns the binary logarithm of the size, if the size is a power of two.
    pub(crate) fn bits(&self) -> Option<u32> {
        self.bits
    }

    /// Returns whether the size is a power of two and no level wraps around.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.by_highest_bit.is_some()
    }

    /// Returns the slot of `level` that covers `tick`.
    #[inline]
    pub(crate) fn slot(&self, level: usize, tick: u64) -> usize {
        match self.bits {
            Some(bits) => (tick >> (level as u32 * bits)) as usize & self.last_slot as usize,
            None => (tick / self.unit(level) % self.size() as u64) as usize,
        }
    }

    /// Returns the number of slots from `from` to `to`, wrapping around.
    #[inline]
    pub(crate) fn distance(&self, from: usize, to: usize) -> usize {
        match self.bits {
            Some(_) => to.wrapping_sub(from) & self.last_slot as usize,
            None => (to + self.size() - from) % self.size(),
        }
    }

    /// Returns the first tick of the slot of `level` that lies `ahead` slots after
    /// the slot that covers `now`.
    #[inline]
    pub(crate) fn start_ahead(&self, level: usize, now: u64, ahead: usize) -> u64 {
        match self.bits {
            Some(bits) => {
                let shift = level as u32 * bits;
                ((now >> shift) + ahead as u64) << shift
            }
            None => (now / self.unit(level) + ahead as u64) * self.unit(level),
        }
    }

    /// Returns the slot for a deadline that is later than `now`.
    pub(crate) fn place(&self, now: u64, deadline: u64) -> Place {
        let by_bits = self.place_by_bits(now, deadline);
        by_bits.unwrap_or_else(|| self.place_by_division(now, deadline))
    }

    /// Returns the slot as [`Geometry::place`] does, or `None` if the size is not a
    /// power of two or the levels are capped.
    #[inline]
    pub(crate) fn place_by_bits(&self, now: u64, deadline: u64) -> Option<Place> {
        let by_highest_bit = self.by_highest_bit.as_ref()?;
        let (level, shift) = by_highest_bit[highest_difference(now, deadline)];
        let unit = deadline >> shift;
        Some(Place {
            level: usize::from(level),
            slot: self.slot_of_unit(unit),
            start: unit << shift,
        })
    }

    /// Returns the slot of a deadline that was shifted to its level, if the size is a power
    /// of two.
    #[inline]
    pub(crate) fn slot_of_unit(&self, unit: u64) -> usize {
        unit as usize & self.last_slot as usize
    }

    /// Returns the shift to the slot of deadlines that differ from now in this bit and no
    /// higher one, if they belong to `level` and slots are found by bits.
    pub(crate) fn shift_if_in(&self, level: usize, bit: usize) -> Option<u8> {
        let (of_bit, shift) = self.by_highest_bit.as_ref()?[bit];
        (usize::from(of_bit) == level).then_some(shift)
    }

    /// Returns the tick between `from` and `to` at which the coarsest slot starts.
    pub(crate) fn coarsest(&self, from: u64, to: u64) -> u64 {
        let mut starts = (0..self.levels()).rev().filter_map(|level| {
            let unit = self.unit(level);
            from.div_ceil(unit).checked_mul(unit)
        });
        starts.find(|&start| start <= to).unwrap_or(from)
    }

    /// Returns the slot as [`Geometry::place`] does, for any size and any cap.
    #[cold]
    pub(crate) fn place_by_division(&self, now: u64, deadline: u64) -> Place {
        let size = self.size() as u64;
        let (mut now_unit, mut unit, mut level) = (now, deadline, 0);
        loop {
            if !self.complete && level + 1 >= self.levels as usize {
                return self.place_at_top(now, deadline);
            }
            if unit / size == now_unit / size {
                return Place {
                    level,
                    slot: (unit % size) as usize,
                    start: unit * self.unit(level),
                };
            }
            now_unit /= size;
            unit /= size;
            level += 1;
        }
    }

    /// Returns the slot in the top level of a capped wheel; that level wraps around.
    #[cold]
    fn place_at_top(&self, now: u64, deadline: u64) -> Place {
        let level = self.levels as usize - 1;
        let unit = self.unit(level);
        let size = self.size() as u64;
        let now_unit = now / unit;
        let ahead = (deadline / unit - now_unit).min(size - 1);
        debug_assert!(
            ahead > 0,
            "deadlines of the current slot belong to a lower level"
        );
        Place {
            level,
            slot: ((now_unit + ahead) % size) as usize,
            start: (now_unit + ahead) * unit,
        }
    }
}

/// Returns the highest bit in which a deadline differs from an earlier tick.
#[inline]
pub(crate) fn highest_difference(now: u64, deadline: u64) -> usize {
    debug_assert!(deadline > now);
    // The ticks differ, so the lowest bit cannot change the logarithm. It is set to show
    // the compiler that the argument is not zero.
    ((deadline ^ now) | 1).ilog2() as usize
}

impl PartialEq for Geometry {
    fn eq(&self, other: &Geometry) -> bool {
        (self.last_slot, self.levels) == (other.last_slot, other.levels)
    }
}

impl Eq for Geometry {}

/// The reason why a [`Geometry`] was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum InvalidGeometry {
    /// A wheel size outside the range 2 to 65,536.
    Size(usize),
    /// A cap of zero levels.
    NoLevels,
}

impl fmt::Display for InvalidGeometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidGeometry::Size(size) => write!(
                f,
                "a wheel size of {size} is out of range: choose 2 to 65536 slots per level (64 is the fastest)"
            ),
            InvalidGeometry::NoLevels => {
                f.write_str("a wheel needs at least one level: leave the cap out or raise it")
            }
        }
    }
}

impl core::error::Error for InvalidGeometry {}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(geometry: &Geometry, now: u64, deadline: u64) -> (usize, usize, u64) {
        let place = geometry.place(now, deadline);
        (place.level, place.slot, place.start)
    }

    #[test]
    fn a_deadline_goes_to_the_level_of_its_highest_differing_digit() {
        let kafka = Geometry::new(20).unwrap();
        assert_eq!(place(&kafka, 0, 2), (0, 2, 2));
        assert_eq!(place(&kafka, 0, 20), (1, 1, 20));
        assert_eq!(place(&kafka, 0, 350), (1, 17, 340));
        assert_eq!(place(&kafka, 0, 399), (1, 19, 380));
        assert_eq!(place(&kafka, 0, 400), (2, 1, 400));
        assert_eq!(place(&kafka, 0, 8_000), (3, 1, 8_000));
        let binary = Geometry::new(64).unwrap();
        assert_eq!(place(&binary, 63, 64), (1, 1, 64));
        assert_eq!(place(&binary, 0, u64::MAX), (10, 15, 15 << 60));
    }

    #[test]
    fn every_size_reaches_the_end_of_time() {
        for size in [2, 3, 20, 64, 100, 256, 60_000, 65_536] {
            let geometry = Geometry::new(size).unwrap();
            let place = geometry.place(0, u64::MAX);
            assert_eq!(place.level, geometry.levels() - 1, "size {size}");
            assert_eq!(geometry.slot(place.level, u64::MAX), place.slot);
        }
    }

    #[test]
    fn a_capped_top_level_wraps_around_and_keeps_far_timers_in_its_last_slot() {
        let flat = Geometry::new(100).unwrap().max_levels(1).unwrap();
        assert_eq!(place(&flat, 50, 149), (0, 49, 149));
        assert_eq!(place(&flat, 50, 150), (0, 49, 149));
        assert_eq!(place(&flat, 50, 1_000_000), (0, 49, 149));
        let two = Geometry::new(64).unwrap().max_levels(2).unwrap();
        assert_eq!(place(&two, 10, 20), (0, 20, 20));
        assert_eq!(place(&two, 64 * 63, 64 * 65), (1, 1, 64 * 65));
        assert_eq!(place(&two, 0, 1 << 40), (1, 63, 63 * 64));
    }

    #[test]
    fn a_cap_beyond_the_last_level_changes_nothing() {
        let whole = Geometry::new(64).unwrap();
        let capped = |levels| whole.clone().max_levels(levels).unwrap();
        assert_eq!(whole.capped_unit(), None);
        assert_eq!(capped(11), whole);
        assert_eq!(capped(11).capped_unit(), None);
        assert_ne!(capped(10), whole);
        assert_eq!(capped(10).capped_unit(), Some(1 << 54));
        assert_ne!(Geometry::new(63).unwrap().max_levels(10), Ok(capped(10)));
    }
}
