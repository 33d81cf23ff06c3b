//! Looking for live timers while others go on using the engine.

use std::collections::VecDeque;

use crate::engine::Core;
use crate::engine::shard::Shard;
use crate::id::TimerId;
use crate::tick::Tick;
use crate::time::{NEVER, Time};

/// How many entries are looked at in one hold of a shard's lock.
const ENTRIES_PER_HOLD: usize = 256;

/// A live timer, as it was when it was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LiveTimer {
    /// The timer.
    pub id: TimerId,
    /// When it is due next (or was, if it waits to be taken or runs).
    pub deadline: Tick,
    /// The queue that it fires into.
    pub queue: usize,
}

/// Iterator over live timers, from [`Engine::live`](crate::Engine::live).
///
/// It holds a shard's lock only for some hundred entries at a time. A timer
/// that lives through the whole walk is seen exactly once; one that is
/// scheduled or ends meanwhile may be seen or not.
pub struct LiveTimers<'a, T> {
    core: &'a Core<T>,
    shard: usize,
    from: u32,
    found: VecDeque<LiveTimer>,
}

impl<'a, T> LiveTimers<'a, T> {
    pub(crate) fn new(core: &'a Core<T>) -> LiveTimers<'a, T> {
        LiveTimers {
            core,
            shard: 0,
            from: 0,
            found: VecDeque::new(),
        }
    }

    /// Looks at the next few entries; `false` when there are none.
    fn look(&mut self) -> bool {
        let found = &mut self.found;
        let from = self.from;
        let look = |shard: &mut Shard<T>| {
            if from == 0 {
                shard.begin_walk();
            }
            let next = shard.live_from(from, ENTRIES_PER_HOLD, found);
            if next.is_none() {
                shard.end_walk();
            }
            next
        };
        match self.core.look_at_shard(self.shard, look) {
            None => return false,
            Some(Some(next)) => self.from = next,
            Some(None) => {
                self.shard += 1;
                self.from = 0;
            }
        }
        true
    }
}

/// A walk that ends before its end does not keep its shard from shrinking.
impl<T> Drop for LiveTimers<'_, T> {
    fn drop(&mut self) {
        if self.from > 0 {
            self.core.look_at_shard(self.shard, Shard::end_walk);
        }
    }
}

impl<T> Iterator for LiveTimers<'_, T> {
    type Item = LiveTimer;

    fn next(&mut self) -> Option<LiveTimer> {
        while self.found.is_empty() {
            if !self.look() {
                return None;
            }
        }
        self.found.pop_front()
    }
}

impl<T> Core<T> {
    /// The earliest deadline of what has not expired; none for what is never
    /// due.
    pub(crate) fn earliest_deadline(&self) -> Option<Time> {
        let earliest = |shard: &mut Shard<T>| shard.wheel.earliest_asked();
        let shards = 0..self.shard_count();
        let deadlines = shards.filter_map(|shard| self.look_at_shard(shard, earliest)?);
        let earliest = deadlines.filter(|&deadline| deadline < NEVER).min()?;
        Some(self.tick.start_of(earliest))
    }
}

impl<T> Shard<T> {
    /// Looks at up to `count` entries from index `from` on. Returns where to
    /// go on, if there are more.
    fn live_from(&self, from: u32, count: usize, found: &mut VecDeque<LiveTimer>) -> Option<u32> {
        let mut last = None;
        for at in self.wheel.entries(from).take(count) {
            last = Some(at);
            if self.is_live(at) {
                found.push_back(LiveTimer {
                    id: self.wheel.id(at),
                    deadline: self.wheel.deadline_of(at),
                    queue: self.queue_of(at),
                });
            }
        }
        last.map(|at| at.index() + 1)
    }
}
