//! Walking through a shard's timers, a bounded number of cells at a time.

use core::ops::Range;
use std::collections::VecDeque;

use slab::Slab;

use crate::id::TimerId;
use crate::id::by_hash::ByHash;
use crate::shard::ready::Ready;
use crate::shard::record::{State, TimerRecord};
use crate::shard::{CELLS_PER_HOLD, CELLS_PER_TIMER, Phase, Shard};
use crate::stats::{InspectedShard, LiveTimer};
use crate::sync::IS_MODEL;
use crate::tick::Tick;
use crate::timer::Cancel;
use crate::wheel::{Cursor, EntryIndex, Level};

/// The number of cells that a found timer counts as. It limits how many timers are
/// found ahead, because a caller may stop reading early.
const CELLS_PER_FOUND: usize = CELLS_PER_HOLD / 256;

/// The maximum number of timers that one hold of the shard's lock cancels.
pub(crate) const CANCELS_PER_HOLD: usize = if IS_MODEL { 1 } else { 32 };

/// The number of entries that the search for the earliest deadline visits in one hold
/// of a shard's lock, with a cache miss each, before it walks through the cells instead.
pub(crate) const VISITS_PER_HOLD: usize = 512;

impl<T> Shard<T> {
    /// Passes a bounded number of cells, and calls `visit` with the timers in them. It returns
    /// how many more cells a timer counts as. Returns whether the walk is complete.
    #[inline]
    pub(crate) fn walk_some(
        &mut self,
        cursor: &mut Cursor,
        mut visit: impl FnMut(&mut Self, EntryIndex) -> usize,
    ) -> bool {
        let mut budget = CELLS_PER_HOLD;
        while let Some(at) = self.wheel.next_entry(cursor, &mut budget) {
            budget = budget.saturating_sub(visit(self, at));
        }
        self.wheel.is_at_end(*cursor)
    }

    /// Looks for live timers.
    pub(crate) fn find_live(
        &mut self,
        cursor: &mut Cursor,
        found: &mut VecDeque<LiveTimer>,
    ) -> bool {
        self.walk_some(cursor, |shard, at| {
            if !shard.is_live(at) {
                return 0;
            }
            found.push_back(shard.live_timer(at));
            CELLS_PER_FOUND
        })
    }

    /// Cancels the timers whose sequence number is at most `youngest`: if a walk cancelled
    /// later ones, too, it might never end.
    pub(crate) fn cancel_some(
        &mut self,
        cursor: &mut Cursor,
        youngest: u64,
        now: impl Fn() -> Tick,
        answers: &mut Vec<(TimerId, Cancel<T>)>,
    ) -> bool {
        self.walk_some(cursor, |shard, at| {
            if shard.wheel.entries.get(at).stamp.sequence() > youngest {
                return 0;
            }
            let id = shard.wheel.id(at);
            match shard.cancel_at(at, &now) {
                Cancel::Gone => 0,
                answer => {
                    answers.push((id, answer));
                    CELLS_PER_HOLD / CANCELS_PER_HOLD
                }
            }
        })
    }

    /// Returns the live timer with this id.
    pub(crate) fn find_one(&self, id: TimerId) -> Option<LiveTimer> {
        let at = self.wheel.find_own(id)?;
        self.is_live(at).then(|| self.live_timer(at))
    }

    fn live_timer(&self, at: EntryIndex) -> LiveTimer {
        let tick = self.due_tick_of(at);
        LiveTimer {
            id: self.wheel.id(at),
            name: self.name_of(at).cloned(),
            tick,
            deadline: self.tick.start_of(tick),
            queue: self.queue_of(at),
        }
    }

    /// Returns the earliest deadline in the wheel, or [`Tick::MAX`]. Returns `None` if that
    /// takes a walk.
    pub(crate) fn earliest_by_slots(&self) -> Option<Tick> {
        match self.phase {
            Phase::Closed => None,
            _ => self.wheel.earliest_within(VISITS_PER_HOLD),
        }
    }

    /// Looks for an earlier deadline.
    pub(crate) fn find_earliest(&mut self, cursor: &mut Cursor, earliest: &mut Tick) -> bool {
        self.walk_some(cursor, |shard, at| {
            if shard.is_in_wheel(at) {
                *earliest = shard.wheel.deadline_of(at).min(*earliest);
            }
            CELLS_PER_TIMER
        })
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
        let queues = &self.ready[..self.reports()];
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

    /// Returns the number of bytes of the shard's timers: entries, records, and hints for
    /// prefetching.
    pub(crate) fn bytes(&self) -> usize {
        let records = self.records.capacity() * size_of::<TimerRecord<T>>();
        let hints: usize = self.ready.iter().map(Ready::bytes).sum();
        self.wheel.entries.bytes() + records + hints
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
            for slot in slots {
                level.timers[slot] = self.wheel.count_in_slot(index, slot, most);
            }
        }
    }
}

// Giving memory back.

/// The number of vacant entries that one hold of the shard's lock passes. Each costs a cache
/// miss.
pub(crate) const TRIMMED_PER_HOLD: usize = 256;

impl<T> Shard<T> {
    /// Begins to give memory back: that of records and names, if there is no record, and that
    /// of the hints for prefetching and of sorting. The caller drops it after it has released the
    /// lock.
    pub(crate) fn begin_shrink(&mut self) -> impl Sized + use<T> {
        let hints: Vec<_> = self.ready.iter_mut().map(|ready| ready.take_hints()).collect();
        (self.take_idle_records(), hints, self.wheel.take_idle_heap())
    }

    /// Takes the memory of records and names, if there is no record.
    fn take_idle_records(&mut self) -> Option<(Slab<TimerRecord<T>>, ByHash)> {
        let are_idle = self.records.is_empty();
        are_idle.then(|| (std::mem::take(&mut self.records), std::mem::take(&mut self.index)))
    }

    /// Takes the memory of a shard that has become empty, if it has much, to be dropped after
    /// the lock is released.
    #[cold]
    pub(crate) fn give_back(&mut self) -> Option<impl Sized + use<T>> {
        let entries = self.wheel.give_back()?;
        Some((entries, self.begin_shrink()))
    }

    /// Passes a bounded number of the vacant entries behind the last timer. Returns whether
    /// their memory was given back.
    pub(crate) fn shrink_some(&mut self, most: usize) -> bool {
        // In a closed shard, they may still be on the lists that their timers were on, and are
        // taken off them like those on the list of vacant entries.
        self.wheel.entries.trim_some(&mut { most })
    }
}
