//! How a handler ends, and when a failed job is tried again.

use std::any::Any;
use std::fmt::Display;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::wall::WallTime;

/// The largest number of bytes that are kept of a failure.
const MOST_FAILURE: usize = 4_096;
/// A pause that nobody waits for, and with which a computer can reckon.
const LONGEST: Duration = Duration::from_secs(1 << 40);

/// The end of a handler.
///
/// `()` converts to [`Done`](Outcome::Done). So does `Ok(())`, and an error converts to
/// [`Failed`](Outcome::Failed). A panic counts as a failure, too.
///
/// ```
/// use tickwheel_durable::Outcome;
///
/// let sent: Result<(), std::io::Error> = Err(std::io::ErrorKind::TimedOut.into());
/// assert_eq!(Outcome::from(sent), Outcome::Failed("timed out".to_owned()));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The job is done. A recurring job waits for its next occurrence.
    Done,
    /// The job is not done, and runs again at this time. Its attempts are forgotten.
    AgainAt(WallTime),
    /// The same, after a delay.
    AgainAfter(Duration),
    /// The attempt failed. The job is tried again after a pause, or becomes a dead letter if
    /// its attempts are used up. The store keeps the first 4,096 bytes of the message.
    Failed(String),
    /// The attempt failed, and so would all others: the job becomes a dead letter at once. The
    /// store keeps as much of the message.
    Never(String),
}

impl From<()> for Outcome {
    fn from((): ()) -> Outcome {
        Outcome::Done
    }
}

impl<O: Into<Outcome>, E: Display> From<Result<O, E>> for Outcome {
    fn from(result: Result<O, E>) -> Outcome {
        match result {
            Ok(outcome) => outcome.into(),
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }
}

/// How often and when a failed job is tried again.
///
/// The pause doubles with each failure. A random part of up to half of it is taken off, so
/// that jobs that failed together do not come back together.
///
/// ```
/// use std::time::Duration;
/// use tickwheel_durable::Retry;
///
/// let retry = Retry::attempts(3).first_pause(Duration::from_millis(100));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    attempts: u32,
    first: Duration,
    longest: Duration,
    by: Option<fn(u32) -> Duration>,
}

impl Default for Retry {
    /// Ten attempts, with pauses from a second to an hour.
    fn default() -> Retry {
        Retry::attempts(10)
    }
}

impl Retry {
    /// Allows so many attempts, at least one.
    #[must_use]
    pub fn attempts(attempts: u32) -> Retry {
        Retry {
            attempts: attempts.max(1),
            first: Duration::from_secs(1),
            longest: Duration::from_secs(3_600),
            by: None,
        }
    }

    /// Sets the pause after the first failure. Defaults to a second.
    #[must_use]
    pub fn first_pause(mut self, pause: Duration) -> Retry {
        self.first = pause;
        self
    }

    /// Sets the longest pause. Defaults to an hour.
    #[must_use]
    pub fn longest_pause(mut self, pause: Duration) -> Retry {
        self.longest = pause;
        self
    }

    /// Has a function say how long to wait after so many attempts, in the place of all other
    /// settings of pauses. After a panic of it comes the [longest pause](Retry::longest_pause).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel_durable::Retry;
    ///
    /// let retry = Retry::attempts(5).pauses(|attempts| Duration::from_secs(10) * attempts);
    /// ```
    #[must_use]
    pub fn pauses(mut self, by: fn(u32) -> Duration) -> Retry {
        self.by = Some(by);
        self
    }

    pub(crate) fn is_last(self, attempts: u32) -> bool {
        attempts >= self.attempts
    }

    pub(crate) fn is_beyond(self, attempts: u32) -> bool {
        attempts > self.attempts
    }

    /// Returns the pause after so many attempts, at least one. `random` lies between 0 and 1.
    pub(crate) fn pause(self, attempts: u32, random: f64) -> Duration {
        if let Some(by) = self.by {
            // A panic would end the worker, and the job would never end.
            let pause = catch_unwind(|| by(attempts)).map_err(drop_thrown);
            return pause.unwrap_or(self.longest).min(LONGEST);
        }
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
        let pause = self.first.saturating_mul(doubled).min(self.longest);
        pause.min(LONGEST).mul_f64(1.0 - random / 2.0)
    }
}

/// Returns as much of a failure as a store keeps. A database cannot keep a NUL in a text.
pub(crate) fn cut(failure: &str) -> String {
    let mut failure = failure.replace('\0', " ");
    let mut length = failure.len().min(MOST_FAILURE);
    while !failure.is_char_boundary(length) {
        length -= 1;
    }
    failure.truncate(length);
    failure
}

/// Drops what a caller's code threw. That may panic again, which would end the worker; what that
/// throws is leaked.
pub(crate) fn drop_thrown(panic: Box<dyn Any + Send>) {
    catch_unwind(AssertUnwindSafe(|| drop(panic))).unwrap_or_else(mem::forget);
}

/// Panics when it is dropped, as what a panic throws may.
#[cfg(test)]
pub(crate) struct Bomb;

#[cfg(test)]
impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_cut_between_letters() {
        let kept = cut(&"\u{20ac}".repeat(9_999));
        assert_eq!(kept.len(), MOST_FAILURE / 3 * 3);
        assert_eq!(cut("short"), "short");
    }

    #[test]
    fn an_endless_pause_is_no_panic() {
        let retry = Retry::attempts(5).first_pause(Duration::MAX);
        assert_eq!(retry.longest_pause(Duration::MAX).pause(1, 0.0), LONGEST);
    }

    #[test]
    fn a_panic_whose_payload_panics_is_followed_by_the_longest_pause() {
        let retry = Retry::attempts(5).pauses(|_| std::panic::panic_any(Bomb));
        assert_eq!(retry.longest_pause(Duration::from_secs(9)).pause(1, 0.0).as_secs(), 9);
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let second = Duration::from_secs(1);
        let retry = Retry::attempts(5).longest_pause(second * 5);
        let pauses = [1, 2, 3, 4, 99].map(|attempts| retry.pause(attempts, 0.0));
        assert_eq!(pauses, [1, 2, 4, 5, 5].map(|secs| second * secs));
        assert_eq!(retry.pause(1, 1.0), second / 2);
        let linear = retry.pauses(|attempts| Duration::from_secs(9) * attempts);
        assert_eq!(linear.pause(3, 1.0), second * 27);
        assert!(retry.is_last(5) && !retry.is_last(4));
    }
}
