//! The passage of time: from one occupied slot's turn to the next, without visiting the
//! empty ticks between them.
//!
//! A *pass* is the way to a tick. It begins with the timers that are due already, and then
//! gives each slot its turn, up to that tick. A slot of level 0 is fired. An outer one is
//! *cascaded*: its timers are linked again, further inward, and those that are due at its first
//! tick are due now. What becomes overdue on the way is left to the next pass, so a timer that
//! always re-arms itself for now holds up nobody.
//!
//! All calls loop around [`Wheel::step`], which touches a bounded number of entries. It may
//! stop anywhere, because a tick whose turn has come moves as a whole onto a list of the
//! wheel's. What is left to do is then which of these lists are not empty, and which lists of
//! an outer slot are left to cascade:
//!
//! | list | of |
//! |---|---|
//! | `OVERDUE` | timers whose deadline had been reached when they were linked, for the next pass |
//! | `DUE` | timers whose tick has come |
//! | `IN_HEAP` | timers of a list that was out of order, which are being sorted |

use core::cmp::Reverse;

use super::Wheel;
use super::entries::{DUE, EntryIndex, IN_HEAP, OVERDUE, SORTING};
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
    pub fn id(&self) -> TimerId {
        self.id
    }
}

/// Whether [`Wheel::advance`], a [`Driver`](crate::Driver) or a
/// [`VirtualClock`](crate::VirtualClock) reached the requested tick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "when more is due, `advance` wants to be called again"]
pub enum Advance {
    /// All timers that were due when the pass began, with its first call, have fired, and so have
    /// those whose tick came during it. Timers that have become overdue since it began, also
    /// between two of its calls, wait for the next call; [`Wheel::next_wakeup`] then returns now.
    /// The wheel's clock stands at the requested tick, or further if it stood there.
    Done,
    /// The budget is used up: call again.
    More,
    /// The engine is shut down and delivers no more timers. The loop that drives it
    /// may end. A [`Wheel`] never returns this.
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
    /// A call with another `to` begins another pass, and takes that timer. So don't put a loop into
    /// a loop to another tick, or both may take turns forever. Put it into an
    /// [`advance`](Wheel::advance), which ends.
    ///
    /// # Cost
    /// Constant, but for the timers that were postponed or share an outer slot with the next one:
    /// these are filed anew first. [`advance`](Wheel::advance) has a budget for that.
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
    pub fn pop_due(&mut self, to: Tick) -> Option<Expired<T>> {
        if self.idle_to(to) { None } else { self.pop_next(to) }
    }

    /// Takes the next due timer, as [`Wheel::pop_due`] does, if there may be one. The most
    /// common case calls nothing, so it saves no registers.
    #[inline(never)]
    fn pop_next(&mut self, to: Tick) -> Option<Expired<T>> {
        let first = self.entries.links(DUE).next;
        let is_plain = self.is_passing_to(to.0) && !self.is_sorting && self.cascading.1 == 0;
        let is_timer = first != DUE && is_plain && self.len() > 1;
        if !is_timer || !self.is_due(first) || self.entries.is_moved(first) {
            return self.pop_slowly(to);
        }
        self.entries.unlink(first);
        Some(Expired {
            id: TimerId::new(self.number, self.entries.get(first).stamp.sequence(), first.index()),
            deadline: self.now(),
            payload: self.remove(first),
        })
    }

    #[inline(never)]
    fn pop_slowly(&mut self, to: Tick) -> Option<Expired<T>> {
        let Step::Due(entry) = self.step(to, &mut { usize::MAX }, true) else { return None };
        Some(self.take_expired(entry))
    }

