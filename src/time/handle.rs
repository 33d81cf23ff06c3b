//! The engines on which awaited timers wait: the process-wide one, or one's own.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::fork;
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

    /// Returns the engine, unless it was inherited in a fork or has yet to be started.
    fn timers_here(&self) -> Option<&Timers>;
}

/// Converts the engine's time to a handle's [`Handle::Moment`].
pub trait Moment {
    fn at(timers: &Timers, time: Time) -> Self;
}

/// The process-wide engine of [`sleep`](crate::time::sleep) and its companions.
///
/// It starts at its first use, with a single thread, follows the monotonic clock, has a
/// tick of one millisecond, and never ends. A process that is forked from this one starts
/// an engine of its own at its first use.
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
/// A child process starts its own engine, as said above. But if another thread of the
/// parent is in the first use of all at the moment of the `fork`, the child's first use
/// blocks for ever. A program that forks from several threads uses it once before.
///
/// # Panics
/// Its first use panics if the system has no descriptor or no thread left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Global;

impl Global {
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

/// The engine of one process, and the place for the one of its forked child. A child
/// cannot use the engine that it inherits, because the engine's thread is not in it.
struct Generation {
    timers: OnceLock<(u64, Timers)>,
    child: OnceLock<Box<Generation>>,
}

impl Generation {
    const fn new() -> Generation {
        Generation {
            timers: OnceLock::new(),
            child: OnceLock::new(),
        }
    }

    #[inline]
    fn timers(&self) -> &Timers {
        match self.timers.get() {
            Some((forks, timers)) if *forks == fork::count() => timers,
            Some(_) => self.timers_of_child(),
            None => self.start(),
        }
    }

    /// Returns the engine of this process, if it was started.
    fn started(&self) -> Option<&Timers> {
        match self.timers.get()? {
            (forks, timers) if *forks == fork::count() => Some(timers),
            _ => self.child.get()?.started(),
        }
    }

    #[cold]
    fn timers_of_child(&self) -> &Timers {
        let child = || Box::new(Generation::new());
        self.child.get_or_init(child).timers()
    }

    #[cold]
    fn start(&self) -> &Timers {
        let (_, timers) = self.timers.get_or_init(|| {
            let started = Timers::builder().name("global").start();
            let timers = started.unwrap_or_else(|error| panic!("cannot start timers: {error}"));
            (fork::count(), timers)
        });
        timers
    }
}

static GLOBAL: Generation = Generation::new();

impl Sealed for Global {
    #[inline]
    fn timers(&self) -> &Timers {
        GLOBAL.timers()
    }

    fn timers_here(&self) -> Option<&Timers> {
        GLOBAL.started()
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

    #[inline]
    fn timers_here(&self) -> Option<&Timers> {
        (!self.core().is_inherited()).then_some(self)
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

    #[inline]
    fn timers_here(&self) -> Option<&Timers> {
        (**self).timers_here()
    }
}

impl Handle for &Timers {
    type Moment = Time;
}

/// An instant that does not come in the life of a process.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3_600);

impl Moment for Instant {
    fn at(timers: &Timers, time: Time) -> Instant {
        let instant = timers.core().clock.instant_at(time);
        instant.unwrap_or_else(|| Instant::now() + FAR)
    }
}

impl Moment for Time {
    fn at(_: &Timers, time: Time) -> Time {
        time
    }
}

#[cfg(all(test, target_os = "linux", not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::engine::tests::forked::{dropped_in_a_child, poll};
    use crate::fork::tests::in_a_child;
    use crate::time::sleep;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_forked_child_drops_what_a_task_holds() {
        let (timers, _clock) = Timers::builder().start_virtual().unwrap();
        let mut own = Box::pin(timers.sleep(HOUR));
        poll(own.as_mut());
        dropped_in_a_child("a sleep", timers.core(), own);
        let mut limit = Box::pin(timers.timeout(HOUR, std::future::pending::<()>()));
        poll(limit.as_mut());
        dropped_in_a_child("a limit", timers.core(), limit);
        assert_eq!(timers.ledger().live, 0);
    }

    #[test]
    fn a_forked_child_drops_a_sleep_and_starts_no_engine_for_it() {
        let mut global = Box::pin(sleep(HOUR));
        poll(global.as_mut());
        let mut global = Some(global);
        assert!(in_a_child(|| {
            drop(global.take());
            GLOBAL.started().is_none()
        }));
    }
}
