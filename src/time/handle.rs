//! The engines on which awaited timers wait: the process-wide one, or one's own.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::stats::Snapshot;
use crate::time::Timers;
use crate::timeline::{PointInTime, Time};

/// The engine of an awaited timer: [`Global`], [`&Timers`](Timers), or [`Timers`].
///
/// This trait is sealed.
pub trait Handle: Sealed + Clone + Unpin + Send + Sync {
    /// How the engine's awaited timers tell time: by `Instant` on the process-wide
    /// engine, which follows the monotonic clock, and by [`Time`] on an engine with
    /// settings of its own.
    type Moment: PointInTime + Moment + Copy + core::fmt::Debug + Send + Sync;
}

/// Keeps other crates from implementing [`Handle`].
pub trait Sealed {
    fn timers(&self) -> &Timers;

    /// Returns the time that an instant means on a clock that measures no instants.
    #[cold]
    fn time_meant(&self, instant: Instant) -> Time {
        panic!(
            "{instant:?} is no reading of the clock of these timers: pass a `Time`, such as \
             `timers.now() + delay`"
        )
    }
}

/// Converts the engine's time to a handle's [`Handle::Moment`].
pub trait Moment {
    fn at(timers: &Timers, time: Time) -> Self;
}

/// The process-wide engine of [`sleep`](crate::time::sleep) and its companions.
///
/// It starts at its first use, with a single thread, follows the monotonic clock, has a
/// tick of one millisecond, and never ends. With the feature `tracing`, the start is an event,
/// in which a subscriber may not use the engine: it would wait for its own start.
///
/// ```
/// use tickwheel::time::Global;
///
/// let before = Global.now();
/// assert!(Global.now() >= before);
/// assert_eq!(Global.snapshot().ledger.live, 0);
/// ```
///
/// # Fork
/// It is an engine like [any other](crate::Engine#fork): if a process has used it before a
/// fork, the child can't.
///
/// # Panics
/// Its first use panics if the system has no descriptor or no thread left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Global;

impl Global {
    /// Makes the functions of [`time`](crate::time) use these timers, in place of an
    /// engine that would start at their first use. For a test, which starts them on a
    /// [virtual clock](crate::VirtualClock); see [Tests](crate::time#tests).
    ///
    /// On such a clock, an `Instant` counts from the call to which it is given, or which
    /// returns it: `sleep_until(Instant::now() + delay)` waits for `delay` of the clock's
    /// time.
    ///
    /// # Panics
    /// Panics if the process-wide engine has been used, or set before.
    pub fn set(timers: Timers) {
        if GLOBAL.set(timers).is_err() {
            panic!("the process-wide timers are in use: set them once, before all else");
        }
    }

    /// Returns the current time of the engine's clock.
    #[must_use]
    pub fn now(self) -> Time {
        self.timers().now()
    }

    /// Returns the engine's counts; see [`Engine::snapshot`](crate::Engine::snapshot).
    #[must_use]
    pub fn snapshot(self) -> Snapshot {
        self.timers().snapshot()
    }
}

static GLOBAL: OnceLock<Timers> = OnceLock::new();

fn start() -> Timers {
    let started = Timers::builder().name("global").start();
    started.unwrap_or_else(|error| panic!("cannot start timers: {error}"))
}

impl Sealed for Global {
    #[inline]
    fn timers(&self) -> &Timers {
        GLOBAL.get_or_init(start)
    }

    #[cold]
    fn time_meant(&self, instant: Instant) -> Time {
        self.now() + instant.saturating_duration_since(Instant::now())
    }
}

impl Handle for Global {
    type Moment = Instant;
}

impl Sealed for Timers {
    #[inline]
    fn timers(&self) -> &Timers {
        self
    }
}

impl Handle for Timers {
    type Moment = Time;
}

impl Sealed for &Timers {
    #[inline]
    fn timers(&self) -> &Timers {
        self
    }
}

impl Handle for &Timers {
    type Moment = Time;
}

/// About 30 years: longer than any process lives.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3_600);

impl Moment for Instant {
    fn at(timers: &Timers, time: Time) -> Instant {
        let clock = &timers.core().clock;
        let instant = clock.instant_at(time);
        instant.unwrap_or_else(|| from_here(time, clock.now()))
    }
}

/// Returns the instant that is as far from now as `time` is from the clock's `now`.
#[cold]
fn from_here(time: Time, now: Time) -> Instant {
    let here = Instant::now();
    let past = here.checked_sub(now.since(time)).unwrap_or(here);
    past + time.since(now).min(FAR)
}

impl Moment for Time {
    fn at(_: &Timers, time: Time) -> Time {
        time
    }
}
