//! One shard's state machine: a wheel, and the states that its timers go
//! through.
//!
//! A plain timer is a one-shot without a record: its entry's [`Tag`] says
//! whether it is linked into the wheel, ready, or a task that a worker runs (`lent.rs`).
//! Any other timer has a [`TimerRecord`] with its [`State`]. Letters name the actors: a
//! caller (c), the ticker (t), a worker (w).
//!
//! ```text
//! plain     schedule c ─▶ linked ──expire t──▶ ready ──claim w──▶ freed
//!                           └───────┬────────────┘
//!                        cancel c, shut down c ─▶ freed
//!
//! task      schedule c ─▶ linked ──expire t──▶ ready ──claim w──▶ lent ──return w──▶ freed
//!                           └───────┬────────────┘                 │
//!                        cancel c, shut down c ─▶ freed         cancel c, wait c, … ─▶ Lent
//!
//! recorded     schedule c ──────┐
//!                               ▼
//! create c ─▶ Unstarted ─start c─▶ Waiting ─claim w─▶ Lent ─return w─▶ Waiting (repeats, re-armed)
//!                 │                  │                 ├──return w─▶ Ended (last, cancelled)
//!             dismiss c     cancel c, shut down c,     │
//!                 │           claim w (one-shot)  shut down c
//!                 ▼                  ▼                 ▼
//!               freed              Ended           Abandoned ─return w─▶ Ended
//!
//! Ended ─(its task runs once more w, if asked for)─(its report is read c)─▶ freed
//! ```
//!
//! A `Waiting` timer is linked into the wheel until the ticker expires it; then it is
//! ready until a worker claims it. `Lent` covers repeating timers, recorded tasks and
//! rearmable one-shots while a worker has the payload. The holder of a firing can re-arm
//! a `Lent` timer: it notes the next tick, for which the timer waits once its firing has
//! returned, or does both in one step. Cancelling an `Unstarted` or `Lent` timer marks it:
//! the timer ends when it is started or when its firing returns, and is not re-armed. An
//! `Ended` timer is freed at once unless its task must run once more or its report is
//! unread.
//!
//! A shard is single-threaded: `engine` puts it behind a lock. It never drops a payload and
//! never runs foreign code. Payloads go to the caller, who drops them after releasing the
//! lock.

pub(crate) mod body;
pub(crate) mod credit;
mod end;
mod lent;
pub(crate) mod names;
mod ready;
pub(crate) mod record;
mod report;
mod shutdown;
mod take;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
pub(crate) mod walk;

pub(crate) use lent::Outcome;
pub(crate) use take::{Claimed, Delivery};

use core::time::Duration;

use slab::Slab;

use crate::id::by_hash::ByHash;
use crate::id::{TimerId, WheelNumber};
use crate::rounding::TickLength;
use crate::shard::body::Body;
use crate::shard::credit::Credit;
use crate::shard::ready::Ready;
use crate::shard::record::{State, TimerRecord};
use crate::stats::{Histogram, Ledger, Measured, RefusedTimers};
use crate::sync::IS_MODEL;
use crate::tick::Tick;
use crate::timeline::{Time, When};
use crate::timer::{CloseReason, Refusal, Timer};
use crate::wheel::{EntryIndex, Geometry, Tag, Wheel};

/// The number of cells that a walk through a shard passes in one hold of the shard's
/// lock. It is so small that waiting threads hardly notice, whatever the cells hold.
pub(crate) const CELLS_PER_HOLD: usize = 16_384;

/// The number of cells that a timer counts as. A model's walk releases the lock
/// after each.
pub(crate) const CELLS_PER_TIMER: usize = if IS_MODEL { CELLS_PER_HOLD } else { 4 };

