//! Walking through a shard's timers, a bounded number of cells at a time.

use core::ops::Range;
use std::collections::VecDeque;
// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc;

use crate::id::TimerId;
use crate::shard::record::{State, TimerRecord};
use crate::shard::{CELLS_PER_HOLD, CELLS_PER_TIMER, Phase, Shard};
use crate::stats::InspectedShard;
use crate::tick::Tick;
use crate::timer::LiveTimer;
use crate::wheel::{Cursor, EntryIndex, Level, OverBudget};

/// The number of cells that a found timer counts as. It limits how many timers are
/// found ahead, because a caller may stop reading early.
const CELLS_PER_FOUND: usize = CELLS_PER_HOLD / 256;

/// The number of entries that the search for the earliest deadline visits in one hold
/// of a shard's lock, with a cache miss each, before it walks through the cells instead.
pub(crate) const VISITS_PER_HOLD: usize = 512;

impl<T> Shard<T> {
    /// Looks for live timers in a bounded number of cells. Returns whether the walk is
    /// complete.
    pub(crate) fn find_live(&self, cursor: &mut Cursor, found: &mut VecDeque<LiveTimer>) -> bool {
        let mut budget = CELLS_PER_HOLD;
        while let Some(at) = self.wheel.next_entry(cursor, &mut budget) {
            if self.is_live(at) {
                budget = budget.saturating_sub(CELLS_PER_FOUND);
                found.push_back(self.live_timer(at));
            }
        }
        self.wheel.is_at_end(*cursor)
    }

    /// Returns the live timer with this id.
    pub(crate) fn find_one(&self, id: TimerId) -> Option<LiveTimer> {
        let at = self.wheel.find_own(id)?;
        self.is_live(at).then(|| self.live_timer(at))
    }

    fn live_timer(&self, at: EntryIndex) -> LiveTimer {
        LiveTimer {
            id: self.wheel.id(at),
            name: self.name_of(at),
            tick: self.wheel.deadline_of(at),
            deadline: self.due_time_of(at),
            queue: self.queue_of(at),
        }
    }

    /// Whether the timer with this id exists and has this name.
    pub(crate) fn has_name(&self, id: TimerId, name: &str) -> bool {
        let key = self.wheel.find_own(id).and_then(|at| self.record_of(at));
        key.is_some_and(|key| self.records[key].name.as_deref() == Some(name))
    }

    fn name_of(&self, at: EntryIndex) -> Option<Arc<str>> {
        self.records[self.record_of(at)?].name.clone()
    }

    pub(crate) fn earliest_by_slots(&self) -> Result<Option<Tick>, OverBudget> {
        match self.phase {
            Phase::Closed => Err(OverBudget),
            _ => self.wheel.earliest_within(VISITS_PER_HOLD),
        }
    }

    /// Looks for an earlier deadline in a bounded number of cells. Returns whether the
    /// walk is complete.
    pub(crate) fn find_earliest(&self, cursor: &mut Cursor, earliest: &mut Option<Tick>) -> bool {
        let mut budget = CELLS_PER_HOLD;
        while let Some(at) = self.wheel.next_entry(cursor, &mut budget) {
            budget = budget.saturating_sub(CELLS_PER_TIMER);
            if self.is_in_wheel(at) {
                let deadline = self.wheel.deadline_of(at);
                *earliest = earliest.iter().copied().chain([deadline]).min();
            }
        }
        self.wheel.is_at_end(*cursor)
    }

    /// Whether a timer is waiting for its deadline.
    fn is_in_wheel(&self, at: EntryIndex) -> bool {
        let waits = |key: usize| self.records[key].state == State::Waiting;
        let tag = self.tag(at);
        !tag.is_ready() && !tag.is_lent() && self.record_of(at).is_none_or(waits)
    }
}

impl<T> Shard<T> {
    /// Returns everything but the counts of slots and the next wake-up.
    pub(crate) fn inspect(&self) -> InspectedShard {
        // The last list is that of the reports.
        let queues = &self.ready[..self.ready.len() - 1];
        InspectedShard {
            ledger: self.ledger(),
            queued: queues.iter().map(|ready| ready.len()).collect(),
            next_wakeup: None,
            reached: self.wheel.now(),
            levels: match self.phase {
                Phase::Closed => Vec::new(),
                _ => self.wheel.uncounted_levels(),
            },
        }
    }

    /// Returns the number of bytes of the shard's timers: entries and records.
    pub(crate) fn bytes(&self) -> usize {
        let records = self.records.capacity() * size_of::<TimerRecord<T>>();
        self.wheel.bytes() + records
    }

    /// Counts the timers in some slots of a level, each up to `most`. Leaves the counts
    /// of a closed shard, whose lists are no longer maintained.
    pub(crate) fn count_in_slots(
        &self,
        index: usize,
        level: &mut Level,
        slots: Range<usize>,
        most: usize,
    ) {
        if self.phase != Phase::Closed {
            let counts = &mut level.timers;
            self.wheel.count_in_slots(index, slots, most, counts);
        }
    }
}
