//! The passage of time: from one occupied slot's turn to the next, without visiting
//! the empty ticks between them.
//!
//! All calls loop around [`Wheel::step`], which touches a bounded number of entries
//! and remembers where it stopped. The owner of a wheel can therefore pause
//! anywhere: a batch can end, a lock can be released, a callback can schedule and
//! cancel. Work begun at a tick is finished before the clock moves on.

use super::Wheel;
use super::entries::EntryIndex;
use super::geometry::Place;
use super::work::{Cascade, Work};
use crate::id::TimerId;
use crate::tick::Tick;

/// A timer that left the wheel because its deadline was reached.
/// [`Wheel::rearm`] puts it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Expired<T> {
    /// Not public: a timer is put back under the id that it had.
    id: TimerId,
    /// The tick at which the timer was due.
    pub deadline: Tick,
    /// The timer's payload.
    pub payload: T,
}

impl<T> Expired<T> {
    /// Returns the timer's id, which is stale unless the timer is put back.
    #[must_use]
    #[inline]
    pub fn id(&self) -> TimerId {
        self.id
    }
}

/// Whether [`Wheel::advance`], or a [`Driver`](crate::Driver), reached the
/// requested tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "when more is due, `advance` wants to be called again"]
pub enum Advance {
    /// All due timers have fired. The wheel's clock stands at the requested tick.
    Done,
    /// The budget is used up: call again.
    More,
    /// The engine is shut down and delivers no more timers. The loop that drives it
    /// may end. Only a [`Driver`](crate::Driver) returns this, never a [`Wheel`].
    ShutDown,
}

/// The result of a bounded step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// This timer is due and is no longer on any list.
    Due(EntryIndex),
    /// No more timers are due.
    Done,
    /// The budget is used up.
    Paused,
}

/// What [`Wheel::go_on`] found.
enum Next {
    /// An overdue timer that is no longer on any list.
    Overdue(EntryIndex),
    /// A timer of a slot that is due and is no longer on any list.
    Due(EntryIndex),
    /// Work, which has begun.
    Work,
    /// No work until the requested tick.
    Done,
}

/// The number of overdue timers that fire in a row before the next round waits for
/// the next occupied slot's turn. A chain of callbacks, each scheduling the next
/// with no delay, fires at one tick if it is no longer than this.
const OVERDUE_IN_A_ROW: u32 = 16;

