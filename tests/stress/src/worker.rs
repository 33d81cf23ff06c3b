//! A thread that takes what has expired, in whichever way, and keeps it for as
//! long as it likes.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use tickwheel::{Expired, Queue, RecvError};

use crate::actor::Scene;
use crate::fault::Fault;
use crate::plan::Plan;
use crate::random::Random;
use crate::record::Token;

pub struct Worker<'a> {
    scene: Scene<'a>,
    queue: Queue<Token>,
    random: Random,
    /// How many firings it keeps at a time.
    hold_max: usize,
    held: VecDeque<Expired<Token>>,
}

impl<'a> Worker<'a> {
    pub fn new(scene: Scene<'a>, queue: Queue<Token>, mut random: Random) -> Worker<'a> {
        let hold_max = random.index(1 + most_to_hold(scene.plan));
        Worker {
            scene,
            queue,
            random,
            hold_max,
            held: VecDeque::new(),
        }
    }

    /// Works until the engine is shut down.
    pub fn work(mut self) {
        while self.take() != Err(RecvError::ShutDown) {}
        self.let_go_of(self.held.len());
    }

    fn take(&mut self) -> Result<(), RecvError> {
        match self.random.below(4) {
            0 => self.take_many()?,
            1 => {
                let limit = self.random.micros(3_000);
                let expired = self.queue.recv_timeout(limit);
                self.hold_or_wait(expired)?;
            }
            2 => {
                let expired = self.queue.try_recv();
                self.hold_or_wait(expired)?;
            }
            _ => {
                // A worker that waits without a limit must hold nothing that
                // others wait for.
                self.let_go_of(self.held.len());
                let expired = self.queue.recv()?;
                self.hold(expired);
            }
        }
        Ok(())
    }

    fn hold_or_wait(
        &mut self,
        expired: Result<Expired<Token>, RecvError>,
    ) -> Result<(), RecvError> {
        match expired {
            Ok(expired) => self.hold(expired),
            Err(RecvError::ShutDown) => return Err(RecvError::ShutDown),
            Err(RecvError::Empty) => {
                self.let_go_of(self.held.len());
                thread::sleep(Duration::from_micros(200));
            }
        }
        Ok(())
    }

    fn take_many(&mut self) -> Result<(), RecvError> {
        self.let_go_of(self.held.len());
        let most = 1 + self.random.index(100);
        let mut payloads = Vec::new();
        let lent = self.queue.recv_many(&mut payloads, most)?;
        for token in payloads {
            token.record.deliver(self.scene.now(), self.scene.book);
            self.scene.tally.fired.fetch_add(1, Ordering::Relaxed);
            token.record.let_go();
        }
        lent.into_iter().for_each(|expired| self.hold(expired));
        Ok(())
    }

    fn hold(&mut self, expired: Expired<Token>) {
        let record = &expired.payload().record;
        record.deliver(self.scene.now(), self.scene.book);
        if expired.number() < u64::from(record.delivered.load(Ordering::Acquire)) {
            let broken = format!("firing {} of {record:?}", expired.number());
            self.scene.book.broke(broken);
        }
        self.scene.tally.fired.fetch_add(1, Ordering::Relaxed);
        if self.scene.plan.has(Fault::Sleepers) && self.random.once_in(50) {
            thread::sleep(self.random.micros(5_000));
        }
        self.held.push_back(expired);
        let surplus = self.held.len().saturating_sub(self.hold_max);
        self.let_go_of(surplus);
    }

    fn let_go_of(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(expired) = self.held.pop_front() {
                self.let_go(expired);
            }
        }
    }

    fn let_go(&mut self, expired: Expired<Token>) {
        expired.payload().record.let_go();
        if self.scene.plan.has(Fault::Panics) && self.random.once_in(40) {
            panic_with(expired);
        } else if self.random.once_in(10) {
            expired.payload().record.fires_no_more();
            drop(expired.into_payload());
        }
    }
}

/// So few that others of a bounded queue are not kept waiting for ever.
fn most_to_hold(plan: &Plan) -> usize {
    match plan.queue_bound {
        None => 8,
        Some(bound) => (bound / plan.workers_per_queue).saturating_sub(1).min(8),
    }
}

fn panic_with(expired: Expired<Token>) {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let _expired = expired;
        panic!("as planned");
    }));
    drop(caught);
}
