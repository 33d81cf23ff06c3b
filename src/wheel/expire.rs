//! How time passes: from one occupied slot's turn to the next, never through
//! the empty ticks between them.
//!
//! Everything is a loop around [`Wheel::step`], which touches a bounded number
//! of entries and remembers where it stopped, so that whoever drives a wheel
//! can pause anywhere: a batch can end, a lock can be released, a callback can
//! schedule and cancel. What was begun at a tick is finished before the wheel
//! moves on.

use core::cmp::Ordering;

use super::geometry::Place;
use super::storage::At;
use super::{SORTING, Wheel};
use crate::id::TimerId;
use crate::tick::Tick;

/// A timer that left the wheel because its deadline was reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Expired<T> {
    /// The timer's id, stale from now on.
    pub id: TimerId,
    /// When it was due.
    pub deadline: Tick,
    /// What was scheduled.
    pub payload: T,
}

/// Whether [`Wheel::advance`] got where it was asked to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "when more is due, `advance` wants to be called again"]
pub enum Advance {
    /// Everything that is due has fired; the wheel's clock stands at the tick
    /// that was asked for.
    Done,
    /// The budget was used up: call again.
    More,
}

/// One bounded step of the wheel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// This timer is due, and was taken off its list.
    Due(At),
    /// Nothing more is due.
    Done,
    /// The budget is used up.
    Paused,
}

/// What the wheel is in the middle of at its current tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    Nothing,
    /// Re-filing an outer slot; what is left of it is still on its lists.
    Cascade(Cascade),
    /// Firing the current slot of level 0.
    Drain,
    /// Putting an unsorted slot in order, then firing it.
    Sort,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cascade {
    place: Place,
    /// Whether it was paused: then younger timers may have been filed inward
    /// before the older ones that are still to come.
    resumed: bool,
}

/// An entry of an unsorted slot. The greatest is the one to fire first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InOrder {
    sequence: u64,
    at: At,
}

impl Ord for InOrder {
    fn cmp(&self, other: &Self) -> Ordering {
        other.sequence.cmp(&self.sequence)
    }
}

impl PartialOrd for InOrder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

const LANES_AT_MOST: usize = 8;

impl<T> Wheel<T> {
    /// Takes the next timer with a deadline of at most `to` out of the wheel,
    /// moving the wheel's clock as far as that needs; with `None` the clock
    /// stands at `to`, and nothing that is due is left.
    ///
    /// Between two calls anything may be scheduled, moved or cancelled. A `to`
    /// earlier than [`Wheel::now`] counts as now: time never goes back.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// wheel.schedule_at(Tick(3), 3);
    /// wheel.schedule_at(Tick(1), 1);
    /// let mut fired = Vec::new();
    /// while let Some(expired) = wheel.pop_due(Tick(10)) {
    ///     if expired.payload == 1 {
    ///         wheel.schedule_at(Tick(2), 2); // served in the same pass
    ///     }
    ///     fired.push(expired.payload);
    /// }
    /// assert_eq!(fired, [1, 2, 3]);
    /// ```
    #[inline]
    pub fn pop_due(&mut self, to: Tick) -> Option<Expired<T>> {
        if self.idle_to(to.0) {
            return None;
        }
        let mut unlimited = usize::MAX;
        match self.step(to.0, &mut unlimited) {
            Step::Due(at) => Some(self.take_expired(at)),
            Step::Done | Step::Paused => None,
        }
    }

