//! One shard: a wheel, what is ready, and the states that a timer goes through.
//!
//! Plain single-threaded code; `shared` puts it behind a lock. Nothing in here
//! drops a payload or runs foreign code: payloads go out to the caller, who
//! drops them after the lock has been released.

pub(crate) mod awaited;
mod close;
pub(crate) mod credit;
mod drain;
mod end;
pub(crate) mod entry;
mod leftovers;
mod name;
mod ready;
pub(crate) mod record;
mod settle;
pub(crate) mod shrink;
mod start;
pub(crate) mod walk;

pub(crate) use awaited::DrainKey;
pub(crate) use name::{NameTag, Place};

use slab::Slab;

use crate::id::{TimerId, WheelNumber};
use crate::shard::awaited::Awaited;
use crate::shard::credit::Credit;
use crate::shard::entry::{Body, Tag};
use crate::shard::ready::Ready;
use crate::shard::record::{Extra, State};
use crate::stats::Lateness;
use crate::stats::Ledger;
use crate::sync::IS_MODEL;
use crate::tick::Tick;
use crate::time::{TickLength, Time};
use crate::timer::{CloseReason, Closed};
use crate::timer::{NotLive, Refusal, Timer};
use crate::wheel::{EntryIndex, Geometry, Step, Wheel};

/// How many cells one part of a walk through a shard passes in one hold of its
/// lock: so few that a thread that waits for it hardly notices, whatever is in
/// them.
pub(crate) const CELLS_PER_HOLD: usize = 16_384;

/// What a timer in one of them counts for. A model's walk lets go after each.
pub(crate) const CELLS_PER_TIMER: usize = if IS_MODEL { CELLS_PER_HOLD } else { 4 };

pub(crate) struct Shard<T> {
    pub(crate) wheel: Wheel<Body<T>>,
    pub(crate) extras: Slab<Extra<T>>,
    /// How many of the entries are no live timers: not started, shut down while
    /// a worker has a firing, or ended and not read.
    not_live: usize,
    /// What has expired, by queue; after the last queue, the reports.
    pub(crate) ready: Box<[Ready]>,
    pub(crate) ledger: Ledger,
    pub(crate) lateness: Lateness,
    pub(crate) credit: Credit,
    pub(crate) tick: TickLength,
    pub(crate) phase: Phase,
    /// How many reports are still to come of timers that were accepted.
    pub(crate) to_report: usize,
    /// What the drains that have begun wait for.
    pub(crate) drains: Vec<Awaited>,
    pub(crate) signals: Signals,
    /// How many walk through the entries, a part at a time.
    pub(crate) walks: usize,
    /// Whether there are any: one look instead of several.
    pub(crate) signalled: bool,
    /// The earliest tick for which something was linked since it was last
    /// asked for.
    pub(crate) filed: Tick,
    /// Whether the caller's loop is called here, whatever is due.
    pub(crate) called: bool,
}

/// What is to be done when the lock has been released.
#[derive(Default)]
pub(crate) struct Signals {
    /// Queues whose bell is to be rung: mostly one, so that the ticker need not
    /// allocate, which another thread may hold up.
    bell: Option<usize>,
    more_bells: Vec<usize>,
    /// Names of timers that have ended.
    pub(crate) unnamed: Vec<NameTag>,
    /// Whether a task waits for which nothing came due: a loop that runs tasks
    /// itself has to be called to it.
    pub(crate) loop_called: bool,
    /// Whether no report will come of this shard any more.
    pub(crate) settled: bool,
    /// Whether the last timer has gone that a drain waited for.
    pub(crate) drained: bool,
}

impl Signals {
    fn ring(&mut self, queue: usize) {
        match self.bell {
            None => self.bell = Some(queue),
            Some(_) => self.more_bells.push(queue),
        }
    }

    pub(crate) fn bells(&self) -> impl Iterator<Item = usize> + '_ {
        self.bell.iter().chain(&self.more_bells).copied()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Open,
    /// Accepts nothing; fires what is there.
    Draining,
    Closed,
}

