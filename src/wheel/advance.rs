//! The passage of time: from one occupied slot's turn to the next, without visiting the
//! empty ticks between them.
//!
//! A *pass* is the way to a tick. It begins with the timers that are due already, and then
//! gives each slot its turn, up to that tick. A slot of level 0 is fired. An outer one is
//! *cascaded*: its timers are linked again, further inward. What becomes overdue on the way is
//! left to the next pass, so a timer that always re-arms itself for now holds up nobody.
//!
//! All calls loop around [`Wheel::step`], which touches a bounded number of entries. It may
//! stop anywhere, because what is left to do hangs on lists:
//!
//! | list | of |
//! |---|---|
//! | `OVERDUE` | timers whose deadline had been reached when they were linked, for the next pass |
//! | `LATE` | timers that were due when the pass began |
//! | `IN_HEAP` | timers of a list that was out of order, which are being sorted |
//! | `REACHED` | timers that were beyond the reach of a capped wheel, being cascaded |
//!
//! Between two steps of a cascade, the clock stands one tick before the slot. A new timer for
//! the slot's time therefore queues up in the slot, behind those that were not yet moved.

use core::cmp::Reverse;

use super::Wheel;
use super::entries::{EntryIndex, IN_HEAP, LATE, NOTHING, OVERDUE, REACHED, SORTING, Sorted};
use super::slots::Turn;
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

impl<T> Wheel<T> {
    /// Takes the next timer with a deadline of at most `to` out of the wheel, and
    /// advances the clock to that timer's tick. Returns `None` if no such timer is
    /// left; the clock then stands at `to`.
    ///
    /// Between calls, timers may be scheduled, rescheduled and cancelled. A `to`
    /// earlier than [`Wheel::now`] counts as now, because time never goes back.
    ///
    /// A timer that becomes overdue between calls is left to the next pass: `None` is returned
    /// once before it fires. A loop in which a timer always re-arms itself for now thus ends.
    /// A call with another `to` begins another pass.
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
    /// is passed to it. A timer that it adds with a deadline after now and of at most `to`
    /// fires in the same pass, one that is overdue in the next.
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

    /// Puts an expired timer back into the wheel, under the same id. The timer is
    /// due at `deadline` or, if that tick has been reached, in the next pass: see
    /// [`Wheel::pop_due`].
    ///
    /// This makes a repeating timer: the period and the number of firings left are
    /// part of the payload, where they can be read and changed at any time. Between
    /// the pop and this call, the timer is not in the wheel, so that `cancel` returns
    /// `None`.
    ///
    /// Among the timers of its new tick, a re-armed timer keeps the place of its
    /// first scheduling, as a rescheduled one does.
    ///
    /// # Errors
    /// Returns `expired` if the timer is in the wheel (a clone of `expired` was put
    /// back) or belongs to another wheel.
    ///
    /// # Cost
    /// Takes constant time and does not allocate, unless a timer that was scheduled since the
    /// pop has taken the entry. The timer then gets another one. Until it leaves the wheel, it
    /// takes some forty bytes more, and finding it takes a look-up in a sorted map.
    ///
    /// # Example
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// struct Buff {
    ///     period: u64,
    ///     times: u32,
    /// }
    ///
    /// let mut wheel = Wheel::new(64);
    /// let id = wheel.schedule_at(Tick(10), Buff { period: 10, times: 4 });
    /// let mut ticks = Vec::new();
    /// while let Some(mut expired) = wheel.pop_due(Tick(100)) {
    ///     ticks.push(expired.deadline.0);
    ///     expired.payload.times -= 1;
    ///     if expired.payload.times > 0 {
    ///         let next = expired.deadline.after(expired.payload.period);
    ///         assert!(wheel.rearm(expired, next).is_ok());
    ///     }
    ///     if ticks.len() == 2 {
    ///         // Another period from the next firing on.
    ///         wheel.get_mut(id).unwrap().period = 7;
    ///     }
    /// }
    /// assert_eq!(ticks, [10, 20, 30, 37]);
    /// assert!(!wheel.contains(id));
    /// ```
    pub fn rearm(&mut self, expired: Expired<T>, deadline: Tick) -> Result<(), Expired<T>> {
        let id = expired.id();
        if !id.is_of(self.number) || self.find(id).is_some() {
            return Err(expired);
        }
        let entries = &mut self.entries;
        let entry = entries.put_back(id.index(), id.sequence(), deadline.0, expired.payload);
        self.link(entry);
        Ok(())
    }