    /// Advances the clock to `to` and calls `fire` with every timer due by then, in
    /// order. `fire` may schedule, reschedule and cancel timers on the wheel that
    /// is passed to it. A timer that it adds with a deadline after now and of at most `to`
    /// fires in the same pass, one that is overdue in the next.
    ///
    /// `budget` bounds the number of entries that one call touches, including
    /// those that are only re-filed. If work is left then, the call returns
    /// [`Advance::More`], and the next call continues where this one stopped.
    ///
    /// A call of `advance` or [`Wheel::pop_due`] from within `fire` takes timers out, too,
    /// and may move the clock beyond `to`. The outer call then ends at the tick that the inner
    /// one has reached. What has become overdue meanwhile is left to the next call.
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
        if self.idle_to(to) { Advance::Done } else { self.fire_due(to, budget, fire) }
    }

    /// Does so if there may be work. The most common case calls nothing, as in [`Wheel::pop_due`].
    #[inline(never)]
    fn fire_due(
        &mut self,
        to: Tick,
        mut budget: usize,
        mut fire: impl FnMut(&mut Wheel<T>, Expired<T>),
    ) -> Advance {
        let mut is_new = true;
        loop {
            match self.step(to, &mut budget, is_new) {
                Step::Due(entry) => {
                    let expired = self.take_expired(entry);
                    fire(self, expired);
                    // A pass within `fire` may have ended this one, which then goes on
                    // without what has become overdue since.
                    is_new = false;
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
    /// Takes constant time and does not allocate, unless another timer has taken the entry
    /// since the pop, or the wheel has given it back. The timer then
    /// gets another one. Until it leaves the wheel, it takes some forty bytes more, and
    /// finding it takes a look-up in a sorted map.
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
        let entry = self.entries.put_back(id, deadline.0, expired.payload);
        self.link(entry);
        Ok(())
    }

    #[inline(always)]
    fn take_expired(&mut self, entry: EntryIndex) -> Expired<T> {
        debug_assert!(self.is_due(entry));
        let id = self.id(entry);
        self.entries.forget_if_moved(entry);
        let expired = Expired { id, deadline: self.now(), payload: self.remove(entry) };
        drop(self.give_back());
        expired
    }

    /// If there is no work until `to`, moves the clock there and returns `true`.
    pub(crate) fn idle_to(&mut self, to: Tick) -> bool {
        let is_idle = self.slots.now <= to.0 && to.0 < self.slots.next;
        if is_idle {
            self.slots.now = to.0;
        }
        is_idle
    }

    /// Continues towards `to` until a timer is due, `budget` entries have been
    /// touched, or `to` is reached with no work left. Unless the call is new, it leaves what has
    /// become overdue to a later one, even if it begins a pass.
    #[inline(always)]
    pub(crate) fn step(&mut self, to: Tick, budget: &mut usize, is_new: bool) -> Step {
        let to = to.0.max(self.slots.now);
        if !self.is_passing_to(to) {
            // A pass to another tick ends here, and what it leaves is due now.
            if is_new && !self.entries.is_empty(OVERDUE) {
                self.is_sorting |= self.take_unsorted(OVERDUE) || self.is_firing();
                self.entries.move_all(OVERDUE, DUE);
            }
            self.pass = (self.pass.0 + 1, to);
            self.slots.next = 0;
        }
        loop {
            if self.cascading.1 != 0 && !self.cascade(budget) {
                return Step::Paused;
            }
            while let Some(first) = self.entries.first_of(DUE) {
                if *budget == 0 {
                    return Step::Paused;
                }
                *budget -= 1;
                self.entries.unlink(first);
                if self.is_due(first) && !self.is_sorting {
                    return Step::Due(first);
                }
                self.sort_or_link(first);
            }
            if let Some(step) = self.take_turn(to, budget) {
                return step;
            }
        }
    }

    /// Returns whether a pass to this tick is under way.
    #[inline(always)]
    fn is_passing_to(&self, to: u64) -> bool {
        self.pass.1 == to && self.ended.0 != self.pass.0
    }

    /// Takes the next timer that was sorted, if any is left, or else gives the next slot its
    /// turn, or ends the pass.
    #[inline(always)]
    fn take_turn(&mut self, to: u64, budget: &mut usize) -> Option<Step> {
        if self.is_sorting {
            let step = self.next_sorted(budget);
            if step.is_some() {
                return step;
            }
        }
        let turn = self.slots.next_turn();
        // Nothing is due at the end of time: see `Wheel::reschedule`.
        if turn.start > to || turn.start == Tick::MAX.0 {
            (self.slots.now, self.slots.known) = (to, turn);
            self.ended = (self.pass.0, to);
            if self.entries.is_empty(OVERDUE) {
                self.slots.next = turn.start;
            }
            return Some(Step::Done);
        } else if *budget == 0 {
            return Some(Step::Paused);
        }
        self.slots.now = turn.start;
        self.slots.vacate(turn.list, turn.lists);
        if let Some(sole) = self.sole_of(turn) {
            *budget -= 1;
            self.entries.set_apart(turn.list);
            let deadline = self.deadline_of(sole);
            if deadline.0 > turn.last.min(to) || deadline == Tick::MAX {
                self.link(sole);
                return None;
            }
            self.slots.now = deadline.0;
            return Some(Step::Due(sole));
        }
        if turn.level == 0 || turn.level as usize == self.geometry().levels() {
            // Those beyond all levels that are due later are linked again like postponed ones.
            self.is_sorting |= self.take_unsorted(turn.list);
            self.ahead = self.entries.links(turn.list).prev;
            self.entries.move_all(turn.list, DUE);
        } else {
            self.cascading = (turn.list, turn.lists >> turn.lists.trailing_zeros());
        }
        None
    }

    /// Returns the only timer of a slot. If it is due within the slot, no other timer of the wheel
    /// is due before the slot's end.
    #[inline(always)]
    fn sole_of(&self, turn: Turn) -> Option<EntryIndex> {
        if turn.lists.is_power_of_two() { self.entries.sole_of(turn.list) } else { None }
    }

    /// Returns the tick at which a shard wants to be visited: that of [`Wheel::next_wakeup`] or,
    /// if the next slot has one timer, the tick at which that is due.
    pub(crate) fn next_visit(&self) -> Option<Tick> {
        let (wakeup, turn) = (self.next_wakeup()?, self.slots.next_turn());
        let sole = self.sole_of(turn).filter(|_| wakeup > self.now());
        let due = sole.map_or(Tick::MAX, |sole| self.deadline_of(sole));
        Some(if due.0 <= turn.last.min(Tick::MAX.0 - 1) { due } else { wakeup })
    }

    /// Links the timers of an outer slot again, further inward, one of each part in turn. None
    /// is linked to that slot, which the clock is in. Returns whether there was budget for all.
    #[inline(never)]
    fn cascade(&mut self, budget: &mut usize) -> bool {
        let (first, mut left) = self.cascading;
        let (mut round, mut budget_left) = (left, *budget);
        while left != 0 && budget_left > 0 {
            let list = first.nth(round.trailing_zeros());
            let entry = self.entries.links(list).next;
            let after = self.entries.links(entry).next;
            // It arrives in the cache until it is the turn of this part again. To store to
            // it would wait for that.
            self.entries.prefetch(after);
            self.entries.links_mut()(list).next = after;
            if after == list {
                self.entries.links_mut()(list).prev = list;
                left &= !(round & round.wrapping_neg());
            }
            // During a pause, all its timers may have been cancelled.
            if entry != list {
                budget_left -= 1;
                self.link_inward(entry);
            }
            round &= round - 1;
            round = if round == 0 { left } else { round };
        }
        *budget = budget_left;
        for list in first.picked(left) {
            self.entries.cut_before(list, self.entries.links(list).next);
            left &= !(u64::from(self.entries.is_empty(list)) << (list.index() - first.index()));
        }
        self.cascading.1 = left;
        self.is_sorting |= self.take_unsorted(DUE);
        left == 0
    }

    /// Returns the lists of an outer slot that are left to cascade.
    pub(super) fn cascading(&self) -> impl Iterator<Item = EntryIndex> + use<T> {
        self.cascading.0.picked(self.cascading.1)
    }

    /// Links a timer of a slot whose turn has come again, if it was postponed. Otherwise puts
    /// it into the heap, where it waits until all of its list are sorted.
    #[cold]
    fn sort_or_link(&mut self, entry: EntryIndex) {
        if !self.is_due(entry) {
            self.link(entry);
            return;
        }
        if self.heap.len() > 2 * self.len() + 64 {
            // Most have ended or moved since they were put there. The others are sorted again.
            self.heap.clear();
            self.entries.move_all(IN_HEAP, DUE);
        }
        self.entries.append(IN_HEAP, entry);
        let header = self.entries.get_mut(entry);
        header.mark(SORTING);
        self.heap.push(Reverse((header.deadline, header.stamp, entry)));
    }

    /// Takes the next timer out of the heap. Returns `None` if it holds no more.
    #[cold]
    fn next_sorted(&mut self, budget: &mut usize) -> Option<Step> {
        while !self.entries.is_empty(IN_HEAP) {
            if *budget == 0 {
                return Some(Step::Paused);
            }
            *budget -= 1;
            let Reverse((deadline, stamp, entry)) = self.heap.pop()?;
            // It may have ended or moved since it was put there.
            let found = self.entries.find((stamp.word(), entry.index().into()));
            let header = found.map(|entry| self.entries.get(entry));
            if header.is_some_and(|header| header.has(SORTING) && header.deadline == deadline) {
                self.entries.unlink(entry);
                return Some(Step::Due(entry));
            }
        }
        self.heap.clear();
        self.is_sorting = false;
        None
    }

    /// Loads the next entry on the way from the end of a tick's list to its beginning. A caller
    /// that does so for each due timer waits for two cold entries at a time, and no longer for
    /// any in the second half.
    #[inline(always)]
    pub(crate) fn look_ahead(&mut self) {
        self.ahead = self.entries.before(self.ahead);
    }

    /// Returns whether a list may be out of order, and forgets that. The timers beyond all
    /// levels may.
    fn take_unsorted(&mut self, list: EntryIndex) -> bool {
        let unsorted = self.slots.unsorted.get_mut(list.index() as usize);
        unsorted.is_none_or(core::mem::take)
    }

    /// Returns whether timers are waiting to be fired.
    pub(super) fn is_firing(&self) -> bool {
        !self.entries.is_empty(DUE) || !self.entries.is_empty(IN_HEAP)
    }

    /// Returns the tick of the next slot's turn, or now while a cascade is paused.
    pub(crate) fn next_slot(&self) -> Option<Tick> {
        if self.cascading.1 != 0 && !self.is_empty() {
            return Some(self.now());
        }
        let turn = self.slots.next_turn();
        (turn.list != Turn::NEVER.list).then_some(Tick(turn.start))
    }

    /// Returns the number of passes that have begun, for [`Wheel::has_passed`].
    pub(crate) fn passes(&self) -> u64 {
        self.pass.0
    }

    /// Returns whether a pass to `to` or further has begun and ended since `passes` was read:
    /// all timers that were due at `to` then have fired. Timers that have become overdue since
    /// then may remain.
    pub(crate) fn has_passed(&self, to: Tick, passes: u64) -> bool {
        self.ended.0 > passes && self.ended.1 >= to.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel::Geometry;

    #[test]
    fn a_part_whose_timers_were_cancelled_during_a_pause_is_not_left_to_cascade() {
        for budget in [0, 9] {
            let mut wheel = Wheel::new(64);
            // The first part of a slot, and the last one.
            let [_, second, third] = [65, 126, 127].map(|tick| wheel.schedule_at(Tick(tick), tick));
            assert_eq!(wheel.advance(Tick(64), 1, |_, _| panic!("fired")), Advance::More);
            assert_eq!([second, third].map(|id| wheel.cancel(id)), [Some(126), Some(127)]);
            assert_eq!(wheel.advance(Tick(64), budget, |_, _| panic!("fired")), Advance::Done);
            assert_eq!(wheel.next_wakeup(), Some(Tick(65)));
            wheel.assert_consistent();
        }
    }

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
    fn an_advance_from_within_fire_takes_the_outer_one_with_it() {
        let mut wheel = Wheel::new(64);
        for tick in [3, 5, 70, 900] {
            wheel.schedule_at(Tick(tick), tick);
        }
        let mut fired = Vec::new();
        let outer = wheel.advance(Tick(10), usize::MAX, |wheel, expired| {
            fired.push(expired.payload);
            if expired.payload == 3 {
                let inner = wheel.advance(Tick(100), usize::MAX, |_, e| fired.push(e.payload));
                assert_eq!(inner, Advance::Done);
            }
        });
        assert_eq!((outer, wheel.now(), wheel.len()), (Advance::Done, Tick(100), 1));
        assert_eq!(fired, [3, 5, 70]);
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
            assert_eq!(wheel.pop_due(Tick(u64::MAX)).unwrap().deadline, Tick(far + n));
        }
    }

    #[test]
    fn a_budget_counts_what_was_put_off_and_what_has_left_the_heap() {
        let mut none = |_: &mut Wheel<()>, _| panic!("fired");
        let mut wheel = Wheel::new(64);
        let ids: Vec<_> = (0..100).map(|_| wheel.schedule_at(Tick(5), ())).collect();
        assert!(ids.iter().all(|&id| wheel.reschedule(id, Tick(9_000))));
        let mut advance = || wheel.advance(Tick(10), 40, &mut none);
        let ends = [advance(), advance(), advance()];
        assert_eq!(ends, [Advance::More, Advance::More, Advance::Done]);

        let mut wheel = Wheel::starting_at(Tick(1_000), 64);
        wheel.schedule_at(Tick(900), ());
        let ids: Vec<_> = (0..50).map(|n| wheel.schedule_at(Tick(n), ())).collect();
        assert_eq!(wheel.advance(Tick(2_000), 51, &mut none), Advance::More);
        assert!(ids.iter().all(|&id| wheel.cancel(id).is_some()));
        assert_eq!(wheel.advance(Tick(2_000), 40, &mut none), Advance::More);
        assert!(wheel.pop_due(Tick(2_000)).is_some());
    }

    #[test]
    fn a_wheel_settles_while_overdue_timers_are_scheduled_all_the_time() {
        let mut wheel = Wheel::new(64);
        wheel.schedule_at(Tick(70), "due");
        wheel.schedule_at(Tick(0), "late");
        let (passes, mut fired) = (wheel.passes(), Vec::new());
        let mut steps = 0;
        while !wheel.has_passed(Tick(100), passes) {
            steps += 1;
            assert!(steps < 1_000, "it never does");
            if steps % 2 == 0 {
                wheel.schedule_at(Tick(0), "scheduled since");
            }
            if let Step::Due(entry) = wheel.step(Tick(100), &mut 1, true) {
                fired.push(wheel.remove(entry));
            }
        }
        assert_eq!(fired, ["late", "due"]);
        let (now, later) = (wheel.passes(), Tick(101));
        assert!(!wheel.has_passed(Tick(100), now) && !wheel.has_passed(later, passes));
    }

    #[test]
    fn a_slot_that_was_cascaded_has_its_turn_again() {
        let mut wheel = Wheel::new(64);
        for start in [64, 4_096 + 64] {
            assert!(wheel.pop_due(Tick(start - 1)).is_none());
            for tick in [start + 1, start + 2] {
                wheel.schedule_at(Tick(tick), ());
            }
            assert_eq!(wheel.next_wakeup(), Some(Tick(start)));
            assert!(wheel.pop_due(Tick(start + 2)).and(wheel.pop_due(Tick(start + 2))).is_some());
        }
    }

    #[test]
    fn a_wheel_has_not_passed_while_passes_to_two_ticks_take_turns() {
        let mut wheel = Wheel::new(64);
        [100; 9].iter().for_each(|&tick| _ = wheel.schedule_at(Tick(tick), ()));
        let (passes, mut fired) = (wheel.passes(), 0);
        for to in [101, 100, 102].into_iter().cycle() {
            match wheel.step(Tick(to), &mut 2, true) {
                Step::Due(entry) => wheel.remove(entry),
                Step::Paused => continue,
                Step::Done => break,
            }
            fired += 1;
            assert!(!wheel.has_passed(Tick(100), passes), "{fired}");
        }
        assert!(fired == 9 && wheel.has_passed(Tick(100), passes));
    }

    #[test]
    fn what_has_left_the_heap_does_not_pile_up_in_it() {
        let mut wheel = Wheel::starting_at(Tick(100), 64);
        let [c, b, a] = [99, 95, 90].map(|tick| wheel.schedule_at(Tick(tick), ()));
        for n in 0..1_000 {
            let paused = wheel.advance(Tick(200 + n), 1, |_, _| panic!("fired"));
            assert_eq!(paused, Advance::More);
            let (id, tick) = if n % 2 == 0 { (b, 95) } else { (a, 90) };
            assert!(wheel.reschedule(id, Tick(tick)));
            assert!(wheel.heap.len() <= 71, "{}", wheel.heap.len());
        }
        let fired = core::iter::from_fn(|| wheel.pop_due(Tick(9_999)).map(|e| e.id()));
        assert!(fired.eq([a, b, c]));
        wheel.shrink();
        assert_eq!(wheel.heap.capacity(), 0);
    }

    #[test]
    fn what_the_heap_knows_of_a_timer_that_has_ended_fires_no_other() {
        let mut wheel = Wheel::starting_at(Tick(100), 64);
        let [_, ended, _] = [95, 90, 90].map(|tick| wheel.schedule_at(Tick(tick), tick));
        assert_eq!(wheel.advance(Tick(200), 2, |_, _| panic!("fired")), Advance::More);
        assert_eq!(wheel.cancel(ended), Some(90));
        let youngest = wheel.schedule_at(Tick(90), 91);
        assert_eq!(u128::from(youngest) as u32, u128::from(ended) as u32, "the same entry");
        let fired = core::iter::from_fn(|| wheel.pop_due(Tick(201)).map(|e| e.payload));
        assert!(fired.eq([90, 91, 95]));
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
                assert_eq!((wheel.now(), wheel.next_wakeup()), (Tick(100), Some(Tick(100))));
                assert_eq!(fired.len(), 2 + pass, "budget {budget}");
            }
            assert_eq!(fired, ["again", "three", "seventy", "again", "again"]);
        }
    }

    #[test]
    fn a_timer_that_takes_what_is_due_and_re_arms_itself_for_now_holds_up_nothing_either() {
        let mut wheel = Wheel::new(64);
        for (tick, name) in [(3, "again"), (3, "taken"), (5, "other")] {
            wheel.schedule_at(Tick(tick), name);
        }
        let mut fired = Vec::new();
        for (to, number) in [(10, 2), (10, 3), (20, 4)] {
            let end = wheel.advance(Tick(to), usize::MAX, |wheel, expired| {
                fired.push(expired.payload);
                assert!(fired.len() <= number, "it never ends");
                if expired.payload == "again" {
                    let now = wheel.now();
                    while wheel.pop_due(now).is_some() {}
                    wheel.rearm(expired, now).unwrap();
                }
            });
            assert_eq!((end, wheel.now(), fired.len()), (Advance::Done, Tick(to), number));
        }
        assert_eq!(fired, ["again", "other", "again", "again"]);
    }

    #[test]
    fn a_budget_that_a_cascade_uses_up_leaves_the_timers_of_its_first_tick() {
        let mut wheel = Wheel::new(64);
        (0..4).for_each(|n| _ = wheel.schedule_at(Tick(64 + n % 2), n));
        let mut fired = Vec::new();
        let mut advance = |wheel: &mut Wheel<_>, budget| {
            wheel.advance(Tick(64), budget, |_, expired| fired.push(expired.payload))
        };
        assert_eq!(advance(&mut wheel, 4), Advance::More);
        assert_eq!(advance(&mut wheel, 4), Advance::Done);
        assert_eq!((fired, wheel.len()), (vec![0, 2], 2));
    }

    #[test]
    fn what_a_cascade_brings_to_the_present_tick_fires_before_younger_timers_that_are_late() {
        // The cascade pauses, or uses the budget up.
        for budget in [1, 2] {
            let mut wheel = Wheel::new(64);
            (0..2).for_each(|n| _ = wheel.schedule_at(Tick(64), n));
            let mut none = |_: &mut Wheel<_>, _| panic!("fired");
            assert_eq!(wheel.advance(Tick(64), budget, &mut none), Advance::More);
            wheel.schedule_at(Tick(64), 2);
            if budget == 1 {
                assert_eq!(wheel.advance(Tick(65), 0, &mut none), Advance::More);
            }
            let fired = core::iter::from_fn(|| wheel.pop_due(Tick(65)).map(|e| e.payload));
            assert!(fired.eq([0, 1, 2]), "{budget}");
        }
    }

    #[test]
    fn what_waits_to_be_sorted_does_not_fire_before_what_is_sorted() {
        let mut wheel = Wheel::starting_at(Tick(100), 64);
        [90, 95, 92].iter().for_each(|&tick| _ = wheel.schedule_at(Tick(tick), tick));
        assert_eq!(wheel.advance(Tick(200), 1, |_, _| panic!("fired")), Advance::More);
        let fired = core::iter::from_fn(|| wheel.pop_due(Tick(200)).map(|e| e.payload));
        assert!(fired.eq([90, 92, 95]));
    }

    #[test]
    fn a_list_in_order_is_not_sorted() {
        let mut wheel = Wheel::new(64);
        let old = wheel.schedule_at(Tick(70), "old");
        wheel.schedule_at(Tick(5), "young");
        assert!(wheel.reschedule(old, Tick(5)));
        for (tick, sorts) in [(5, true), (69, false)] {
            (0..2).for_each(|_| _ = wheel.schedule_at(Tick(69), "later"));
            assert!(wheel.pop_due(Tick(tick)).is_some());
            assert_eq!(wheel.is_sorting, sorts);
            while wheel.pop_due(Tick(tick)).is_some() {}
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
        ticks.iter().for_each(|&tick| _ = wheel.schedule_at(Tick(tick), ()));
        let fired = core::iter::from_fn(|| wheel.pop_due(Tick(200)).map(|e| e.deadline.0));
        assert!(fired.eq(ticks));
    }

    #[test]
    fn the_only_timer_of_a_slot_is_not_linked_again() {
        for tick in [64, 70, 127, 4_095] {
            let (mut wheel, mut fired) = (Wheel::new(64), 0);
            wheel.schedule_at(Tick(tick), ());
            assert_eq!(wheel.advance(Tick(tick), 1, |_, _| fired += 1), Advance::Done);
            assert_eq!(fired, 1, "{tick}");
        }
    }

    #[test]
    fn the_only_timer_of_a_slot_waits_for_an_older_one_at_the_tick_after_the_slot() {
        let mut wheel = Wheel::new(64);
        wheel.schedule_at(Tick(128), "old");
        let young = wheel.schedule_at(Tick(70), "young");
        assert!(wheel.reschedule(young, Tick(128)));
        let fired = core::iter::from_fn(|| wheel.pop_due(Tick(128)).map(|e| e.payload));
        assert!(fired.eq(["old", "young"]));
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
        // So does a pass on whose way there was nothing.
        wheel.schedule_at(Tick(40), 40);
        assert_eq!(wheel.advance(Tick(50), 0, |_, _| ()), Advance::More);
        assert!(wheel.pop_due(Tick(30)).is_none());
        wheel.schedule_at(Tick(25), 25);
        assert_eq!(wheel.pop_due(Tick(50)).map(|e| e.payload), Some(25));
    }

    #[test]
    fn a_capped_wheel_is_quiet_while_no_timer_is_due() {
        let geometry = Geometry::new(2).unwrap().max_levels(1).unwrap();
        let mut wheel = Wheel::with_geometry(Tick(0), geometry);
        wheel.schedule_at(Tick(3_600_001), "in an hour");
        assert_eq!(wheel.next_wakeup(), Some(Tick(3_600_000)));
        assert!(wheel.pop_due(Tick(3_599_999)).is_none());
        assert_eq!(wheel.passes(), 0);
        (0..2).for_each(|_| assert!(wheel.pop_due(Tick(3_600_000)).is_none()));
        assert_eq!((wheel.passes(), wheel.next_wakeup()), (1, Some(Tick(3_600_001))));
        assert!(wheel.pop_due(Tick(3_600_001)).is_some());
    }

    #[test]
    fn a_timer_that_was_cancelled_beyond_the_levels_wakes_nobody() {
        let geometry = Geometry::new(2).unwrap().max_levels(1).unwrap();
        let mut wheel = Wheel::with_geometry(Tick(0), geometry);
        let near = wheel.schedule_at(Tick(9), "near");
        assert_eq!(wheel.cancel(near), Some("near"));
        wheel.schedule_at(Tick(3_600_001), "in an hour");
        assert_eq!(wheel.next_wakeup(), Some(Tick(3_600_000)));
    }

    #[test]
    fn a_timer_at_the_end_of_time_never_fires() {
        let mut wheel = Wheel::new(64);
        let armed = wheel.schedule_at(Tick(u64::MAX - 1), "armed");
        let [disarmed, _] = [(); 2].map(|()| wheel.schedule_at(Tick::MAX, "disarmed"));
        assert_eq!(wheel.pop_due(Tick::MAX).map(|e| e.id()), Some(armed));
        assert!(wheel.pop_due(Tick::MAX).is_none());
        assert_eq!((wheel.now(), wheel.len()), (Tick::MAX, 2));
        let second = wheel.schedule_after(1, "at the end");
        assert!(wheel.pop_due(Tick::MAX).is_none());
        assert_eq!(wheel.deadline(second), Some(Tick::MAX));
        assert!(wheel.reschedule(disarmed, Tick(7)));
        assert_eq!(wheel.pop_due(Tick::MAX).map(|e| e.id()), Some(disarmed));
        wheel.assert_consistent();
    }
}