    /// Moves the wheel's clock to `to` and hands everything that is due by
    /// then to `fire`, in order; `fire` may schedule, move and cancel on the
    /// wheel that it is given. What it adds with a deadline of at most `to` is
    /// served in the same pass.
    ///
    /// `budget` bounds the entries touched by one call, counting those that
    /// are only re-filed: when it is used up the answer is
    /// [`Advance::More`], and the next call goes on where this one stopped.
    ///
    /// ```
    /// use tickwheel::wheel::Advance;
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// for n in 0..10 {
    ///     wheel.schedule_at(Tick(5), n);
    /// }
    /// let mut fired = 0;
    /// assert_eq!(wheel.advance(Tick(9), 7, |_, _| fired += 1), Advance::More);
    /// assert_eq!(fired, 7);
    /// assert_eq!(wheel.advance(Tick(9), 7, |_, _| fired += 1), Advance::Done);
    /// assert_eq!((fired, wheel.now()), (10, Tick(9)));
    /// ```
    pub fn advance(
        &mut self,
        to: Tick,
        budget: usize,
        mut fire: impl FnMut(&mut Wheel<T>, Expired<T>),
    ) -> Advance {
        if self.idle_to(to.0) {
            return Advance::Done;
        }
        let mut budget = budget;
        loop {
            match self.step(to.0, &mut budget) {
                Step::Due(at) => {
                    let expired = self.take_expired(at);
                    fire(self, expired);
                }
                Step::Done => return Advance::Done,
                Step::Paused => return Advance::More,
            }
        }
    }

    /// Moves the clock to `to` if nothing needs doing until then.
    #[inline]
    pub(crate) fn idle_to(&mut self, to: u64) -> bool {
        let quiet = to < self.quiet_until;
        if quiet {
            self.now = self.now.max(to);
        }
        quiet
    }

    /// Goes on towards `to` until a timer is due, `budget` entries have been
    /// touched, or `to` is reached with nothing left to do.
    pub(crate) fn step(&mut self, to: u64, budget: &mut usize) -> Step {
        loop {
            if *budget == 0 {
                return self.pause(to);
            }
            let due = match self.work {
                Work::Cascade(cascade) => {
                    self.cascade(cascade, budget);
                    None
                }
                Work::Drain => self.drain(budget),
                Work::Sort => self.sort(budget),
                Work::Nothing => match self.pop_late(budget) {
                    Some(at) => Some(at),
                    // The budget ended on one that was moved.
                    None if self.has_late() => None,
                    None if self.enter_next(to) => None,
                    None => return Step::Done,
                },
            };
            if let Some(at) = due {
                return Step::Due(at);
            }
        }
    }

    /// With no budget left: is there anything to come back for?
    fn pause(&mut self, to: u64) -> Step {
        let next = self.next_wakeup();
        if next.is_some_and(|next| next.0 <= to.max(self.now)) {
            return Step::Paused;
        }
        self.work = Work::Nothing;
        self.in_order.clear();
        self.enter_next(to);
        Step::Done
    }

    /// Moves the clock to the next occupied slot's turn, or to `to` if that
    /// comes first. Returns whether there is work at the new tick.
    fn enter_next(&mut self, to: u64) -> bool {
        debug_assert!(self.work == Work::Nothing && self.in_order.is_empty());
        if self.levels.is_turn_ahead(self.now, to) {
            self.leap(to);
        }
        match self.levels.next_occupied(self.now) {
            Some(next) if next.start <= to.max(self.now) => {
                self.now = next.start.max(self.now);
                self.quiet_until = 0;
                self.work = match next.level {
                    0 => self.drain_work(),
                    _ => Work::Cascade(Cascade {
                        place: next,
                        resumed: false,
                    }),
                };
                true
            }
            next => {
                self.now = self.now.max(to);
                self.quiet_until = next.map_or(u64::MAX, |next| next.start);
                false
            }
        }
    }

    /// Crosses the empty turns of a capped top level, which would otherwise
    /// re-file what is too far once in each of them.
    #[cold]
    fn leap(&mut self, to: u64) {
        let earliest = self.earliest_deadline();
        let quiet = earliest.map_or(to, |earliest| to.min(earliest.0 - 1));
        if !self.levels.is_turn_ahead(self.now, quiet) {
            return;
        }
        let top = self.levels.geometry.levels() - 1;
        let slots: Vec<Place> = self.levels.occupied_in_level(top, self.now).collect();
        let timers: Vec<At> = slots
            .iter()
            .flat_map(|place| self.in_slot(place.level, place.slot))
            .collect();
        for &at in &timers {
            self.unlink(at);
        }
        self.now = quiet;
        for &at in &timers {
            self.file_again(at);
        }
    }

