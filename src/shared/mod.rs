//! What all threads of an engine meet in: the shards behind their locks, the
//! alarm, the bells.

mod affinity;
mod aside;
mod cancel;
mod cell;
mod doorbell;
pub(crate) mod drain;
mod earliest;
pub(crate) mod expire;
mod idle;
pub(crate) mod names;
pub(crate) mod running;
pub(crate) mod shared_core;
mod shrink;
mod shutdown;
mod unsettled;

pub(crate) use cell::ShardCell;
pub(crate) use doorbell::{Doorbell, Wait, WaitError};
pub(crate) use shared_core::SharedCore;

use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::clock::{Alarm, Clock};
use crate::id::{TimerId, WheelNumber};
use crate::shard::NameTag;
use crate::shard::entry::Tag;
use crate::shard::{Outcome, Shard, Signals};
use crate::shared::affinity::thread_number;
use crate::shared::idle::Idle;
use crate::shared::names::Names;
use crate::shared::unsettled::Unsettled;
use crate::stats::Ledger;
use crate::stats::Snapshot;
use crate::sync::{AtomicU64, AtomicUsize, LockGuard, Ordering};
use crate::tick::Tick;
use crate::time::{TickLength, Time, When};
use crate::timer::{NotLive, Plain, Refusal, Refused, Timer};

pub(crate) struct Core<T> {
    /// A power of two of them, so that a thread finds its own with a mask.
    pub(crate) shards: Box<[ShardCell<T>]>,
    /// Shard n's wheel has the n-th number from this one on.
    pub(crate) first: WheelNumber,
    pub(crate) clock: Clock,
    pub(crate) tick: TickLength,
    pub(crate) alarm: Alarm,
    /// One per queue, and one for the reports.
    pub(crate) doorbells: Box<[Doorbell]>,
    pub(crate) idle: Idle,
    pub(crate) unsettled: Unsettled,
    pub(crate) panics: AtomicU64,
    pub(crate) names: Names,
    /// How many queues, from the first on, a one-shot's entry can name.
    plain_queues: usize,
    /// Whether the caller's own loop drives this engine.
    pub(crate) is_driven: bool,
    /// The shard that was visited last, for the sake of what is due there.
    pub(crate) visited: CachePadded<AtomicUsize>,
}

/// A deadline, exactly and in ticks.
struct Due {
    /// The tick that has begun, if the clock was read.
    now: Option<Tick>,
    time: Time,
    tick: Tick,
}

/// A shard that is locked by a caller who may file or end timers.
pub(crate) struct Held<'a, T> {
    pub(crate) cell: &'a ShardCell<T>,
    pub(crate) shard: LockGuard<'a, Shard<T>>,
}

