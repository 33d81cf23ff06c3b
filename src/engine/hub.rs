//! The meeting place of an engine's threads: the shards behind their locks, the alarm,
//! and the bells. Does not know handles of queues, tickers or tasks.

use std::ops::Deref;

use crossbeam_utils::CachePadded;

use crate::clock::{Alarm, Clock};
use crate::engine::doorbell::Doorbell;
use crate::engine::fairness::{Walk, step_aside};
use crate::engine::names::Names;
use crate::engine::threads::Driving;
use crate::engine::threads::{enter_loop, known_number, thread_number};
use crate::engine::waiters::{Census, Waiters};
use crate::engine::workers::Workers;
use crate::engine_name::EngineName;
use crate::id::{TimerId, WheelNumber};
use crate::observe::Subject;
use crate::rounding::TickLength;
use crate::shard::body::Tag;
use crate::shard::{Shard, Signals};
use crate::sync::{Arc, AtomicU64, AtomicUsize, Lock, LockGuard, Ordering};
use crate::tick::Tick;
use crate::wheel::Retired;

pub(crate) struct Core<T> {
    pub(crate) name: EngineName,
    /// Their number is a power of two, because a thread finds its own with a mask.
    pub(crate) shards: Box<[ShardCell<T>]>,
    /// The wheel number of shard 0. The other shards have the numbers that follow.
    pub(crate) first: WheelNumber,
    pub(crate) clock: Clock,
    pub(crate) tick: TickLength,
    pub(crate) alarm: Alarm,
    /// One doorbell per queue, and one for the reports.
    pub(super) doorbells: Box<[Doorbell]>,
    /// The threads that are waiting for a firing to return or for a drain to end.
    pub(super) waiters: Waiters,
    pub(crate) census: Census,
    pub(super) unsettled: Unsettled,
    pub(super) panics: AtomicU64,
    pub(crate) workers: Arc<Workers>,
    pub(super) max_timers: Option<usize>,
    /// Whether takes read the clock, to record lateness and durations.
    pub(super) measures_work: bool,
    pub(crate) names: Names,
    /// The number of queues, from the first on, that a plain timer's entry can name.
    pub(super) plain_queues: usize,
    /// Whether the caller's own loop drives this engine.
    pub(super) is_driven: bool,
    /// Consumes the payloads of due plain timers, if workers don't.
    pub(super) sink: Option<Sink<T>>,
    /// The shard whose due timers were served last.
    pub(super) visited: CachePadded<AtomicUsize>,
}

/// What consumes the payload of a due timer in place of a worker: foreign code.
pub(crate) type Sink<T> = fn(T);

/// A shard locked by a thread that may link or end timers.
pub(super) struct Held<'a, T> {
    pub(super) cell: &'a ShardCell<T>,
    pub(super) shard: LockGuard<'a, Shard<T>>,
}

/// What is left to be done after a release of a shard. A waker of a task is foreign code,
/// and must not be called under any lock.
#[must_use = "bells that are not rung leave timers behind"]
pub(super) struct Unsent {
    shard: usize,
    pub(super) signals: Signals,
    /// The tick for which the alarm has to be set earlier.
    earlier: Option<Tick>,
    /// The memory of a wheel that has become empty.
    retired: Option<Retired>,
}

impl<T> Core<T> {
    pub(crate) fn new(
        name: EngineName,
        shards: Vec<Shard<T>>,
        first: WheelNumber,
        clock: Clock,
        tick: TickLength,
        alarm: Alarm,
        doorbells: Vec<Doorbell>,
    ) -> Core<T> {
        let shard_count = shards.len();
        assert!(shard_count.is_power_of_two());
        let plain_queues = (doorbells.len() - 1).min(Tag::QUEUES);
        Core {
            name,
            shards: shards
                .into_iter()
                .enumerate()
                .map(|(index, shard)| ShardCell::new(index, shard))
                .collect(),
            first,
            clock,
            tick,
            alarm,
            waiters: Waiters::new(()),
            census: Census::new(doorbells.len()),
            unsettled: Unsettled::new(shard_count),
            doorbells: doorbells.into_boxed_slice(),
            panics: AtomicU64::new(0),
            workers: Arc::new(Workers::default()),
            max_timers: None,
            measures_work: false,
            names: Names::new(),
            plain_queues,
            is_driven: false,
            sink: None,
            visited: CachePadded::new(AtomicUsize::new(usize::MAX)),
        }
    }

