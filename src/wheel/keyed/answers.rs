//! The values that a keyed wheel returns: expired timers and refused timers.

use core::fmt;

use crate::tick::Tick;

/// A timer that left a [`KeyedWheel`](super::KeyedWheel) because its deadline was
/// reached.
///
/// ```
/// use tickwheel::Tick;
/// use tickwheel::wheel::KeyedWheel;
///
/// let mut wheel = KeyedWheel::new(64);
/// wheel.schedule_after("lease", 20, 1_000)?;
/// let expired = wheel.pop_due(Tick(25)).unwrap();
/// assert_eq!((expired.key, expired.payload), ("lease", 1_000));
/// assert_eq!(expired.deadline, Tick(20));
/// # Ok::<(), tickwheel::wheel::DuplicateKey<&str, i32>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KeyedExpired<K, T> {
    /// The timer's key, which is now free for another timer.
    pub key: K,
    /// The tick at which the timer was due.
    pub deadline: Tick,
    /// The timer's payload.
    pub payload: T,
}

/// A timer that was refused because its key is in use. The wheel is unchanged.
///
/// ```
/// use tickwheel::Tick;
/// use tickwheel::wheel::KeyedWheel;
///
/// let mut wheel = KeyedWheel::new(64);
/// wheel.schedule_at(11, Tick(3), "first")?;
/// let refused = wheel.schedule_at(11, Tick(5), "second").unwrap_err();
/// assert_eq!((refused.key, refused.payload), (11, "second"));
/// # Ok::<(), tickwheel::wheel::DuplicateKey<i32, &str>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DuplicateKey<K, T> {
    /// The key of the refused timer.
    pub key: K,
    /// The payload of the refused timer.
    pub payload: T,
}

impl<K: fmt::Debug, T> fmt::Debug for DuplicateKey<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DuplicateKey")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl<K: fmt::Debug, T> fmt::Display for DuplicateKey<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a timer with the key {:?} has not ended: cancel or reschedule it, or choose another key",
            self.key
        )
    }
}

impl<K: fmt::Debug, T> core::error::Error for DuplicateKey<K, T> {}
