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
//! # Tests
//! Under `tokio::time::pause` and `start_paused`, these functions wait for real: tokio
//! moves its own clock, and knows of no other. A test puts them on a
//! [virtual clock](crate::VirtualClock) instead. It starts [`Timers`] on one and makes them
//! the process-wide ones with [`Global::set`], before anything else uses these functions.
//! All tests of the process then share the clock: they run one after the other, or each in
//! a process of its own (`cargo nextest`).
//!
//! A runtime of one thread can move the clock whenever it has nothing else to do, as
//! tokio does with its own. With tokio, `f` here is what `block_on` runs:
//!
//! ```
//! # use std::task::{Context, Poll, Waker};
//! use std::time::Duration;
//! use tickwheel::time::{Global, Timers, sleep};
//!
//! let (timers, clock) = Timers::builder().start_virtual()?;
//! Global::set(timers.clone());
//! // For `tokio::runtime::Builder::new_current_thread().on_thread_park(park)`.
//! let park = move || {
//!     if let Some(next) = timers.earliest_deadline() {
//!         clock.advance_to(next);
//!     }
//! };
//! let begun = Global.now();
//! let f = async { sleep(Duration::from_secs(3_600)).await };
//! # let mut f = std::pin::pin!(f);
//! # while f.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Pending {
//! #     park();
//! # }
//! assert_eq!(Global.now(), begun + Duration::from_secs(3_600));
//! # Ok::<(), tickwheel::StartError>(())
//! ```
//!
//! Unlike tokio's, this clock doesn't stop for `spawn_blocking`: while such work runs and all
//! tasks wait, time goes on, and a limit on the work passes at once.
//!
//! `Instant::now()` remains the system's, and hardly moves during such a test. So an `Instant`
//! means a distance from now, and only in the call to which it is given: a loop of
//! `next += period` and `sleep_until(next)` waits longer each time, and a deadline that is
//! shared by two steps begins anew with the second. Code that keeps a point in time across a
//! wait keeps `Global.now() + delay`, which is a [`Time`](crate::Time) and is right on every
//! clock, or uses an [`interval`].
//!
//! Code that takes [`Timers`] from its caller needs none of this, and each of its tests
//! has a clock of its own.
//!
//! # How it works
//! A future registers its task's waker as a timer of the engine when it is first polled,
//! and cancels that timer when it is dropped. One thread sleeps until the next deadline,
//! takes due wakers straight off the wheel, and wakes them without holding a lock.
//!
//! # Wakers
//! A waker is code of the runtime. If it panics, the panic is counted in
//! [`Snapshot::panics`](crate::stats::Snapshot::panics), and other tasks are woken. If it
//! blocks, it delays the engine's other wake-ups, because one thread wakes all tasks.

mod handle;
#[cfg(feature = "hyper")]
mod hyper;
mod interval;
mod sleep;
mod timeout;
mod timers;
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub mod tower;

/// The policy for ticks of an [`Interval`] that nobody awaited, under its name in tokio.
/// [`CatchUp`](crate::MissedTicks::CatchUp) is tokio's
/// [`Burst`](crate::MissedTicks::Burst).
pub use crate::timer::MissedTicks as MissedTickBehavior;
pub use handle::{Global, Handle};
pub use interval::{Interval, interval, interval_at};
pub use sleep::{Sleep, sleep, sleep_until};
#[doc(no_inline)]
pub use std::time::{Duration, Instant};
pub use timeout::{Elapsed, Timeout, timeout, timeout_at};
pub use timers::Timers;

/// The error of a [`Timeout`], at the path that it has in tokio.
pub mod error {
    pub use super::Elapsed;
}
