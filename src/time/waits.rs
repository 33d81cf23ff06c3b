//! The waits on an engine of one's own.

use core::future::IntoFuture;
use std::time::Duration;

use crate::time::Timers;
use crate::time::interval::Interval;
use crate::time::sleep::Sleep;
use crate::time::timeout::Timeout;
use crate::timeline::PointInTime;

impl Timers {
    /// Waits until a delay has passed; see [`sleep`](crate::time::sleep).
    #[inline]
    pub fn sleep(&self, delay: Duration) -> Sleep<&Timers> {
        Sleep::after(self, delay)
    }

    /// Waits until a deadline; see [`sleep_until`](crate::time::sleep_until).
    #[inline]
    pub fn sleep_until(&self, deadline: impl PointInTime) -> Sleep<&Timers> {
        Sleep::until(self, deadline)
    }

    /// Requires a future to complete within a limit; see
    /// [`timeout`](crate::time::timeout).
    #[inline]
    pub fn timeout<F: IntoFuture>(
        &self,
        limit: Duration,
        future: F,
    ) -> Timeout<F::IntoFuture, &Timers> {
        Timeout::new(future, Sleep::lazy(self, limit))
    }

    /// Requires a future to complete before a deadline; see
    /// [`timeout_at`](crate::time::timeout_at).
    #[inline]
    pub fn timeout_at<F: IntoFuture>(
        &self,
        deadline: impl PointInTime,
        future: F,
    ) -> Timeout<F::IntoFuture, &Timers> {
        Timeout::new(future, Sleep::until(self, deadline))
    }

    /// Ticks every `period`, for the first time at once; see
    /// [`interval`](crate::time::interval).
    ///
    /// # Panics
    /// Panics if `period` is zero.
    #[track_caller]
    pub fn interval(&self, period: Duration) -> Interval<&Timers> {
        Interval::new(Sleep::after(self, Duration::ZERO), period)
    }

    /// Ticks every `period`, for the first time at `start`; see
    /// [`interval_at`](crate::time::interval_at).
    ///
    /// # Panics
    /// Panics if `period` is zero.
    #[track_caller]
    pub fn interval_at(&self, start: impl PointInTime, period: Duration) -> Interval<&Timers> {
        Interval::new(Sleep::until(self, start), period)
    }
}