pub(crate) struct Shard<T> {
    pub(crate) wheel: Wheel<Body<T>>,
    pub(crate) records: Slab<TimerRecord<T>>,
    index: ByHash,
    /// The number of entries that are not live timers: those not yet started, those shut
    /// down while a worker holds a firing, and those that ended with an unread report.
    not_live: usize,
    /// The expired timers of each queue and, after the last queue, the unread reports.
    pub(crate) ready: Box<[Ready]>,
    pub(crate) ledger: Ledger,
    pub(crate) refused: RefusedTimers,
    pub(crate) lateness: Histogram,
    /// The number of lent firings.
    pub(crate) lent: usize,
    /// `None` until a take is measured.
    pub(crate) measured: Option<Box<Measured>>,
    credit: Credit,
    pub(crate) tick: TickLength,
    pub(crate) phase: Phase,
    /// The number of reports that accepted timers still owe.
    to_report: usize,
    /// The timers before which drains have stopped.
    stopped_at: Vec<EntryIndex>,
    /// The number of timers that were moved and for which a drain waits.
    pub(crate) moved: u64,
    /// The highest limit of a drain.
    drained_until: Tick,
    signals: Signals,
    /// Whether `signals` is not empty. One check replaces several.
    signalled: bool,
    /// The earliest tick for which a timer was linked since the last
    /// [`Shard::take_earliest_new`].
    earliest_new: Tick,
    /// Whether the caller's own loop drives the engine.
    pub(crate) is_driven: bool,
    /// Whether the caller's loop is woken for this shard even if no timer is due.
    pub(crate) wake_driver: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Open,
    /// Accepts no new timers, but fires those that it has.
    Draining,
    Closed,
}

/// What a call leaves to be done after the lock of the shard is released.
#[derive(Default)]
pub(crate) struct Signals {
    /// A queue whose bell is to be rung. There is rarely more than one, so the ticker
    /// rarely allocates; an allocation could make it wait for another thread.
    bell: Option<usize>,
    more_bells: Vec<usize>,
    /// Whether a task became ready although no timer came due. A loop that runs tasks
    /// itself must be woken for it.
    pub(crate) wake_driver: bool,
    /// Whether this shard will make no further report.
    pub(crate) all_reported: bool,
    /// Whether the last timer that a drain waited for is gone.
    pub(crate) drained: bool,
}

impl Signals {
    #[cold]
    pub(super) fn ring(&mut self, queue: usize) {
        match self.bell {
            None => self.bell = Some(queue),
            Some(_) => self.more_bells.push(queue),
        }
    }

    #[inline]
    pub(crate) fn bells(&self) -> impl Iterator<Item = usize> {
        self.bell.into_iter().chain(self.more_bells.iter().copied())
    }
}

/// When a timer is due.
#[derive(Clone, Copy)]
pub(crate) struct Due {
    pub(crate) requested: Time,
    /// The tick that `requested` is rounded up to.
    pub(crate) deadline: Tick,
}

impl Due {
    /// Returns the deadline for which to link a timer: the coarsest level boundary within
    /// its tolerance, at which it shares a wake-up with other timers.
    #[inline]
    fn within(self, tolerance: Duration, tick: TickLength, geometry: &Geometry) -> Tick {
        if tolerance.is_zero() {
            return self.deadline;
        }
        let (first, last) = (self.deadline.0, tick.tick_at(self.requested + tolerance).0);
        let mut starts = (0..geometry.levels()).rev().filter_map(|level| {
            let unit = geometry.unit(level);
            first.div_ceil(unit).checked_mul(unit)
        });
        Tick(starts.find(|&start| start <= last).unwrap_or(first))
    }
}

impl<T> Shard<T> {
    pub(crate) fn new(
        number: WheelNumber,
        start: Tick,
        geometry: Geometry,
        queues: usize,
        credit: Credit,
        tick: TickLength,
    ) -> Shard<T> {
        // The last one has the reports.
        let lists = queues as u32 + 1;
        let wheel = Wheel::numbered(start, geometry, number, lists);
        let ready = (0..=queues).map(|queue| Ready::new(&wheel, queue)).collect();
        Shard {
            wheel,
            records: Slab::new(),
            index: ByHash::default(),
            not_live: 0,
            ready,
            ledger: Ledger::default(),
            refused: RefusedTimers::default(),
            lateness: Histogram::default(),
            lent: 0,
            measured: None,
            credit,
            tick,
            phase: Phase::Open,
            to_report: 0,
            stopped_at: Vec::new(),
            moved: 0,
            drained_until: Tick(0),
            signals: Signals::default(),
            signalled: false,
            earliest_new: Tick::MAX,
            is_driven: false,
            wake_driver: false,
        }
    }

