//! The meeting place of an engine's threads: the shards behind their locks, the alarm,
//! and the bells. Does not know handles of queues, tickers or tasks.

mod affinity;
mod awaited;
mod busy_workers;
mod cancel;
mod cancel_all;
mod cell;
mod count;
mod doorbell;
pub(crate) mod drain;
mod driving;
mod earliest;
pub(crate) mod expire;
mod fairness;
mod inspect;
pub(crate) mod names;
pub(crate) mod running;
mod schedule;
pub(crate) mod shared_core;
mod shrink;
mod shutdown;
mod take;
mod unsettled;
mod waiters;
pub(crate) mod workers;

pub(crate) use awaited::{Registered, Seen};
pub(crate) use busy_workers::{CannotWait, Census};
pub(crate) use cell::ShardCell;
pub(crate) use doorbell::{Bell, Doorbell, Wait, WaitError, Waits};
pub(crate) use driving::Driving;
pub(crate) use fairness::Walk;
pub(crate) use shared_core::SharedCore;
pub(crate) use take::TAKES_PER_HOLD;
pub(crate) use waiters::Waiters;

use crossbeam_utils::CachePadded;

use crate::clock::{Alarm, Clock};
use crate::engine_name::EngineName;
use crate::hub::affinity::{known_number, thread_number};
use crate::hub::names::Names;
use crate::hub::unsettled::Unsettled;
use crate::hub::workers::Workers;
use crate::id::{TimerId, WheelNumber};
use crate::observe::Subject;
use crate::rounding::TickLength;
use crate::shard::body::Tag;
use crate::shard::{Shard, Signals};
use crate::sync::{Arc, AtomicU64, AtomicUsize, LockGuard};
use crate::tick::Tick;

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
    doorbells: Box<[Doorbell]>,
    /// The threads that are waiting for a firing to return or for a drain to end.
    waiters: Waiters,
    pub(crate) census: Census,
    unsettled: Unsettled,
    panics: AtomicU64,
    pub(crate) workers: Arc<Workers>,
    max_timers: Option<usize>,
    /// Whether takes read the clock, to record lateness and durations.
    measures_work: bool,
    pub(crate) names: Names,
    /// The number of queues, from the first on, that a plain timer's entry can name.
    plain_queues: usize,
    /// Whether the caller's own loop drives this engine.
    is_driven: bool,
    /// Consumes the payloads of due plain timers, if workers don't.
    sink: Option<Sink<T>>,
    /// The shard whose due timers were served last.
    visited: CachePadded<AtomicUsize>,
}

/// What consumes the payload of a due timer in place of a worker: foreign code.
pub(crate) type Sink<T> = fn(T);

/// A shard locked by a thread that may link or end timers.
struct Held<'a, T> {
    cell: &'a ShardCell<T>,
    shard: LockGuard<'a, Shard<T>>,
}

/// What is left to be done after a release of a shard. A waker of a task is foreign code,
/// and must not be called under any lock.
#[must_use = "bells that are not rung leave timers behind"]
struct Unsent {
    shard: usize,
    signals: Signals,
    /// The tick for which the alarm has to be set earlier.
    earlier: Option<Tick>,
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

    /// Notes that the calling thread runs the tasks of this engine; see `driving.rs`.
    pub(crate) fn enter_loop(&self) -> Option<Driving> {
        driving::enter(self.first)
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
    fn cell_of(&self, id: TimerId) -> Option<&ShardCell<T>> {
        self.shards.get(id.wheels_after(self.first))
    }

    /// Takes the lock of the calling thread's own shard.
    #[inline]
    fn hold_own(&self) -> Held<'_, T> {
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
    fn hold<'a>(&self, cell: &'a ShardCell<T>) -> Held<'a, T> {
        let shard = cell.lock();
        Held { cell, shard }
    }

    /// Publishes the earliest tick for which the holder has linked a timer, releases the
    /// lock, and then wakes the threads concerned. A wake-up under the lock would keep
    /// other threads waiting for a system call.
    #[inline]
    fn release(&self, mut held: Held<'_, T>) {
        if held.shard.has_signals() {
            return self.release_and_signal(held);
        }
        let earliest_new = held.shard.take_earliest_new();
        self.release_quiet(held, earliest_new);
    }

    /// Does the same as [`Core::release`] for a holder that has linked a timer for
    /// `earliest_new` and has not raised a signal.
    #[inline]
    fn release_quiet(&self, held: Held<'_, T>, earliest_new: Tick) {
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
    fn release_unsent(&self, mut held: Held<'_, T>) -> Unsent {
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
            earlier: notifies.then_some(earliest_new),
        }
    }

    /// Wakes the threads and tasks that a release concerns. The alarm follows the bells,
    /// because the caller's loop that it may wake checks them only once. Names are last:
    /// an alarm must not wait for the lock of a bucket.
    fn send(&self, mut unsent: Unsent) {
        self.ring(unsent.shard, &unsent.signals);
        if let Some(earlier) = unsent.earlier {
            self.alarm.notify_earlier(earlier);
        }
        unsent
            .signals
            .take_unnamed(|place| self.names.remove(place));
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