impl<T> Core<T> {
    pub(crate) fn new(
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
            shards: shards
                .into_iter()
                .enumerate()
                .map(|(index, shard)| ShardCell::new(index, shard))
                .collect(),
            first,
            clock,
            tick,
            alarm,
            idle: Idle::new(doorbells.len()),
            unsettled: Unsettled::new(shard_count),
            doorbells: doorbells.into_boxed_slice(),
            panics: AtomicU64::new(0),
            names: Names::new(),
            plain_queues,
            is_driven: false,
            visited: CachePadded::new(AtomicUsize::new(usize::MAX)),
        }
    }

    /// The same, driven by the caller's own loop.
    pub(crate) fn driven(self) -> Core<T> {
        Core {
            is_driven: true,
            ..self
        }
    }

    pub(crate) fn queues(&self) -> usize {
        self.doorbells.len() - 1
    }

    pub(crate) fn doorbell(&self, queue: usize) -> &Doorbell {
        &self.doorbells[queue]
    }

    pub(crate) fn tick_now(&self) -> Tick {
        self.tick.tick_at(self.clock.now())
    }

    #[inline(always)]
    pub(crate) fn schedule(&self, timer: Timer<T>) -> Result<TimerId, Refused<T>> {
        match timer.into_plain() {
            Ok(plain) if plain.queue < self.plain_queues => self.schedule_plain(plain),
            Ok(plain) => self.schedule_any(plain.into_timer()),
            Err(timer) => self.schedule_any(timer),
        }
    }

    #[inline(always)]
    fn schedule_plain(&self, plain: Plain<T>) -> Result<TimerId, Refused<T>> {
        let due = self.resolve(plain.first);
        let mut held = self.hold_own();
        if let Some(now) = due.now {
            held.shard.catch_up(now);
        }
        match held
            .shard
            .schedule_plain(plain.payload, due.tick, plain.queue)
        {
            Ok((id, filed)) => {
                self.release_filed(held, filed);
                Ok(id)
            }
            Err((reason, payload)) => {
                drop(held);
                let timer = Plain { payload, ..plain }.into_timer();
                Err(Refused::new(reason, timer))
            }
        }
    }

    #[cold]
    fn schedule_any(&self, timer: Timer<T>) -> Result<TimerId, Refused<T>> {
        self.enter_name(timer, |timer, tag| self.schedule_extra(timer, tag))
    }

    fn schedule_extra(
        &self,
        timer: Timer<T>,
        name: Option<NameTag>,
    ) -> Result<TimerId, Refused<T>> {
        if let Some(reason) = timer.fault(self.queues(), self.tick) {
            return Err(Refused::new(reason, timer));
        }
        let due = self.resolve(timer.first);
        let mut held = self.hold_own();
        let scheduled = held.shard.schedule(timer, due.time, due.tick, name);
        self.release(held);
        scheduled.map_err(|(reason, timer)| Refused::new(reason, timer))
    }

    /// Creates a timer that is started later.
    pub(crate) fn create(&self, timer: Timer<T>) -> Result<TimerId, Refused<T>> {
        if let Some(reason) = timer.fault(self.queues(), self.tick) {
            return Err(Refused::new(reason, timer));
        }
        self.enter_name(timer, |timer, tag| {
            let created = self.hold_own().shard.create(timer, tag);
            created.map_err(|(reason, timer)| Refused::new(reason, timer))
        })
    }

    /// Makes a timer and enters it under its name, if it has one, before it
    /// can end.
    fn enter_name(
        &self,
        timer: Timer<T>,
        make: impl FnOnce(Timer<T>, Option<NameTag>) -> Result<TimerId, Refused<T>>,
    ) -> Result<TimerId, Refused<T>> {
        let Some(name) = timer.name.clone() else {
            return make(timer, None);
        };
        let (mut bucket, tag) = self.names.enter(&name);
        let id = make(timer, Some(tag.clone()))?;
        bucket.insert(tag, id);
        Ok(id)
    }

    pub(crate) fn start(&self, id: TimerId) -> Result<TimerId, Refused<T>> {
        let cell = self
            .cell_of(id)
            .expect("an unstarted timer knows its engine");
        let first = cell.lock().first_of(id).unwrap_or(When::At(Time::MAX));
        let due = self.resolve(first);
        let mut held = self.hold(cell);
        let now = || self.tick_now();
        let started = held.shard.start(id, due.time, due.tick, now);
        self.release(held);
        match started {
            Err(Some(timer)) => Err(Refused::new(Refusal::ShutDown, timer)),
            // Without a payload there is nothing to refuse: it was cancelled.
            Ok(()) | Err(None) => Ok(id),
        }
    }

    pub(crate) fn dismiss(&self, id: TimerId) -> Option<T> {
        let mut held = self.hold(self.cell_of(id)?);
        let dismissed = held.shard.dismiss(id);
        self.release(held);
        dismissed?.payload
    }

    /// When that is. Reads the clock only for what counts from now.
    #[inline]
    fn resolve(&self, when: When) -> Due {
        match when {
            When::At(time) => Due {
                now: None,
                time,
                tick: self.tick.tick_after(time),
            },
            When::After(delay) => {
                let now = self.clock.now();
                let (time, begun) = (now + delay, self.tick.tick_at(now));
                Due {
                    now: Some(begun),
                    time,
                    tick: match delay {
                        // Due at once: in the tick that has begun already.
                        Duration::ZERO => begun,
                        _ => self.tick.tick_after(time),
                    },
                }
            }
        }
    }

    pub(crate) fn reschedule(&self, id: TimerId, when: When) -> Result<(), NotLive> {
        let cell = self.cell_of(id).ok_or(NotLive::Gone)?;
        let due = self.resolve(when);
        let mut held = self.hold(cell);
        // Nothing is filed by that, and nobody waits for it.
        match held.shard.postpone_plain(id, due.tick) {
            true => Ok(()),
            false => self.reschedule_any(held, id, due),
        }
    }

    #[inline(never)]
    fn reschedule_any(&self, mut held: Held<'_, T>, id: TimerId, due: Due) -> Result<(), NotLive> {
        let moved = held.shard.reschedule(id, due.time, due.tick);
        self.release(held);
        moved
    }

    pub(crate) fn replace(&self, id: TimerId, payload: T) -> Result<T, (NotLive, T)> {
        match self.cell_of(id) {
            Some(cell) => cell.lock().replace(id, payload),
            None => Err((NotLive::Gone, payload)),
        }
    }

    pub(crate) fn deadline(&self, id: TimerId) -> Option<Tick> {
        self.cell_of(id)?.lock().deadline(id)
    }

    pub(crate) fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::default();
        for cell in &self.shards {
            ledger.add(&cell.lock().ledger());
        }
        ledger
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            queued: (0..self.queues())
                .map(|queue| self.ready_len(queue))
                .collect(),
            reports: self.ready_len(self.queues()),
            wakeups: self.alarm.wakeups(),
            panics: self.panics.load(Ordering::Relaxed),
            ..Snapshot::default()
        };
        for cell in &self.shards {
            let shard = cell.lock();
            snapshot.ledger.add(&shard.ledger());
            snapshot.lateness.add(&shard.lateness);
        }
        snapshot
    }

    /// How many expired timers of a queue wait to be taken.
    pub(crate) fn ready_len(&self, queue: usize) -> usize {
        let len = |cell: &ShardCell<T>| cell.lock().ready[queue].len();
        self.shards.iter().map(len).sum()
    }

    /// Takes an expired timer, or a report, of one shard with `take`. Returns also
    /// whether there are more; if so, and if a bell brought the caller here, the
    /// bell goes back.
    #[inline]
    pub(crate) fn take_from<C>(
        &self,
        shard: usize,
        queue: usize,
        by_bell: bool,
        take: impl FnOnce(&mut Shard<T>) -> Option<C>,
    ) -> (Option<C>, bool) {
        let cell = &self.shards[shard];
        let shard = cell.lock_low_priority();
        let mut held = Held { cell, shard };
        let taken = take(&mut held.shard);
        let more = held.shard.has_more(queue, by_bell);
        self.release(held);
        if by_bell && more {
            self.doorbells[queue].ring(cell.index);
        }
        (taken, more)
    }

    /// Takes back a firing that was lent. Drops the payload here, outside the
    /// lock, if the timer has ended.
    pub(crate) fn give_back(&self, id: TimerId, payload: Option<T>, outcome: Outcome) {
        let Some(cell) = self.cell_of(id) else { return };
        let now = self.clock.now();
        let mut held = self.hold(cell);
        let given = held.shard.give_back(id, payload, outcome, now);
        self.release(held);
        if given.awaited {
            self.idle.notify();
        }
        drop(given.payload);
    }

    /// Whether the engine was shut down.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.alarm.is_stopped()
    }

    /// Whether an engine that was shut down has nothing more to hand out.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_shut_down() && (0..self.queues()).all(|queue| self.ready_len(queue) == 0)
    }

    pub(crate) fn wait_until_idle(&self) {
        let reports = self.queues();
        self.idle
            .wait_until_idle(|queue| queue == reports || self.ready_len(queue) == 0);
    }

    /// Runs `look` on every shard in turn, each under its lock.
    pub(crate) fn look_at_shard<R>(
        &self,
        shard: usize,
        look: impl FnOnce(&mut Shard<T>) -> R,
    ) -> Option<R> {
        let cell = self.shards.get(shard)?;
        Some(look(&mut cell.lock()))
    }

    #[inline]
    pub(crate) fn cell_of(&self, id: TimerId) -> Option<&ShardCell<T>> {
        self.shards.get(id.wheel().offset_from(self.first))
    }

    /// Takes the lock of the calling thread's own shard.
    #[inline]
    fn hold_own(&self) -> Held<'_, T> {
        self.hold(&self.shards[thread_number() & (self.shards.len() - 1)])
    }

    #[inline]
    pub(crate) fn hold<'a>(&self, cell: &'a ShardCell<T>) -> Held<'a, T> {
        let shard = cell.lock();
        Held { cell, shard }
    }

    /// Publishes what the caller has filed, lets go of the lock, and then
    /// wakes whoever that concerns: a wake-up under the lock would keep other
    /// threads waiting for a system call.
    #[inline]
    pub(crate) fn release(&self, mut held: Held<'_, T>) {
        if held.shard.has_signals() {
            return self.release_and_signal(held);
        }
        let filed = held.shard.take_filed();
        self.release_filed(held, filed);
    }

    /// As `release`, where something was filed for `filed` and nothing else
    /// happened.
    #[inline]
    fn release_filed(&self, held: Held<'_, T>, filed: Tick) {
        let lowered = held.cell.lower_next(filed);
        drop(held);
        if lowered {
            self.alarm.filed(filed);
        }
    }

    #[cold]
    fn release_and_signal(&self, held: Held<'_, T>) {
        let signals = self.release_and_ring(held);
        signals
            .unnamed
            .iter()
            .for_each(|tag| self.names.remove(tag));
    }

    /// As `release`, but for names of timers that have ended. The alarm comes
    /// last: a caller's loop that it calls looks for bells once.
    pub(crate) fn release_and_ring(&self, mut held: Held<'_, T>) -> Signals {
        let (signals, mut filed) = (held.shard.take_signals(), held.shard.take_filed());
        if signals.loop_called && self.is_driven {
            filed = Tick(0);
            held.shard.called = true;
        }
        let (cell, lowered) = (held.cell, held.cell.lower_next(filed));
        drop(held);
        self.ring(cell.index, &signals);
        if signals.settled {
            self.settled();
        }
        if signals.drained {
            self.idle.notify();
        }
        if lowered {
            self.alarm.filed(filed);
        }
        signals
    }

    /// A shard has said that it is settled.
    fn settled(&self) {
        if self.unsettled.settle_one() {
            self.doorbell(self.queues()).stop();
        }
    }

    fn ring(&self, shard: usize, signals: &Signals) {
        for queue in signals.bells() {
            self.doorbells[queue].ring(shard);
        }
    }

    pub(crate) fn shard_count(&self) -> usize {
        self.shards.len()
    }
}
