//! The bells that lead workers to expired timers.
//!
//! A queue's channel carries bells instead of timers: "shard n has something for this
//! queue". Whenever a shard has something for a queue, exactly one bell is in the
//! channel or with a worker. The worker rings the bell again if anything is left
//! behind. Therefore a worker will come for every timer. The channel has room for
//! one bell per shard: it is never full, the ticker never blocks on it, and a burst
//! of a million timers costs one message. When the engine is shut down, the channel is
//! closed.

use crate::sync::Channel;

/// The channel of one queue.
pub(crate) type Doorbell = Channel<Bell>;

/// The token that a worker gets when it answers: something waits in the shard of this number.
/// The worker passes it to [`Core::take_from`](super::Core::take_from), which sends it again
/// if the shard has more timers, and drops it otherwise.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a bell that is lost is never rung again"]
pub(crate) struct Bell(pub(crate) u32);