/// An expired timer that a worker has taken.
pub(crate) struct Claimed<T> {
    pub(crate) id: TimerId,
    pub(crate) tick: Tick,
    /// When it was asked for, which its tick is rounded up from.
    pub(crate) asked: Time,
    pub(crate) number: u64,
    pub(crate) payload: T,
    /// The timer lives on: the payload wants to be given back.
    pub(crate) lent: bool,
    /// Completed, unless the timer's task is told of another ending.
    pub(crate) outcome: CloseReason,
}

/// How a firing that was lent came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Returned,
    Panicked,
    /// The worker kept the payload, which ends the timer.
    Kept,
}

/// What giving back leaves to do outside the lock.
pub(crate) struct GivenBack<T> {
    /// The payload, if the timer has ended and nobody else gets it.
    pub(crate) payload: Option<T>,
    /// Somebody waits for this.
    pub(crate) awaited: bool,
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
        let mut wheel = Wheel::numbered(start, geometry, number);
        let ready = (0..=queues).map(|_| Ready::new(&mut wheel)).collect();
        Shard {
            wheel,
            extras: Slab::new(),
            not_live: 0,
            ready,
            ledger: Ledger::default(),
            lateness: Lateness::default(),
            credit,
            tick,
            phase: Phase::Open,
            to_report: 0,
            drains: Vec::new(),
            signals: Signals::default(),
            walks: 0,
            signalled: false,
            filed: Tick::MAX,
            called: false,
        }
    }

    /// Accepts a one-shot that is nothing but a payload and a deadline, for a
    /// queue that fits a tag. Returns also the tick for which it was filed, in
    /// registers: `filed` would cost three accesses to memory.
    #[inline]
    pub(crate) fn schedule_plain(
        &mut self,
        payload: T,
        deadline: Tick,
        queue: usize,
    ) -> Result<(TimerId, Tick), (Refusal, T)> {
        if let Some(reason) = self.refuses() {
            return Err((reason, payload));
        }
        let tag = Tag::one_shot(queue);
        let body = Body::payload(payload);
        let scheduled = self.wheel.schedule_tagged(deadline, tag.0, body);
        self.ledger.accepted += 1;
        Ok((scheduled.id, scheduled.due))
    }

    /// Accepts any other timer; it is due at `due`, which is in `deadline`'s
    /// tick.
    pub(crate) fn schedule(
        &mut self,
        timer: Timer<T>,
        due: Time,
        deadline: Tick,
        name: Option<NameTag>,
    ) -> Result<TimerId, (Refusal, Timer<T>)> {
        if let Some(reason) = self.refuses() {
            return Err((reason, timer));
        }
        let extra = Extra::new(timer, due, name);
        self.accept(extra.reported);
        let deadline = self.within_tolerance(&extra, deadline);
        let at = self.insert_extra(extra, deadline);
        let filed = self.wheel.link_new(at);
        self.filed = self.filed.min(filed);
        Ok(self.wheel.id(at))
    }

    /// The deadline that a timer is filed for: the coarsest boundary of a level
    /// that its tolerance reaches, so that neighbours share a wake-up.
    pub(crate) fn within_tolerance(&self, extra: &Extra<T>, deadline: Tick) -> Tick {
        if extra.tolerance.is_zero() {
            return deadline;
        }
        let last = self.tick.tick_at(extra.due + extra.tolerance);
        Tick(self.wheel.geometry().coarsest(deadline.0, last.0))
    }

    /// Whether there is no place for a new timer; else one is taken.
    #[inline]
    pub(crate) fn refuses(&mut self) -> Option<Refusal> {
        if self.phase != Phase::Open {
            return Some(Refusal::Closed);
        }
        (!self.credit.take()).then_some(Refusal::Full)
    }

    pub(crate) fn insert_extra(&mut self, extra: Extra<T>, deadline: Tick) -> EntryIndex {
        self.not_live += usize::from(!extra.state.is_live());
        let extra = self.extras.insert(extra);
        let body = Body::extra(extra);
        let at = self.wheel.insert(deadline.0, Tag::extra().0, body);
        // It may not be started for long.
        self.wheel.set_aside(at);
        at
    }

    /// Moves the wheel's clock up to `now` where nothing happens in between,
    /// so that new timers are filed where they will not be re-filed for long.
    #[inline]
    pub(crate) fn catch_up(&mut self, now: Tick) {
        self.wheel.idle_to(now.0);
    }

    /// Makes what is due by `now` ready, touching at most `budget` entries.
    /// Returns the tick at which the shard next wants to be called.
    pub(crate) fn expire(&mut self, now: Time, budget: &mut usize) -> Tick {
        if self.phase == Phase::Closed {
            return Tick::MAX;
        }
        let to = self.tick.tick_at(now);
        loop {
            match self.wheel.step(to.0, budget) {
                Step::Due(at) => {
                    let due = self.tick.start_of(self.wheel.deadline_of(at));
                    self.lateness.record(now.since_nanos(due));
                    self.make_ready(at);
                }
                Step::Paused => return to,
                Step::Done => return self.wheel.next_wakeup().unwrap_or(Tick::MAX),
            }
        }
    }

    /// The tick at which the shard wants to be called, as it is now.
    pub(crate) fn wants_a_look(&self) -> Tick {
        match self.called {
            true => Tick(0),
            false => self.wheel.next_wakeup().unwrap_or(Tick::MAX),
        }
    }

    /// The same, not counting what is late.
    pub(crate) fn next_slot(&self) -> Tick {
        self.wheel.next_slot().unwrap_or(Tick::MAX)
    }

    /// See [`Shard::has_settled`].
    pub(crate) fn turns(&self) -> u64 {
        self.wheel.rounds()
    }

    /// Whether everything is ready that was due by `to` when the wheel had had so
    /// many turns.
    pub(crate) fn has_settled(&self, to: Tick, turns: u64) -> bool {
        self.wheel.has_settled(to.0, turns)
    }

    /// The tick of the earliest filing since the last call.
    #[inline]
    pub(crate) fn take_filed(&mut self) -> Tick {
        std::mem::replace(&mut self.filed, Tick::MAX)
    }

    #[inline]
    pub(crate) fn has_signals(&self) -> bool {
        self.signalled
    }

    /// What is to be done when the lock has been released.
    pub(crate) fn take_signals(&mut self) -> Signals {
        self.signalled = false;
        std::mem::take(&mut self.signals)
    }

    /// Puts back what was taken at the end of the caller's last hold. Whoever had
    /// the lock since has taken what came of that.
    pub(crate) fn put_back(&mut self, signals: Option<Signals>) {
        debug_assert!(!self.signalled);
        self.signalled = signals.is_some();
        self.signals = signals.unwrap_or_default();
    }

    /// Takes the first expired timer of a queue. The second answer is whether
    /// there are more; where a bell brought the worker here, it stays rung
    /// exactly then, and the worker must put it back.
    #[inline]
    pub(crate) fn claim(&mut self, queue: usize, by_bell: bool) -> (Option<Claimed<T>>, bool) {
        let first = self.ready[queue].first_to_take(&self.wheel);
        let claimed = first.map(|at| self.take_ready(at, queue));
        (claimed, self.ready[queue].has_more(by_bell))
    }

    #[inline]
    pub(crate) fn take_ready(&mut self, at: EntryIndex, queue: usize) -> Claimed<T> {
        let (id, tick) = (self.wheel.id(at), self.wheel.deadline_of(at));
        self.count_out(at);
        self.unlink(at);
        if let Some(key) = self.extra_of(at) {
            return self.take_extra(at, key);
        }
        debug_assert_eq!(self.tag(at).queue(), queue);
        Claimed {
            id,
            tick,
            asked: self.tick.start_of(tick),
            number: 1,
            payload: self.end_plain(at, CloseReason::Completed),
            lent: false,
            outcome: CloseReason::Completed,
        }
    }

    pub(crate) fn take_extra(&mut self, at: EntryIndex, key: usize) -> Claimed<T> {
        let (id, tick) = (self.wheel.id(at), self.wheel.deadline_of(at));
        let extra = &mut self.extras[key];
        let told = match extra.state {
            State::Ended { reason, .. } => Some(reason),
            _ => None,
        };
        if told.is_none() {
            extra.deliver();
        }
        let payload = extra.payload.take();
        let (number, asked) = (extra.number, extra.due);
        let lent = told.is_none() && extra.is_lent_out();
        if told.is_some() {
            self.close_entry(at, key);
        } else if lent {
            self.enter(key, State::Lent { ending: None });
            self.wheel.set_aside(at);
        } else {
            self.end_extra(at, CloseReason::Completed, tick);
        }
        Claimed {
            id,
            tick,
            asked,
            number,
            payload: payload.expect("a waiting timer has its payload"),
            lent,
            outcome: told.unwrap_or(CloseReason::Completed),
        }
    }

    /// Takes the first unread report. Answers as [`Shard::claim`] does.
    pub(crate) fn claim_report(&mut self, by_bell: bool) -> (Option<Closed<T>>, bool) {
        let reports = self.ready.len() - 1;
        let first = self.ready[reports].first_to_take(&self.wheel);
        let closed = first.map(|at| {
            let id = self.wheel.id(at);
            self.ready[reports].unlink(&mut self.wheel, at);
            let extra = self.forget(at);
            let State::Ended { reason, tick } = extra.state else {
                unreachable!("only what has ended is reported");
            };
            extra.into_closed(id, reason, tick)
        });
        (closed, self.ready[reports].has_more(by_bell))
    }

    /// Whether a firing of the timer is in a worker's hands; if so, giving it
    /// back will say that somebody waits.
    pub(crate) fn await_return(&mut self, id: TimerId) -> bool {
        let key = self.wheel.find_own(id).and_then(|at| self.extra_of(at));
        let Some(extra) = key.map(|key| &mut self.extras[key]) else {
            return false;
        };
        extra.awaited = matches!(extra.state, State::Lent { .. } | State::Abandoned { .. });
        extra.awaited
    }

    /// Postpones a one-shot that waits for its deadline and has no extra. Returns
    /// whether it did; any other timer, and any other deadline, is left alone.
    #[inline]
    pub(crate) fn postpone_plain(&mut self, id: TimerId, deadline: Tick) -> bool {
        let Some(at) = self.wheel.find_at_home(id) else {
            return false;
        };
        let is_plain = self.phase == Phase::Open && self.tag(at).is_plain();
        is_plain && self.wheel.postpone(at, deadline.0)
    }

    /// Gives a timer another deadline, and a repeating one another phase.
    pub(crate) fn reschedule(
        &mut self,
        id: TimerId,
        due: Time,
        deadline: Tick,
    ) -> Result<(), NotLive> {
        let at = self.find_waiting(id)?;
        self.count_out(at);
        let mut deadline = deadline;
        if let Some(key) = self.extra_of(at) {
            self.extras[key].due = due;
            deadline = self.within_tolerance(&self.extras[key], deadline);
        }
        if self.tag(at).is_ready() {
            self.unlink(at);
            self.wheel.relink_at(at, deadline);
        } else {
            self.wheel.move_to(at, deadline.0);
        }
        self.filed = self.filed.min(self.wheel.due_at(at));
        self.count_in(at);
        Ok(())
    }

    /// Puts another payload in a timer's place.
    pub(crate) fn replace(&mut self, id: TimerId, payload: T) -> Result<T, (NotLive, T)> {
        let at = match self.find_waiting(id) {
            Ok(at) => at,
            Err(why) => return Err((why, payload)),
        };
        let place = match self.extra_of(at) {
            Some(key) => self.extras[key].payload.as_mut(),
            // SAFETY: the tag says that the body is a payload.
            None => Some(unsafe { self.wheel.payload_mut(at).payload_mut() }),
        };
        match place {
            Some(place) => Ok(std::mem::replace(place, payload)),
            None => Err((NotLive::Running, payload)),
        }
    }

    /// When a live timer is due, or was, if it waits to be taken.
    pub(crate) fn deadline(&self, id: TimerId) -> Option<Tick> {
        let at = self.wheel.find_own(id)?;
        self.is_live(at).then(|| self.wheel.deadline_of(at))
    }

    /// The ledger. What is live is counted by entries and not by endings, so
    /// that the balance says something.
    pub(crate) fn ledger(&self) -> Ledger {
        Ledger {
            live: self.live() as u64,
            ..self.ledger
        }
    }

    /// How many timers are live.
    pub(crate) fn live(&self) -> usize {
        self.wheel.len() - self.not_live
    }

    /// Lets a timer enter another state.
    pub(crate) fn enter(&mut self, key: usize, state: State) {
        let before = std::mem::replace(&mut self.extras[key].state, state);
        self.not_live += usize::from(before.is_live());
        self.not_live -= usize::from(state.is_live());
    }

    pub(crate) fn make_ready(&mut self, at: EntryIndex) {
        let queue = self.queue_of(at);
        self.wheel.set_tag(at, self.tag(at).ready(true).0);
        self.put_on(queue, at);
    }

    pub(crate) fn put_on(&mut self, queue: usize, at: EntryIndex) {
        if self.ready[queue].append(&mut self.wheel, at) {
            self.signals.ring(queue);
            self.signalled = true;
        }
    }

    /// Takes a waiting timer off whichever list it hangs on.
    #[inline]
    pub(crate) fn unlink(&mut self, at: EntryIndex) {
        let tag = self.tag(at);
        if !tag.is_ready() {
            return self.wheel.unlink(at);
        }
        let queue = self.queue_of(at);
        self.ready[queue].unlink(&mut self.wheel, at);
        self.wheel.set_tag(at, tag.ready(false).0);
    }

    #[inline]
    pub(crate) fn extra_of(&self, at: EntryIndex) -> Option<usize> {
        Self::extra_in(&self.wheel, at)
    }

    #[inline]
    pub(crate) fn extra_in(wheel: &Wheel<Body<T>>, at: EntryIndex) -> Option<usize> {
        Self::tag_in(wheel, at).is_extra().then(|| {
            // SAFETY: the tag says that the body is an extra's index.
            unsafe { wheel.payload(at).as_extra() }
        })
    }

    pub(crate) fn queue_of(&self, at: EntryIndex) -> usize {
        match self.extra_of(at) {
            Some(key) => self.extras[key].queue,
            None => self.tag(at).queue(),
        }
    }

    pub(crate) fn is_live(&self, at: EntryIndex) -> bool {
        self.extra_of(at)
            .is_none_or(|key| self.extras[key].state.is_live())
    }

    /// The entry of a timer that no worker has in hand.
    #[inline]
    pub(crate) fn find_waiting(&self, id: TimerId) -> Result<EntryIndex, NotLive> {
        let at = self.wheel.find_own(id).ok_or(NotLive::Gone)?;
        let Some(key) = self.extra_of(at) else {
            return Ok(at);
        };
        match self.extras[key].state {
            State::Waiting => Ok(at),
            State::Lent { .. } => Err(NotLive::Running),
            _ => Err(NotLive::Gone),
        }
    }

    /// Frees the entry of a timer that hangs on no list.
    pub(crate) fn forget(&mut self, at: EntryIndex) -> Extra<T> {
        self.credit.put();
        let body = self.wheel.remove(at);
        // SAFETY: only timers with an extra are forgotten.
        let extra = self.extras.remove(unsafe { body.as_extra() });
        self.not_live -= usize::from(!extra.state.is_live());
        extra
    }

    #[inline]
    pub(crate) fn tag(&self, at: EntryIndex) -> Tag {
        Self::tag_in(&self.wheel, at)
    }

    #[inline]
    pub(crate) fn tag_in(wheel: &Wheel<Body<T>>, at: EntryIndex) -> Tag {
        Tag(wheel.tag(at))
    }
}
