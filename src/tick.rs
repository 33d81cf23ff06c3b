//! Wheel time: an absolute count of ticks.

use core::fmt;

/// An absolute point on a wheel's own time line, counted in ticks.
///
/// How long one tick lasts is the business of whoever drives the wheel: an
/// [`Engine`](crate::Engine) has a tick of one millisecond unless told
/// otherwise, a game loop may count frames.
///
/// ```
/// use tickwheel::Tick;
///
/// let now = Tick(40);
/// assert_eq!(now.after(2), Tick(42));
/// assert_eq!(Tick(42).since(now), 2);
/// assert_eq!(Tick::MAX.after(1), Tick::MAX);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(pub u64);

impl Tick {
    /// The furthest representable tick.
    pub const MAX: Tick = Tick(u64::MAX);

    /// The tick `ticks` later than this one, or [`Tick::MAX`] where that
    /// cannot be represented.
    #[must_use]
    pub const fn after(self, ticks: u64) -> Tick {
        Tick(self.0.saturating_add(ticks))
    }

    /// How many ticks this one lies after `earlier`; zero where it does not.
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
