//! Cancelling: one timer, many, those with a name, or all.

use crate::engine::doing::{Doing, is_in_middle_of};
use crate::engine::{Core, Engine, Held, ShardCell};
use crate::id::TimerId;
use crate::shard::names::NAMESAKES_PER_HOLD;
use crate::timer::Cancel;
use crate::wheel::{Cursor, EntryIndex};

/// The number of timers that one hold of a shard's lock cancels: enough that the cost of
/// taking the lock is negligible, and few enough that a waiter does not wait long.
const IDS_PER_HOLD: usize = 32;

impl<T> Core<T> {
    /// Cancels a timer, and calls `then` with the answer, outside the lock. Where most
    /// answers are given, the compiler knows which one it is.
    #[inline(always)]
    pub(crate) fn cancel_then<R>(&self, id: TimerId, then: impl FnOnce(Cancel<T>) -> R) -> R {
        let Some(cell) = self.cell_of(id) else {
            return then(Cancel::Gone);
        };
        let mut held = self.hold(cell);
        let Some(at) = held.shard.find_plain(id) else {
            return then(self.cancel_any(held, id));
        };
        let payload = held.shard.cancel_plain(at);
        Self::let_go(held);
        then(Cancel::Cancelled(payload))
    }

    #[cold]
    fn cancel_any(&self, mut held: Held<'_, T>, id: TimerId) -> Cancel<T> {
        let cancelled = held.shard.cancel(id, || self.tick_now());
        self.release(held);
        cancelled
    }

    fn cancel_in_one_hold(&self, ids: &[TimerId], answers: &mut Vec<(TimerId, Cancel<T>)>) {
        let Some(cell) = ids.first().and_then(|&id| self.cell_of(id)) else {
            answers.extend(ids.iter().map(|&id| (id, Cancel::Gone)));
            return;
        };
        let mut held = self.hold(cell);
        let entries = &held.shard.wheel.entries;
        ids.iter().for_each(|id| entries.prefetch(EntryIndex::new(id.index())));
        let cancel = |&id| (id, held.shard.cancel(id, || self.tick_now()));
        answers.extend(ids.iter().map(cancel));
        self.release(held);
    }

    /// Blocks until no worker has a firing of the timer and, unless that may need the
    /// calling thread itself, its task has been told of the end.
    fn wait_for_return(&self, id: TimerId) {
        let Some(cell) = self.cell_of(id) else { return };
        let is_ours = |doing| matches!(doing, Doing::Task(id) if self.cell_of(id).is_some());
        let is_worker = is_in_middle_of(is_ours);
        let to_be_told = self.workers.wanted() > 0 && !is_worker;
        let returned = || !cell.lock().await_return(id, to_be_told);
        self.waiters.wait_until(returned, || None);
    }
}

