//! The engine beside the oracle: each operation is done to both, and then
//! everything that can be seen of the engine is compared.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use std::time::Duration;

use tickwheel::wheel::Advance;
use tickwheel::{
    Cancel, Closed, Engine, Expired, Queue, RecvError, Refusal, Refused, Time, Timer, TimerId,
    Unstarted, VirtualClock, When,
};

use crate::oracle::{self, CancelledThose, NEVER, Oracle, Report, State};
use crate::script::{Ask, Call, First, How, Id, Name, Op, Pace, Reach};
use crate::setup::{QUEUES, Setup};

pub struct Pair {
    pub engine: Engine<u64>,
    pub clock: VirtualClock,
    pub oracle: Oracle,
    setup: Setup,
    queues: Vec<Queue<u64>>,
    /// By the oracle's number.
    pub ids: Vec<TimerId>,
    pub numbers: HashMap<TimerId, usize>,
    pub unstarted: Vec<(usize, Unstarted<u64>)>,
    /// The firings that workers hold.
    pub held: Vec<Expired<u64>>,
    payloads: u64,
}

impl Pair {
    pub fn new(setup: &Setup) -> Pair {
        let (engine, clock) = setup.engine();
        Pair {
            queues: (0..QUEUES).map(|queue| engine.queue(queue)).collect(),
            engine,
            clock,
            oracle: Oracle::new(setup.clone()),
            setup: setup.clone(),
            ids: Vec::new(),
            numbers: HashMap::new(),
            unstarted: Vec::new(),
            held: Vec::new(),
            payloads: 0,
        }
    }

    pub fn run(&mut self, op: &Op) {
        match *op {
            Op::Schedule(ask, count) => (0..count).for_each(|_| self.accept(ask, true)),
            Op::Create(ask) => self.accept(ask, false),
            Op::Start(which) => self.start(which),
            Op::Dismiss(which) => self.dismiss(which),
            Op::Call(id, call) => {
                if let Some(target) = self.target(id) {
                    self.call(&target, call);
                }
            }
            Op::CancelMany(ref ids) => self.cancel_many(ids),
            Op::CancelByName(name, max) => self.cancel_by_name(name, max),
            Op::CancelAll => self.cancel_all(),
            Op::Take(queue) => self.take(queue),
            Op::TakeMany(queue, max) => self.take_many(queue, max),
            Op::LetGo(which, how) => self.let_go(which, how),
            Op::Move(reach, pace) => self.move_clock(reach, pace),
            Op::ReadReport => self.read_report(),
            // Of which nobody can tell.
            Op::Shrink => self.engine.shrink(),
        }
        self.check();
    }

    /// A payload that no other timer has.
    pub fn new_payload(&mut self) -> u64 {
        self.payloads += 1;
        self.payloads
    }

    /// One of `count`, if there are any, counted from the last: so a script
    /// goes on meaning the same when it loses its beginning.
    fn pick(which: usize, count: usize) -> Option<usize> {
        (count > 0).then(|| count - 1 - which % count)
    }

    fn target(&self, id: Id) -> Option<Target> {
        let (id, timer) = match id {
            Id::Own(which) => {
                let timer = Pair::pick(which, self.ids.len())?;
                (self.ids[timer], Some(timer))
            }
            Id::Forged(forge) => forge.id(&self.ids)?,
        };
        Some(Target { id, timer })
    }
}

/// How timers begin.
impl Pair {
    pub fn timer(&self, ask: &Ask, payload: u64) -> Timer<u64> {
        let first = self.oracle.first(ask.first);
        let mut timer = match (ask.period, first) {
            (Some(period), first) => {
                Timer::every(Duration::from_nanos(period), payload).starting(first)
            }
            (None, When::After(delay)) => Timer::after(delay, payload),
            (None, When::At(time)) => Timer::at(time, payload),
            (None, When::AtInstant(instant)) => Timer::at(instant, payload),
        };
        if let Some(times) = ask.times {
            timer = timer.times(times);
        }
        if let Some(missed) = ask.missed {
            timer = timer.missed(missed);
        }
        if ask.misfit {
            timer = timer.starting(first);
        }
        if let Some(name) = ask.name {
            timer = timer.named(name.as_str());
        }
        if ask.reported {
            timer = timer.reported();
        }
        if ask.rearmable {
            timer = timer.rearmable();
        }
        let tolerance = Duration::from_nanos(ask.tolerance);
        timer.queue(ask.queue).tolerance(tolerance)
    }

