//! The steps of a search that make timers and change them.

use super::*;

impl Search {
    pub(super) fn schedule_plain(&mut self) {
        let (payload, at) = (self.payload(), self.some_time());
        let (queue, task) = (self.random.usize(..QUEUES), self.random.u8(..3) == 0);
        let tick = self.shard.tick.tick_at(self.now);
        let now = self.random.bool().then_some(tick);
        let deadline = self.due(at).deadline;
        let shard = &mut self.shard;
        if shard.admit().is_ok() {
            let (id, _) = shard.schedule_plain(payload, now, deadline, Tag::one_shot(queue, task));
            self.ids.push(id);
            self.came_in(payload);
        }
    }

    pub(super) fn schedule_recorded(&mut self) {
        let payload = self.payload();
        let mut timer = self.some_timer(payload);
        let (due, name_hash) = (self.when(&timer), self.some_name(&mut timer));
        match self.shard.schedule_recorded(timer, due, name_hash) {
            Ok(id) => {
                self.ids.push(id);
                self.came_in(payload);
            }
            Err((_, refused)) => assert_eq!(refused.payload, payload),
        }
    }

    pub(super) fn create(&mut self) {
        let payload = self.payload();
        let mut timer = self.some_timer(payload);
        let name_hash = self.some_name(&mut timer);
        match self.shard.create(timer, name_hash) {
            Ok(id) => {
                self.ids.push(id);
                self.unstarted.push(id);
                self.came_in(payload);
            }
            Err((_, refused)) => assert_eq!(refused.payload, payload),
        }
    }

    pub(super) fn start(&mut self) {
        let Some(at) = self.some_of(self.unstarted.len()) else {
            return;
        };
        let id = self.unstarted.swap_remove(at);
        let time = self.some_time();
        let due = self.due(time);
        let tick = self.shard.tick.tick_at(self.now);
        match self.shard.start(id, |_| due, || tick) {
            Ok(()) | Err(None) => {}
            Err(Some(timer)) => self.came_out(timer.payload),
        }
    }

    pub(super) fn dismiss(&mut self) {
        let Some(at) = self.some_of(self.unstarted.len()) else {
            return;
        };
        let id = self.unstarted.swap_remove(at);
        if let Some(timer) = self.shard.dismiss(id) {
            self.came_out(timer.payload);
        }
    }

    pub(super) fn change_one(&mut self) {
        let Some(id) = self.some_id() else {
            return;
        };
        let tick = self.shard.tick.tick_at(self.now);
        let time = self.some_time();
        let due = self.due(time);
        match self.random.u32(..9) {
            0..3 => {
                let plain = if self.random.bool() { self.shard.find_plain(id) } else { None };
                let cancelled = match plain {
                    Some(at) => Cancel::Cancelled(self.shard.cancel_plain(at)),
                    None => self.shard.cancel(id, || tick),
                };
                if let Some(payload) = cancelled.into_payload() {
                    self.came_out(payload);
                }
            }
            3..7 => {
                if !self.shard.postpone_plain(id, due.deadline) {
                    let _ = self.shard.reschedule(id, due);
                }
            }
            7 => {
                let payload = self.payload();
                if let Ok(old) = self.shard.replace(id, payload) {
                    self.came_out(old);
                    self.came_in(payload);
                }
            }
            _ => _ = self.shard.await_return(id, self.random.bool()),
        }
    }
}