    #[inline]
    fn take_expired(&mut self, entry: EntryIndex) -> Expired<T> {
        debug_assert!(self.is_due(entry));
        Expired {
            id: self.id(entry),
            deadline: self.now(),
            payload: self.remove(entry),
        }
    }

    /// If there is no work until `to`, moves the clock there and returns `true`.
    #[inline]
    pub(crate) fn idle_to(&mut self, to: u64) -> bool {
        let quiet = to < self.next.start;
        if quiet && self.now < to {
            self.now = to;
        }
        quiet
    }

    /// Continues towards `to` until a timer is due, `budget` entries have been
    /// touched, or `to` is reached with no work left.
    #[inline(always)]
    pub(crate) fn step(&mut self, to: u64, budget: &mut usize) -> Step {
        // The next timer of a list that is being fired, in the most common case. Outside a
        // pass, the list is empty.
        let list = self.firing;
        let first = self.entries.next(list);
        let is_plain = first != list && !self.entries.is_out_of_order(list);
        if is_plain && to == self.pass && *budget > 0 && self.is_due(first) {
            *budget -= 1;
            self.unlink(first);
            return Step::Due(first);
        }
        self.step_on(to, budget)
    }

    /// Continues as [`Wheel::step`] does, whatever is to be done.
    #[inline(never)]
    fn step_on(&mut self, to: u64, budget: &mut usize) -> Step {
        if self.idle_to(to) {
            return Step::Done;
        }
        let to = to.max(self.now);
        let mut known = self.next;
        self.begin_pass(to);
        loop {
            while let Some(first) = self.entries.first_of(self.firing) {
                if !spend(budget) {
                    return Step::Paused;
                }
                if let Some(entry) = self.fire(first) {
                    return Step::Due(entry);
                }
            }
            // A slot that was fired may get timers of its next rotation.
            self.firing = LATE;
            while let Some(&Reverse(least)) = self.heap.peek() {
                if self.entries.is_empty(IN_HEAP) {
                    self.heap.clear();
                    break;
                }
                if !spend(budget) {
                    return Step::Paused;
                }
                self.heap.pop();
                if let Some(entry) = self.take_sorted(least) {
                    return Step::Due(entry);
                }
            }
            let turn = self.turn_after(known);
            known = Turn::NOW;
            // Nothing is due at the end of time: see `Wheel::reschedule`.
            let last = to.min(Tick::MAX.0 - 1);
            if turn.start > last {
                return self.end_pass(to, turn);
            }
            // A cascade may have been paused whose other timers were cancelled.
            if *budget == 0 && !self.entries.is_empty(turn.list) {
                return Step::Paused;
            }
            if let Some(entry) = self.take_turn(turn, last, budget) {
                return Step::Due(entry);
            }
        }
    }

    /// Begins a pass to a tick, unless that has begun. A pass to another tick ends here, and
    /// the timers that it left are due now.
    #[inline]
    fn begin_pass(&mut self, to: u64) {
        if self.firing != NOTHING && self.pass == to {
            return;
        }
        if self.next == Turn::NOW {
            self.gather_due();
        }
        (self.pass, self.firing, self.next) = (to, LATE, Turn::NOW);
        self.passes += 1;
    }

