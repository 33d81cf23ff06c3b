//! Timers for programs that have very many of them and cancel most before they fire, on a
//! hierarchical timing wheel.
//!
//! Run a closure later, on the engine's workers:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use tickwheel::TaskEngine;
//!
//! let timers = TaskEngine::builder().start()?;
//! timers.run_after(Duration::from_millis(5), || println!("five milliseconds later"))?;
//! let limit = timers.run_after(Duration::from_secs(30), || println!("no answer"))?;
//! assert!(timers.cancel(limit).is_cancelled()); // the answer came in time
//! timers.drain(Duration::from_secs(1)); // waits for one-shots that are due within a second
//! timers.join(); // until these closures have returned
//! # Ok(())
//! # }
//! ```
//!
//! Take due timers from a queue, in threads of your own:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use tickwheel::{Engine, Timer};
//!
//! let engine = Engine::builder().start()?;
//! let session = engine.schedule(Timer::after(Duration::from_millis(5), "session 7"))?;
//! engine.reschedule(session, Duration::from_millis(20))?; // a message arrived
//! assert_eq!(*engine.queue(0).recv()?.payload(), "session 7");
//! # Ok(())
//! # }
//! ```
//!
//! Await a timer, in a task of any runtime:
//!
//! ```
//! use std::time::Duration;
//! use tickwheel::time::{sleep, timeout};
//!
//! # pollster::block_on(async {
//! let answer = timeout(Duration::from_millis(5), sleep(Duration::from_secs(30)));
//! assert!(answer.await.is_err()); // there was none in time
//! # });
//! ```
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
//! The [guide] helps to choose, and has a recipe for each common use. The
//! [promises] say what holds whatever threads do: no timer fires early, each ends once,
//! and a cancel wins until a worker has the timer.
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
//!   task, of a worker or of an awaited timer's waker is an error, with the timer's id if
//!   that is known.
//! * `metrics`: `Snapshot::publish`, which hands an engine's counts to a metrics
//!   recorder at each call.
//! * `serde`: `Serialize` and `Deserialize` for [`TimerId`], [`Tick`], [`Time`] and
//!   [`Ledger`](stats::Ledger).
//! * `stream`: `Queue::into_stream` and `Reports::into_stream`, and `Stream` (of
//!   `futures-core`) for [`time::Interval`].
//! * `hyper`: hyper's `rt::Timer` for [`time::Global`] and `&'static` [`time::Timers`],
//!   for its limits on heads and its keep-alives.
//! * `tower`: `time::tower::TimeoutLayer`, which limits each call of a service.
//! * `loom`, `shuttle`: models of programs that use the crate, together with `--cfg loom`
//!   or `--cfg shuttle`. Without that flag they change nothing. `docs/MODELS.md` in the
//!   package has a model to copy.

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

/// Implements `Debug` by some of a type's values, whatever its payloads are.
#[cfg(feature = "std")]
macro_rules! debug {
    ($it:ident: [$($generics:tt)*] $type:ty => $name:literal { $($field:ident: $value:expr),* }) => {
        impl<$($generics)*> core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let $it = self;
                let fields = &mut f.debug_struct($name);
                $(fields.field(stringify!($field), &$value);)*
                fields.finish_non_exhaustive()
            }
        }
    };
}

// The ground and the wheel, on `core` and `alloc`. A shard calls more of them than a user
// can, and there are no shards without `std`.
#[cfg_attr(not(feature = "std"), allow(dead_code))]
mod id;
mod tick;
#[cfg_attr(not(feature = "std"), allow(dead_code))]
pub mod wheel;

#[cfg(feature = "std")]
mod clock;
#[cfg(feature = "std")]
mod drive;
#[cfg(feature = "std")]
mod engine;
#[cfg(feature = "std")]
mod observe;
#[cfg(feature = "std")]
mod queue;
#[cfg(feature = "std")]
mod rounding;
#[cfg(feature = "std")]
mod shard;
#[cfg(feature = "std")]
pub mod stats;
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
    pub use crate::sync::{Channel, CondvarParker, Place, RawLock, Wait};
}

#[cfg(feature = "std")]
pub use clock::ClockSource;
#[cfg(feature = "std")]
pub use drive::{Builder, Driver, Family, StartError, VirtualClock, WeakEngine};
#[cfg(feature = "std")]
pub use engine::{Engine, Unstarted};
pub use id::{InvalidTimerId, TimerId};
#[cfg(feature = "std")]
pub use queue::{Expired, Queue, RecvError, Reports};
#[cfg(feature = "std")]
pub use tasks::{Firing, Task, TaskEngine};
pub use tick::Tick;
#[cfg(feature = "std")]
pub use timeline::{PointInTime, Time, When};
#[cfg(feature = "std")]
pub use timer::{Cancel, CloseReason, Closed, MissedTicks, Refusal, Refused, Timer};
pub use wheel::Wheel;

#[cfg(any(doc, doctest))]
pub mod promises;

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