    /// Marks the core as driven by the caller's own loop.
    pub(crate) fn driven(self) -> Core<T> {
        Core {
            is_driven: true,
            ..self
        }
    }

    /// Hands the payloads of due plain timers to `sink`.
    pub(crate) fn sinking(self, sink: Option<Sink<T>>) -> Core<T> {
        Core { sink, ..self }
    }

    /// Whether due timers go to a sink, and not to queues with workers.
    pub(crate) fn has_sink(&self) -> bool {
        self.sink.is_some()
    }

    /// Notes the bound that the shards' credits keep.
    pub(crate) fn bounded(self, max_timers: Option<usize>) -> Core<T> {
        Core { max_timers, ..self }
    }

    /// Makes takes read the clock.
    pub(crate) fn measuring_work(self, measures_work: bool) -> Core<T> {
        Core {
            measures_work,
            ..self
        }
    }

    /// Returns the engine as its events name it.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject {
            number: self.first,
            name: &self.name,
        }
    }

    /// Notes that the calling thread runs the tasks of this engine; see `threads.rs`.
    pub(crate) fn enter_loop(&self) -> Option<Driving> {
        enter_loop(self.first)
    }

    /// Whether the calling thread drives this engine.
    pub(crate) fn is_in_loop(&self) -> bool {
        self.enter_loop().is_none()
    }

    pub(crate) fn queues(&self) -> usize {
        self.doorbells.len() - 1
    }

    pub(crate) fn doorbell(&self, queue: usize) -> &Doorbell {
        &self.doorbells[queue]
    }

    pub(crate) fn shard_count(&self) -> usize {
        self.shards.len()
    }

    pub(crate) fn tick_now(&self) -> Tick {
        self.tick.tick_at(self.clock.now())
    }

    /// Calls `with` on a shard, under its lock.
    pub(crate) fn with_shard<R>(
        &self,
        shard: usize,
        with: impl FnOnce(&mut Shard<T>) -> R,
    ) -> Option<R> {
        let cell = self.shards.get(shard)?;
        Some(with(&mut cell.lock()))
    }

    #[inline]
    pub(super) fn cell_of(&self, id: TimerId) -> Option<&ShardCell<T>> {
        self.shards.get(id.wheels_after(self.first))
    }

    /// Takes the lock of the calling thread's own shard.
    #[inline]
    pub(super) fn hold_own(&self) -> Held<'_, T> {
        // One comparison finds both a thread without a number and a number beyond the
        // last shard.
        let own = self.shards.get(known_number());
        self.hold(own.unwrap_or_else(|| self.shared_cell()))
    }

    /// Returns the shard of a thread that has no number yet, or shares its shard with
    /// threads of lower numbers.
    #[inline(never)]
    fn shared_cell(&self) -> &ShardCell<T> {
        &self.shards[thread_number() & (self.shards.len() - 1)]
    }

    #[inline]
    pub(super) fn hold<'a>(&self, cell: &'a ShardCell<T>) -> Held<'a, T> {
        let shard = cell.lock();
        Held { cell, shard }
    }

    /// Publishes the earliest tick for which the holder has linked a timer, releases the
    /// lock, and then wakes the threads concerned. A wake-up under the lock would keep
    /// other threads waiting for a system call.
    #[inline]
    pub(super) fn release(&self, mut held: Held<'_, T>) {
        if held.shard.has_signals() || held.shard.wheel.is_worth_freeing() {
            return self.release_and_signal(held);
        }
        let earliest_new = held.shard.take_earliest_new();
        self.release_quiet(held, earliest_new);
    }

    /// Releases the lock for a holder that has linked no timer and raised no signal. Frees the
    /// memory of a wheel that has become empty after that.
    #[inline]
    pub(super) fn let_go(mut held: Held<'_, T>) {
        if held.shard.wheel.is_worth_freeing() {
            let retired = held.shard.wheel.give_back();
            drop(held);
            drop(retired);
        }
    }

    /// Does the same as [`Core::release`] for a holder that has linked a timer for
    /// `earliest_new` and has not raised a signal.
    #[inline]
    pub(super) fn release_quiet(&self, held: Held<'_, T>, earliest_new: Tick) {
        let lowered = held.cell.lower_next(earliest_new);
        drop(held);
        if lowered {
            self.alarm.notify_earlier(earliest_new);
        }
    }

    /// Does the same as [`Core::release`] for a holder that has raised signals.
    #[cold]
    fn release_and_signal(&self, held: Held<'_, T>) {
        self.send(self.release_unsent(held));
    }

    /// Does the same as [`Core::release`] but wakes nobody, for a caller that holds the
    /// lock of a bucket of names. The caller releases it and then calls [`Core::send`].
    pub(super) fn release_unsent(&self, mut held: Held<'_, T>) -> Unsent {
        let mut earliest_new = held.shard.take_earliest_new();
        let wakes_driver = held.shard.signals.wake_driver && self.is_driven;
        if wakes_driver {
            earliest_new = earliest_new.min(self.tick_now());
            held.shard.wake_driver = true;
        }
        let lowered = held.cell.lower_next(earliest_new);
        // If the shard is due anyway, the loop may visit it before the bell rings.
        let notifies = lowered || wakes_driver;
        Unsent {
            shard: held.cell.index,
            signals: held.shard.take_signals(),
            retired: held.shard.wheel.give_back(),
            earlier: notifies.then_some(earliest_new),
        }
    }

    /// Wakes the threads and tasks that a release concerns. The alarm follows the bells,
    /// because the caller's loop that it may wake checks them only once. Names are last:
    /// an alarm must not wait for the lock of a bucket.
    pub(super) fn send(&self, mut unsent: Unsent) {
        self.ring(unsent.shard, &unsent.signals);
        if let Some(earlier) = unsent.earlier {
            self.alarm.notify_earlier(earlier);
        }
        unsent
            .signals
            .take_unnamed(|place| self.names.remove(place));
        drop(unsent.retired);
    }

    fn ring(&self, shard: usize, signals: &Signals) {
        signals.each_bell(|queue| self.doorbells[queue].ring(shard));
        if signals.settled && self.unsettled.settle_one() {
            self.doorbell(self.queues()).stop();
        }
        if signals.drained {
            self.waiters.notify();
        }
    }
}

