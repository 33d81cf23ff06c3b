//! A hierarchical timing-wheel engine for programs with very many timers, most
//! of which are cancelled before they fire.
//!
//! | for | there is |
//! |---|---|
//! | "run this later" | [`TaskEngine`] |
//! | "hand me what is due", from many threads | [`Engine`] |
//! | an event loop or a frame loop of one's own | [`Builder::start_driven`], [`Driver`] |
//! | the data structure alone | [`Wheel`], [`wheel::KeyedWheel`] |
//! | tests and simulations | [`Builder::start_virtual`], [`VirtualClock`] |
//!
//! # What is promised
//!
//! 1. **Never early.** A delay is rounded up to a tick, from a fresh reading of
//!    the clock.
//! 2. **On time.** A timer is in its queue within a tick of its deadline, plus
//!    one wake-up, plus the time to move what is due before it.
//! 3. **Exactly one ending.** Every timer ends once: completed, cancelled, shut
//!    down, or failed. The [`Ledger`] balances.
//! 4. **Cancel wins until the task is taken**, and returns the payload.
//! 5. **A stale id is harmless**, however often its storage was reused.
//! 6. **Cancel gives the memory back at once.**
//! 7. **Repeats keep their phase**, counts are exact, and firings of one timer
//!    never overlap.
//! 8. **Closed timers are reported** to who asks.
//! 9. **Order.** Timers of one shard fire by tick, and within a tick in the
//!    order in which they were first scheduled. Across shards, and for a
//!    repeating timer that catches up, no order is promised.
//! 10. **A slow or panicking task harms nobody else.**
//! 11. **Bounds, and nothing lost.** A refused timer comes back.
//! 12. **Shutdown accounts for every timer**, at once.
//! 13. **Idle is free.** No wake-up without a reason, never a periodic tick.
//!     A timer that is cancelled or postponed after the ticker went to sleep for
//!     it costs that one wake-up: to arm a delay and cancel it, again and again,
//!     costs one for each such delay.
//! 14. **Any deadline**, from the past to the end of u64.
//! 15. **Time only moves forward**: never the wall clock.
//!
//! # Features
//!
//! Both are off unless asked for, and neither adds anything to scheduling,
//! cancelling, rescheduling or expiring.
//!
//! * `tracing`: events with the target `tickwheel` for what is rare and what an
//!   operator wants to know: engines that start, do not start, drain and shut
//!   down, tickers that end (info; a refused start is a warning), and panics of
//!   tasks and of workers, with the timer's id (error).
//! * `metrics`: `Snapshot::publish`, which hands an engine's counts to a metrics
//!   recorder whenever it is called.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use tickwheel::{Engine, Timer};
//!
//! let engine = Engine::builder().tick(Duration::from_millis(1)).start()?;
//! let id = engine.schedule(Timer::after(Duration::from_secs(30), "session 7"))?;
//! engine.reschedule(id, Duration::from_secs(30))?;
//! assert_eq!(engine.cancel(id).payload(), Some("session 7"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
mod drive;
mod engine;
mod id;
mod observe;
mod process;
mod queue;
mod shard;
mod shared;
mod stats;
mod sync;
mod tasks;
mod tick;
mod time;
mod timer;
pub mod wheel;

/// For models: what threads meet in, by itself.
#[cfg(any(loom, shuttle))]
#[doc(hidden)]
pub mod model {
    pub use crate::sync::{Channel, CondvarParker, RawLock};
}

pub use clock::ClockSource;
pub use drive::{Driver, VirtualClock};
pub use engine::{Builder, Engine, LiveTimers, StartError, Unstarted};
pub use id::TimerId;
pub use queue::{Batch, Expired, Queue, RecvError, Reports};
pub use stats::{Lateness, Ledger, Snapshot};
pub use tasks::{Firing, Task, TaskBuilder, TaskEngine};
pub use tick::Tick;
pub use time::{Time, When};
pub use timer::{
    Cancel, CancelledByName, CloseReason, Closed, LiveTimer, MissedTicks, NotLive, Refusal,
    Refused, Timer,
};
pub use wheel::Wheel;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/COMPARE.md")]
struct Compare;

// Its programs wait for sockets and for a timerfd.
#[cfg(all(doctest, target_os = "linux"))]
#[doc = include_str!("../docs/MIGRATING.md")]
struct Migrating;
