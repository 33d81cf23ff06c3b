//! The bells that lead workers to expired timers.
//!
//! A queue's channel carries bells instead of timers: "shard n has something for this
//! queue". Whenever a shard has something for a queue, exactly one bell is in the
//! channel or with a worker. The worker rings the bell again if anything is left
//! behind. Therefore a worker will come for every timer. The channel has room for
//! one bell per shard: it is never full, the ticker never blocks on it, and a burst
//! of a million timers costs one message.

use std::task::{Poll, Waker, ready};
use std::time::{Duration, Instant};

use crate::sync::{AtomicBool, Channel, IS_MODEL, Place};

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

/// The places of one task among those that wait at a doorbell. The task is at one of them
/// at most, and leaves it with [`Doorbell::leave`].
#[derive(Default, Debug)]
pub(crate) struct Waits {
    bells: Place,
    permits: Place,
}

impl Waits {
    /// The places of a task that may neither wait again nor leave when it is woken.
    #[cfg(feature = "stream")]
    pub(crate) fn watching() -> Waits {
        Waits {
            bells: Place::watching(),
            permits: Place::watching(),
        }
    }
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

    /// Wakes threads before tasks, as a virtual clock needs it: it waits for
    /// threads alone.
    pub(crate) fn threads_first(self) -> Doorbell {
        Doorbell {
            bells: self.bells.threads_first(),
            permits: self.permits.map(Channel::threads_first),
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
        if let Some(permits) = &self.permits {
            permits.post(Permit::Stop);
        }
    }

    /// Waits for a bell.
    #[inline]
    pub(crate) fn answer(&self, wait: Wait<'_>) -> Result<Bell, WaitError> {
        self.heed(receive(&self.bells, wait)?)
    }

    /// Takes a bell, or notes that the task is to be woken for one.
    pub(crate) fn poll_answer(
        &self,
        waits: &mut Waits,
        waker: &Waker,
    ) -> Poll<Result<Bell, WaitError>> {
        let message = ready!(self.bells.poll_recv(&mut waits.bells, waker));
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

    pub(crate) fn is_bounded(&self) -> bool {
        self.permits.is_some()
    }

    /// Waits until a worker may take one more firing.
    pub(crate) fn take_permit(&self, wait: Wait<'_>) -> Result<(), WaitError> {
        let Some(permits) = &self.permits else {
            return Ok(());
        };
        heed_permit(permits, receive(permits, wait)?)
    }

    /// Takes a permit, or notes that the task is to be woken for one. A task without a
    /// permit cannot answer a bell, so it leaves its place among those that wait for one.
    pub(crate) fn poll_permit(
        &self,
        waits: &mut Waits,
        waker: &Waker,
    ) -> Poll<Result<(), WaitError>> {
        let Some(permits) = &self.permits else {
            return Poll::Ready(Ok(()));
        };
        let Poll::Ready(permit) = permits.poll_recv(&mut waits.permits, waker) else {
            self.bells.leave(&mut waits.bells);
            return Poll::Pending;
        };
        Poll::Ready(heed_permit(permits, permit))
    }

    /// Ends the wait of a task. If the task was woken for a bell or a permit and has not
    /// looked for it, wakes another worker.
    pub(crate) fn leave(&self, waits: &mut Waits) {
        self.bells.leave(&mut waits.bells);
        if let Some(permits) = &self.permits {
            permits.leave(&mut waits.permits);
        }
    }

    #[cfg(test)]
    pub(crate) fn while_locked<R>(&self, during: impl FnOnce() -> R) -> R {
        self.bells.while_locked(|| match &self.permits {
            Some(permits) => permits.while_locked(during),
            None => during(),
        })
    }

    /// Returns the number of tasks' wakers that panicked.
    pub(crate) fn panics(&self) -> u64 {
        let permits = self.permits.as_ref().map_or(0, Channel::panics);
        self.bells.panics() + permits
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

fn heed_permit(permits: &Channel<Permit>, permit: Permit) -> Result<(), WaitError> {
    match permit {
        Permit::Take => Ok(()),
        Permit::Stop => {
            permits.post(Permit::Stop);
            permits.wake_receivers();
            Err(WaitError::Stopped)
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Count>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_task_without_a_permit_passes_a_bell_on() {
        let doorbell = Doorbell::new(1, Some(1));
        let (mut task, mut worker) = (Waits::default(), Waits::default());
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        assert!(doorbell.poll_answer(&mut task, Waker::noop()).is_pending());
        // The worker has the only permit.
        assert!(doorbell.poll_permit(&mut worker, &waker).is_ready());
        assert!(doorbell.poll_answer(&mut worker, &waker).is_pending());
        doorbell.ring(0);
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        assert!(doorbell.poll_permit(&mut task, Waker::noop()).is_pending());
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(doorbell.poll_answer(&mut worker, &waker).is_ready());
    }
}
