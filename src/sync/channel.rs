//! A bounded channel that never overflows, and the sleep of its receivers.
//!
//! Both ends are one value, so a channel is never disconnected. Its users never
//! send more messages than it has room for, so a sender never waits. The messages
//! are stored in crossbeam's channel or, in a model, in one that the model's
//! scheduler can observe.
//!
//! Crossbeam's own receivers yield several times before they sleep. On a busy
//! machine each yield costs the rest of a time slice, a few milliseconds, and only
//! a thread that has slept is scheduled ahead of others. Receivers here sleep at
//! once (DESIGN.md, "A worker that finds nothing sleeps at once").
//!
//! # Why no receiver sleeps through a message
//!
//! A sender pushes its message and then checks for sleepers. A receiver registers
//! as a sleeper and then checks for messages. Both have a SeqCst fence between the
//! two steps. If the sender's fence comes first, the receiver sees the message. If
//! the receiver's fence comes first, the sender sees the sleeper and calls it.
//!
//! A receiver is a thread or a task; `channel/sleepers.rs` says which of them is called,
//! and why no call is lost. Wakers of tasks are foreign code. They are called, cloned and
//! dropped outside all locks, and a panic of a call or drop is caught and counted.

mod messages;

mod sleepers;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub use sleepers::Place;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use crate::observe;
use crate::sync::primitives::{
    AtomicBool, AtomicU64, AtomicUsize, Condvar, IS_MODEL, Mutex, Ordering, fence, lock, wait,
    wait_for,
};
use messages::Messages;
use sleepers::{Calls, Sleepers, Threads};

/// How long a worker is willing to wait. The limit is an instant and not a duration,
/// because one call may wait several times: for a bell, and for another one if the first
/// led to no timer.
#[derive(Clone, Copy, Debug)]
pub enum Wait<'a> {
    /// Not at all.
    No,
    /// Until this instant.
    Until(Instant),
    /// Until the flag is set. The thread that sets it wakes the receivers.
    Unless(&'a AtomicBool),
    /// For as long as it takes.
    Forever,
}

impl Wait<'_> {
    /// Waits for ever if the end is beyond the range of `Instant`.
    pub fn at_most(limit: Duration) -> Self {
        let end = Instant::now().checked_add(limit);
        end.map_or(Wait::Forever, Wait::Until)
    }

    /// Returns whether the limit of a call has passed. (A call that does not wait has no
    /// limit: it takes what is there first.) In a model, every limit has passed.
    pub fn is_over(self) -> bool {
        matches!(self, Wait::Until(end) if IS_MODEL || end <= Instant::now())
    }
}

/// A channel between threads. Its users never send more than it has room for.
pub struct Channel<T> {
    messages: Messages<T>,
    /// The number of receivers that sleep, or are about to, and have not been called.
    /// Changed under `sleep`.
    sleepers: AtomicUsize,
    sleep: Mutex<Sleepers>,
    arrived: Condvar,
    /// Whether receivers wait no more.
    is_closed: AtomicBool,
    /// The number of panics of foreign wakers.
    panics: AtomicU64,
}

impl<T> Channel<T> {
    /// Creates an empty channel with room for `capacity` messages.
    pub fn new(capacity: usize) -> Channel<T> {
        Channel {
            messages: Messages::new(capacity),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(Sleepers::default()),
            arrived: Condvar::new(),
            is_closed: AtomicBool::new(false),
            panics: AtomicU64::new(0),
        }
    }

    /// Makes messages call tasks only while no thread sleeps.
    pub fn threads_first(self) -> Channel<T> {
        lock(&self.sleep).put_threads_first();
        self
    }

