//! Timers to await: sleeps, limits and intervals, on any runtime.
//!
//! [`sleep`], [`timeout`] and [`interval`] have the names and the behaviour of their
//! counterparts in tokio, and need no runtime's timer. They run on a process-wide engine
//! that starts at its first use. An engine with settings of its own is [`Timers`].
//!
//! ```
//! use std::time::Duration;
//! use tickwheel::time::{sleep, timeout};
//!
//! # pollster::block_on(async {
//! let slow = sleep(Duration::from_secs(30));
//! let limited = timeout(Duration::from_millis(2), slow).await;
//! assert!(limited.is_err());
//! # });
//! ```
//!
//! # How it works
//! A future registers its task's waker as a timer of the engine when it is first polled,
//! and cancels that timer when it is dropped. One thread sleeps until the next deadline,
//! takes due wakers straight off the wheel, and wakes them without holding a lock.
//!
//! # Wakers
//! A waker is code of the runtime. If it panics, the panic is counted in
//! [`Snapshot::panics`](crate::Snapshot::panics), and other tasks are woken. If it
//! blocks, it delays the engine's other wake-ups, because one thread wakes all tasks.

mod handle;
#[cfg(feature = "hyper")]
mod hyper;
mod interval;
mod registration;
mod sleep;
#[cfg(feature = "stream")]
mod stream;
mod timeout;
mod timers;
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub mod tower;
mod waits;

pub use handle::{Global, Handle};
pub use interval::{Interval, interval, interval_at};
pub use sleep::{Sleep, sleep, sleep_until};
pub use timeout::{Elapsed, Timeout, timeout, timeout_at};
pub use timers::Timers;

/// The policy for ticks of an [`Interval`] that nobody awaited, under its name in tokio.
/// [`CatchUp`](crate::MissedTicks::CatchUp) is tokio's
/// [`Burst`](crate::MissedTicks::Burst).
pub use crate::timer::MissedTicks as MissedTickBehavior;

#[doc(no_inline)]
pub use std::time::{Duration, Instant};

/// The error of a [`Timeout`], at the path that it has in tokio.
pub mod error {
    pub use super::Elapsed;
}
