//! A hierarchical timing-wheel engine for programs with very many timers, most
//! of which are cancelled before they fire.
//!
//! | for | use |
//! |---|---|
//! | "run this later" | [`TaskEngine`] |
//! | "hand me due timers", from many threads | [`Engine`] |
//! | "await this", from async tasks | [`time::sleep`], [`time::timeout`], [`time::interval`] |
//! | your own event or frame loop | [`Builder::start_driven`], [`Driver`] |
//! | the data structure alone | [`Wheel`], [`wheel::KeyedWheel`] |
//! | games, simulations and tests | [`Builder::start_virtual`], [`VirtualClock`] |
//!
//! The [guide] helps to choose, and has a recipe for each common use.
//!
//! # Promises
//! 1. **Never early.** A delay counts from a fresh reading of the clock and is
//!    rounded up to a tick.
//! 2. **On time.** A timer is in its queue within a tick of its deadline, plus
//!    one wake-up, plus the time to move the timers due before it. The task of an
//!    awaited timer is woken then, after those of the timers due before it.
//! 3. **Exactly one ending.** Every timer ends once: completed, cancelled, shut
//!    down, or failed. The [`Ledger`] balances.
//! 4. **Cancel wins until the task is taken**, and returns the payload. Once it has
//!    answered, the timer does not fire again, even if a worker re-arms it.
//! 5. **A stale id is harmless**, however often its storage was reused, and so is a
//!    forged one.
//! 6. **Cancel frees the memory at once.**
//! 7. **Repeats keep their phase**, unless their holder re-arms them. Counts are
//!    exact, and firings of one timer never overlap.
//! 8. **A timer's ending is reported on request.**
//! 9. **Order.** Timers of one shard fire by tick, and within a tick in the
//!    order in which they were first scheduled. With one shard and one thread,
//!    the same calls at the same times give the same order in every run, in
//!    every kind of engine. No order is promised across shards or for a
//!    repeating timer that catches up beside other threads.
//! 10. **A slow or panicking task harms no other**, as long as a worker is free.
//!     It holds up neither the ticker, nor other queues, nor other workers. If
//!     slow tasks occupy all workers of a queue, its other timers wait, and
//!     [`Snapshot::lateness_at_start`] shows it. [`TaskEngine::set_workers`] then
//!     adds workers.
//! 11. **Bounds, and nothing lost.** A refused timer is returned to its caller.
//! 12. **Shutdown accounts for every timer**, at once.
//! 13. **Idle is free.** The ticker wakes up for a deadline and never
//!     periodically. A timer that is cancelled or postponed while the ticker
//!     sleeps for it costs that one wake-up. Arming a timer and cancelling it
//!     repeatedly costs one wake-up per delay.
//! 14. **Any deadline**, from the past to the end of u64.
//! 15. **Time only moves forward.** The engine never reads the wall clock.
//!
//! # Policies
//! * **An id is a plain value.** Dropping it cancels nothing, and nobody has to keep it.
//! * **An exit waits for no engine.** When the process ends, live timers do not fire, and
//!   tasks are cut off; see [`Engine`](Engine#the-end-of-the-process).
//! * **An unstarted timer is not live.** It has no deadline to read or move; see
//!   [`Unstarted`].
//! * **No call runs a task inside a task.** A nested [`Driver::process_due`] does
//!   nothing. [`VirtualClock::advance`] runs no task and may be called anywhere. [`VirtualClock::run_until`] panics in a worker, which it would wait for.
//! * **A closure that holds a handle keeps the engine alive**, unless the handle is
//!   [weak](WeakEngine).
//!
//! # Features
//! All but `std` default to off. None adds cost to scheduling, cancelling,
//! rescheduling or expiring.
//!
//! * `std`: everything but the wheels. With `default-features = false`, the crate is
//!   [`Wheel`], [`wheel::KeyedWheel`], [`Tick`] and [`TimerId`] on `core` and `alloc`,
//!   for kernels, firmware and WebAssembly: see [Without `std`](wheel#without-std). All
//!   features but `serde` turn it on.
//! * `tracing`: rare events for operators, with the target `tickwheel` and the
//!   [name](Builder::name) of the engine. An engine's start, drain or shutdown and a
//!   ticker's end are at level info, a refused start is a warning, and a panic of a
//!   task or worker is an error with the timer's id.
//! * `metrics`: `Snapshot::publish`, which hands an engine's counts to a metrics
//!   recorder at each call.
//! * `serde`: `Serialize` and `Deserialize` for [`TimerId`], [`Tick`], [`Time`] and
//!   [`Ledger`].
//! * `stream`: `Queue::into_stream` and `Reports::into_stream`, and `Stream` (of
//!   `futures-core`) for [`time::Interval`].
//! * `hyper`: hyper's `rt::Timer` for [`time::Global`] and `&'static` [`time::Timers`],
//!   for its limits on heads and its keep-alives.
//! * `tower`: `time::tower::TimeoutLayer`, which limits each call of a service.
//! * `loom`, `shuttle`: models of programs that use the crate, together with `--cfg loom`
//!   or `--cfg shuttle`. Without that flag they change nothing. `docs/MODELS.md` in the
//!   package has a model to copy.
//!
//! # Example
//! ```
//! use std::time::Duration;
//! use tickwheel::{Engine, Timer};
//!
//! let engine = Engine::builder().tick(Duration::from_millis(1)).start()?;
//! let id = engine.schedule(Timer::after(Duration::from_secs(30), "session 7"))?;
//! engine.reschedule(id, Duration::from_secs(30))?;
//! assert_eq!(engine.cancel(id).into_payload(), Some("session 7"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(any(feature = "std", test)), no_std)]
// This page and the wheel's name items that need `std`.
#![cfg_attr(not(feature = "std"), allow(rustdoc::broken_intra_doc_links))]

