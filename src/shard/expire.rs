//! The passing of time in a shard: expired timers become ready.

use crate::shard::{Phase, Shard};
use crate::tick::Tick;
use crate::timeline::Time;
use crate::wheel::{EntryIndex, Step};

impl<T> Shard<T> {
    /// Makes timers due by `now` ready, touching at most `budget` entries. Returns the
    /// tick at which the shard next wants to be visited.
    pub(crate) fn expire(&mut self, now: Time, budget: &mut usize) -> Tick {
        self.expire_with(now, budget, Shard::make_ready_in_line)
    }

    /// Expires timers, but ends plain ones at once and hands their payloads to `taken`.
    pub(crate) fn expire_into(
        &mut self,
        now: Time,
        budget: &mut usize,
        taken: &mut Vec<T>,
    ) -> Tick {
        let before = taken.len();
        let next = self.expire_with(now, budget, |shard, at| {
            if !shard.tag(at).ends_when_taken() {
                return shard.make_ready(at);
            }
            shard.note_leave(at);
            taken.push(shard.take_payload(at));
        });
        self.count_completed(taken.len() - before);
        next
    }

    #[inline(always)]
    fn expire_with(
        &mut self,
        now: Time,
        budget: &mut usize,
        mut due: impl FnMut(&mut Self, EntryIndex),
    ) -> Tick {
        if self.phase == Phase::Closed {
            return Tick::MAX;
        }
        let to = self.tick.tick_at(now);
        loop {
            match self.wheel.step(to, budget, true) {
                Step::Due(at) => {
                    self.wheel.look_ahead();
                    let deadline = self.tick.start_of(Tick(self.wheel.entries.get(at).deadline));
                    self.lateness.record_nanos(now.since_nanos(deadline));
                    due(self, at);
                }
                // The tick that the visit has reached: `Core::behind` measures from it.
                Step::Paused => return self.wheel.now().min(to),
                Step::Done => return self.wheel.next_visit().unwrap_or(Tick::MAX),
            }
        }
    }

    /// Returns the tick at which the shard currently wants to be visited.
    pub(crate) fn next_visit(&self) -> Tick {
        match self.phase {
            _ if self.wake_driver => Tick(0),
            // Its lists may lead to entries that are vacant or gone.
            Phase::Closed => Tick::MAX,
            _ => self.wheel.next_visit().unwrap_or(Tick::MAX),
        }
    }

    pub(crate) fn make_ready(&mut self, at: EntryIndex) {
        self.make_ready_in_line(at);
    }

    /// Makes a timer ready inside the ticker's loop, which calls this for every timer.
    #[inline(always)]
    fn make_ready_in_line(&mut self, at: EntryIndex) {
        let queue = self.queue_of(at);
        self.wheel.set_tag(at, self.tag(at).ready(true));
        self.put_on(queue, at);
    }

    #[inline]
    pub(crate) fn put_on(&mut self, queue: usize, at: EntryIndex) {
        if self.ready[queue].append(&mut self.wheel, at) {
            self.signal().ring(queue);
        }
    }
}
