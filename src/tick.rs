//! Wheel time: an absolute count of ticks.

use core::fmt;

/// An absolute point on a wheel's own time line, counted in ticks.
///
/// The owner of a wheel decides how long a tick lasts. The tick of an
/// [`Engine`](crate::Engine) defaults to 1 ms; a game loop may count frames.
///
/// ```
/// use tickwheel::Tick;
///
/// let now = Tick(40);
/// assert_eq!(now.after(2), Tick(42));
/// assert_eq!((Tick(42).since(now), now.since(Tick(42))), (2, 0));
/// assert_eq!(Tick::MAX.after(1), Tick::MAX);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tick(pub u64);

impl Tick {
    /// The last tick.
    pub const MAX: Tick = Tick(u64::MAX);

    /// Returns the tick `ticks` later than this one, or [`Tick::MAX`] if that is
    /// out of range.
    #[must_use]
    pub const fn after(self, ticks: u64) -> Tick {
        Tick(self.0.saturating_add(ticks))
    }

    /// Returns the number of ticks from `earlier` to this one, or zero if `earlier`
    /// comes later.
    #[must_use]
    pub const fn since(self, earlier: Tick) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tick({})", self.0)
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
