//! The bells that lead workers to expired timers.
//!
//! A queue's channel carries bells instead of timers: "shard n has something for this
//! queue". Whenever a shard has something for a queue, exactly one bell is in the
//! channel or with a worker. The worker rings the bell again if anything is left
//! behind. Therefore a worker will come for every timer. The channel has room for
//! one bell per shard: it is never full, the ticker never blocks on it, and a burst
//! of a million timers costs one message.

use std::time::{Duration, Instant};

use crate::sync::{AtomicBool, Channel, IS_MODEL};

/// The token that a worker gets when it answers: something waits in this shard. The
/// worker passes it to [`Core::take_from`](super::Core::take_from), which rings it again
/// if the shard has more timers, and drops it otherwise.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a bell that is lost is never rung again"]
pub(crate) struct Bell(usize);

impl Bell {
    pub(crate) fn shard(&self) -> usize {
        self.0
    }
}

enum Message {
    Ring(u32),
    /// The engine was shut down. The receiver sends it again, for the other workers.
    Stop,
}

/// How long a worker is willing to wait. The limit is an instant and not a duration,
/// because one call may wait several times: for a permit, for a bell, and for another
/// bell if the first led to no timer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait<'a> {
    No,
    Until(Instant),
    /// Until the flag is set. The thread that sets it wakes the receivers.
    Unless(&'a AtomicBool),
    Forever,
}

impl Wait<'_> {
    /// Waits for ever if the end is beyond the range of `Instant`.
    pub(crate) fn at_most(limit: Duration) -> Self {
        let end = Instant::now().checked_add(limit);
        end.map_or(Wait::Forever, Wait::Until)
    }

    /// Returns whether the limit of a call has passed. (A call that does not wait has no
    /// limit: it takes what is there first.) In a model, every limit has passed.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Wait::Until(end) if IS_MODEL || end <= Instant::now())
    }
}

/// Why a wait brought neither a bell nor a permit.
pub(crate) enum WaitError {
    /// No message was there or came in time, or before the flag was set.
    Empty,
    /// The engine was shut down, so no more messages will come.
    Stopped,
}

/// The channel of one queue.
pub(crate) struct Doorbell {
    bells: Channel<Message>,
    /// For a bounded queue, a permit for each firing that its workers may still take.
    permits: Option<Channel<Permit>>,
}

enum Permit {
    Take,
    Stop,
}

impl Doorbell {
    pub(crate) fn new(shards: usize, bound: Option<usize>) -> Doorbell {
        // Room for a bell of each shard and for the stop.
        let bells = Channel::new(shards + 1);
        let permits = bound.map(|bound| {
            let permits = Channel::new(bound + 1);
            (0..bound).for_each(|_| permits.send(Permit::Take));
            permits
        });
        Doorbell { bells, permits }
    }

    /// Announces that something waits in a shard.
    pub(crate) fn ring(&self, shard: usize) {
        self.bells.send(Message::Ring(shard as u32));
    }

    #[inline]
    pub(crate) fn ring_again(&self, Bell(shard): Bell) {
        self.ring(shard);
    }

    /// Announces that no timer will ever wait again.
    pub(crate) fn stop(&self) {
        self.bells.send(Message::Stop);
        if let Some(permits) = &self.permits {
            permits.send(Permit::Stop);
        }
    }

    /// Waits for a bell.
    #[inline]
    pub(crate) fn answer(&self, wait: Wait<'_>) -> Result<Bell, WaitError> {
        match receive(&self.bells, wait)? {
            Message::Ring(shard) => Ok(Bell(shard as usize)),
            Message::Stop => {
                self.bells.send(Message::Stop);
                Err(WaitError::Stopped)
            }
        }
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.permits.is_some()
    }

    /// Waits until a worker may take one more firing.
    pub(crate) fn take_permit(&self, wait: Wait<'_>) -> Result<(), WaitError> {
        let Some(permits) = &self.permits else {
            return Ok(());
        };
        match receive(permits, wait)? {
            Permit::Take => Ok(()),
            Permit::Stop => {
                permits.send(Permit::Stop);
                Err(WaitError::Stopped)
            }
        }
    }

    /// Supports models, as described at `Channel`.
    #[cfg(any(loom, shuttle))]
    pub(crate) fn pass_limits(&self) {
        self.bells.pass_limits();
        self.permits.iter().for_each(Channel::pass_limits);
    }

    /// Wakes all waiting workers, so that they check what else ends their waits.
    pub(crate) fn wake_receivers(&self) {
        self.bells.wake_receivers();
        self.permits.iter().for_each(Channel::wake_receivers);
    }

    pub(crate) fn return_permit(&self) {
        if let Some(permits) = &self.permits {
            permits.send(Permit::Take);
        }
    }
}

fn receive<M>(channel: &Channel<M>, wait: Wait<'_>) -> Result<M, WaitError> {
    let received = match wait {
        Wait::No => channel.try_recv(),
        Wait::Until(end) => channel.recv_until(end),
        Wait::Unless(flag) => channel.recv_unless(flag),
        Wait::Forever => Some(channel.recv()),
    };
    received.ok_or(WaitError::Empty)
}