    /// Schedules a one-shot that consists of a payload and a deadline, for a queue that
    /// fits into a tag. Also returns the tick for which the timer was linked. It does so
    /// in registers, whereas `earliest_new` would cost three memory accesses.
    ///
    /// The caller has a credit from [`Shard::admit`]. A payload that this call could
    /// refuse would be copied once more, even if the call accepts it.
    #[inline(always)]
    pub(crate) fn schedule_plain(
        &mut self,
        payload: T,
        now: Option<Tick>,
        deadline: Tick,
        tag: Tag,
    ) -> (TimerId, Tick) {
        if let Some(now) = now {
            // If nothing happens until then, the timer gets a slot where it can stay.
            self.wheel.idle_to(now);
        }
        let body = Body::payload(payload);
        self.ledger.accepted += 1;
        self.wheel.schedule_tagged(deadline, tag, body)
    }

    /// Accepts any timer that needs a record, and has this hash of its name if it has one.
    #[inline(always)]
    pub(crate) fn schedule_recorded(
        &mut self,
        timer: Timer<T>,
        due: Due,
        name_hash: Option<u64>,
    ) -> Result<TimerId, (Refusal, Timer<T>)> {
        if let Err(reason) = self.admit_named(&timer, name_hash) {
            return Err((reason, timer));
        }
        self.accept(timer.reported);
        let deadline = due.within(timer.tolerance, self.tick, self.wheel.geometry());
        let record = TimerRecord::new(timer.map(Some), due.requested, name_hash);
        let at = self.insert_recorded(record, deadline);
        let earliest = self.wheel.link(at);
        self.earliest_new = self.earliest_new.min(earliest);
        Ok(self.wheel.id(at))
    }

    /// Creates a timer that is started later, or never.
    pub(crate) fn create(
        &mut self,
        timer: Timer<T>,
        name_hash: Option<u64>,
    ) -> Result<TimerId, (Refusal, Timer<T>)> {
        if let Err(reason) = self.admit_named(&timer, name_hash) {
            return Err((reason, timer));
        }
        self.not_live += 1;
        let record = TimerRecord {
            state: State::Unstarted { cancelled: false },
            ..TimerRecord::new(timer.map(Some), Time::MAX, name_hash)
        };
        let at = self.insert_recorded(record, Tick::MAX);
        Ok(self.wheel.id(at))
    }

    /// Starts a timer that was created earlier. If the start is refused, returns the
    /// timer, or `None` if it was cancelled and has lost its payload. Calls `now` only
    /// for a cancelled timer.
    pub(crate) fn start(
        &mut self,
        id: TimerId,
        due: impl FnOnce(When) -> Due,
        now: impl FnOnce() -> Tick,
    ) -> Result<(), Option<Timer<T>>> {
        let at = self.wheel.find_own(id).ok_or(None)?;
        let key = self.record_of(at).ok_or(None)?;
        let State::Unstarted { cancelled } = self.records[key].state else {
            return Err(None);
        };
        if self.phase != Phase::Open {
            return Err(self.dismiss(id));
        }
        self.accept(self.records[key].timer.reported);
        let deadline = self.set_requested(key, due(self.records[key].timer.requested));
        self.enter(key, State::Waiting);
        if cancelled {
            self.wheel.set_deadline(at, deadline);
            self.end_recorded(at, key, CloseReason::Cancelled, now());
        } else {
            self.relink(at, deadline);
        }
        Ok(())
    }

    /// Discards a timer that was never started. Returns it, unless it was cancelled and
    /// has lost its payload.
    pub(crate) fn dismiss(&mut self, id: TimerId) -> Option<Timer<T>> {
        let at = self.wheel.find_own(id)?;
        let key = self.record_of(at)?;
        self.give_up_name(at, key);
        let timer = self.records[key].take_timer();
        self.forget(at, key);
        timer
    }

    /// Links a timer that is on no list.
    fn relink(&mut self, at: EntryIndex, deadline: Tick) {
        self.wheel.relink_at(at, deadline);
        self.note_linked(at);
    }

    /// Has the ticker come for a timer, unless it comes to the shard no more.
    fn note_linked(&mut self, at: EntryIndex) {
        if self.phase != Phase::Closed {
            self.earliest_new = self.earliest_new.min(self.wheel.due_at(at));
        }
    }

