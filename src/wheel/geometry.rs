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
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    size: u32,
    levels: u32,
    /// The number of ticks per slot, by level.
    units: [u64; MAX_LEVELS],
}

/// With two slots per level, 64 levels are needed to reach every u64.
const MAX_LEVELS: usize = 64;

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
        if !(2..=65_536).contains(&size) {
            return Err(InvalidGeometry::Size(size));
        }
        let (mut units, mut levels) = ([1u64; MAX_LEVELS], 1);
        while let Some(unit) = units[levels - 1].checked_mul(size as u64) {
            units[levels] = unit;
            levels += 1;
        }
        Ok(Geometry { size: size as u32, levels: levels as u32, units })
    }

    /// Limits the number of levels.
    ///
    /// Timers beyond their reach wait together, outside the levels. All are looked at in each
    /// rotation of the top level in which one of them can be due, or could before a cancel, which
    /// is slow if they are many. A timer never fires early.
    ///
    /// # Errors
    /// Returns an error if `levels` is zero.
    pub fn max_levels(mut self, levels: usize) -> Result<Geometry, InvalidGeometry> {
        if levels == 0 {
            return Err(InvalidGeometry::NoLevels);
        }
        self.levels = levels.min(self.levels()) as u32;
        Ok(self)
    }

    /// Returns the number of slots per level.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// Returns the maximum number of levels.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels as usize
    }

    /// Returns the number of ticks that a slot of `level` covers. Of the level behind the
    /// top one of a capped wheel, returns the ticks of a rotation of the top level.
    pub(crate) fn unit(&self, level: usize) -> u64 {
        self.units[level % MAX_LEVELS]
    }

    /// Returns the slot of `level` that covers `tick`.
    pub(super) fn slot(&self, level: usize, tick: u64) -> usize {
        (tick / self.unit(level) % u64::from(self.size)) as usize
    }

    /// Returns the first tick of a slot of `level`, in the rotation that `origin` is in.
    pub(super) fn start_of(&self, level: usize, slot: usize, origin: u64) -> u64 {
        let (unit, size) = (self.unit(level), u64::from(self.size));
        (origin / unit / size * size + slot as u64) * unit
    }

    /// Returns the level of the highest digit, in base `size`, in which a deadline differs
    /// from an earlier tick. In a capped wheel, it may lie behind the top level.
    pub(super) fn level_of(&self, now: u64, deadline: u64) -> usize {
        let size = u64::from(self.size);
        let (mut now, mut deadline, mut level) = (now / size, deadline / size, 0);
        while now != deadline {
            (now, deadline, level) = (now / size, deadline / size, level + 1);
        }
        level.min(self.levels())
    }
}

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

    /// Returns the level, the slot and the first tick of the slot for a deadline.
    fn place(geometry: &Geometry, now: u64, deadline: u64) -> (usize, usize, u64) {
        let level = geometry.level_of(now, deadline);
        let slot = geometry.slot(level, deadline);
        (level, slot, geometry.start_of(level, slot, now))
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
            let (level, _, start) = place(&geometry, 0, u64::MAX);
            assert_eq!(level, geometry.levels() - 1, "size {size}");
            assert!(u64::MAX - start < geometry.unit(level), "size {size}");
        }
    }

    #[test]
    fn a_size_or_a_cap_out_of_range_is_refused() {
        for size in [0, 1, 65_537] {
            assert_eq!(Geometry::new(size), Err(InvalidGeometry::Size(size)));
        }
        assert_eq!(Geometry::new(2).unwrap().max_levels(0), Err(InvalidGeometry::NoLevels));
        assert!(InvalidGeometry::Size(1).to_string().contains("choose 2 to 65536"));
        assert!(InvalidGeometry::NoLevels.to_string().contains("at least one level"));
    }

    #[test]
    fn what_a_capped_wheel_does_not_reach_lies_behind_its_top_level() {
        let flat = Geometry::new(100).unwrap().max_levels(1).unwrap();
        assert_eq!(place(&flat, 50, 99), (0, 99, 99));
        assert_eq!(flat.level_of(50, 100), 1);
        assert_eq!(flat.level_of(50, u64::MAX), 1);
        let two = Geometry::new(64).unwrap().max_levels(2).unwrap();
        assert_eq!(place(&two, 10, 20), (0, 20, 20));
        assert_eq!(two.level_of(64 * 63, 64 * 65), 2);
    }

    #[test]
    fn a_cap_beyond_the_last_level_changes_nothing() {
        let whole = Geometry::new(64).unwrap();
        let capped = |levels| whole.clone().max_levels(levels).unwrap();
        assert!([11, 12, usize::MAX].iter().all(|&levels| capped(levels) == whole));
        assert_ne!(capped(10), whole);
        assert_ne!(Geometry::new(63).unwrap().max_levels(10), Ok(capped(10)));
    }
}
