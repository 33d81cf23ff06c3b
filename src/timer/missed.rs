//! When a repetition is due next, after firings that were late.

use crate::timeline::Time;
use crate::timer::MissedTicks;

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
