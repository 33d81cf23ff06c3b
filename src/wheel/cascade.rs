//! Re-filing an outer slot inward when its turn has come.

use super::Wheel;
use super::expire::Work;
use super::geometry::Place;
use super::levels::LANES;
use super::storage::At;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cascade {
    pub(super) place: Place,
    /// Whether it was paused: then younger timers may have been filed inward
    /// before the older ones that are still to come.
    pub(super) resumed: bool,
}

/// Where a cascade stands in each lane of its slot.
struct Lanes {
    /// A bit for each lane that is not finished.
    open: u32,
    head: [At; LANES],
    cursor: [At; LANES],
}

impl<T> Wheel<T> {
    /// Re-files an outer slot inward, all its lanes side by side.
    pub(super) fn cascade(&mut self, cascade: Cascade, budget: &mut usize) {
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
        self.begin_slot();
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
            head: [self.late; LANES],
            cursor: [self.late; LANES],
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
}