    /// Schedules a timer, or creates one that does not start yet.
    fn accept(&mut self, ask: Ask, starts: bool) {
        let payload = self.new_payload();
        let timer = self.timer(&ask, payload);
        let asked = timer.clone();
        let made = self.on_a_thread(&ask, |engine| {
            if starts {
                engine.schedule(timer).map(|id| (id, None))
            } else {
                engine.create(timer).map(|made| (made.id(), Some(made)))
            }
        });
        assert_eq!(made.as_ref().err().map(Refused::reason), self.oracle.refusal(&ask));
        let (id, unstarted) = match made {
            Err(refused) => return assert_eq!(refused.into_inner(), asked),
            Ok(made) => made,
        };
        let before = self.numbers.insert(id, self.ids.len());
        assert_eq!(before, None, "an id was given out twice");
        self.ids.push(id);
        let timer = self.oracle.create(shard(id), ask, payload);
        match unstarted {
            Some(unstarted) => self.unstarted.push((timer, unstarted)),
            None => self.oracle.schedule(timer),
        }
    }

    /// There is room for as many timers as the bound says.
    pub fn fill(&mut self) {
        let far = Ask::plain(First::At(Reach::Never));
        while self.setup.max_timers.is_some() && self.oracle.refusal(&far).is_none() {
            self.accept(far, true);
        }
    }

    fn on_a_thread<R: Send>(&self, ask: &Ask, call: impl FnOnce(&Engine<u64>) -> R + Send) -> R {
        if !ask.elsewhere || self.setup.shards == 1 {
            return call(&self.engine);
        }
        let engine = &self.engine;
        thread::scope(|scope| scope.spawn(|| call(engine)).join().unwrap())
    }

    fn start(&mut self, which: usize) {
        let Some(which) = Pair::pick(which, self.unstarted.len()) else {
            return;
        };
        let (timer, unstarted) = self.unstarted.swap_remove(which);
        let id = unstarted.start().unwrap();
        assert_eq!(id, self.ids[timer]);
        self.oracle.start(timer);
    }

    fn dismiss(&mut self, which: usize) {
        if let Some(which) = Pair::pick(which, self.unstarted.len()) {
            let (timer, unstarted) = self.unstarted.swap_remove(which);
            assert_eq!(unstarted.dismiss(), self.oracle.dismiss(timer));
        }
    }
}

/// An id, and the timer whose wheel and sequence number it has.
struct Target {
    id: TimerId,
    timer: Option<usize>,
}

/// Calls with an id.
impl Pair {
    fn call(&mut self, target: &Target, call: Call) {
        let (id, gone) = (target.id, Err(Refusal::Gone));
        match call {
            Call::Cancel => {
                let answer = self.engine.cancel(id);
                self.compare(target, answer, Cancel::Gone, Oracle::answer_to_cancel);
            }
            // It would wait for this thread.
            Call::CancelAndWait if target.timer.is_some_and(|it| self.oracle.is_held(it)) => {}
            Call::CancelAndWait => {
                let answer = self.engine.cancel_and_wait(id);
                self.compare(target, answer, Cancel::Gone, Oracle::answer_to_cancel);
            }
            Call::Reschedule(first) => {
                let first = self.oracle.first(first);
                let answer = self.engine.reschedule(id, first);
                self.compare(target, answer, gone, |it, at| it.reschedule(at, first));
            }
            Call::Reuse(first) => {
                self.call(target, Call::Reschedule(First::At(Reach::Never)));
                self.call(target, Call::Reschedule(first));
            }
            Call::Replace => {
                let payload = self.new_payload();
                let replaced = self.engine.replace(id, payload);
                let answer = replaced.map_err(|refused| (refused.reason(), refused.into_inner()));
                let gone = Err((Refusal::Gone, payload));
                self.compare(target, answer, gone, |it, at| it.replace(at, payload));
            }
            Call::Deadline => {
                let answer = self.engine.deadline(id);
                self.compare(target, answer, None, |it, at| it.deadline(at));
            }
        }
    }

