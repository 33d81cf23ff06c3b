//! How often a time was how long, in buckets that double.

use core::time::Duration;

use crate::timeline::nanos;

/// A histogram of durations. Each bucket is twice as wide as the one before it.
///
/// A [`Snapshot`](crate::stats::Snapshot) has several: lateness, and durations of tasks.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Timer};
///
/// let (engine, clock) = Engine::builder().start_virtual()?;
/// engine.schedule(Timer::after(Duration::from_millis(1), ()))?;
/// clock.advance(Duration::from_millis(4)); // three too far
/// let lateness = engine.snapshot().lateness;
/// assert_eq!(lateness.count(), 1);
/// let median = lateness.quantile(0.5).unwrap();
/// assert!((Duration::from_millis(3)..Duration::from_millis(6)).contains(&median));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    /// Bucket b counts durations below 2^b nanoseconds, but not below half of it.
    buckets: [u64; BUCKETS],
}

const BUCKETS: usize = 65;

impl Histogram {
    /// Returns the number of durations counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns a duration that the fraction `q` of those counted (0.5 for the median)
    /// stayed below. It is at most twice too high. Returns `None` if none were counted.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let wanted = (q.clamp(0.0, 1.0) * self.count() as f64).ceil() as u64;
        let mut seen = 0;
        self.buckets().find_map(|(below, timers)| {
            seen += timers;
            (seen >= wanted).then_some(below)
        })
    }

    /// Returns the buckets that are not empty, each as a bound and the number of
    /// durations that were below it but not below half of it.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let bound = |bucket: usize| 1u64.checked_shl(bucket as u32).unwrap_or(u64::MAX);
        let buckets = self.buckets.iter().enumerate();
        buckets
            .filter(|&(_, &timers)| timers > 0)
            .map(move |(bucket, &timers)| (Duration::from_nanos(bound(bucket)), timers))
    }

    /// Counts a duration, for measurements of a program's own. One of more than 584 years
    /// counts as that long.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::stats::Histogram;
    ///
    /// let mut waits = Histogram::default();
    /// waits.record(Duration::from_millis(3));
    /// assert_eq!(waits.count(), 1);
    /// ```
    pub fn record(&mut self, duration: Duration) {
        self.record_nanos(nanos(duration));
    }

    #[inline]
    pub(crate) fn record_nanos(&mut self, nanos: u64) {
        self.buckets[(u64::BITS - nanos.leading_zeros()) as usize] += 1;
    }

    pub(crate) fn add(&mut self, other: &Histogram) {
        for (sum, more) in self.buckets.iter_mut().zip(other.buckets) {
            *sum += more;
        }
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: [0; BUCKETS] }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn each_duration_has_a_bucket_up_to_the_longest() {
        for bits in 0..64 {
            let mut lateness = Histogram::default();
            lateness.record(Duration::from_nanos(1 << bits));
            let below = Duration::from_nanos((1u64 << bits).saturating_mul(2));
            assert_eq!(lateness.quantile(1.0).map(|late| late <= below), Some(true));
            assert!(lateness.quantile(1.0) > Some(Duration::from_nanos(1 << bits)));
        }
        let mut longest = Histogram::default();
        longest.record(Duration::MAX);
        assert_eq!(longest.quantile(1.0), Some(Duration::from_nanos(u64::MAX)));
    }

    #[test]
    fn a_quantile_of_a_few_is_one_of_them() {
        let mut five = Histogram::default();
        (0..5).for_each(|power| five.record_nanos(1 << power));
        let nth = |q| five.quantile(q).map(|below| below.as_nanos().ilog2());
        let expected = [-1.0, 0.0, 0.2, 0.21, 0.5, 0.81, 1.0, 2.0].map(nth);
        assert_eq!(expected, [1, 1, 1, 2, 3, 5, 5, 5].map(Some));
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn histograms_add_up() {
        let mut sum = Histogram::default();
        for nanos in [0, 1, 1 << 40] {
            let mut one = Histogram::default();
            one.record(Duration::from_nanos(nanos));
            sum.add(&one);
        }
        let buckets: Vec<_> = sum.buckets().collect();
        let below = |nanos| Duration::from_nanos(nanos);
        assert_eq!(buckets, [(below(1), 1), (below(2), 1), (below(1 << 41), 1)]);
    }
}