pub(crate) struct ShardCell<T> {
    pub(crate) index: usize,
    /// The tick at which the ticker has to visit the shard. The ticker reads it without
    /// the lock, but only a holder of the lock writes it.
    next: CachePadded<AtomicU64>,
    shard: Lock<Shard<T>>,
}

impl<T> ShardCell<T> {
    pub(super) fn new(index: usize, shard: Shard<T>) -> ShardCell<T> {
        ShardCell {
            index,
            next: CachePadded::new(AtomicU64::new(Tick::MAX.0)),
            shard: Lock::new(shard),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> LockGuard<'_, Shard<T>> {
        self.shard.lock()
    }

    /// Locks if no other thread holds the lock.
    #[inline]
    pub(super) fn try_lock(&self) -> Option<LockGuard<'_, Shard<T>>> {
        self.shard.try_lock()
    }

    /// Locks for a worker, for which the ticker does not interrupt a visit (see
    /// `expire.rs`).
    #[inline]
    pub(super) fn lock_low_priority(&self) -> LockGuard<'_, Shard<T>> {
        self.shard.lock_low_priority()
    }

    /// Notes, under the lock, that a timer was linked for `tick`. Returns whether `tick`
    /// is earlier than the `next` that the ticker knows.
    #[inline]
    pub(super) fn lower_next(&self, tick: Tick) -> bool {
        let lowered = tick < self.next();
        if lowered {
            self.set_next(tick);
        }
        lowered
    }

    #[inline]
    pub(crate) fn next(&self) -> Tick {
        Tick(self.next.load(Ordering::Relaxed))
    }

    /// Sets `next`. The caller holds the lock.
    #[inline]
    pub(super) fn set_next(&self, tick: Tick) {
        self.next.store(tick.0, Ordering::Relaxed);
    }

    /// Lets waiting threads take the lock, between two holds of it.
    pub(crate) fn step_aside(&self) {
        step_aside(&self.shard);
    }

    /// Does the same for a walk, which gives waiters only their share of its time.
    pub(crate) fn step_aside_in(&self, walk: &mut Walk) {
        walk.step_aside(&self.shard);
    }

    pub(super) fn has_urgent_waiters(&self) -> bool {
        self.shard.has_urgent_waiters()
    }
}