    #[cold]
    fn gather_due(&mut self) {
        if let Some(present) = self.present_slot() {
            self.entries.move_all(present, LATE);
            self.slots.vacate(present);
        }
        self.entries.move_all(OVERDUE, LATE);
        if !self.heap.is_empty() && !self.entries.is_empty(LATE) {
            self.entries.mark_out_of_order(LATE, true);
        }
    }

    /// Returns the slot of the present tick if an unfinished pass has left timers there.
    fn present_slot(&self) -> Option<EntryIndex> {
        let is_unfinished = self.firing != NOTHING && self.cascading.is_none();
        let turn = is_unfinished.then(|| self.slots.next(self.now))?;
        (turn.start == self.now).then_some(turn.list)
    }

    fn end_pass(&mut self, to: u64, next: Turn) -> Step {
        self.firing = NOTHING;
        self.now = to;
        self.next = match self.entries.is_empty(OVERDUE) {
            true => next,
            false => Turn::NOW,
        };
        Step::Done
    }

    /// Takes the first timer off the list that is being fired. Returns it if it is the next
    /// to fire.
    fn fire(&mut self, first: EntryIndex) -> Option<EntryIndex> {
        let is_sorted = !self.entries.is_out_of_order(self.firing);
        self.unlink(first);
        if !self.is_due(first) {
            // It was postponed.
            self.link(first);
            return None;
        }
        if is_sorted {
            return Some(first);
        }
        self.entries.append(IN_HEAP, first);
        let header = self.entries.get_mut(first);
        let (deadline, sequence) = (header.deadline, header.stamp().sequence());
        header.mark(SORTING);
        self.heap.push(Reverse(Sorted {
            deadline,
            sequence,
            entry: first,
        }));
        None
    }

    /// Takes a timer that has left the heap off its list, unless it has ended or was
    /// rescheduled since it was put into the heap.
    fn take_sorted(&mut self, least: Sorted) -> Option<EntryIndex> {
        let index = least.entry.index().into();
        let entry = self.entries.find_unmoved(index, least.sequence)?;
        let header = self.entries.get_mut(entry);
        if !header.has(SORTING) || header.deadline != least.deadline {
            return None;
        }
        header.unmark(SORTING);
        self.unlink(entry);
        Some(entry)
    }

    /// Gives a slot its turn, or continues it. If the slot has a sole timer, which is due by
    /// `to`, returns the timer: no other is due before the end of that slot.
    fn take_turn(&mut self, turn: Turn, to: u64, budget: &mut usize) -> Option<EntryIndex> {
        let mut turn = turn;
        if turn.level == 0 {
            (self.now, self.firing) = (turn.start, turn.list);
            return None;
        } else if self.cascading.is_some() {
            // Some of its timers may have been moved inward.
        } else if self.slots.is_beyond(turn) {
            self.entries.move_all(turn.list, REACHED);
            self.slots.vacate(turn.list);
            self.slots.reach(turn);
            turn.list = REACHED;
        } else if let Some(sole) = self.entries.sole_of(turn.list) {
            let deadline = self.entries.get(sole).deadline;
            if deadline <= to.min(self.slots.last_of(turn)) {
                *budget -= 1;
                self.now = deadline;
                self.unlink(sole);
                return Some(sole);
            }
        }
        self.cascade(turn, budget);
        None
    }

    /// Links the timers of an outer slot again, further inward.
    fn cascade(&mut self, turn: Turn, budget: &mut usize) {
        let list = turn.list;
        if self.cascading.is_none() {
            self.landmarks.begin();
        }
        self.now = turn.start;
        let mut next = self.entries.next(list);
        while next != list && spend(budget) {
            let entry = next;
            self.landmarks.pass(&self.entries, list, entry);
            next = self.entries.next(entry);
            self.link_inward(entry);
        }
        self.entries.cut_before(list, next);
        self.cascading = None;
        if next == list {
            self.entries.clear_mark(list);
            self.slots.vacate(list);
            self.landmarks.end(list);
        } else {
            self.now -= 1;
            self.cascading = Some(turn);
        }
    }

