//! What becomes of the firings that a repeating timer misses: when the next one is due, and how
//! many periods later.

use crate::timeline::Time;

/// The policy for firings of a repeating timer that come due while an earlier one is
/// waiting in its queue or running.
///
/// Under each policy, a repeating timer occupies one entry, because missed firings are
/// counted, not stored. Its firings never overlap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum MissedTicks {
    /// Delivers all missed firings, one after the other, each with its own due tick.
    #[default]
    CatchUp,
    /// Skips the missed firings: the next firing is due at the next multiple of the
    /// period. [`Expired::number`](crate::Expired::number) counts the due ticks, skipped
    /// or not, whereas [`Timer::times`](crate::Timer::times) counts deliveries.
    Skip,
    /// Fires next a full period after the late firing is done, which moves the timer's
    /// phase.
    Delay,
}

impl MissedTicks {
    /// The name that [`MissedTicks::CatchUp`] has in tokio.
    ///
    /// ```
    /// use tickwheel::MissedTicks;
    /// use tickwheel::time::MissedTickBehavior;
    ///
    /// assert_eq!(MissedTickBehavior::Burst, MissedTicks::CatchUp);
    /// ```
    #[allow(non_upper_case_globals)]
    pub const Burst: MissedTicks = MissedTicks::CatchUp;

    /// Returns the time of the firing that follows the one due at `due`, and the number
    /// of periods between them. `late` is whether the policy applies.
    pub(crate) fn next(self, due: Time, period: u64, now: Time, late: bool) -> (Time, u64) {
        let (due, now) = (due.as_nanos(), now.as_nanos());
        let (next, steps) = match self {
            MissedTicks::Skip if late => {
                let steps = (now.saturating_sub(due) / period).saturating_add(1);
                (due.saturating_add(steps.saturating_mul(period)), steps)
            }
            MissedTicks::Delay if late => (now.saturating_add(period), 1),
            _ => (due.saturating_add(period), 1),
        };
        (Time::from_nanos(next), steps)
    }
}