// The share in the core that every owner other than the ticker holds.
//
// The ticker outlives the other owners by the time that it takes to wake up. As the
// last owner of the core, it would drop the payloads of unread reports. So the other
// owners are counted, and the last of them drops the remaining payloads. No payload
// comes later, because only a counted owner can end a timer.

/// The number of payloads that one hold of a shard's lock takes out.
pub(crate) const LEFTOVERS_PER_HOLD: usize = 32;

pub(crate) struct SharedCore<T> {
    core: Arc<Core<T>>,
}

impl<T> SharedCore<T> {
    pub(crate) fn new(core: Arc<Core<T>>) -> Arc<SharedCore<T>> {
        Arc::new(SharedCore { core })
    }

    /// Returns the core itself, saving a step for a holder that also keeps its share.
    pub(crate) fn core(&self) -> &Arc<Core<T>> {
        &self.core
    }
}

impl<T> Deref for SharedCore<T> {
    type Target = Core<T>;

    #[inline]
    fn deref(&self) -> &Core<T> {
        &self.core
    }
}

impl<T> Drop for SharedCore<T> {
    fn drop(&mut self) {
        let mut leftovers = Leftovers::of(&self.core);
        leftovers.by_ref().for_each(drop);
    }
}

/// The remaining payloads, a few at a time, because they must be dropped outside every
/// lock. If a drop panics, the rest are still dropped.
struct Leftovers<'a, T> {
    core: &'a Core<T>,
    cells: std::slice::Iter<'a, ShardCell<T>>,
}

impl<'a, T> Leftovers<'a, T> {
    fn of(core: &'a Core<T>) -> Leftovers<'a, T> {
        let cells = core.shards.iter();
        Leftovers { core, cells }
    }

    fn take_some(&self, cell: &ShardCell<T>) -> Vec<Option<T>> {
        let Held { cell, mut shard } = self.core.hold(cell);
        let leftovers = shard.take_leftovers(LEFTOVERS_PER_HOLD);
        self.core.release(Held { cell, shard });
        leftovers
    }
}

impl<T> Iterator for Leftovers<'_, T> {
    type Item = Vec<Option<T>>;

    fn next(&mut self) -> Option<Vec<Option<T>>> {
        while let Some(cell) = self.cells.as_slice().first() {
            let leftovers = self.take_some(cell);
            if !leftovers.is_empty() {
                return Some(leftovers);
            }
            self.cells.next();
        }
        None
    }
}

impl<T> Drop for Leftovers<'_, T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

// The number of shards from which a report may still come.
//
// Each shard knows when it is *settled* (see `shard/shutdown.rs`). The thread that
// settles the last shard of an engine tells the readers that no report will follow.

/// The number of shards of an engine that are not settled.
pub(crate) struct Unsettled(AtomicUsize);

impl Unsettled {
    pub(crate) fn new(shards: usize) -> Unsettled {
        Unsettled(AtomicUsize::new(shards))
    }

    /// Notes that a shard is settled. Returns whether it was the last one.
    ///
    /// The readers find every report: each shard's last report was entered under its lock
    /// before this call, whose release happens before the last call's acquire.
    pub(crate) fn settle_one(&self) -> bool {
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}