impl<T> Engine<T> {
    /// Cancels a timer.
    ///
    /// Succeeds until a worker takes the timer, even if the timer has
    /// expired and is waiting in a queue. Returns the payload in
    /// [`Cancel::Cancelled`], and no worker receives it. The storage is
    /// free when the call returns, or when the [`Unstarted`](crate::Unstarted) is dropped. A
    /// [`notified`](crate::Timer::notified) task keeps its payload; the answer is then
    /// [`Cancel::Notified`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Cancel, Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let id = engine.schedule(Timer::after(Duration::ZERO, 17))?;
    /// assert_eq!(engine.cancel(id), Cancel::Cancelled(17));
    /// assert_eq!(engine.cancel(id), Cancel::Gone);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn cancel(&self, id: TimerId) -> Cancel<T> {
        self.core.cancel_then(id, |cancelled| cancelled)
    }

    /// Cancels many timers, and returns the answer of [`cancel`](Engine::cancel)
    /// for each, with its id, in the order of `ids`.
    ///
    /// Faster than repeated `cancel` calls, especially for timers that another
    /// thread scheduled. Up to 32 consecutive ids from one thread are cancelled under a
    /// single lock acquisition, and their entries are prefetched together.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Cancel, Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let schedule = |n| engine.schedule(Timer::after(Duration::from_secs(9), n));
    /// let ids = [schedule(1)?, schedule(2)?];
    /// engine.cancel(ids[0]);
    /// let answers = engine.cancel_many(&ids);
    /// assert_eq!(answers, [(ids[0], Cancel::Gone), (ids[1], Cancel::Cancelled(2))]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_many(&self, ids: &[TimerId]) -> Vec<(TimerId, Cancel<T>)> {
        let mut answers = Vec::with_capacity(ids.len());
        for of_one_shard in ids.chunk_by(|one, next| one.wheel() == next.wheel()) {
            for some in of_one_shard.chunks(IDS_PER_HOLD) {
                self.core.cancel_in_one_hold(some, &mut answers);
            }
        }
        answers
    }

    /// Cancels the timers that have this name, oldest first: all of them if `max` is
    /// `None`, otherwise at most `max`. Returns the answer of [`cancel`](Engine::cancel)
    /// for each, with its id. None of them fires again. A timer whose last firing is running
    /// is [`Cancel::Running`], and does not count towards `max`, because it may end by
    /// itself. Does not cancel timers that are created during the call.
    ///
    /// # Cost
    /// Grows with the number of timers returned, also as [`Cancel::Running`], not with the number
    /// that share the name. Other users of the name can proceed after every few timers.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Cancel, Engine, Timer};
    /// let engine = Engine::builder().start()?;
    /// let batch = |n| Timer::after(Duration::from_secs(9), n).named("batch");
    /// let first = engine.schedule(batch(1))?;
    /// engine.schedule(batch(2))?;
    /// let cancelled = engine.cancel_by_name("batch", 1);
    /// assert_eq!(cancelled, [(first, Cancel::Cancelled(1))]);
    /// assert_eq!(engine.cancel_by_name("batch", None).len(), 1);
    /// assert!(engine.cancel_by_name("batch", None).is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_by_name(
        &self,
        name: &str,
        max: impl Into<Option<usize>>,
    ) -> Vec<(TimerId, Cancel<T>)> {
        let (core, mut left) = (&*self.core, max.into().unwrap_or(usize::MAX));
        let hash = core.hash(name);
        let cell = core.cell_of_name(hash);
        let mut namesakes = cell.lock().namesakes(name, hash);
        // Few names have more timers.
        let (mut answers, mut most) = (Vec::new(), NAMESAKES_PER_HOLD.div_ceil(8));
        loop {
            // Reserved before the lock is taken, because growing may copy all payloads.
            answers.reserve(most);
            let now = || core.tick_now();
            let is_complete = core.walk_once(cell, |shard| {
                shard.cancel_namesakes(&mut namesakes, most, &mut left, now, &mut answers)
            });
            if is_complete {
                return answers;
            }
            most = NAMESAKES_PER_HOLD;
        }
    }

    /// Cancels all timers, without shutting the engine down.
    ///
    /// Does for each timer what [`cancel`](Engine::cancel) does. Expired timers that no
    /// worker has taken and [unstarted](Engine::create) timers are cancelled, and a timer
    /// with a running firing does not fire again. Returns the answer for each that had not
    /// ended, with its id, in no particular order. Does not cancel timers that are created
    /// during the call, so it returns even
    /// if other threads continue to schedule.
    ///
    /// # Cost
    /// Grows with the largest number of timers that were ever live, or live since
    /// the last [`shrink`](Engine::shrink). Holds a shard's lock for a few dozen
    /// timers at a time.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tickwheel::{Engine, Timer};
    /// // A game room is cleared, and the next round begins in it.
    /// let room = Engine::builder().start()?;
    /// for buff in ["haste", "shield"] {
    ///     room.schedule(Timer::after(Duration::from_secs(9), buff))?;
    /// }
    /// let cleared = room.cancel_all().into_iter();
    /// let buffs = cleared.filter_map(|(_, answer)| answer.into_payload());
    /// assert_eq!(buffs.count(), 2);
    /// assert!(room.schedule(Timer::after(Duration::from_secs(9), "haste")).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel_all(&self) -> Vec<(TimerId, Cancel<T>)> {
        let core = &self.core;
        let begin = |cell: &ShardCell<T>| {
            let wheel = &cell.lock().wheel;
            (wheel.len(), wheel.youngest.sequence())
        };
        // All walks begin before the first timer is cancelled, so a timer that replaces a
        // cancelled one lives on in any shard.
        let begun: Vec<_> = core.shards.iter().map(begin).collect();
        // Allocated here, because growing under a lock may copy all payloads.
        let mut answers = Vec::with_capacity(begun.iter().map(|(timers, _)| timers).sum());
        for (cell, (_, youngest)) in core.shards.iter().zip(begun) {
            let (mut cursor, now) = (Cursor::START, || core.tick_now());
            core.walk(cell, |shard| shard.cancel_some(&mut cursor, youngest, now, &mut answers));
        }
        answers
    }

    /// Cancels a timer, and blocks until no worker holds a firing of it, even if the engine
    /// was shut down during that firing. Returns the answer of [`cancel`](Engine::cancel).
    /// What the closure of a task captured may be dropped a little later;
    /// [`TaskEngine::join`](crate::TaskEngine::join) waits for that.
    ///
    /// A one-shot with a payload ended when it was taken. So this call returns
    /// [`Cancel::Gone`] at once, although a worker may be busy with the payload, unless the
    /// timer is [`rearmable`](crate::Timer::rearmable).
    ///
    /// Also waits for the run that tells a [`notified`](crate::Timer::notified) task of the
    /// end. That run may need the calling thread itself: if a task of this engine makes the
    /// call, or if the engine has no workers because a loop runs its tasks, the call waits
    /// for the run only if it has begun.
    ///
    /// Does not block when called from within the timer's own task, even if that
    /// task drives another engine whose task makes the call. A worker that calls
    /// this for an [`Expired`](crate::Expired) that it holds itself blocks for
    /// ever; so do two tasks that wait for each other. A waker must not call
    /// this: it may be called by a [`recv_async`](crate::Queue::recv_async) that has claimed
    /// a firing and not yet returned it, and might then block for ever.
    pub fn cancel_and_wait(&self, id: TimerId) -> Cancel<T> {
        let cancelled = self.cancel(id);
        // A timer that is gone may have been shut down during its firing.
        let may_run = !matches!(cancelled, Cancel::Cancelled(_));
        if may_run && !is_in_middle_of(|doing| doing == Doing::Task(id)) {
            self.core.wait_for_return(id);
        }
        cancelled
    }
}
