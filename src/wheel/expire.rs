//! How time passes: from one occupied slot's turn to the next, never through
//! the empty ticks between them.
//!
//! Everything is a loop around [`Wheel::step`], which touches a bounded number
//! of entries and remembers where it stopped, so that whoever drives a wheel
//! can pause anywhere: a batch can end, a lock can be released, a callback can
//! schedule and cancel. What was begun at a tick is finished before the wheel
//! moves on.

use super::Wheel;
use super::block::At;
use super::geometry::Place;
use super::work::{Cascade, Work};
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

/// Whether [`Wheel::advance`], or a [`Driver`](crate::Driver), got where it was
/// asked to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "when more is due, `advance` wants to be called again"]
pub enum Advance {
    /// Everything that is due has fired; the wheel's clock stands at the tick
    /// that was asked for.
    Done,
    /// The budget was used up: call again.
    More,
    /// The engine was shut down and has nothing more to hand out: the loop that
    /// drives it may end. Only a [`Driver`](crate::Driver) answers this, never a
    /// [`Wheel`].
    Closed,
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
                    // There may be more of what is late.
                    None if *budget == 0 => None,
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
        // Not a slot that has become empty: it would be entered.
        self.quiet_until = 0;
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
        match self.upcoming() {
            Some(next) if next.start <= to.max(self.now) => {
                self.now = next.start.max(self.now);
                self.quiet_until = 0;
                match next.level {
                    0 => self.begin_slot(),
                    _ => {
                        self.work = Work::Cascade(Cascade {
                            place: next,
                            resumed: false,
                        });
                    }
                }
                true
            }
            next => {
                self.now = self.now.max(to);
                self.quiet_until = next.map_or(u64::MAX, |next| next.start);
                false
            }
        }
    }

    /// The slot whose turn comes next: mostly it is known, and it may have
    /// become empty since.
    fn upcoming(&self) -> Option<Place> {
        let turn = self.quiet_until;
        match self.now < turn && turn < u64::MAX {
            true => Some(self.levels.geometry.place(self.now, turn)),
            false => self.levels.next_occupied(self.now),
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
        self.quiet_until = 0;
        for &at in &timers {
            self.file_again(at);
        }
    }

    fn take_expired(&mut self, at: At) -> Expired<T> {
        Expired {
            id: self.id(at),
            deadline: self.deadline_of(at),
            payload: self.storage.remove(at),
        }
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
    pub(super) fn is_due(&self, at: At) -> bool {
        self.storage.entry(at).deadline <= self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_ends_among_what_is_late_leaves_the_clock_alone() {
        let mut wheel = Wheel::starting_at(Tick(9), 64);
        let postponed = wheel.schedule_at(Tick(1), "postponed");
        wheel.schedule_at(Tick(2), "late");
        assert!(wheel.reschedule(postponed, Tick(20)));
        let more = wheel.advance(Tick(30), 1, |_, _| unreachable!());
        assert_eq!((more, wheel.now()), (Advance::More, Tick(9)));
        let fired = wheel.pop_due(Tick(30)).map(|expired| expired.payload);
        assert_eq!(fired, Some("late"));
    }
}
