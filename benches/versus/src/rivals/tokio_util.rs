//! tokio-util's `DelayQueue`: one owner, inside a tokio runtime.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::runtime::EnterGuard;
use tokio::time::Instant;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

use crate::rival::{Rival, Timers};
use crate::rivals::tokio_paused::{advance_to, runtime};

pub struct Queue {
    queue: DelayQueue<u64>,
    start: Instant,
    _guard: EnterGuard<'static>,
}

impl Queue {
    fn instant(&self, tick: u64) -> Instant {
        self.start + Duration::from_millis(tick)
    }
}

impl Rival for Queue {
    const NAME: &'static str = "tokio-util DelayQueue";
    const LESS: &'static str = "a stale id reaches another timer; no order among equal deadlines";
}

impl Timers for Queue {
    type Id = Key;

    fn new() -> Queue {
        let guard = runtime().enter();
        Queue { queue: DelayQueue::new(), start: Instant::now(), _guard: guard }
    }

    fn schedule(&mut self, deadline: u64, payload: u64) -> Key {
        let deadline = self.instant(deadline);
        self.queue.insert_at(payload, deadline)
    }

    fn cancel(&mut self, id: Key) {
        self.queue.remove(&id);
    }

    fn postpone(&mut self, id: Key, deadline: u64, _: u64) -> Key {
        let deadline = self.instant(deadline);
        self.queue.reset_at(&id, deadline);
        id
    }

    fn advance(&mut self, now: u64, fired: &mut Vec<u64>) {
        advance_to(self.start, now);
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(expired)) = self.queue.poll_expired(&mut context) {
            fired.push(expired.into_inner());
        }
    }

    fn shrink(&mut self) {
        self.queue.compact();
    }
}
