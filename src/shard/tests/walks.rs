//! The steps of a search that are parts of walks over all timers.

use super::*;

impl Search {
    pub(super) fn shrink(&mut self) {
        let budget = [1, 3, 9, 40, 400, 4_000][self.random.usize(..6)];
        if !self.is_shrinking || self.random.u8(..16) == 0 {
            drop(self.shard.begin_shrink());
        }
        self.is_shrinking = !self.shard.shrink_some(budget);
    }

    pub(super) fn walk(&mut self) {
        let shard = &mut self.shard;
        let Some(looking) = &mut self.looking else {
            let entries = shard.wheel.iter().map(|(id, ..)| id.sequence());
            self.looking = Some(Looking {
                cursor: Cursor::START,
                expected: entries.collect(),
                seen: BTreeSet::new(),
            });
            return;
        };
        let mut budget = self.random.usize(1..200);
        while let Some(at) = shard.wheel.next_entry(&mut looking.cursor, &mut budget) {
            let is_new = looking.seen.insert(shard.wheel.id(at).sequence());
            assert!(is_new, "seen twice");
        }
        if shard.wheel.is_at_end(looking.cursor) {
            let looking = self.looking.take().unwrap();
            for (id, ..) in shard.wheel.iter() {
                let sequence = id.sequence();
                let is_owed = looking.expected.contains(&sequence);
                assert!(!is_owed || looking.seen.contains(&sequence), "not seen");
            }
        }
    }

    pub(super) fn cancel_all(&mut self) {
        let tick = self.shard.tick.tick_at(self.now);
        let Some((cursor, youngest)) = &mut self.cancelling else {
            self.cancelling = Some((Cursor::START, self.shard.wheel.youngest.sequence()));
            return;
        };
        let mut cancelled = Vec::new();
        let done = self.shard.cancel_some(cursor, *youngest, || tick, &mut cancelled);
        self.cancelled(cancelled);
        if done {
            self.cancelling = None;
        }
    }

    pub(super) fn cancel_by_name(&mut self) {
        let (tick, name) = (self.shard.tick.tick_at(self.now), self.random.usize(..2));
        let mut namesakes = self.shard.namesakes(NAMES[name], HASH);
        let (most, mut left) = (self.random.usize(..9), self.random.usize(..9));
        let mut cancelled = Vec::new();
        let now = || tick;
        self.shard.cancel_namesakes(&mut namesakes, most, &mut left, now, &mut cancelled);
        assert!(cancelled.iter().is_sorted_by_key(|(id, _)| id.sequence()));
        self.cancelled(cancelled);
    }

    fn cancelled(&mut self, answers: Vec<(TimerId, Cancel<u64>)>) {
        let answers = answers.into_iter();
        for payload in answers.filter_map(|(_, it)| it.into_payload()) {
            self.came_out(payload);
        }
    }

    pub(super) fn drain(&mut self) {
        if self.shard.phase == Phase::Closed {
            return;
        }
        match self.random.usize(..self.drains.len() + 1) {
            0 => {
                let last = self.some_time();
                let last = self.due(last).deadline;
                self.shard.begin_drain(last);
                self.drains.push((Cursor::START, last, self.shard.moved));
            }
            n => self.pass_drained(n - 1),
        }
    }

    fn pass_drained(&mut self, drain: usize) {
        let (cursor, last, moved) = &mut self.drains[drain];
        let mut stopped = false;
        let is_over = self.shard.pass_drained(cursor, *last, &mut stopped);
        if is_over && !stopped {
            let (shard, last) = (&self.shard, *last);
            let all = shard.wheel.iter();
            let mut all = all.map(|(id, ..)| shard.wheel.find(id).expect("it is there"));
            if shard.moved == *moved {
                assert!(!all.any(|at| shard.delays_drain(at, last)), "left behind");
            }
            self.drains.swap_remove(drain);
        }
    }

    pub(super) fn close(&mut self) {
        let tick = self.shard.tick.tick_at(self.now);
        let Some(cursor) = &mut self.closing else {
            self.shard.close();
            self.shard.begin_drain(Tick::MAX); // comes too late
            self.closing = Some(Cursor::START);
            return;
        };
        let mut closed = Vec::new();
        let mut budget = self.random.usize(1..200);
        while let Some(at) = self.shard.wheel.next_entry(cursor, &mut budget) {
            closed.extend(self.shard.close_one(at, tick));
        }
        for payload in closed.into_iter().filter_map(|closed| closed.payload) {
            self.came_out(payload);
        }
    }
}
