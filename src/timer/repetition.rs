//! The repetition of a live timer.

use core::time::Duration;

/// The repetition of a live timer, from
/// [`Engine::repetition`](crate::Engine::repetition).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Repetition {
    /// The time from one due firing to the next.
    pub period: Duration,
    /// The number of firings still to come, without the one that a worker holds. `None`
    /// if the timer fires for ever.
    pub left: Option<u64>,
}