    fn drain_work(&self) -> Work {
        let slot = self.levels.geometry.slot(0, self.now);
        match self.levels.is_unsorted(0, slot) {
            false => Work::Drain,
            true => Work::Sort,
        }
    }

    fn take_expired(&mut self, at: At) -> Expired<T> {
        Expired {
            id: self.id(at),
            deadline: self.deadline_of(at),
            payload: self.storage.remove(at),
        }
    }

    /// Re-files an outer slot inward, all its lanes side by side.
    fn cascade(&mut self, cascade: Cascade, budget: &mut usize) {
        let Place { level, slot, .. } = cascade.place;
        let check_all = cascade.resumed || self.levels.is_unsorted(level, slot);
        let mut lanes = self.lanes_of(level, slot);
        while lanes.open != 0 {
            for lane in 0..self.levels.lanes() {
                if lanes.open >> lane & 1 == 0 {
                    continue;
                }
                if *budget == 0 {
                    self.reattach(&lanes);
                    self.work = Work::Cascade(Cascade {
                        resumed: true,
                        ..cascade
                    });
                    return;
                }
                *budget -= 1;
                let at = lanes.cursor[lane];
                let next = self.storage.next(at);
                lanes.cursor[lane] = next;
                if next == lanes.head[lane] {
                    lanes.open &= !(1 << lane);
                    self.empty_list(next);
                } else {
                    self.storage.prefetch(next);
                }
                self.refile(at, level, check_all);
            }
        }
        self.levels.set_unsorted(level, slot, false);
        self.work = self.drain_work();
    }

    /// Files an entry of a slot whose turn has come, relative to now.
    #[inline]
    fn refile(&mut self, at: At, from_level: usize, check: bool) {
        let deadline = self.storage.entry(at).deadline;
        let place = if deadline > self.now {
            self.levels.geometry.place(self.now, deadline)
        } else {
            Place {
                level: 0,
                slot: self.levels.geometry.slot(0, self.now),
                start: self.now,
            }
        };
        // An entry that was moved beyond its slot may meet younger ones.
        if check || place.level >= from_level {
            self.levels.append_checked(&mut self.storage, place, at);
        } else {
            self.levels.append(&mut self.storage, place, at);
        }
    }

    fn lanes_of(&self, level: usize, slot: usize) -> Lanes {
        let mut lanes = Lanes {
            open: self.levels.occupied_lanes(level, slot),
            head: [self.late; LANES_AT_MOST],
            cursor: [self.late; LANES_AT_MOST],
        };
        for lane in 0..self.levels.lanes() {
            if let Some(head) = self.levels.head(&self.storage, level, slot, lane) {
                lanes.head[lane] = head;
                lanes.cursor[lane] = self.storage.next(head);
                self.storage.prefetch(lanes.cursor[lane]);
            }
        }
        lanes
    }

    /// Lets the lists of a slot begin where its cascade stopped.
    fn reattach(&mut self, lanes: &Lanes) {
        for lane in 0..self.levels.lanes() {
            if lanes.open >> lane & 1 == 1 {
                self.storage
                    .cut_before(lanes.head[lane], lanes.cursor[lane]);
            }
        }
    }

    fn empty_list(&mut self, list: At) {
        self.storage.cut_before(list, list);
        let coordinate = self.storage.entry(list).deadline;
        self.levels.list_is_empty(coordinate);
    }

