//! How far a wheel with a capped top level can leap: over whole rotations in which no
//! timer can be due.

/// Bounds for the timers in a capped top level. A timer beyond the level's reach
/// waits in a slot whose turn comes before the timer's deadline.
pub(super) struct Far {
    /// The tick at which the current rotation began.
    rotation_began: u64,
    /// The earliest deadlines of timers linked beyond reach in this rotation and in
    /// the one before. In a rotation, each slot has its turn and its entries are
    /// linked again, so no timer beyond reach is due before the earlier of the two.
    earliest: u64,
    earliest_before: u64,
    /// The start of the latest slot to which a timer within reach was linked.
    none_within_reach_after: u64,
}

impl Default for Far {
    fn default() -> Far {
        Far {
            rotation_began: 0,
            earliest: u64::MAX,
            earliest_before: u64::MAX,
            none_within_reach_after: 0,
        }
    }
}

impl Far {
    /// Notes that a timer was linked to the top level, into the slot of `unit` ticks
    /// from `start` on.
    pub(super) fn note(&mut self, start: u64, unit: u64, deadline: u64) {
        if deadline - start < unit {
            self.none_within_reach_after = self.none_within_reach_after.max(start);
        } else {
            self.earliest = self.earliest.min(deadline);
        }
    }

    /// Returns `now`, moved by the whole rotations in which no timer can be due, and at most
    /// to `to`. The first occupied slot starts at `next`.
    pub(super) fn leap(&mut self, now: u64, to: u64, next: u64, rotation: u64) -> u64 {
        if next <= self.none_within_reach_after {
            return now;
        }
        // A timer may be due in the last slot of the rotation after the free ones.
        let free = self.no_earlier_than().saturating_sub(now) / rotation;
        let rotations = free.saturating_sub(1).min((to - now) / rotation);
        self.pass(now, rotations, rotation);
        now + rotations * rotation
    }

    fn no_earlier_than(&self) -> u64 {
        self.earliest.min(self.earliest_before)
    }

    /// Notes that `rotations` rotations of `rotation` ticks each are skipped at
    /// `now`.
    fn pass(&mut self, now: u64, rotations: u64, rotation: u64) {
        if now.saturating_sub(self.rotation_began) >= rotation {
            self.earliest_before = core::mem::replace(&mut self.earliest, u64::MAX);
            self.rotation_began = now;
        }
        self.rotation_began += rotations * rotation;
    }
}