    /// Compares an answer with the oracle's. With an index that is not the timer's own,
    /// the timer may have been found or not.
    fn compare<A: PartialEq + fmt::Debug>(
        &mut self,
        target: &Target,
        answer: A,
        gone: A,
        oracle: impl FnOnce(&mut Oracle, usize) -> A,
    ) {
        let is_own = |&timer: &usize| self.ids[timer] == target.id || answer != gone;
        let expected = match target.timer.filter(is_own) {
            Some(timer) => oracle(&mut self.oracle, timer),
            None => gone,
        };
        assert_eq!(answer, expected, "{:?}", target.id);
    }

    fn cancel_many(&mut self, ids: &[Id]) {
        let targets: Vec<_> = ids.iter().filter_map(|&id| self.target(id)).collect();
        let ids: Vec<_> = targets.iter().map(|target| target.id).collect();
        for (target, (id, answer)) in targets.iter().zip(self.engine.cancel_many(&ids)) {
            assert_eq!(id, target.id);
            self.compare(target, answer, Cancel::Gone, Oracle::answer_to_cancel);
        }
    }
}

/// How timers fire.
impl Pair {
    fn may_take(&self, queue: usize) -> bool {
        self.oracle.ready_len(queue) > 0
    }

    fn take(&mut self, queue: usize) {
        let taken = self.queues[queue].try_recv();
        assert_eq!(taken.is_ok(), self.may_take(queue), "{taken:?}");
        match taken {
            Ok(expired) => {
                self.note_taken(queue, &expired);
                self.held.push(expired);
            }
            Err(why) => assert_eq!(why, RecvError::Empty),
        }
    }

    fn take_many(&mut self, queue: usize, max: usize) {
        let mut payloads = Vec::new();
        let may_take = self.may_take(queue);
        let taken = self.queues[queue].try_recv_many(&mut payloads, max);
        assert_eq!(taken.is_ok(), may_take, "{taken:?}");
        for &payload in &payloads {
            self.note_payload(queue, payload);
        }
        match taken {
            Ok(Some(lent)) => {
                self.note_taken(queue, &lent);
                assert!(self.oracle.timers[self.numbers[&lent.id()]].ask.is_lent());
                self.held.push(lent);
            }
            Ok(None) => assert!(payloads.len() == max || self.oracle.ready_len(queue) == 0),
            Err(why) => assert_eq!((why, payloads.len()), (RecvError::Empty, 0)),
        }
        assert!(payloads.len() <= max);
    }

    /// The oracle agrees that the timer of this payload was to be taken.
    fn note_payload(&mut self, queue: usize, payload: u64) {
        let mut timers = self.oracle.timers.iter();
        let timer = timers.position(|timer| timer.payload == payload).unwrap();
        assert_eq!(self.oracle.timers[timer].ask.queue, queue);
        assert!(!self.oracle.take(timer), "a lent payload was handed over");
    }