impl<T> Wheel<T> {
    /// Takes the next timer with a deadline of at most `to` out of the wheel, and
    /// advances the clock to that timer's tick. Returns `None` if no such timer is
    /// left; the clock then stands at `to`.
    ///
    /// Between calls, timers may be scheduled, rescheduled and cancelled. A `to`
    /// earlier than [`Wheel::now`] counts as now, because time never goes back.
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
        self.pop_next(to.0)
    }

    /// Takes the next due timer, as [`Wheel::pop_due`] does, if there may be one. Not
    /// inlined, because a loop asks most often while nothing is due, and then saves no
    /// registers.
    #[inline(never)]
    fn pop_next(&mut self, to: u64) -> Option<Expired<T>> {
        let mut unlimited = usize::MAX;
        match self.step(to, &mut unlimited) {
            Step::Due(entry) => Some(self.take_expired(entry)),
            Step::Done | Step::Paused => None,
        }
    }

    /// Advances the clock to `to` and calls `fire` with every timer due by then, in
    /// order. `fire` may schedule, reschedule and cancel timers on the wheel that
    /// is passed to it. A timer that it adds with a deadline of at most `to` fires
    /// in the same pass.
    ///
    /// `budget` bounds the number of entries that one call touches, including
    /// those that are only re-filed. When it is used up, the call returns
    /// [`Advance::More`], and the next call continues where this one stopped.
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
    #[inline]
    pub fn advance(
        &mut self,
        to: Tick,
        budget: usize,
        fire: impl FnMut(&mut Wheel<T>, Expired<T>),
    ) -> Advance {
        match self.idle_to(to.0) {
            true => Advance::Done,
            false => self.advance_with(to, budget, fire),
        }
    }

    /// Advances as [`Wheel::advance`] does, if there may be work.
    #[inline(never)]
    fn advance_with(
        &mut self,
        to: Tick,
        mut budget: usize,
        mut fire: impl FnMut(&mut Wheel<T>, Expired<T>),
    ) -> Advance {
        loop {
            match self.step(to.0, &mut budget) {
                Step::Due(entry) => {
                    let expired = self.take_expired(entry);
                    fire(self, expired);
                }
                Step::Done => return Advance::Done,
                Step::Paused => return Advance::More,
            }
        }
    }

    /// If there is no work until `to`, moves the clock there and returns `true`.
    #[inline]
    pub(crate) fn idle_to(&mut self, to: u64) -> bool {
        let quiet = to < self.next_turn;
        if quiet && self.now < to {
            self.now = to;
        }
        quiet
    }

    /// Continues towards `to` until a timer is due, `budget` entries have been
    /// touched, or `to` is reached with no work left.
    #[inline(always)]
    pub(crate) fn step(&mut self, to: u64, budget: &mut usize) -> Step {
        match self.fire_next(to, budget) {
            Some(entry) => self.due(entry),
            None => self.step_on(to, budget),
        }
    }

    /// Continues as [`Wheel::step`] does, whatever the unfinished work is.
    #[inline(never)]
    fn step_on(&mut self, to: u64, budget: &mut usize) -> Step {
        if self.idle_to(to) {
            return self.done();
        }
        loop {
            if *budget == 0 {
                return self.pause(to);
            }
            let next = match self.work {
                Work::Nothing => self.go_on(to, budget),
                _ => self.go_on_with_work(budget),
            };
            match next {
                Next::Due(entry) => return self.due(entry),
                Next::Overdue(entry) => return Step::Due(entry),
                Next::Done => return self.done(),
                // The work may have moved timers to the innermost level.
                Next::Work => {
                    if let Some(entry) = self.fire_next(to, budget) {
                        return self.due(entry);
                    }
                }
            }
        }
    }

    /// Continues a cascade, or a slot that is being fired or sorted.
    fn go_on_with_work(&mut self, budget: &mut usize) -> Next {
        let due = match self.work {
            Work::Cascade(cascade) => {
                self.cascade(cascade, budget);
                None
            }
            Work::Fire => self.fire_slot(budget),
            Work::Sort => self.sort(budget),
            Work::Nothing => None,
        };
        due.map_or(Next::Work, Next::Due)
    }

    /// Notes that a timer of a slot fires.
    #[inline]
    fn due(&mut self, entry: EntryIndex) -> Step {
        self.overdue_in_a_row = 0;
        Step::Due(entry)
    }

    /// Pauses when the budget is used up, or moves to `to` if no work is left.
    fn pause(&mut self, to: u64) -> Step {
        let next = self.next_wakeup();
        if next.is_some_and(|next| next.0 <= to.max(self.now)) {
            return Step::Paused;
        }
        self.work = Work::Nothing;
        self.fronts.forget();
        self.heap.clear();
        // A slot that has become empty must not be entered.
        self.next_turn = 0;
        self.enter_next(to);
        self.done()
    }

    #[inline]
    pub(super) fn has_overdue(&self) -> bool {
        !self.entries.is_empty_list(self.round) || !self.entries.is_empty_list(self.overdue)
    }

    pub(super) fn has_unfinished_work(&self) -> bool {
        self.has_overdue()
            || !self.entries.is_empty_list(self.sort_list)
            || matches!(self.work, Work::Cascade(_))
    }

    fn done(&mut self) -> Step {
        debug_assert!(!self.has_overdue());
        self.overdue_in_a_row = 0;
        Step::Done
    }

    /// Begins the next piece of work.
    ///
    /// Overdue timers and slots alternate. A timer that keeps rescheduling itself
    /// with no delay thus fires each time without holding up other timers.
    #[inline]
    fn go_on(&mut self, to: u64, budget: &mut usize) -> Next {
        // While a timer is overdue, the next turn is not known.
        if self.next_turn <= self.now {
            if let Some(entry) = self.pop_overdue(budget) {
                return Next::Overdue(entry);
            }
            let overdue_first = self.overdue_in_a_row < OVERDUE_IN_A_ROW;
            if overdue_first && self.begin_round() {
                return Next::Work;
            }
        }
        match self.enter_next(to) {
            Some(place) => self.begin_turn(place, budget).map_or(Next::Work, Next::Due),
            None if self.begin_round() => Next::Work,
            None => Next::Done,
        }
    }

    /// Begins the turn of a slot. Returns its timer if there is just one and it is
    /// due.
    #[inline]
    fn begin_turn(&mut self, place: Place, budget: &mut usize) -> Option<EntryIndex> {
        let Place { level, slot, .. } = place;
        let open = self.levels.occupied_lanes(level, slot);
        let sole = self.sole_in(level, slot, open);
        if let Some((head, entry)) = sole.filter(|_| !self.levels.is_unsorted(level, slot)) {
            *budget -= 1;
            return self.take_sole(level, head, entry);
        }
        match level {
            0 => self.begin_slot(slot, open),
            _ => self.cascade(
                Cascade {
                    place,
                    resumed: false,
                },
                budget,
            ),
        }
        None
    }

    /// Begins a round for the timers that are overdue now.
    fn begin_round(&mut self) -> bool {
        debug_assert!(self.entries.is_empty_list(self.round));
        if self.entries.is_empty_list(self.overdue) {
            return false;
        }
        core::mem::swap(&mut self.overdue, &mut self.round);
        self.rounds += 1;
        // There is work at the current tick.
        self.next_turn = 0;
        true
    }

    /// Returns the tick of the next slot's turn.
    pub(crate) fn next_slot(&self) -> Option<Tick> {
        let next = self.levels.next_occupied(self.now)?;
        Some(Tick(next.start.max(self.now)))
    }

    /// Returns the number of rounds that have begun, for [`Wheel::has_settled`].
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Returns whether the clock has reached `to` and all timers that were due
    /// there when `rounds` was read have fired. Timers that have become overdue
    /// since then may remain.
    pub(crate) fn has_settled(&self, to: u64, rounds: u64) -> bool {
        let since = self.rounds - rounds;
        let round_is_over = self.entries.is_empty_list(self.round);
        let over = since > 1 || since == 1 && round_is_over;
        over && self.work == Work::Nothing && self.now >= to
    }

    /// Moves the clock to the next occupied slot's turn, or to `to` if that
    /// comes first. Returns the slot if its turn has come.
    #[inline(always)]
    fn enter_next(&mut self, to: u64) -> Option<Place> {
        debug_assert!(self.work == Work::Nothing && self.heap.is_empty());
        if self.levels.is_rotation_ahead(self.now, to) {
            self.now = self.levels.leap(self.now, to);
            self.next_turn = 0;
        }
        let next = self.upcoming();
        match next {
            Some(next) if next.start <= to.max(self.now) => {
                self.now = next.start.max(self.now);
                self.next_turn = 0;
            }
            _ => {
                self.now = self.now.max(to);
                self.next_turn = next.map_or(u64::MAX, |next| next.start);
                return None;
            }
        }
        next
    }

    /// Returns the slot whose turn comes next. It is usually known from
    /// `next_turn`, and may have become empty since.
    #[inline]
    fn upcoming(&self) -> Option<Place> {
        let turn = self.next_turn;
        match self.now < turn && turn < u64::MAX {
            true => Some(self.levels.geometry.place(self.now, turn)),
            false => self.levels.next_occupied(self.now),
        }
    }

    #[inline]
    fn take_expired(&mut self, entry: EntryIndex) -> Expired<T> {
        debug_assert!(self.is_due(entry));
        Expired {
            id: self.id(entry),
            deadline: self.now(),
            payload: self.entries.remove(entry),
        }
    }

    /// Takes the first timer of the current round off its list.
    fn pop_overdue(&mut self, budget: &mut usize) -> Option<EntryIndex> {
        let entry = self.first_of(self.round)?;
        debug_assert!(self.is_due(entry), "a postponed timer leaves the list");
        *budget -= 1;
        self.overdue_in_a_row = self.overdue_in_a_row.saturating_add(1);
        self.unlink(entry);
        Some(entry)
    }

    #[inline]
    pub(super) fn is_due(&self, entry: EntryIndex) -> bool {
        self.entries.deadline(entry) <= self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel::Geometry;

    #[test]
    fn a_budget_that_ends_among_overdue_timers_leaves_the_clock_alone() {
        let mut wheel = Wheel::starting_at(Tick(9), 64);
        let postponed = wheel.schedule_at(Tick(1), "postponed");
        wheel.schedule_at(Tick(2), "late");
        assert!(wheel.reschedule(postponed, Tick(20)));
        wheel.schedule_at(Tick(2), "late, too");
        let mut fired = Vec::new();
        let more = wheel.advance(Tick(30), 1, |_, expired| fired.push(expired.payload));
        assert_eq!((more, wheel.now()), (Advance::More, Tick(9)));
        assert_eq!(fired, ["late"]);
        let pop = || wheel.pop_due(Tick(30)).map(|expired| expired.payload);
        let rest: Vec<_> = std::iter::from_fn(pop).collect();
        assert_eq!(rest, ["late, too", "postponed"]);
    }

    #[test]
    fn an_advance_without_a_budget_passes_a_slot_that_has_become_empty() {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(5), ());
        assert_eq!(wheel.cancel(id), Some(()));
        assert_eq!(wheel.advance(Tick(9), 0, |_, _| {}), Advance::Done);
        assert_eq!(wheel.now(), Tick(9));
    }

    /// Advances a wheel a hundred times while "again" keeps rescheduling itself
    /// with no delay. Returns the wheel and its firings by tick.
    fn beside_a_timer_that_reschedules_itself(
        budget: usize,
    ) -> (Wheel<&'static str>, Vec<(u64, &'static str)>) {
        let mut wheel = Wheel::new(64);
        wheel.schedule_at(Tick(3), "three");
        wheel.schedule_at(Tick(70), "seventy");
        wheel.schedule_at(Tick(0), "again");
        let mut fired = Vec::new();
        for _ in 0..100 {
            let more = wheel.advance(Tick(100), budget, |wheel, expired| {
                fired.push((expired.deadline.0, expired.payload));
                if expired.payload == "again" {
                    wheel.schedule_after(0, "again");
                }
            });
            assert_eq!(more, Advance::More);
        }
        (wheel, fired)
    }

    #[test]
    fn a_budget_counts_entries_that_are_linked_again_on_the_way_over_many_rotations() {
        let geometry = Geometry::new(8).unwrap().max_levels(1).unwrap();
        let mut wheel = Wheel::with_geometry(Tick(0), geometry);
        let far = 1_000_000;
        (0..1_000).for_each(|n| _ = wheel.schedule_at(Tick(far + n), ()));
        let mut calls = 1;
        let mut early = |_: &mut Wheel<()>, _| panic!("fired early");
        while wheel.advance(Tick(far - 1), 10, &mut early) == Advance::More {
            calls += 1;
        }
        // Entries are linked again in the first and the last rotations, but not in
        // the hundred thousand between them, in which no timer is due.
        assert!(calls <= 300, "{calls} calls");
        for n in 0..1_000 {
            assert_eq!(
                wheel.pop_due(Tick(u64::MAX)).unwrap().deadline,
                Tick(far + n)
            );
        }
    }

    #[test]
    fn a_wheel_settles_while_overdue_timers_are_scheduled_all_the_time() {
        let mut wheel = Wheel::new(64);
        wheel.schedule_at(Tick(70), "due");
        wheel.schedule_at(Tick(0), "late");
        let (rounds, mut fired) = (wheel.rounds(), Vec::new());
        let mut steps = 0;
        while !wheel.has_settled(100, rounds) {
            steps += 1;
            assert!(steps < 1_000, "it never does");
            if steps % 2 == 0 {
                wheel.schedule_at(Tick(0), "scheduled since");
            }
            if let Step::Due(entry) = wheel.step(100, &mut 1) {
                fired.push(wheel.entries.remove(entry));
            }
        }
        assert!(fired.contains(&"due") && fired.contains(&"late"));
    }

    #[test]
    fn a_timer_that_reschedules_itself_with_no_delay_holds_up_neither_time_nor_others() {
        for budget in [1, 2, 3, 50] {
            let (wheel, fired) = beside_a_timer_that_reschedules_itself(budget);
            assert_eq!(wheel.now(), Tick(100));
            let (again, others): (Vec<_>, Vec<_>) = fired
                .into_iter()
                .partition(|&(_, payload)| payload == "again");
            assert_eq!(others, [(3, "three"), (70, "seventy")], "budget {budget}");
            // It fires `often` times at each tick at which another timer fires,
            // whatever slots the wheel enters on the way. At the last tick it fires
            // as often as the budgets allow.
            let ticks = again.iter().map(|&(tick, _)| tick);
            let often = OVERDUE_IN_A_ROW as usize;
            let row = |tick| std::iter::repeat_n(tick, often);
            let expected = row(0).chain(row(3)).chain(row(70));
            assert!(
                ticks.clone().take(3 * often).eq(expected),
                "budget {budget}"
            );
            assert!(ticks.skip(3 * often).all(|tick| tick == 100));
        }
    }
}
