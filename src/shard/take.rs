//! Expired timers: time makes them ready, and a worker takes them.

// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc;

use crate::id::TimerId;
use crate::shard::body::Body;
use crate::shard::lent::Outcome;
use crate::shard::ready::AHEAD;
use crate::shard::record::State;
use crate::shard::{Phase, Shard};
use crate::tick::Tick;
use crate::timeline::Time;
use crate::timer::CloseReason;
use crate::wheel::{EntryIndex, Step};

/// One firing of a timer, as a worker takes it.
#[derive(Clone)]
pub(crate) struct Delivery {
    pub(crate) id: TimerId,
    /// The tick at which the timer was due.
    pub(crate) tick: Tick,
    /// The beginning of the tick.
    pub(crate) deadline: Time,
    /// The exact time that the tick was rounded up from.
    pub(crate) requested: Time,
    /// The number of this due tick of the timer, counted from 1.
    pub(crate) number: u64,
    /// The queue. It is small enough to fit beside the outcome.
    pub(crate) queue: u32,
    /// `Completed`, unless a task runs because its timer ended otherwise.
    pub(crate) outcome: CloseReason,
    /// Whether the firing must be returned, with the payload unless that was consumed.
    pub(crate) lent: bool,
    /// In one word, because a firing of a plain timer is moved with room for it.
    pub(crate) name: Option<Box<Arc<str>>>,
}

/// A firing that a worker has taken.
pub(crate) struct Claimed<T> {
    pub(crate) firing: Delivery,
    pub(crate) payload: T,
}

impl<T> Shard<T> {
    /// Makes timers due by `now` ready, touching at most `budget` entries. Returns the
    /// tick at which the shard next wants to be visited.
    pub(crate) fn expire(&mut self, now: Time, budget: &mut usize) -> Tick {
        self.expire_with(now, budget, Shard::make_ready_in_line)
    }

    /// Expires timers, but ends plain ones at once and hands their payloads to `taken`, which is
    /// empty.
    pub(crate) fn expire_into(
        &mut self,
        now: Time,
        budget: &mut usize,
        taken: &mut Vec<T>,
    ) -> Tick {
        let next = self.expire_with(now, budget, |shard, at| {
            if !shard.tag(at).ends_when_taken() {
                return shard.make_ready(at);
            }
            shard.note_leave(at);
            taken.push(shard.take_payload(at));
        });
        self.count_completed(taken.len());
        next
    }

    #[inline(always)]
    fn expire_with(
        &mut self,
        now: Time,
        budget: &mut usize,
        mut due: impl FnMut(&mut Self, EntryIndex),
    ) -> Tick {
        if self.phase == Phase::Closed {
            return Tick::MAX;
        }
        let to = self.tick.tick_at(now);
        loop {
            match self.wheel.step(to, budget, true) {
                Step::Due(at) => {
                    self.wheel.look_ahead();
                    let deadline = self.tick.start_of(Tick(self.wheel.entries.get(at).deadline));
                    self.lateness.record_nanos(now.since_nanos(deadline));
                    due(self, at);
                }
                // The tick that the visit has reached: `Core::behind` measures from it.
                Step::Paused => return self.wheel.now().min(to),
                Step::Done => return self.wheel.next_visit().unwrap_or(Tick::MAX),
            }
        }
    }

    /// Returns the tick at which the shard currently wants to be visited.
    pub(crate) fn next_visit(&self) -> Tick {
        match self.phase {
            _ if self.wake_driver => Tick(0),
            // Its lists may lead to entries that are vacant or gone.
            Phase::Closed => Tick::MAX,
            _ => self.wheel.next_visit().unwrap_or(Tick::MAX),
        }
    }

    pub(crate) fn make_ready(&mut self, at: EntryIndex) {
        self.make_ready_in_line(at);
    }

    /// Makes a timer ready inside the ticker's loop, which calls this for every timer.
    #[inline(always)]
    fn make_ready_in_line(&mut self, at: EntryIndex) {
        let queue = self.queue_of(at);
        self.wheel.set_tag(at, self.tag(at).ready(true));
        self.put_on(queue, at);
    }

    #[inline]
    pub(crate) fn put_on(&mut self, queue: usize, at: EntryIndex) {
        if self.ready[queue].append(&mut self.wheel, at) {
            self.signal().ring(queue);
        }
    }

    /// Takes the first expired timer of a queue, at `now` if takes are measured, and gives it
    /// to `give`.
    ///
    /// `give` stores it where it is to stay. If it were returned, each function on the way to
    /// the worker would copy it (DESIGN.md, "Workers prefetch what they take next").
    #[inline]
    pub(crate) fn claim(&mut self, queue: usize, now: Option<Time>, give: impl FnOnce(Claimed<T>)) {
        let Some(at) = self.ready[queue].first_to_take(&self.wheel) else {
            return;
        };
        if !self.tag(at).ends_when_taken() {
            return self.claim_other(at, now, give);
        }
        let firing = self.plain_firing(at, false);
        self.note_start(firing.tick, now);
        self.note_leave(at);
        self.ready[queue].unlink(&mut self.wheel, at);
        give(Claimed { firing, payload: self.end_plain(at, CloseReason::Completed) });
    }

    /// Takes a timer that lends its payload or has a record. Not inlined, so that `give` is
    /// called once in each function, and is inlined there.
    #[inline(never)]
    fn claim_other(&mut self, at: EntryIndex, now: Option<Time>, give: impl FnOnce(Claimed<T>)) {
        self.unlink(at);
        match self.record_of(at) {
            Some(key) => self.take_recorded(at, key, now, give),
            None => self.take_task(at, now, give),
        }
    }