    /// The oracle agrees that this was to be taken, and on everything about it.
    pub fn note_taken(&mut self, queue: usize, expired: &Expired<u64>) {
        let timer = self.numbers[&expired.id()];
        self.oracle.take(timer);
        let taken = &self.oracle.timers[timer];
        let start = self.oracle.start_of(taken.tick);
        assert!(taken.tick <= self.oracle.now_tick() && taken.due <= self.oracle.now);
        assert_eq!((expired.queue(), taken.ask.queue), (queue, queue));
        assert_eq!(expired.tick().0, taken.tick);
        assert_eq!(expired.deadline().as_nanos(), start);
        assert_eq!(expired.number(), taken.number);
        assert_eq!(expired.remaining(), taken.left);
        assert_eq!(*expired.payload(), taken.payload);
        let exact = taken.ask.period.is_some() || taken.ask.tolerance > 0;
        let from = |since| Duration::from_nanos(self.oracle.now - since);
        let late = expired.lateness();
        assert!(late == from(taken.due) || !exact && late == from(start), "{late:?}");
    }

    fn let_go(&mut self, which: usize, how: How) {
        if let Some(which) = Pair::pick(which, self.held.len()) {
            let expired = self.held.swap_remove(which);
            self.give_back(expired, how);
        }
    }

    /// A payload that was lent comes back changed.
    pub fn give_back(&mut self, mut expired: Expired<u64>, how: How) {
        let timer = self.numbers[&expired.id()];
        let payload = self.new_payload();
        *expired.payload_mut() = payload;
        match how {
            How::Back => drop(expired),
            How::Panicking => panic_with(expired),
            How::KeepingThePayload => assert_eq!(expired.into_payload(), payload),
            How::Rearming(first) => return self.rearm(expired, timer, first, payload),
        }
        if self.oracle.timers[timer].ask.is_lent() {
            self.oracle.let_go(timer, how, payload);
        }
    }

    fn rearm(&mut self, expired: Expired<u64>, timer: usize, first: First, payload: u64) {
        let when = self.oracle.first(first);
        let can_rearm = self.oracle.can_rearm(timer);
        let rearmed = expired.rearm(when);
        let reason = rearmed.as_ref().map_err(Refused::reason);
        assert_eq!(reason.copied(), can_rearm);
        match rearmed {
            Ok(()) => self.oracle.rearm(timer, when, payload),
            Err(refused) => {
                self.oracle.refuse_to_rearm(timer);
                self.give_back(refused.into_inner(), How::Back);
            }
        }
    }

    fn move_clock(&mut self, reach: Reach, pace: Pace) {
        let to = self.oracle.resolve(reach);
        let time = Time::from_nanos(to);
        match pace {
            // A capped wheel takes its time to be stepped through a long way.
            Pace::InSteps if self.setup.max_levels.is_none() => {
                self.clock.run_until(time);
                self.oracle.run_until(to);
            }
            Pace::Within(budget) => {
                let left = || time - self.engine.now();
                while self.clock.advance_within(left(), budget) == Advance::More {}
                self.oracle.advance(to);
            }
            _ => {
                self.clock.advance_to(time);
                self.oracle.advance(to);
            }
        }
        assert_eq!(self.engine.now().as_nanos(), self.oracle.now);
    }
}

/// How timers end.
impl Pair {
    /// In the order of a walk, in which the reports come.
    fn cancel_all(&mut self) {
        let walked: Vec<_> = self.engine.live().map(|live| live.id).collect();
        let walked = walked.iter().map(|id| self.numbers[id]);
        let mut seen = HashSet::new();
        let all = walked.chain(0..self.ids.len());
        let all: Vec<_> = all.filter(|&timer| seen.insert(timer)).collect();
        let cancelled = self.engine.cancel_all();
        let mut cancelled = self.by_timer(cancelled);
        let mut expected = self.oracle.cancel_those(&all, None);
        cancelled.sort_unstable_by_key(|&(timer, _)| timer);
        expected.sort_unstable_by_key(|&(timer, _)| timer);
        assert_eq!(cancelled, expected);
    }

    fn cancel_by_name(&mut self, name: Name, max: Option<usize>) {
        let cancelled = self.engine.cancel_by_name(name.as_str(), max);
        let expected = self.oracle.cancel_by_name(name, max);
        assert_eq!(self.by_timer(cancelled), expected);
    }