    /// Takes a credit for a new timer.
    #[inline]
    pub(crate) fn admit(&mut self) -> Result<(), Refusal> {
        if self.phase != Phase::Open {
            return Err(self.refuse(Refusal::ShutDown));
        }
        if self.credit.take() { Ok(()) } else { Err(self.refuse(Refusal::Full)) }
    }

    #[cold]
    fn refuse(&mut self, reason: Refusal) -> Refusal {
        self.refused.count(reason);
        reason
    }

    fn accept(&mut self, reported: bool) {
        self.ledger.accepted += 1;
        self.to_report += usize::from(reported);
    }

    /// Gives a record its entry, which is not on any list, and enters its name.
    #[inline]
    fn insert_recorded(&mut self, record: TimerRecord<T>, deadline: Tick) -> EntryIndex {
        let name_hash = record.name_hash;
        let body = Body::record(self.records.insert(record));
        let at = self.wheel.insert(deadline, Tag::recorded(), body);
        // The timer may remain unstarted for a long time.
        self.wheel.entries.set_apart(at);
        if let Some(hash) = name_hash {
            self.index.insert(hash, self.wheel.id(at));
        }
        at
    }

    /// Returns the earliest tick for which a timer was linked since the last call.
    #[inline]
    pub(crate) fn take_earliest_new(&mut self) -> Tick {
        std::mem::replace(&mut self.earliest_new, Tick::MAX)
    }

    /// Returns the signals, to add one.
    fn signal(&mut self) -> &mut Signals {
        self.signalled = true;
        &mut self.signals
    }

    #[inline]
    pub(crate) fn has_signals(&self) -> bool {
        self.signalled
    }

    /// Takes the signals to be handled after the lock is released.
    pub(crate) fn take_signals(&mut self) -> Signals {
        self.signalled = false;
        std::mem::take(&mut self.signals)
    }

    /// Puts back the signals that the caller took at the end of its last hold. Threads
    /// that have held the lock since then have taken their own signals.
    pub(crate) fn put_back(&mut self, signals: Option<Signals>) {
        debug_assert!(!self.signalled);
        self.signalled = signals.is_some();
        self.signals = signals.unwrap_or_default();
    }

    /// Postpones a one-shot that is waiting for its deadline and has no record. Returns
    /// whether it did so: any other timer and an earlier deadline are left to the caller.
    #[inline]
    pub(crate) fn postpone_plain(&mut self, id: TimerId, deadline: Tick) -> bool {
        let Some(at) = self.wheel.find_own(id) else {
            return false;
        };
        let is_plain = self.phase == Phase::Open && self.tag(at).is_plain();
        is_plain && self.wheel.set_in_place(at, deadline)
    }

    /// Changes a timer's deadline and, if the timer repeats, its phase.
    pub(crate) fn reschedule(&mut self, id: TimerId, due: Due) -> Result<(), Refusal> {
        let at = self.find_waiting(id)?;
        let deadline = match self.record_of(at) {
            Some(key) => self.set_requested(key, due),
            None => due.deadline,
        };
        if self.tag(at).is_ready() {
            self.unlink(at);
            self.wheel.relink_at(at, deadline);
        } else {
            self.note_leave(at);
            self.wheel.move_to(at, deadline);
        }
        self.note_linked(at);
        if self.is_draining() {
            // The drain may have passed the place to which the timer has moved.
            self.moved += u64::from(self.delays_drain(at, self.drained_until));
        }
        Ok(())
    }

    /// Notes when a timer with a record is due. Returns the deadline for which to link it.
    fn set_requested(&mut self, key: usize, due: Due) -> Tick {
        self.records[key].requested = due.requested;
        due.within(self.records[key].timer.tolerance, self.tick, self.wheel.geometry())
    }

    /// Replaces the payload of a timer.
    pub(crate) fn replace(&mut self, id: TimerId, payload: T) -> Result<T, (Refusal, T)> {
        let at = match self.find_waiting(id) {
            Ok(at) => at,
            Err(why) => return Err((why, payload)),
        };
        let place = match self.record_of(at) {
            Some(key) => self.records[key].payload.as_mut(),
            // SAFETY: the tag says that the body is a payload.
            None => Some(unsafe { self.wheel.entries.payload_mut(at).payload_mut() }),
        };
        match place {
            Some(place) => Ok(std::mem::replace(place, payload)),
            None => Err((Refusal::Running, payload)),
        }
    }

