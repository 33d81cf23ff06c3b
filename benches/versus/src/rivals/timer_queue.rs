//! timer-queue: one owner. A stale handle removes another timer, so the workloads
//! use none.

use timer_queue::{Timer, TimerQueue};

use crate::rival::{Rival, Timers};

pub struct Queue(TimerQueue<u64>);

impl Rival for Queue {
    const NAME: &'static str = "timer-queue";
    const LESS: &'static str = "a stale id reaches another timer; no order among equal deadlines";
}

impl Timers for Queue {
    type Id = Timer;

    fn new() -> Queue {
        Queue(TimerQueue::new())
    }

    fn schedule(&mut self, deadline: u64, payload: u64) -> Timer {
        self.0.insert(deadline, payload)
    }

    fn cancel(&mut self, id: Timer) {
        self.0.remove(id);
    }

    fn postpone(&mut self, id: Timer, deadline: u64, _: u64) -> Timer {
        self.0.reset(id, deadline);
        id
    }

    fn advance(&mut self, now: u64, fired: &mut Vec<u64>) {
        while let Some(payload) = self.0.poll(now) {
            fired.push(payload);
        }
    }
}
