//! What must be true after each step of a search, and at its end.

use super::*;

impl Search {
    /// Whether a timer is on no list that the wheel knows of.
    fn is_elsewhere(&self, at: EntryIndex) -> bool {
        let tag = self.shard.tag(at);
        let waits = |key: usize| self.shard.records[key].state == State::Waiting;
        tag.is_ready() || tag.is_lent() || !self.shard.record_of(at).is_none_or(waits)
    }

    pub(super) fn check(&self) {
        let shard = &self.shard;
        let all = || shard.wheel.iter().map(|(id, ..)| shard.wheel.find(id).expect("it is there"));
        if shard.phase != Phase::Closed {
            let elsewhere = all().filter(|&at| self.is_elsewhere(at)).count();
            shard.wheel.assert_consistent_beside(elsewhere);
        }
        assert!(shard.ledger().is_balanced());
        assert_eq!(shard.lent, self.held.len());
        let has_payload = |at: EntryIndex| match shard.record_of(at) {
            Some(key) => shard.records[key].payload.is_some(),
            None => shard.tag(at).has_payload(),
        };
        let payloads = all().filter(|&at| has_payload(at)).count();
        assert_eq!(payloads, self.inside.len());
        let records = all().filter(|&at| shard.record_of(at).is_some()).count();
        assert_eq!(records, shard.records.len());
        let named = shard.records.iter().filter(|(_, it)| it.name_hash.is_some());
        let (mut found, mut namesakes) = (0, NAMES.map(|name| shard.namesakes(name, HASH)));
        for namesakes in &mut namesakes {
            found += std::iter::from_fn(|| shard.next_namesake(namesakes)).count();
        }
        assert_eq!(found, named.count());
        for (queue, ready) in shard.ready.iter().enumerate() {
            assert!(ready.len() == 0 || ready.rung && self.bells[queue]);
            assert_eq!(ready.rung, self.bells[queue]);
        }
        if shard.phase == Phase::Draining {
            let delays_drain = |&at: &EntryIndex| shard.delays_drain(at, shard.drained_until);
            assert!(shard.stopped_at.iter().all(delays_drain), "a leave was not told");
        }
        assert!(self.settled <= 1);
    }

    /// Ends everything, and expects that nothing is left.
    pub(super) fn end(mut self) {
        while self.closing.is_none() {
            self.close();
        }
        while !self.shard.wheel.is_at_end(self.closing.unwrap()) {
            self.close();
            self.release();
            self.check();
        }
        while !self.held.is_empty() {
            self.return_firing();
            self.release();
            self.check();
        }
        while !self.unstarted.is_empty() {
            self.dismiss();
            self.release();
            self.check();
        }
        assert_eq!(self.shard.live(), 0);
        while let Some(leftover) = self.shard.take_leftover(&mut 0) {
            leftover.into_iter().for_each(|it| self.came_out(it));
        }
        self.release();
        assert!(self.inside.is_empty(), "lost {:?}", self.inside);
        assert_eq!(self.settled, 1);
        assert!(self.shard.wheel.is_empty());
        // All credits have come back.
        let credits = (0..).take_while(|_| self.shard.credit.take()).count();
        (0..credits).for_each(|_| self.shard.credit.put());
        assert!(credits >= MOST_TIMERS - MOST_TIMERS / 8, "{credits}");
    }
}