    /// Returns the payload of a live timer without a record.
    #[inline]
    pub(crate) fn plain_payload(&self, id: TimerId) -> Option<&T> {
        let at = self.wheel.find_own(id)?;
        let has_payload = self.tag(at).has_payload();
        // SAFETY: the tag says that the body is a payload.
        has_payload.then(|| unsafe { self.wheel.entries.payload(at).as_payload() })
    }

    /// Returns the tick at which a live timer is due, or was due if it is waiting to be
    /// taken.
    pub(crate) fn deadline(&self, id: TimerId) -> Option<Tick> {
        let at = self.wheel.find_own(id)?;
        self.is_live(at).then(|| self.due_tick_of(at))
    }

    /// Returns the tick at which a timer is due next, or was due last.
    pub(super) fn due_tick_of(&self, at: EntryIndex) -> Tick {
        let next = self.record_of(at).and_then(|key| self.records[key].next());
        next.unwrap_or_else(|| self.wheel.deadline_of(at))
    }

    /// Returns the ledger. Counts live timers by entries, not by endings; otherwise the
    /// balance would prove nothing.
    pub(crate) fn ledger(&self) -> Ledger {
        Ledger { live: self.live() as u64, ..self.ledger }
    }

    pub(crate) fn live(&self) -> usize {
        self.wheel.len() - self.not_live
    }

    /// Moves a timer to another state.
    fn enter(&mut self, key: usize, state: State) {
        let before = std::mem::replace(&mut self.records[key].state, state);
        self.not_live += usize::from(before.is_live());
        self.not_live -= usize::from(state.is_live());
    }

    #[inline]
    fn is_draining(&self) -> bool {
        self.phase == Phase::Draining
    }

    /// Notes that a timer is about to end, to be taken, or to be moved.
    #[inline]
    fn note_leave(&mut self, at: EntryIndex) {
        if self.is_draining() {
            self.signal_leave(at);
        }
    }

    /// Removes a waiting timer from its list.
    #[inline(always)]
    fn unlink(&mut self, at: EntryIndex) {
        self.note_leave(at);
        let tag = self.tag(at);
        if !tag.is_ready() {
            return self.wheel.unlink(at);
        }
        let queue = self.queue_of(at);
        self.ready[queue].unlink(&mut self.wheel, at);
        self.wheel.set_tag(at, tag.ready(false));
    }

    #[inline]
    fn record_of(&self, at: EntryIndex) -> Option<usize> {
        self.tag(at).has_record().then(|| {
            // SAFETY: the tag says that the body is a record's index.
            unsafe { self.wheel.entries.payload(at).as_record() }
        })
    }

    fn queue_of(&self, at: EntryIndex) -> usize {
        match self.record_of(at) {
            Some(key) => self.records[key].timer.queue,
            None => self.tag(at).queue(),
        }
    }

    fn is_live(&self, at: EntryIndex) -> bool {
        self.record_of(at).is_none_or(|key| self.records[key].state.is_live())
    }

    /// Finds the entry of a live timer that no worker has.
    #[inline]
    pub(crate) fn find_waiting(&self, id: TimerId) -> Result<EntryIndex, Refusal> {
        let at = self.wheel.find_own(id).ok_or(Refusal::Gone)?;
        let Some(key) = self.record_of(at) else {
            return if self.tag(at).is_lent() { Err(Refusal::Running) } else { Ok(at) };
        };
        match self.records[key].state {
            State::Waiting => Ok(at),
            state => Err(state.obstacle()),
        }
    }

    /// Frees the entry and the record of a timer that has ended, or was never started. It
    /// is not on any list, and its payload has been taken out.
    #[inline(always)]
    fn forget(&mut self, at: EntryIndex, key: usize) {
        debug_assert!(self.records[key].payload.is_none());
        debug_assert!(!self.records[key].state.is_live());
        self.credit.put();
        self.not_live -= 1;
        self.wheel.remove(at);
        self.records.remove(key);
    }

    #[inline]
    fn tag(&self, at: EntryIndex) -> Tag {
        self.wheel.entries.get(at).stamp.tag()
    }
}
