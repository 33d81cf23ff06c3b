//! The steps of a search that let timers expire, and those of its workers.

use super::*;

impl Search {
    pub(super) fn expire(&mut self) {
        if self.random.bool() {
            self.now += Duration::from_micros(self.random.u64(..9_000));
        }
        let mut budget = self.random.usize(1..20);
        if self.random.u8(..4) > 0 {
            self.shard.expire(self.now, &mut budget);
            return;
        }
        let mut taken = Vec::new();
        self.shard.expire_into(self.now, &mut budget, &mut taken);
        taken.into_iter().for_each(|payload| self.came_out(payload));
    }

    fn took(&mut self, claimed: Claimed<u64>) {
        self.came_out(claimed.payload);
        if claimed.firing.lent {
            let at = self.shard.wheel.find(claimed.firing.id).unwrap();
            let task = self.shard.record_of(at).is_none_or(|key| {
                let record = &self.shard.records[key];
                record.timer.task && !record.is_repeating()
            });
            self.held.push(Held {
                id: claimed.firing.id,
                number: claimed.firing.number,
                payload: claimed.payload,
                task,
                rearmed: false,
            });
        }
    }

    pub(super) fn claim(&mut self) {
        let queue = self.random.usize(..QUEUES);
        let bell = self.bells[queue] && self.random.bool();
        let now = self.random.bool().then_some(self.now);
        if self.random.bool() {
            let mut claimed = None;
            self.shard.claim(queue, now, |it| claimed = Some(it));
            claimed.into_iter().for_each(|it| self.took(it));
        } else {
            let (most, mut payloads) = (self.random.usize(1..9), Vec::new());
            let lent = self.shard.claim_many(queue, most, now, &mut payloads);
            assert!(payloads.len() + usize::from(lent.is_some()) <= most);
            for payload in payloads {
                self.came_out(payload);
            }
            if let Some(claimed) = lent {
                assert!(claimed.firing.lent);
                self.took(claimed);
            }
        }
        self.answer(queue, bell);
    }

    /// A worker that came with a bell drops it if nothing is left.
    fn answer(&mut self, queue: usize, bell: bool) {
        if bell && self.shard.ready[queue].len() == 0 {
            self.shard.ready[queue].rung = false;
            self.bells[queue] = false;
        }
    }

    pub(super) fn claim_report(&mut self) {
        let bell = self.bells[QUEUES] && self.random.bool();
        if let Some(Closed { payload: Some(payload), .. }) = self.shard.claim_report() {
            self.came_out(payload);
        }
        self.answer(QUEUES, bell);
    }

    pub(super) fn return_firing(&mut self) {
        let Some(at) = self.some_of(self.held.len()) else {
            return;
        };
        let held = self.held.swap_remove(at);
        let outcome = [Outcome::Returned, Outcome::Panicked, Outcome::Kept][self.random.usize(..3)];
        let consumed = held.task && !held.rearmed && self.random.bool();
        let payload = match outcome {
            Outcome::Kept => None,
            _ if consumed => None,
            _ => Some(held.payload),
        };
        if let Some(payload) = payload {
            self.came_in(payload);
        }
        let returned = self.shard.return_firing(held.id, payload, outcome, self.now);
        if let Some(payload) = returned.payload {
            self.came_out(payload);
        }
    }

    pub(super) fn rearm(&mut self) {
        let Some(at) = self.some_of(self.held.len()) else {
            return;
        };
        let time = self.some_time();
        let (next, now) = (self.due(time), self.now);
        if self.random.bool() {
            let Held { id, number, .. } = self.held[at];
            let set = self.shard.rearm_lent(id, number, next, || Tick(0));
            self.held[at].rearmed |= set.is_ok();
            return;
        }
        let held = self.held.swap_remove(at);
        let (id, number) = (held.id, held.number);
        let returned = self.shard.rearm_and_return(id, number, held.payload, next, now);
        match returned {
            Ok(()) => self.came_in(held.payload),
            Err((_, payload)) => {
                assert_eq!(payload, held.payload);
                self.held.push(held);
            }
        }
    }
}
