//! Firing the next slot in few steps, if it is one of the innermost level.
//!
//! Most ticks of a sparse wheel have one timer or two. The general way to a timer,
//! in `wheel/advance.rs`, looks for overdue timers, for rotations to skip and for the
//! level of the next turn, which takes more instructions than the timer. Here, the
//! next turn is known to be that of a slot of level 0, and everything else goes the
//! general way.

use super::Wheel;
use super::entries::EntryIndex;
use super::levels::Turn;
use super::work::Work;

impl<T> Wheel<T> {
    /// Takes the next timer of the slot that is being fired. If none is, takes the first
    /// timer of the next slot, if the slot has its turn by `to`, is in level 0 and in
    /// order, and if the timer is due. Otherwise the clock has not moved, or the slot is
    /// being fired.
    #[inline(always)]
    pub(super) fn fire_next(&mut self, to: u64, budget: &mut usize) -> Option<EntryIndex> {
        debug_assert!(self.fronts.are_none() || self.work == Work::Fire);
        if self.fronts.are_none() {
            let turn = self.innermost_turn(to, *budget)?;
            if let Some((head, entry)) = self.sole_in(0, turn.slot, turn.open) {
                return self.fire_sole(&turn, head, entry, budget);
            }
            let first = self.levels.head(&self.entries, 0, turn.slot, 0)?;
            self.now = turn.start;
            self.next_turn = 0;
            self.note_fronts(first, turn.open);
        }
        self.fire_front(budget)
    }

    /// Returns the next slot, if it has its turn by `to`, is in level 0 and in order.
    #[inline(always)]
    fn innermost_turn(&self, to: u64, budget: usize) -> Option<Turn> {
        let turn = self.next_turn;
        // While a timer is overdue, the next turn is not known.
        let is_known = self.now < turn && turn <= to;
        if !is_known || self.work != Work::Nothing || budget == 0 {
            return None;
        }
        let turn = self.levels.innermost_turn(self.now, turn)?;
        let in_order = turn.open != 0 && !self.levels.is_unsorted(0, turn.slot);
        in_order.then_some(turn)
    }

    #[inline(always)]
    fn fire_sole(
        &mut self,
        turn: &Turn,
        head: EntryIndex,
        entry: EntryIndex,
        budget: &mut usize,
    ) -> Option<EntryIndex> {
        if self.entries.deadline(entry) > turn.start {
            return None;
        }
        *budget -= 1;
        self.now = turn.start;
        self.entries.cut_before(head, head);
        self.levels.close_sole_lane(turn);
        self.next_turn = self.levels.next_start_after(turn.start, turn.others);
        Some(entry)
    }
}
