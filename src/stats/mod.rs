//! An engine as seen from outside: its counts, where its timers wait, and which they are.

mod histogram;
#[cfg(feature = "metrics")]
mod publish;

pub use histogram::Histogram;

// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc;
use std::time::Duration;

use crate::id::TimerId;
use crate::tick::Tick;
use crate::timeline::Time;
use crate::timer::{CloseReason, Refusal};
use crate::wheel::Level;

/// Counts of an engine at one moment, from
/// [`Engine::snapshot`](crate::Engine::snapshot).
///
/// With the feature `metrics`, it can be published; see `Snapshot::publish`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Snapshot {
    /// The engine's name; see [`Builder::name`](crate::Builder::name).
    pub name: Arc<str>,
    /// The account of all timers, as returned by
    /// [`Engine::ledger`](crate::Engine::ledger). It agrees with `lateness`, because both
    /// are read under the same lock.
    pub ledger: Ledger,
    /// The number of timers that were not accepted.
    pub refused: RefusedTimers,
    /// The bound on live timers; see [`Builder::max_timers`](crate::Builder::max_timers).
    pub max_timers: Option<usize>,
    /// The bytes that the engine has allocated for timers: entries, with the payloads in
    /// them, and records, both occupied and vacant, and a hint for each timer in a queue.
    /// [`Engine::shrink`](crate::Engine::shrink) gives back what live timers do not need.
    /// Leaves out names, and what payloads themselves own.
    pub memory: usize,
    /// The time for which due timers have been waiting to be found due: how far the
    /// ticker, or the caller's loop, is behind. Measured from the earliest tick at which
    /// a shard wanted to be visited: that of a timer, even if the timer was cancelled
    /// since, or the start of a slot. Zero if no such tick has come. `lateness` cannot
    /// show a ticker that has stopped, because it counts only timers that were found due.
    pub behind: Duration,
    /// The number of expired timers waiting in each queue.
    pub queued: Vec<usize>,
    /// The number of unread reports.
    pub reports: usize,
    /// The lateness of timers when they entered their queues: from the deadline, rounded
    /// up to a tick, to the moment at which the ticker found the timer due. Only the
    /// ticker records it. A firing that is caught up late enters its queue without it.
    pub lateness: Histogram,
    /// The lateness of firings when a worker took them: from the same deadline to that
    /// moment. If this exceeds `lateness`, firings wait for a worker. Empty unless the
    /// engine [measures work](crate::Builder::measure_work), as a
    /// [`TaskEngine`](crate::TaskEngine) does. Leaves out tasks that run because their
    /// timers were cancelled or shut down.
    pub lateness_at_start: Histogram,
    /// The time for which workers held firings: for a task, the duration of its run.
    /// Empty unless the engine measures work. Leaves out what `held` leaves out.
    pub durations: Histogram,
    /// The number of firings that workers hold now. In a
    /// [`TaskEngine`](crate::TaskEngine), it is the number of busy workers.
    ///
    /// Only lent firings are held: those of tasks, repeating and
    /// [rearmable](crate::Timer::rearmable) timers. The payload of another one-shot belongs
    /// to the worker that took it.
    pub held: usize,
    /// The number of worker threads that a [`TaskEngine`](crate::TaskEngine) is to have;
    /// see [`TaskEngine::workers`](crate::TaskEngine::workers). Zero in an engine whose
    /// workers are the caller's own threads, or in a driven one.
    pub workers: usize,
    /// The number of times that the ticker thread woke up.
    pub wakeups: u64,
    /// The number of task runs that panicked, and of drops of closures and calls of async
    /// tasks' wakers that did.
    pub panics: u64,
}

/// The account of every timer that an engine has accepted.
///
/// While no call is in progress, [`Ledger::is_balanced`] holds: every accepted timer is
/// live or has ended once, for one reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ledger {
    /// Timers accepted since the start.
    pub accepted: u64,
    /// Timers that have not ended, counted by the entries that they occupy;
    /// [`Engine::live`](crate::Engine::live) visits them.
    pub live: u64,
    /// Timers that ended by firing for the last time.
    pub completed: u64,
    /// Timers that ended by being cancelled.
    pub cancelled: u64,
    /// Timers that ended by shutdown.
    pub shut_down: u64,
    /// Timers whose last firing panicked.
    pub failed: u64,
}