    /// Sends a message and wakes one sleeping receiver. Never waits for room.
    pub fn send(&self, message: T) {
        self.messages.push(message);
        // Orders the message before the check for sleepers.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake_one();
        }
    }

    /// Lets no receiver wait from now on, but wakes none, because the caller may hold a lock. It
    /// then calls [`wake_receivers`](Channel::wake_receivers), when it has released that.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Returns whether the channel was closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    #[cold]
    fn wake_one(&self) {
        let calls = self.change(Sleepers::call_one);
        self.wake(calls);
    }

    fn change<R>(&self, change: impl FnOnce(&mut Sleepers) -> R) -> R {
        let mut sleepers = lock(&self.sleep);
        let changed = change(&mut sleepers);
        self.publish(&sleepers);
        changed
    }

    fn publish(&self, sleepers: &Sleepers) {
        self.sleepers.store(sleepers.uncalled(), Ordering::Relaxed);
    }

    fn wake(&self, calls: Calls) {
        match calls.threads {
            Threads::None => {}
            Threads::One => self.arrived.notify_one(),
            Threads::All => self.arrived.notify_all(),
        }
        let tasks = calls.watchers.into_iter().chain(calls.task);
        tasks.for_each(|waker| self.shield(|| waker.wake()));
    }

    /// Runs foreign code. Its panic must not end the caller, which may be the ticker or
    /// hold a message.
    fn shield(&self, foreign: impl FnOnce()) {
        if let Err(thrown) = catch_unwind(AssertUnwindSafe(foreign)) {
            self.panics.fetch_add(1, Ordering::Relaxed);
            observe::dispose(thrown, |_| ());
        }
    }

    /// Returns the number of panics of wakers.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Takes a message, or returns `None` if there is no message.
    pub fn try_recv(&self) -> Option<T> {
        self.messages.pop()
    }

    /// Takes a message, and waits for it if necessary, unless the channel is closed.
    #[inline]
    pub fn recv(&self, wait: Wait<'_>) -> Option<T> {
        match (self.try_recv(), wait) {
            (None, Wait::No) => None,
            (None, wait) => self.sleep(wait),
            (received, _) => received,
        }
    }

    /// Sleeps until there is a message, or the wait is over. A message may wake a receiver
    /// whose time is up, so a receiver checks for messages before it gives up.
    #[cold]
    fn sleep(&self, limit: Wait<'_>) -> Option<T> {
        let mut sleepers = lock(&self.sleep);
        sleepers.add_thread();
        let received = loop {
            let received = self.look(&sleepers);
            let left = match limit {
                Wait::Until(end) => Some(sleepers.limits.left(end)),
                _ => None,
            };
            let is_set = matches!(limit, Wait::Unless(flag) if flag.load(Ordering::Relaxed));
            let is_over = is_set || self.is_closed();
            if received.is_some() || is_over || left.is_some_and(|left| left.is_zero()) {
                break received;
            }
            sleepers = match left {
                None => wait(&self.arrived, sleepers),
                Some(left) => wait_for(&self.arrived, sleepers, left),
            };
            sleepers.answer();
        };
        sleepers.remove_thread();
        self.publish(&sleepers);
        drop(sleepers);
        received
    }

    /// Takes a message for a receiver that is registered and may go to sleep.
    fn look(&self, sleepers: &Sleepers) -> Option<T> {
        self.publish(sleepers);
        // Orders the registration before the check for messages.
        fence(Ordering::SeqCst);
        self.try_recv()
    }

    /// Takes a message, or leaves the task's waker in `place` until there is a message.
    /// The latest waker counts. The caller polls again, or calls
    /// [`leave`](Channel::leave). Returns `None` if there is no message and the channel is
    /// closed.
    pub fn poll_recv(&self, place: &mut Place, waker: &Waker) -> Poll<Option<T>> {
        let received = place.is_vacant().then(|| self.try_recv()).flatten();
        match received.or_else(|| self.doze(place, waker)) {
            None if !self.is_closed() => Poll::Pending,
            received => Poll::Ready(received),
        }
    }

    #[cold]
    fn doze(&self, place: &mut Place, waker: &Waker) -> Option<T> {
        let mut spare = place.is_vacant().then(|| waker.clone());
        let (received, left) = loop {
            let mut sleepers = lock(&self.sleep);
            if sleepers.enter(place, waker, &mut spare) {
                let received = self.look(&sleepers);
                let left = received.as_ref().and_then(|_| sleepers.leave(place));
                self.publish(&sleepers);
                break (received, left);
            }
            drop(sleepers);
            spare = Some(waker.clone());
        };
        self.shield(|| drop(spare));
        self.shield(|| drop(left));
        received
    }

    /// Leaves the place of a task that no longer waits. If the task was called and has
    /// not been polled since, calls another receiver.
    pub fn leave(&self, place: &mut Place) {
        if place.is_vacant() {
            return;
        }
        let waker = self.change(|sleepers| sleepers.leave(place));
        let was_called = waker.is_none();
        self.shield(|| drop(waker));
        if was_called && !self.messages.is_empty() {
            self.wake_one();
        }
    }

    /// In a model, treats the limits of all waits as passed from now on. Does not
    /// wake any receiver: a receiver learns that its time is up at its next wake-up.
    #[cfg(any(loom, shuttle))]
    pub fn pass_limits(&self) {
        lock(&self.sleep).limits.pass();
    }

    /// Wakes all sleeping receivers, so that they check whether the channel is closed, their
    /// flags and, in a model, their limits. A receiver that is about to sleep holds the
    /// lock until it sleeps.
    pub fn wake_receivers(&self) {
        let calls = self.change(Sleepers::call_all);
        self.wake(calls);
    }
}

debug!(it: [T] Channel<T> => "Channel" { is_closed: it.is_closed() });