    /// Returns whether a timer is due that is in no slot.
    #[inline]
    pub(super) fn has_due(&self) -> bool {
        let mut due = [OVERDUE, LATE, IN_HEAP].into_iter();
        self.next == Turn::NOW && due.any(|list| !self.entries.is_empty(list))
    }

    /// Returns the tick of the next slot's turn.
    pub(crate) fn next_slot(&self) -> Option<Tick> {
        let turn = self.turn_after(self.next);
        (turn != Turn::NEVER).then_some(Tick(turn.start))
    }

    /// Returns the next turn. It is `known`, unless that slot has become empty or is the one
    /// behind all levels, whose turn may have become later.
    #[inline]
    fn turn_after(&self, known: Turn) -> Turn {
        match self.cascading {
            Some(turn) => turn,
            None if self.slots.is_occupied(known.list) && !self.slots.is_beyond(known) => known,
            None => self.slots.next(self.now),
        }
    }

    /// Returns the number of passes that have begun, for [`Wheel::has_settled`].
    pub(crate) fn passes(&self) -> u64 {
        self.passes
    }

    /// Returns whether the clock has reached `to` and all timers that were due
    /// there when `passes` was read have fired. Timers that have become overdue
    /// since then may remain.
    pub(crate) fn has_settled(&self, to: u64, passes: u64) -> bool {
        let since = self.passes - passes;
        let is_over = since > 1 || since == 1 && self.firing == NOTHING;
        is_over && self.now >= to
    }
}