impl Ledger {
    /// Returns whether `accepted = live + completed + cancelled + shut_down + failed`.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        let counts = [self.live, self.completed, self.cancelled, self.shut_down, self.failed];
        counts.into_iter().map(u128::from).sum::<u128>() == self.accepted.into()
    }

    pub(crate) fn ended(&mut self, reason: CloseReason) {
        *match reason {
            CloseReason::Completed => &mut self.completed,
            CloseReason::Cancelled => &mut self.cancelled,
            CloseReason::ShutDown => &mut self.shut_down,
            CloseReason::Failed => &mut self.failed,
        } += 1;
    }

    pub(crate) fn add(&mut self, other: &Ledger) {
        self.accepted += other.accepted;
        self.live += other.live;
        self.completed += other.completed;
        self.cancelled += other.cancelled;
        self.shut_down += other.shut_down;
        self.failed += other.failed;
    }
}

/// The number of timers that an engine refused because of its own state, by reason.
/// Leaves out timers that no engine would accept, such as one with a period of zero, and
/// those whose unique name was taken.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Engine, Timer};
///
/// let engine = Engine::builder().shards(1).max_timers(1).start()?;
/// for n in 0..4 {
///     let _ = engine.schedule(Timer::after(Duration::from_secs(30), n));
/// }
/// assert_eq!(engine.snapshot().refused.full, 3);
/// # Ok::<(), tickwheel::StartError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RefusedTimers {
    /// Timers beyond [`Builder::max_timers`](crate::Builder::max_timers).
    pub full: u64,
    /// Timers that came after the start of a drain or of a shutdown, without those that were
    /// created before and started then.
    pub shut_down: u64,
}

impl RefusedTimers {
    pub(crate) fn count(&mut self, reason: Refusal) {
        match reason {
            Refusal::Full => self.full += 1,
            // A call that asks for the impossible is refused before it reaches a shard.
            _ => self.shut_down += 1,
        }
    }

    pub(crate) fn add(&mut self, other: &RefusedTimers) {
        self.full += other.full;
        self.shut_down += other.shut_down;
    }
}

/// The places where an engine's timers wait, from
/// [`Engine::inspect`](crate::Engine::inspect).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// The duration of a tick.
    pub tick: Duration,
    /// The number of slots per level.
    pub wheel_size: usize,
    /// The shards. Each has a wheel of its own.
    pub shards: Vec<InspectedShard>,
}

/// A shard, in an [`Inspection`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct InspectedShard {
    /// The account of the shard's timers.
    pub ledger: Ledger,
    /// The number of expired timers that wait for each queue's workers.
    pub queued: Vec<usize>,
    /// The tick at which the ticker will visit the shard next. `None` if it has no
    /// reason to.
    pub next_wakeup: Option<Tick>,
    /// The tick that the shard's wheel has reached. A shard without due timers is not
    /// visited, so its wheel may stand far behind the engine's clock.
    pub reached: Tick,
    /// The levels of the shard's wheel. Empty if the engine is shut down.
    pub levels: Vec<Level>,
}

/// A live timer, as it was when a walk reached it or
/// [`Engine::find`](crate::Engine::find) looked it up.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LiveTimer {
    /// The timer.
    pub id: TimerId,
    /// The timer's name, if it has one.
    pub name: Option<Arc<str>>,
    /// The tick at which the timer is due next, or was due if it is waiting to be taken, or is
    /// running and not re-armed yet.
    pub tick: Tick,
    /// The time at which that tick begins.
    pub deadline: Time,
    /// The timer's queue.
    pub queue: usize,
}

/// Times of takes, for a shard that measures them.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) lateness_at_start: Histogram,
    pub(crate) durations: Histogram,
}
