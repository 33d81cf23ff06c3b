//! The earliest deadline of all shards.

use crate::hub::{Core, ShardCell, Walk};
use crate::rounding::NEVER;
use crate::tick::Tick;
use crate::timeline::Time;
use crate::wheel::{Cursor, OverBudget};

impl<T> Core<T> {
    /// Returns the earliest deadline of all unexpired timers, or `None` if no timer can
    /// ever expire.
    pub(crate) fn earliest_deadline(&self) -> Option<Time> {
        let deadlines = self.shards.iter().filter_map(|cell| self.earliest_in(cell));
        let earliest = deadlines.filter(|&deadline| deadline < NEVER).min()?;
        Some(self.tick.start_of(earliest))
    }

    fn earliest_in(&self, cell: &ShardCell<T>) -> Option<Tick> {
        let searched = cell.lock().earliest_by_slots();
        searched.unwrap_or_else(|OverBudget| self.earliest_by_entries(cell))
    }

    /// Searches all entries, for a shard that has too many timers in the earliest slot
    /// or no longer has slots.
    fn earliest_by_entries(&self, cell: &ShardCell<T>) -> Option<Tick> {
        let (mut cursor, mut earliest, mut pace) = (Cursor::START, None, Walk::begin());
        while !cell.lock().find_earliest(&mut cursor, &mut earliest) {
            cell.step_aside_in(&mut pace);
        }
        earliest
    }
}