#[cfg(all(loom, not(feature = "loom")))]
compile_error!(
    "`--cfg loom` needs the feature `loom` of tickwheel: add `features = [\"loom\"]` to its line in Cargo.toml"
);
#[cfg(all(shuttle, not(feature = "shuttle")))]
compile_error!(
    "`--cfg shuttle` needs the feature `shuttle` of tickwheel: add `features = [\"shuttle\"]` to its line in Cargo.toml"
);

extern crate alloc;

// The ground and the wheel, on `core` and `alloc`. A shard calls more of them than a user
// can, and there are no shards without `std`.
#[cfg_attr(not(feature = "std"), allow(dead_code))]
mod id;
mod tick;
#[cfg_attr(not(feature = "std"), allow(dead_code))]
pub mod wheel;

#[cfg(feature = "std")]
mod caught;
#[cfg(feature = "std")]
mod clock;
#[cfg(feature = "std")]
mod drive;
#[cfg(feature = "std")]
mod engine;
#[cfg(feature = "std")]
mod engine_name;
#[cfg(feature = "std")]
mod hub;
#[cfg(feature = "std")]
mod observe;
#[cfg(feature = "std")]
mod queue;
#[cfg(feature = "std")]
mod rounding;
#[cfg(feature = "std")]
mod shard;
#[cfg(feature = "std")]
mod stats;
#[cfg(feature = "std")]
mod sync;
#[cfg(feature = "std")]
mod tasks;
#[cfg(feature = "std")]
pub mod time;
#[cfg(feature = "std")]
mod timeline;
#[cfg(feature = "std")]
mod timer;

/// For models: locks, their parkers, and channels, each by itself.
#[cfg(any(loom, shuttle))]
#[doc(hidden)]
pub mod model {
    pub use crate::sync::{Channel, CondvarParker, Place, RawLock};
}

#[cfg(feature = "std")]
pub use clock::ClockSource;
#[cfg(feature = "std")]
pub use drive::{Driver, VirtualClock};
#[cfg(feature = "std")]
pub use engine::{
    Builder, Engine, Family, LiveTimers, NamedTimers, StartError, Unstarted, WeakEngine,
};
pub use id::{InvalidTimerId, TimerId};
#[cfg(feature = "stream")]
pub use queue::RecvStream;
#[cfg(feature = "std")]
pub use queue::{Expired, Queue, RecvError, RecvFuture, Reports};
#[cfg(feature = "std")]
pub use stats::{Histogram, InspectedShard, Inspection, Ledger, RefusedTimers, Snapshot};
#[cfg(feature = "std")]
pub use tasks::{Firing, Task, TaskEngine};
pub use tick::Tick;
#[cfg(feature = "std")]
pub use timeline::{PointInTime, Time, When};
#[cfg(feature = "std")]
pub use timer::{Cancel, CloseReason, Closed, LiveTimer, MissedTicks, Refusal, Refused, Timer};
pub use wheel::Wheel;

/// The guide: which API and which settings to choose, how to do what, and what
/// happens when.
///
/// The programs of its recipes are in the folder `examples/recipes` of the repository.
// Of two definitions of a link, the first one counts. Those of the page itself lead to
// files beside it.
#[cfg(any(doc, doctest))]
#[doc = ""]
#[doc = include_str!("../docs/links/guide.md")]
#[doc = ""]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/how-timing-wheels-work.md")]
struct HowTimingWheelsWork;

// One program waits for sockets and for a timerfd.
#[cfg(all(doctest, target_os = "linux"))]
#[doc = include_str!("../docs/COMPARE.md")]
struct Compare;
