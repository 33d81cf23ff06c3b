//! An engine's timers by the places where they wait.

use core::time::Duration;

use crate::stats::Ledger;
use crate::tick::Tick;
use crate::wheel::Level;

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