    /// Takes the oldest timer out of the current slot.
    fn drain(&mut self, budget: &mut usize) -> Option<At> {
        while *budget > 0 {
            let Some(at) = self.oldest_in_current_slot() else {
                self.work = Work::Nothing;
                return None;
            };
            *budget -= 1;
            self.unlink(at);
            if self.is_due(at) {
                return Some(at);
            }
            self.file_again(at);
        }
        None
    }

    /// Each lane is in order, so the oldest is at the head of one of them.
    #[inline]
    fn oldest_in_current_slot(&self) -> Option<At> {
        let slot = self.levels.geometry.slot(0, self.now);
        let mut open = self.levels.occupied_lanes(0, slot);
        let mut oldest = None;
        let mut oldest_stamp = None;
        while open != 0 {
            let lane = open.trailing_zeros() as usize;
            open &= open - 1;
            let head = self.levels.head(&self.storage, 0, slot, lane)?;
            let at = self.storage.next(head);
            let stamp = self.storage.entry(at).stamp;
            if oldest_stamp.is_none_or(|oldest| stamp < oldest) {
                oldest = Some(at);
                oldest_stamp = Some(stamp);
            }
        }
        let at = oldest?;
        self.storage.prefetch(self.storage.next(at));
        Some(at)
    }

    /// First moves the whole slot into a heap, a bounded part at a time, then
    /// takes the oldest out of that. The entries stay on a list meanwhile, so
    /// that they can be cancelled and moved like any other.
    fn sort(&mut self, budget: &mut usize) -> Option<At> {
        while *budget > 0 {
            if let Some(at) = self.first_in_current_slot() {
                *budget -= 1;
                self.gather(at);
            } else if let Some(oldest) = self.in_order.pop() {
                *budget -= 1;
                if self.take_sorted(oldest) {
                    return Some(oldest.at);
                }
            } else {
                let slot = self.levels.geometry.slot(0, self.now);
                self.levels.set_unsorted(0, slot, false);
                self.work = Work::Nothing;
                return None;
            }
        }
        None
    }

    fn first_in_current_slot(&self) -> Option<At> {
        let slot = self.levels.geometry.slot(0, self.now);
        let open = self.levels.occupied_lanes(0, slot);
        let lane = (open != 0).then(|| open.trailing_zeros() as usize)?;
        let head = self.levels.head(&self.storage, 0, slot, lane)?;
        Some(self.storage.next(head))
    }

    fn gather(&mut self, at: At) {
        self.unlink(at);
        if !self.is_due(at) {
            return self.file_again(at);
        }
        self.storage.append(self.sorting, at);
        let entry = self.storage.entry_mut(at);
        entry.stamp = entry.stamp.with(SORTING);
        let sequence = entry.stamp.sequence();
        self.in_order.push(InOrder { sequence, at });
    }

    /// Takes a sorted entry off its list, unless it ended or moved meanwhile.
    fn take_sorted(&mut self, next: InOrder) -> bool {
        let entry = self.storage.entry_mut(next.at);
        let here = entry.stamp.sequence() == next.sequence && entry.stamp.tag() & SORTING != 0;
        if !here {
            return false;
        }
        entry.stamp = entry.stamp.without(SORTING);
        self.unlink(next.at);
        if !self.is_due(next.at) {
            self.file_again(next.at);
            return false;
        }
        true
    }

    fn pop_late(&mut self, budget: &mut usize) -> Option<At> {
        while *budget > 0 && self.has_late() {
            *budget -= 1;
            let at = self.storage.next(self.late);
            self.unlink(at);
            if self.is_due(at) {
                return Some(at);
            }
            self.file_again(at);
        }
        None
    }

    #[inline]
    fn is_due(&self, at: At) -> bool {
        self.storage.entry(at).deadline <= self.now
    }
}

/// Where a cascade stands in each lane of its slot.
struct Lanes {
    /// A bit for each lane that is not finished.
    open: u32,
    head: [At; LANES_AT_MOST],
    cursor: [At; LANES_AT_MOST],
}