    /// Takes up to `most` expired timers of a queue, and appends their payloads. Stops at
    /// a timer that only lends its payload, and returns its firing. Takes are measured if
    /// the caller has read the clock.
    pub(crate) fn claim_many(
        &mut self,
        queue: usize,
        most: usize,
        now: Option<Time>,
        payloads: &mut Vec<T>,
    ) -> Option<Claimed<T>> {
        let full = payloads.len() + most;
        loop {
            self.take_plain_ones(queue, full - payloads.len(), now, payloads);
            if payloads.len() == full {
                return None;
            }
            let mut claimed = None;
            self.claim(queue, now, |it| claimed = Some(it));
            if claimed.as_ref()?.firing.lent {
                return claimed;
            }
            payloads.extend(claimed.map(|it| it.payload));
        }
    }

    /// Takes up to `most` timers from the front of a queue, as long as they are
    /// plain. Takes them off the list and counts them together. Takes none if
    /// timers behind the first were cancelled: the caller then takes one after
    /// the other until it has passed them.
    fn take_plain_ones(
        &mut self,
        queue: usize,
        most: usize,
        now: Option<Time>,
        payloads: &mut Vec<T>,
    ) {
        let hints = self.ready[queue].begin_taking(&self.wheel);
        // What stands behind the end of the ring's memory is left to the next round.
        let (next, _) = hints.as_slices();
        let before = payloads.len();
        for (n, &at) in next.iter().take(most).enumerate() {
            if let Some(&later) = next.get(n + AHEAD) {
                self.wheel.entries.prefetch(later);
            }
            if !self.tag(at).ends_when_taken() {
                break;
            }
            self.note_start(Tick(self.wheel.entries.get(at).deadline), now);
            self.note_leave(at);
            payloads.push(self.take_payload(at));
        }
        let taken = payloads.len() - before;
        self.ready[queue].cut(&mut self.wheel, hints, taken);
        self.count_completed(taken);
    }

    /// Makes the firing of a timer without a record.
    #[inline(always)]
    fn plain_firing(&self, at: EntryIndex, lent: bool) -> Delivery {
        let tick = Tick(self.wheel.entries.get(at).deadline);
        let deadline = self.tick.start_of(tick);
        Delivery {
            id: self.wheel.id(at),
            tick,
            deadline,
            requested: deadline,
            number: 1,
            queue: self.tag(at).queue() as u32,
            outcome: CloseReason::Completed,
            lent,
            name: None,
        }
    }

    fn take_recorded(
        &mut self,
        at: EntryIndex,
        key: usize,
        now: Option<Time>,
        give: impl FnOnce(Claimed<T>),
    ) {
        let tick = Tick(self.wheel.entries.get(at).deadline);
        let ended = match self.records[key].state {
            State::Ended { reason, .. } => Some(reason),
            _ => None,
        };
        if ended.is_none() {
            self.note_start(tick, now);
            self.records[key].deliver();
        }
        let record = &mut self.records[key];
        record.taken = now;
        let lent = record.is_lent_out();
        let deadline = self.tick.start_of(tick);
        let is_exact = record.is_repeating() || !record.timer.tolerance.is_zero();
        let firing = Delivery {
            id: self.wheel.id(at),
            tick,
            deadline,
            requested: if is_exact { record.requested } else { deadline },
            number: record.number,
            queue: record.timer.queue as u32,
            outcome: ended.unwrap_or(CloseReason::Completed),
            lent,
            name: record.timer.name.clone().map(Box::new),
        };
        let payload = record.payload.take();
        if lent {
            self.lent += 1;
            self.wheel.entries.set_apart(at);
            if ended.is_none() {
                self.enter(key, State::LENT);
            }
        } else {
            self.end_recorded(at, key, CloseReason::Completed, tick);
        }
        give(Claimed { firing, payload: payload.expect("a waiting timer has its payload") });
    }

    /// Lends a task without a record that has left its ready list, at `now` if takes are
    /// measured.
    fn take_task(&mut self, at: EntryIndex, now: Option<Time>, give: impl FnOnce(Claimed<T>)) {
        debug_assert!(self.tag(at).has_payload());
        let firing = self.plain_firing(at, true);
        let body = std::mem::replace(self.wheel.entries.payload_mut(at), Body::lent(now));
        self.wheel.set_tag(at, self.tag(at).lent());
        self.wheel.entries.set_apart(at);
        self.lent += 1;
        self.note_start(firing.tick, now);
        // SAFETY: the tag said that the body is a payload.
        let payload = unsafe { body.into_payload() };
        give(Claimed { firing, payload });
    }

    /// Records how late a worker takes a timer that was due at `due`, if takes
    /// are measured.
    #[inline]
    fn note_start(&mut self, due: Tick, now: Option<Time>) {
        if let Some(now) = now {
            let late = now.since_nanos(self.tick.start_of(due));
            self.measured.get_or_insert_default().lateness_at_start.record_nanos(late);
        }
    }

    /// Takes a ready task, from this queue on, or an unread report, which no thread will request
    /// from now on, and returns its payload.
    pub(crate) fn take_leftover(&mut self, queue: &mut usize) -> Option<Option<T>> {
        while *queue < self.reports() {
            let mut task = None;
            self.claim(*queue, None, |it| task = Some(it));
            if let Some(task) = task {
                self.return_firing(task.firing.id, None, Outcome::Kept, Time::START);
                return Some(Some(task.payload));
            }
            *queue += 1;
        }
        Some(self.claim_report()?.payload)
    }
}
