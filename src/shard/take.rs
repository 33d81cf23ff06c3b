//! How a worker takes an expired timer, and how reports are read.

use crate::shard::Shard;
use crate::shard::firing::Claimed;
use crate::shard::record::State;
use crate::timer::{CloseReason, Closed};
use crate::wheel::EntryIndex;

impl<T> Shard<T> {
    /// Takes the first expired timer of a queue. The second answer is whether
    /// there are more; where a bell brought the worker here, it stays rung
    /// exactly then, and the worker must put it back.
    #[inline]
    pub(crate) fn claim(&mut self, queue: usize, by_bell: bool) -> (Option<Claimed<T>>, bool) {
        let first = self.ready[queue].first_to_take(&self.wheel);
        let claimed = first.map(|at| self.take_ready(at, queue));
        (claimed, self.ready[queue].has_more(by_bell))
    }

    #[inline]
    pub(crate) fn take_ready(&mut self, at: EntryIndex, queue: usize) -> Claimed<T> {
        let (id, tick) = (self.wheel.id(at), self.wheel.deadline_of(at));
        self.count_out(at);
        self.unlink(at);
        if let Some(key) = self.extra_of(at) {
            return self.take_extra(at, key);
        }
        debug_assert_eq!(self.tag(at).queue(), queue);
        Claimed {
            id,
            tick,
            asked: self.tick.start_of(tick),
            number: 1,
            payload: self.end_plain(at, CloseReason::Completed),
            lent: false,
            outcome: CloseReason::Completed,
        }
    }

    pub(crate) fn take_extra(&mut self, at: EntryIndex, key: usize) -> Claimed<T> {
        let (id, tick) = (self.wheel.id(at), self.wheel.deadline_of(at));
        let extra = &mut self.extras[key];
        let told = match extra.state {
            State::Ended { reason, .. } => Some(reason),
            _ => None,
        };
        if told.is_none() {
            extra.deliver();
        }
        let payload = extra.payload.take();
        let (number, asked) = (extra.number, extra.due);
        let lent = told.is_none() && extra.is_lent_out();
        if told.is_some() {
            self.close_entry(at, key);
        } else if lent {
            self.enter(key, State::Lent { ending: None });
            self.wheel.set_aside(at);
        } else {
            self.end_extra(at, CloseReason::Completed, tick);
        }
        Claimed {
            id,
            tick,
            asked,
            number,
            payload: payload.expect("a waiting timer has its payload"),
            lent,
            outcome: told.unwrap_or(CloseReason::Completed),
        }
    }

    /// Takes the first unread report. Answers as [`Shard::claim`] does.
    pub(crate) fn claim_report(&mut self, by_bell: bool) -> (Option<Closed<T>>, bool) {
        let reports = self.ready.len() - 1;
        let first = self.ready[reports].first_to_take(&self.wheel);
        let closed = first.map(|at| {
            let id = self.wheel.id(at);
            self.ready[reports].unlink(&mut self.wheel, at);
            let extra = self.forget(at);
            let State::Ended { reason, tick } = extra.state else {
                unreachable!("only what has ended is reported");
            };
            extra.into_closed(id, reason, tick)
        });
        (closed, self.ready[reports].has_more(by_bell))
    }

    /// Takes up to `count` of the tasks that wait to be told and of the reports
    /// that wait to be read.
    pub(crate) fn take_leftovers(&mut self, count: usize) -> Vec<Option<T>> {
        let mut leftovers = Vec::new();
        while leftovers.len() < count {
            let Some(leftover) = self.take_leftover() else {
                break;
            };
            leftovers.push(leftover);
        }
        leftovers
    }

    fn take_leftover(&mut self) -> Option<Option<T>> {
        let reports = self.ready.len() - 1;
        let task = (0..reports).find_map(|queue| self.claim(queue, false).0);
        match task {
            Some(task) => Some(Some(task.payload)),
            None => Some(self.claim_report(false).0?.payload),
        }
    }
}
