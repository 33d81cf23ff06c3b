//! How a script ends: every timer is accounted for, exactly once.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use tickwheel::{CloseReason, Closed, Queue, RecvError, Refusal, Time, Timer};

use crate::oracle::Report;
use crate::pair::Pair;
use crate::script::How;
use crate::setup::QUEUES;

impl Pair {
    /// Shuts the engine down, or drains it for so many nanoseconds, with a worker for each
    /// queue.
    pub fn end(&mut self, drain: Option<u64>) {
        match drain {
            None => self.shut_down(),
            Some(limit) => self.drain(Duration::from_nanos(limit)),
        }
    }

    fn shut_down(&mut self) {
        let list = self.engine.shutdown();
        let expected = self.oracle.shut_down();
        assert_eq!(self.in_order(list), expected);
        self.check();
        self.check_closed();
        self.start_the_rest();
        self.let_go_of_all();
        self.read_all_reports();
        assert_eq!(self.engine.ledger().live, 0);
        assert_eq!(self.engine.shutdown(), []);
    }

    fn in_order(&self, list: Vec<Closed<u64>>) -> Vec<Report> {
        let reports = list.into_iter().map(|closed| self.as_report(closed));
        let mut list: Vec<_> = reports.collect();
        list.sort_by_key(|report| report.timer);
        list
    }

    fn check_closed(&self) {
        for queue in 0..QUEUES {
            let taken = self.engine.queue(queue).try_recv();
            assert_eq!(taken.unwrap_err(), RecvError::ShutDown);
        }
        let refused = self.engine.schedule(Timer::at(Time::START, 0)).unwrap_err();
        assert_eq!(refused.reason(), Refusal::ShutDown);
    }

    /// They come back to their owners, unless they were cancelled.
    fn start_the_rest(&mut self) {
        for (timer, unstarted) in std::mem::take(&mut self.unstarted) {
            let started = unstarted.start();
            let payload = started.err().map(|refused| refused.into_payload());
            assert_eq!(payload, self.oracle.dismiss(timer));
            self.check();
        }
    }

    fn let_go_of_all(&mut self) {
        for expired in std::mem::take(&mut self.held) {
            self.give_back(expired, How::Back);
            self.check();
        }
    }

    fn read_all_reports(&mut self) {
        loop {
            match self.engine.reports().try_recv() {
                Ok(closed) => self.note_report(closed),
                Err(why) => break assert_eq!(why, RecvError::ShutDown),
            }
        }
        self.check();
    }

    /// How far the workers get with what repeats or was re-armed is theirs; but every
    /// other one-shot that is due by the limit is taken, and the rest returned.
    fn drain(&mut self, limit: Duration) {
        let one_shots = self.waiting_one_shots();
        self.let_go_of_all();
        let before = self.engine.ledger();
        let (taken, list) = thread::scope(|scope| {
            let workers: Vec<_> = (0..QUEUES)
                .map(|queue| self.engine.queue(queue))
                .map(|queue| scope.spawn(move || take_all(queue)))
                .collect();
            let list = self.engine.drain(limit);
            let ended = workers.into_iter().map(|worker| worker.join().unwrap());
            (ended.flatten().collect::<Vec<_>>(), list)
        });
        let now = self.engine.current_tick().0;
        let due = |timer: &&usize| self.oracle.timers[**timer].tick <= now;
        let (due, rest): (BTreeSet<_>, BTreeSet<_>) = one_shots.iter().partition(due);
        let one_shot = |timer: &usize| self.oracle.timers[*timer].is_awaited_by_a_drain();
        let taken = taken.iter().map(|id| self.numbers[id]);
        let taken: Vec<_> = taken.filter(one_shot).collect();
        assert_eq!(taken.len(), due.len(), "a timer was taken twice");
        assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), due);
        let list = self.in_order(list);
        let is_shut_down = |report: &Report| report.reason == CloseReason::ShutDown;
        assert!(list.iter().all(is_shut_down));
        let left = list.iter().map(|report| report.timer).filter(one_shot);
        assert_eq!(left.collect::<BTreeSet<_>>(), rest);
        let ledger = self.engine.ledger();
        assert_eq!(ledger.shut_down, list.len() as u64);
        assert_eq!((ledger.accepted, ledger.live), (before.accepted, 0));
        assert!(ledger.is_balanced());
    }

    fn waiting_one_shots(&self) -> Vec<usize> {
        let is_awaited = |&timer: &usize| {
            let timer = &self.oracle.timers[timer];
            timer.is_waiting() && timer.is_awaited_by_a_drain()
        };
        (0..self.ids.len()).filter(is_awaited).collect()
    }
}

fn take_all(queue: Queue<u64>) -> Vec<tickwheel::TimerId> {
    queue.map(|expired| expired.id()).collect()
}