/// Takes one from a budget. Returns `false` if nothing is left of it.
#[inline]
fn spend(budget: &mut usize) -> bool {
    let has_one = *budget > 0;
    *budget -= usize::from(has_one);
    has_one
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
        let (passes, mut fired) = (wheel.passes(), Vec::new());
        let mut steps = 0;
        while !wheel.has_settled(100, passes) {
            steps += 1;
            assert!(steps < 1_000, "it never does");
            if steps % 2 == 0 {
                wheel.schedule_at(Tick(0), "scheduled since");
            }
            if let Step::Due(entry) = wheel.step(100, &mut 1) {
                fired.push(wheel.remove(entry));
            }
        }
        assert_eq!(fired, ["late", "due"]);
    }

    #[test]
    fn a_timer_that_re_arms_itself_for_now_holds_up_neither_time_nor_others() {
        for budget in [1, 2, 3, 50] {
            let mut wheel = Wheel::new(64);
            wheel.schedule_at(Tick(3), "three");
            wheel.schedule_at(Tick(70), "seventy");
            wheel.schedule_at(Tick(0), "again");
            let mut fired = Vec::new();
            for pass in 1..4 {
                let mut again = |wheel: &mut Wheel<_>, expired: Expired<&'static str>| {
                    fired.push(expired.payload);
                    if expired.payload == "again" {
                        let now = wheel.now();
                        assert_eq!(wheel.rearm(expired, now), Ok(()));
                    }
                };
                while wheel.advance(Tick(100), budget, &mut again) == Advance::More {}
                assert_eq!(
                    (wheel.now(), wheel.next_wakeup()),
                    (Tick(100), Some(Tick(100)))
                );
                assert_eq!(fired.len(), 2 + pass, "budget {budget}");
            }
            assert_eq!(fired, ["again", "three", "seventy", "again", "again"]);
        }
    }

    #[test]
    fn a_loop_around_pop_due_ends() {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(3), ());
        let (mut rounds, mut fired) = (0, 0);
        while rounds < 3 {
            while let Some(expired) = wheel.pop_due(Tick(5)) {
                fired += 1;
                let now = wheel.now();
                assert_eq!(wheel.rearm(expired, now), Ok(()));
            }
            rounds += 1;
            assert_eq!((fired, wheel.now()), (rounds, Tick(5)));
        }
        assert!(wheel.contains(id));
    }

    #[test]
    fn a_slot_is_fired_once_in_each_rotation() {
        let mut wheel = Wheel::new(64);
        let ticks = [5, 69, 70, 133];
        ticks
            .iter()
            .for_each(|&tick| _ = wheel.schedule_at(Tick(tick), ()));
        let fired = core::iter::from_fn(|| wheel.pop_due(Tick(200)).map(|e| e.deadline.0));
        assert!(fired.eq(ticks));
    }

    #[test]
    fn overdue_timers_fire_by_tick_and_then_by_age() {
        for cancels_another in [false, true] {
            let mut wheel = Wheel::starting_at(Tick(5), 64);
            let old = wheel.schedule_at(Tick(9), "old");
            if cancels_another {
                let another = wheel.schedule_at(Tick(1), "another");
                assert_eq!(wheel.cancel(another), Some("another"));
            }
            wheel.schedule_at(Tick(5), "five");
            wheel.schedule_at(Tick(3), "three");
            assert!(wheel.reschedule(old, Tick(3)));
            let fired = core::iter::from_fn(|| wheel.pop_due(Tick(5)).map(|e| e.payload));
            assert!(fired.eq(["old", "three", "five"]), "{cancels_another}");
        }
    }

    #[test]
    fn a_pass_to_another_tick_takes_what_is_overdue_by_now() {
        let mut wheel = Wheel::new(64);
        (0..9).for_each(|n| _ = wheel.schedule_at(Tick(5), n));
        let mut fired = Vec::new();
        let mut take = |wheel: &mut Wheel<_>, to| {
            wheel.advance(Tick(to), 3, |_, expired| fired.push(expired.payload))
        };
        assert_eq!(take(&mut wheel, 20), Advance::More);
        wheel.schedule_at(Tick(4), 100);
        wheel.schedule_at(Tick(5), 101);
        // The same pass leaves both alone; the next one takes them in their places.
        assert_eq!(take(&mut wheel, 20), Advance::More);
        while take(&mut wheel, 21) == Advance::More {}
        assert_eq!(fired, [0, 1, 2, 3, 4, 5, 100, 6, 7, 8, 101]);
    }

    #[test]
    fn a_capped_wheel_is_quiet_while_no_timer_is_due() {
        let geometry = Geometry::new(2).unwrap().max_levels(1).unwrap();
        let mut wheel = Wheel::with_geometry(Tick(0), geometry);
        wheel.schedule_at(Tick(3_600_001), "in an hour");
        assert_eq!(wheel.next_wakeup(), Some(Tick(3_600_000)));
        assert!(wheel.pop_due(Tick(3_599_999)).is_none());
        assert_eq!(wheel.passes(), 0);
        assert!(wheel.pop_due(Tick(3_600_000)).is_none());
        assert_eq!(wheel.next_wakeup(), Some(Tick(3_600_001)));
        assert!(wheel.pop_due(Tick(3_600_001)).is_some());
    }

    #[test]
    fn a_timer_at_the_end_of_time_never_fires() {
        let mut wheel = Wheel::new(64);
        let armed = wheel.schedule_at(Tick(u64::MAX - 1), "armed");
        let disarmed = wheel.schedule_at(Tick::MAX, "disarmed");
        assert_eq!(wheel.pop_due(Tick::MAX).map(|e| e.id()), Some(armed));
        assert!(wheel.pop_due(Tick::MAX).is_none());
        assert_eq!((wheel.now(), wheel.len()), (Tick::MAX, 1));
        let second = wheel.schedule_at(Tick::MAX, "at the end");
        assert!(wheel.pop_due(Tick::MAX).is_none());
        assert_eq!(wheel.deadline(second), Some(Tick::MAX));
        assert!(wheel.reschedule(disarmed, Tick(7)));
        assert_eq!(wheel.pop_due(Tick::MAX).map(|e| e.id()), Some(disarmed));
        wheel.assert_consistent();
    }
}
