//! The bells that lead workers to expired timers.
//!
//! A queue's channel carries bells instead of timers: "shard n has something for this
//! queue". Whenever a shard has something for a queue, exactly one bell is in the
//! channel or with a worker. The worker rings the bell again if anything is left
//! behind. Therefore a worker will come for every timer. The channel has room for
//! one bell per shard: it is never full, the ticker never blocks on it, and a burst
//! of a million timers costs one message.

/// The place of one task among those that wait at a doorbell, which it leaves with
/// [`Doorbell::leave`].
pub(crate) use crate::sync::Place as Waits;

use std::task::{Poll, Waker, ready};
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
    /// The engine was shut down. The receiver sends it again, for all other workers.
    Stop,
}

/// How long a worker is willing to wait. The limit is an instant and not a duration,
/// because one call may wait several times: for a bell, and for another one if the first
/// led to no timer.
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

/// Why a wait brought no bell.
pub(crate) enum WaitError {
    /// No message was there or came in time, or before the flag was set.
    Empty,
    /// The engine was shut down, so no more messages will come.
    Stopped,
}

/// The channel of one queue.
pub(crate) struct Doorbell {
    bells: Channel<Message>,
}

impl Doorbell {
    pub(crate) fn new(shards: usize) -> Doorbell {
        // Room for a bell of each shard and for the stop.
        let bells = Channel::new(shards + 1);
        Doorbell { bells }
    }

    /// Announces that something waits in a shard.
    pub(crate) fn ring(&self, shard: usize) {
        self.bells.send(Message::Ring(shard as u32));
    }

    #[inline]
    pub(crate) fn ring_again(&self, Bell(shard): Bell) {
        self.ring(shard);
    }

    /// Wakes threads before tasks, as a virtual clock needs it: it waits for
    /// threads alone.
    pub(crate) fn threads_first(self) -> Doorbell {
        Doorbell {
            bells: self.bells.threads_first(),
        }
    }

    /// Announces that no timer will ever wait again.
    pub(crate) fn stop(&self) {
        self.post_stop();
        self.wake_receivers();
    }

    /// Does the same, but wakes nobody, because the caller holds a lock. The caller
    /// releases it and then calls [`wake_receivers`](Doorbell::wake_receivers).
    pub(crate) fn post_stop(&self) {
        self.bells.post(Message::Stop);
    }

    /// Waits for a bell.
    #[inline]
    pub(crate) fn answer(&self, wait: Wait<'_>) -> Result<Bell, WaitError> {
        let bells = &self.bells;
        let received = match wait {
            Wait::No => bells.try_recv(),
            Wait::Until(end) => bells.recv_until(end),
            Wait::Unless(flag) => bells.recv_unless(flag),
            Wait::Forever => Some(bells.recv()),
        };
        self.heed(received.ok_or(WaitError::Empty)?)
    }

    /// Takes a bell, or notes that the task is to be woken for one.
    pub(crate) fn poll_answer(
        &self,
        waits: &mut Waits,
        waker: &Waker,
    ) -> Poll<Result<Bell, WaitError>> {
        let message = ready!(self.bells.poll_recv(waits, waker));
        Poll::Ready(self.heed(message))
    }

    #[inline]
    fn heed(&self, message: Message) -> Result<Bell, WaitError> {
        match message {
            Message::Ring(shard) => Ok(Bell(shard as usize)),
            Message::Stop => Err(self.pass_stop_on()),
        }
    }

    #[cold]
    fn pass_stop_on(&self) -> WaitError {
        self.bells.post(Message::Stop);
        self.bells.wake_receivers();
        WaitError::Stopped
    }

    /// Ends the wait of a task. If the task was woken for a bell and has not looked for
    /// it, wakes another worker.
    pub(crate) fn leave(&self, waits: &mut Waits) {
        self.bells.leave(waits);
    }

    /// Returns the number of tasks' wakers that panicked.
    pub(crate) fn panics(&self) -> u64 {
        self.bells.panics()
    }

    /// Supports models, as described at `Channel`.
    #[cfg(any(loom, shuttle))]
    pub(crate) fn pass_limits(&self) {
        self.bells.pass_limits();
    }

    /// Wakes all waiting workers, so that they check what else ends their waits.
    pub(crate) fn wake_receivers(&self) {
        self.bells.wake_receivers();
    }
}
