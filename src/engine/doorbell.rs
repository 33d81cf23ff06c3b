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

use std::ops::Deref;
use std::task::{Poll, Waker, ready};

pub(crate) use crate::sync::Wait;

use crate::sync::{AtomicBool, Channel, Ordering};

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

pub(crate) enum Message {
    Ring(u32),
    /// The engine was shut down. The receiver sends it again, for all other workers.
    Stop,
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
    /// Whether the stop was posted. A receiver may have it in hand, to send it again.
    is_stopped: AtomicBool,
}

impl Doorbell {
    /// Creates a doorbell that wakes threads before tasks if `threads_first`.
    pub(crate) fn new(shards: usize, threads_first: bool) -> Doorbell {
        // Room for a bell of each shard and for the stop.
        let bells = Channel::new(shards + 1);
        let bells = if threads_first { bells.threads_first() } else { bells };
        Doorbell { bells, is_stopped: AtomicBool::new(false) }
    }

    /// Announces that something waits in a shard.
    pub(crate) fn ring(&self, shard: usize) {
        self.bells.send(Message::Ring(shard as u32));
    }

    #[inline]
    pub(crate) fn ring_again(&self, Bell(shard): Bell) {
        self.ring(shard);
    }

    /// Announces that no timer will ever wait again, but wakes nobody, because the caller
    /// holds a lock. The caller releases it and then calls [`Channel::wake_receivers`].
    pub(crate) fn post_stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.bells.post(Message::Stop);
    }

    /// Waits for a bell.
    #[inline]
    pub(crate) fn answer(&self, wait: Wait<'_>) -> Result<Bell, WaitError> {
        match self.bells.recv(wait) {
            Some(message) => self.heed(message),
            None if self.is_stopped.load(Ordering::Acquire) => Err(WaitError::Stopped),
            None => Err(WaitError::Empty),
        }
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
        self.post_stop();
        self.wake_receivers();
        WaitError::Stopped
    }
}

impl Deref for Doorbell {
    type Target = Channel<Message>;

    fn deref(&self) -> &Channel<Message> {
        &self.bells
    }
}
