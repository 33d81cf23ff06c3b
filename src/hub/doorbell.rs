//! How workers learn where expired timers wait.
//!
//! Not timers go through a queue's channel but bells: "shard n has something for this
//! queue". The rule: whenever a shard has something for a queue, exactly one bell is
//! in the channel or with a worker, and the worker rings it again unless it leaves
//! nothing behind. So no timer is left without a worker that will come for it. The
//! channel has room for one bell per shard: it is never full, the ticker never blocks
//! on it, and a burst of a million timers costs one message.

use std::time::{Duration, Instant};

use crate::sync::{Channel, IS_MODEL};

/// The token that a worker gets when it answers: something waits in this shard.
///
/// The worker hands it to [`Core::take_from`](super::Core::take_from), which
/// rings it again if the shard has more and uses it up otherwise. So no shard
/// that has something is ever without a bell.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a bell that is lost is never rung again"]
pub(crate) struct Bell(usize);

impl Bell {
    pub(crate) fn shard(&self) -> usize {
        self.0
    }
}

enum Message {
    /// Something waits in this shard.
    Ring(u32),
    /// The engine was shut down. The receiver sends it again, for the others.
    Stop,
}

/// How long a worker is willing to wait. An end and not a duration, because one call
/// may wait several times: for a permit, for a bell, for another bell if the first
/// was of no use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    No,
    Until(Instant),
    Forever,
}

impl Wait {
    /// Waits for ever if the end is beyond the range of `Instant`.
    pub(crate) fn at_most(limit: Duration) -> Wait {
        let end = Instant::now().checked_add(limit);
        end.map_or(Wait::Forever, Wait::Until)
    }

    /// Whether a call that has waited ends even if others keep it busy. (A call that
    /// does not wait first takes what is there.) In a model it always ends.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Wait::Until(end) if IS_MODEL || end <= Instant::now())
    }
}

/// Why a wait brought neither a bell nor a permit.
pub(crate) enum WaitError {
    /// There is none, or none came in time.
    Empty,
    /// The engine was shut down, so none will come.
    Stopped,
}

/// The channel of one queue.
pub(crate) struct Doorbell {
    bells: Channel<Message>,
    /// For a bounded queue: a permit for each firing that its workers may
    /// still be handed.
    permits: Option<Channel<Permit>>,
}

enum Permit {
    Take,
    Stop,
}

impl Doorbell {
    pub(crate) fn new(shards: usize, bound: Option<usize>) -> Doorbell {
        // A bell for each shard, and the one that says stop.
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

    /// Announces that nothing will ever wait again.
    pub(crate) fn stop(&self) {
        self.bells.send(Message::Stop);
        if let Some(permits) = &self.permits {
            permits.send(Permit::Stop);
        }
    }

    /// Waits for a bell.
    pub(crate) fn answer(&self, wait: Wait) -> Result<Bell, WaitError> {
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

    /// Waits until a worker may be handed one more firing.
    pub(crate) fn take_permit(&self, wait: Wait) -> Result<(), WaitError> {
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

    /// For models: see `Channel`.
    #[cfg(any(loom, shuttle))]
    pub(crate) fn pass_limits(&self) {
        self.bells.pass_limits();
        self.permits.iter().for_each(Channel::pass_limits);
    }

    #[cfg(any(loom, shuttle))]
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

fn receive<M>(channel: &Channel<M>, wait: Wait) -> Result<M, WaitError> {
    let received = match wait {
        Wait::No => channel.try_recv(),
        Wait::Until(end) => channel.recv_until(end),
        Wait::Forever => Some(channel.recv()),
    };
    received.ok_or(WaitError::Empty)
}
