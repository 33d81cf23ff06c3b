//! How timers end in the oracle, and the account of it.

use std::collections::VecDeque;

use tickwheel::{Cancel, CloseReason};

use super::{Oracle, State, Timer};
use crate::script::Name;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    pub timer: usize,
    pub queue: usize,
    pub tick: u64,
    pub firings: u64,
    pub reason: CloseReason,
    pub payload: Option<u64>,
}

/// The answer to cancelling several, by timer.
pub type CancelledThose = Vec<(usize, Cancel<u64>)>;

impl Oracle {
    /// Also returns whether the timer ends because of this.
    fn cancel(&mut self, timer: usize) -> (Cancel<u64>, bool) {
        let now = self.now_tick();
        let found = &mut self.timers[timer];
        let (payload, is_last) = (found.payload, found.is_last());
        match &mut found.state {
            State::Armed(_) | State::Ready => {
                self.unlist(timer);
                self.end(timer, CloseReason::Cancelled, now, None);
                (Cancel::Cancelled(payload), true)
            }
            State::Unstarted { cancelled: cancelled @ false } => {
                *cancelled = true;
                (Cancel::Cancelled(payload), true)
            }
            State::Lent { ending } => {
                let ends = ending.is_none() && !is_last;
                // The mark on a last firing only keeps its holder from re-arming it.
                ending.get_or_insert((CloseReason::Cancelled, now));
                found.unnamed |= ends;
                (Cancel::Running, ends)
            }
            _ => (Cancel::Gone, false),
        }
    }

    pub fn answer_to_cancel(&mut self, timer: usize) -> Cancel<u64> {
        self.cancel(timer).0
    }

    /// The oldest first.
    pub fn cancel_by_name(&mut self, name: Name, max: Option<usize>) -> CancelledThose {
        let is_namesake = |&timer: &usize| {
            let timer = &self.timers[timer];
            timer.ask.name == Some(name) && !timer.unnamed
        };
        let namesakes: Vec<_> = (0..self.timers.len()).filter(is_namesake).collect();
        self.cancel_those(&namesakes, max)
    }

    pub fn cancel_those(&mut self, those: &[usize], max: Option<usize>) -> CancelledThose {
        let (mut answers, mut ended) = (Vec::new(), 0);
        for &timer in those {
            if Some(ended) == max {
                break;
            }
            let (answer, ends) = self.cancel(timer);
            ended += usize::from(ends);
            if answer != Cancel::Gone {
                answers.push((timer, answer));
            }
        }
        answers
    }

    /// The list that shutdown returns.
    pub fn shut_down(&mut self) -> Vec<Report> {
        self.closed = true;
        let all = 0..self.timers.len();
        all.filter_map(|timer| self.shut_down_one(timer)).collect()
    }

    /// What will not fire again in any case is left to end by itself.
    fn shut_down_one(&mut self, timer: usize) -> Option<Report> {
        let (reason, now) = (CloseReason::ShutDown, self.now_tick());
        let live = &self.timers[timer];
        match live.state {
            State::Armed(_) | State::Ready => {
                let report = self.report(timer, reason, now, Some(live.payload));
                self.unlist(timer);
                self.end(timer, reason, now, None);
                Some(report)
            }
            State::Lent { ending: None } if live.is_last() => {
                let ending = Some((reason, now));
                self.timers[timer].state = State::Lent { ending };
                None
            }
            State::Lent { ending: None } => {
                self.timers[timer].state = State::Abandoned(now);
                self.account.shut_down += 1;
                Some(self.report(timer, reason, now, None))
            }
            _ => None,
        }
    }

    pub(super) fn end(
        &mut self,
        timer: usize,
        reason: CloseReason,
        tick: u64,
        payload: Option<u64>,
    ) {
        *match reason {
            CloseReason::Completed => &mut self.account.completed,
            CloseReason::Cancelled => &mut self.account.cancelled,
            CloseReason::ShutDown => &mut self.account.shut_down,
            CloseReason::Failed => &mut self.account.failed,
        } += 1;
        self.close(timer, reason, tick, payload);
    }

    /// Reports a timer that has ended, if its request said so.
    pub(super) fn close(
        &mut self,
        timer: usize,
        reason: CloseReason,
        tick: u64,
        payload: Option<u64>,
    ) {
        if !self.timers[timer].ask.reported {
            self.timers[timer].state = State::Gone;
            return;
        }
        let report = self.report(timer, reason, tick, payload);
        let shard = self.timers[timer].shard;
        self.reports.entry(shard).or_default().push_back(report);
        self.timers[timer].state = State::Unread;
    }

    fn report(&self, timer: usize, reason: CloseReason, tick: u64, payload: Option<u64>) -> Report {
        let Timer { ask, firings, .. } = self.timers[timer];
        Report { timer, queue: ask.queue, tick, firings, reason, payload }
    }

    pub fn unread(&self) -> usize {
        self.reports.values().map(VecDeque::len).sum()
    }

    /// A report of a shard was read: it must have been the first, or one of
    /// those that the same shutdown made.
    pub fn read_report(&mut self, shard: u64, timer: usize) -> Report {
        let list = self.reports.entry(shard).or_default();
        let place = list.iter().position(|report| report.timer == timer);
        let place = place.expect("a report that none asked for");
        let report = list.remove(place).expect("it is there");
        let mut ahead = list.iter().take(place);
        let ties = ahead.all(|ahead| (ahead.reason, report.reason) == SHUT_DOWN);
        assert!(ties, "the report on {timer} was read ahead of {:?}", list[0]);
        self.timers[timer].state = State::Gone;
        report
    }
}

const SHUT_DOWN: (CloseReason, CloseReason) = (CloseReason::ShutDown, CloseReason::ShutDown);