    fn by_timer(&self, answers: Vec<(TimerId, Cancel<u64>)>) -> CancelledThose {
        let answers = answers.into_iter();
        answers.map(|(id, answer)| (self.numbers[&id], answer)).collect()
    }

    fn read_report(&mut self) {
        match self.engine.reports().try_recv() {
            Ok(closed) => self.note_report(closed),
            Err(why) => assert_eq!((why, self.oracle.unread()), (RecvError::Empty, 0)),
        }
    }

    pub fn note_report(&mut self, closed: Closed<u64>) {
        let timer = self.numbers[&closed.id];
        let expected = self.oracle.read_report(shard(closed.id), timer);
        assert_eq!(self.as_report(closed), expected);
    }

    pub fn as_report(&self, closed: Closed<u64>) -> Report {
        Report {
            timer: self.numbers[&closed.id],
            queue: closed.queue,
            tick: closed.tick.0,
            firings: closed.firings,
            reason: closed.reason,
            payload: closed.payload,
        }
    }
}

/// What can be seen of the engine.
impl Pair {
    pub fn check(&self) {
        self.check_ledger();
        self.check_timers();
        self.check_earliest();
        self.check_live();
        self.check_lengths();
    }

    fn check_lengths(&self) {
        let snapshot = self.engine.snapshot();
        for (index, queue) in self.queues.iter().enumerate() {
            let ready = self.oracle.ready_len(index);
            assert_eq!((queue.len(), queue.is_empty()), (ready, ready == 0));
            assert_eq!(snapshot.queued[index], ready);
        }
        let (closed, unread) = (self.engine.reports(), self.oracle.unread());
        assert_eq!((closed.len(), closed.is_empty()), (unread, unread == 0));
        assert_eq!(snapshot.reports, unread);
        assert_eq!(snapshot.ledger, self.engine.ledger());
        assert_eq!(snapshot.lateness, self.oracle.lateness);
    }

    fn check_ledger(&self) {
        assert_eq!(self.engine.ledger(), self.oracle.ledger());
        assert!(self.engine.ledger().is_balanced());
    }

    fn check_timers(&self) {
        for (timer, &id) in self.ids.iter().enumerate() {
            let expected = self.oracle.deadline(timer);
            assert_eq!(self.engine.deadline(id), expected, "deadline of {id:?}");
        }
    }

    fn check_earliest(&self) {
        let is_armed = |timer: &&oracle::Timer| matches!(timer.state, State::Armed(_));
        let armed = self.oracle.timers.iter().filter(is_armed);
        let ticks = armed.map(|timer| timer.tick);
        let earliest = ticks.filter(|&tick| tick < NEVER).min();
        let expected = earliest.map(|tick| Time::from_nanos(self.oracle.start_of(tick)));
        assert_eq!(self.engine.earliest_deadline(), expected);
    }

    fn check_live(&self) {
        let mut live: Vec<_> = self
            .engine
            .live()
            .map(|live| (self.numbers[&live.id], live.tick.0, live.queue))
            .collect();
        live.sort_unstable();
        let all = self.oracle.timers.iter().enumerate();
        let expected = all
            .filter(|(_, timer)| timer.is_live())
            .map(|(number, timer)| (number, timer.tick, timer.ask.queue));
        assert!(live.iter().copied().eq(expected), "live: {live:?}");
        let found = self.ids.iter().filter_map(|&id| self.engine.find(id));
        let found = found.map(|found| self.numbers[&found.id]);
        assert!(found.eq(live.iter().map(|&(number, ..)| number)), "found");
    }
}

/// The number of the wheel that an id belongs to.
fn shard(id: TimerId) -> u64 {
    let text = format!("{id:?}");
    let number = text.split(['(', '.']).nth(1).unwrap();
    number.parse().unwrap()
}

/// Without a message: `resume_unwind` does not call the panic hook.
fn panic_with(expired: Expired<u64>) {
    let worker = AssertUnwindSafe(move || {
        let _expired = expired;
        resume_unwind(Box::new(()));
    });
    assert!(catch_unwind(worker).is_err());
}
