//! The engine beside the oracle: each operation is done to both, and then
//! everything that can be seen of the engine is compared.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use std::time::Duration;

use tickwheel::{
    Cancel, Closed, Engine, Expired, NotChanged, Queue, RecvError, Refused, Time, Timer, TimerId,
    Unstarted, VirtualClock, When,
};

use crate::oracle::{Cancelled, NEVER, Oracle, Report, State};
use crate::script::{Ask, First, How, Name, Op, Reach, Step};
use crate::setup::{QUEUES, Setup};

pub struct Pair {
    pub engine: Engine<u64>,
    pub clock: VirtualClock<u64>,
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
            Op::Schedule(ask) => self.schedule(ask),
            Op::Create(ask) => self.create(ask),
            Op::Start(which) => self.start(which),
            Op::Dismiss(which) => self.dismiss(which),
            Op::Cancel(which) => self.cancel(which),
            Op::CancelMany(ref which) => self.cancel_many(which),
            Op::CancelByName(name, max) => self.cancel_by_name(name, max),
            Op::CancelAll => self.cancel_all(),
            Op::Reschedule(which, first) => self.reschedule(which, first),
            Op::Reuse(which, first) => {
                self.reschedule(which, First::At(Reach::Never));
                self.reschedule(which, first);
            }
            Op::Replace(which) => self.replace(which),
            Op::Pause(which) => self.pause(which),
            Op::Resume(which) => self.resume(which),
            Op::SetPeriod(which, period) => self.set_period(which, period),
            Op::SetTimes(which, times) => self.set_times(which, times),
            Op::Take(queue) => self.take(queue),
            Op::TakeBatch(queue, max, victim) => self.take_batch(queue, max, victim),
            Op::TakeMany(queue, max) => self.take_many(queue, max),
            Op::LetGo(which, how) => self.let_go(which, how),
            Op::Advance(step) => self.advance(step),
            Op::RunUntil(step) => self.run_until(step),
            Op::ReadReport => self.read_report(),
            Op::Forge(ref forge) => self.forge(forge),
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

    fn pick_timer(&self, which: usize) -> Option<(usize, TimerId)> {
        let timer = Pair::pick(which, self.ids.len())?;
        Some((timer, self.ids[timer]))
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

    fn schedule(&mut self, ask: Ask) {
        let payload = self.new_payload();
        let timer = self.timer(&ask, payload);
        let asked = timer.clone();
        match self.on_a_thread(&ask, |engine| engine.schedule(timer)) {
            Err(refused) => self.check_refused(&ask, refused, asked),
            Ok(id) => {
                assert_eq!(self.oracle.refusal(&ask), None);
                self.enter(id);
                self.oracle.schedule(shard(id), ask, payload);
            }
        }
    }

    fn create(&mut self, ask: Ask) {
        let payload = self.new_payload();
        let timer = self.timer(&ask, payload);
        let asked = timer.clone();
        match self.on_a_thread(&ask, |engine| engine.create(timer)) {
            Err(refused) => self.check_refused(&ask, refused, asked),
            Ok(unstarted) => {
                assert_eq!(self.oracle.refusal(&ask), None);
                self.enter(unstarted.id());
                let timer = self.oracle.create(shard(unstarted.id()), ask, payload);
                self.unstarted.push((timer, unstarted));
            }
        }
    }

    fn on_a_thread<R: Send>(&self, ask: &Ask, call: impl FnOnce(&Engine<u64>) -> R + Send) -> R {
        if !ask.elsewhere || self.setup.shards == 1 {
            return call(&self.engine);
        }
        let engine = &self.engine;
        thread::scope(|scope| scope.spawn(|| call(engine)).join().unwrap())
    }

    pub fn check_refused(&self, ask: &Ask, refused: Refused<u64>, asked: Timer<u64>) {
        assert_eq!(Some(refused.reason()), self.oracle.refusal(ask));
        assert_eq!(refused.into_timer(), asked);
    }

    fn enter(&mut self, id: TimerId) {
        let before = self.numbers.insert(id, self.ids.len());
        assert_eq!(before, None, "an id was given out twice");
        self.ids.push(id);
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

    fn reschedule(&mut self, which: usize, first: First) {
        let Some((timer, id)) = self.pick_timer(which) else {
            return;
        };
        let first = self.oracle.first(first);
        let moved = self.engine.reschedule(id, first);
        assert_eq!(moved, self.not_waiting(timer));
        if moved.is_ok() {
            self.oracle.reschedule(timer, first);
        }
    }

    pub fn not_waiting(&self, timer: usize) -> Result<(), NotChanged> {
        let found = &self.oracle.timers[timer];
        match found.is_waiting() {
            true => Ok(()),
            false => Err(found.obstacle()),
        }
    }

    fn replace(&mut self, which: usize) {
        let Some((timer, id)) = self.pick_timer(which) else {
            return;
        };
        let payload = self.new_payload();
        match self.not_waiting(timer) {
            Err(why) => assert_eq!(self.engine.replace(id, payload), Err((why, payload))),
            Ok(()) => {
                let old = std::mem::replace(&mut self.oracle.timers[timer].payload, payload);
                assert_eq!(self.engine.replace(id, payload), Ok(old));
            }
        }
    }
}

/// How timers are paused, and how their repetitions change.
impl Pair {
    fn pause(&mut self, which: usize) {
        if let Some((timer, id)) = self.pick_timer(which) {
            assert_eq!(self.engine.pause(id), self.oracle.pause(timer));
        }
    }

    fn resume(&mut self, which: usize) {
        if let Some((timer, id)) = self.pick_timer(which) {
            assert_eq!(self.engine.resume(id), self.oracle.resume(timer));
        }
    }

    fn set_period(&mut self, which: usize, period: u64) {
        if let Some((timer, id)) = self.pick_timer(which) {
            let set = self.engine.set_period(id, Duration::from_nanos(period));
            assert_eq!(set, self.oracle.set_period(timer, period));
        }
    }

    fn set_times(&mut self, which: usize, times: u64) {
        if let Some((timer, id)) = self.pick_timer(which) {
            let set = self.engine.set_times(id, times);
            assert_eq!(set, self.oracle.set_times(timer, times));
        }
    }

    fn check_repetitions(&self) {
        for (timer, &id) in self.ids.iter().enumerate() {
            let left = self.oracle.paused(timer).map(Duration::from_nanos);
            assert_eq!(self.engine.paused(id), left, "pause of {id:?}");
            let repetition = self.engine.repetition(id);
            let found = repetition.map(|it| (it.period.as_nanos() as u64, it.left));
            assert_eq!(found, self.oracle.repetition(timer));
        }
    }
}

/// How timers fire.
impl Pair {
    fn may_take(&self, queue: usize) -> bool {
        let in_hand = self
            .held
            .iter()
            .filter(|held| held.queue() == queue)
            .count();
        let permitted = self.setup.queue_bound.is_none_or(|bound| in_hand < bound);
        permitted && self.oracle.ready_len(queue) > 0
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

    fn take_batch(&mut self, queue: usize, max: usize, victim: usize) {
        let handle = self.engine.queue(queue);
        let mut batch = handle.try_iter().take(max);
        for nth in 0..max {
            let may_take = self.may_take(queue);
            let expired = batch.next();
            assert_eq!(expired.is_some(), may_take);
            let Some(expired) = expired else { break };
            self.note_taken(queue, &expired);
            if nth == 0 {
                self.cancel(victim);
            }
            self.give_back(expired, How::Back);
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
        assert_eq!(*expired.payload(), taken.payload);
        let exact = taken.ask.period.is_some() || taken.ask.tolerance > 0;
        let from = |since| Duration::from_nanos(self.oracle.now - since);
        let late = expired.lateness();
        assert!(
            late == from(taken.due) || !exact && late == from(start),
            "{late:?}"
        );
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
        assert_eq!(rearmed.as_ref().map_err(|(why, _)| why), can_rearm.as_ref());
        match rearmed {
            Ok(()) => self.oracle.rearm(timer, when, payload),
            Err((_, expired)) => {
                self.oracle.refuse_to_rearm(timer);
                self.give_back(expired, How::Back);
            }
        }
    }

    fn advance(&mut self, step: Step) {
        let to = self.oracle.target(step);
        self.clock.advance_to(Time::from_nanos(to));
        self.oracle.advance(to);
        assert_eq!(self.engine.now().as_nanos(), self.oracle.now);
    }

    /// A capped wheel takes its time to be stepped through a long way.
    fn run_until(&mut self, step: Step) {
        if self.setup.max_levels.is_some() {
            return self.advance(step);
        }
        let to = self.oracle.target(step);
        self.clock.run_until(Time::from_nanos(to));
        self.oracle.advance(to);
        assert_eq!(self.engine.now().as_nanos(), self.oracle.now);
    }
}

/// How timers end.
impl Pair {
    fn cancel(&mut self, which: usize) {
        if let Some((timer, id)) = self.pick_timer(which) {
            let expected = self.answer_to_cancel(timer);
            assert_eq!(self.engine.cancel(id), expected);
        }
    }

    fn cancel_many(&mut self, which: &[usize]) {
        let picked = which.iter().filter_map(|&which| self.pick_timer(which));
        let (timers, ids): (Vec<_>, Vec<_>) = picked.unzip();
        let timers = timers.into_iter();
        let expected: Vec<_> = timers.map(|timer| self.answer_to_cancel(timer)).collect();
        assert_eq!(self.engine.cancel_many(&ids), expected);
    }

    pub fn answer_to_cancel(&mut self, timer: usize) -> Cancel<u64> {
        match self.oracle.cancel(timer) {
            Cancelled::Payload(payload) => Cancel::Cancelled(payload),
            Cancelled::Running(_) => Cancel::Running,
            Cancelled::Gone => Cancel::Gone,
        }
    }

    /// In the order of a walk, in which the reports come.
    fn cancel_all(&mut self) {
        let walked: Vec<_> = self.engine.live().map(|live| live.id).collect();
        let walked = walked.iter().map(|id| self.numbers[id]);
        let mut seen = HashSet::new();
        let all = walked.chain(0..self.ids.len());
        let all: Vec<_> = all.filter(|&timer| seen.insert(timer)).collect();
        let mut cancelled = self.engine.cancel_all();
        let mut expected = self.oracle.cancel_all(&all);
        cancelled.payloads.sort_unstable();
        expected.payloads.sort_unstable();
        expected.timers.sort_unstable();
        let mut timers = self.timers_of(&cancelled.ids);
        timers.sort_unstable();
        expected.check(&cancelled, &timers);
    }

    fn cancel_by_name(&mut self, name: Name, max: Option<usize>) {
        let cancelled = self.engine.cancel_by_name(name.as_str(), max);
        let timers = self.timers_of(&cancelled.ids);
        let expected = self.oracle.cancel_by_name(name, max);
        expected.check(&cancelled, &timers);
    }

    fn timers_of(&self, ids: &[TimerId]) -> Vec<usize> {
        ids.iter().map(|id| self.numbers[id]).collect()
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
        self.check_deadlines();
        self.check_earliest();
        self.check_live();
        self.check_repetitions();
        self.check_lengths();
    }

    fn check_lengths(&self) {
        let snapshot = self.engine.snapshot();
        for queue in &self.queues {
            let ready = self.oracle.ready_len(queue.index());
            assert_eq!((queue.len(), queue.is_empty()), (ready, ready == 0));
            assert_eq!(snapshot.queued[queue.index()], ready);
        }
        let (closed, unread) = (self.engine.reports(), self.oracle.unread());
        assert_eq!((closed.len(), closed.is_empty()), (unread, unread == 0));
        assert_eq!(snapshot.reports, unread);
        assert_eq!(snapshot.ledger, self.engine.ledger());
    }

    fn check_ledger(&self) {
        let (ledger, account) = (self.engine.ledger(), self.oracle.account);
        let live = self.oracle.timers.iter().filter(|timer| timer.is_live());
        assert_eq!(ledger.live, live.count() as u64, "live");
        assert_eq!(ledger.accepted, account.accepted, "accepted");
        assert_eq!(ledger.completed, account.completed, "completed");
        assert_eq!(ledger.cancelled, account.cancelled, "cancelled");
        assert_eq!(ledger.shut_down, account.shut_down, "shut down");
        assert_eq!(ledger.failed, account.failed, "failed");
        assert!(ledger.is_balanced());
    }

    fn check_deadlines(&self) {
        for (timer, &id) in self.ids.iter().enumerate() {
            let expected = self.deadline_of(timer);
            assert_eq!(self.engine.deadline(id), expected, "deadline of {id:?}");
        }
    }

    pub fn deadline_of(&self, timer: usize) -> Option<Time> {
        let timer = &self.oracle.timers[timer];
        let start = self.oracle.start_of(timer.tick);
        let is_due = timer.is_live() && timer.state != State::Paused;
        is_due.then_some(Time::from_nanos(start))
    }

    fn check_earliest(&self) {
        let armed = |state| matches!(state, State::Armed(_));
        let ticks = self.oracle.timers.iter().filter(|timer| armed(timer.state));
        let earliest = ticks
            .map(|timer| timer.tick)
            .filter(|&tick| tick < NEVER)
            .min();
        let expected = earliest.map(|tick| Time::from_nanos(self.oracle.start_of(tick)));
        assert_eq!(self.engine.earliest_deadline(), expected);
    }

    fn check_live(&self) {
        let mut live: Vec<_> = self
            .engine
            .live()
            .map(|live| {
                let tick = (!live.paused).then_some(live.tick.0);
                (self.numbers[&live.id], tick, live.queue)
            })
            .collect();
        live.sort_unstable();
        let all = self.oracle.timers.iter().enumerate();
        let expected = all
            .filter(|(_, timer)| timer.is_live())
            .map(|(number, timer)| {
                let tick = timer.paused.is_none().then_some(timer.tick);
                (number, tick, timer.ask.queue)
            });
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
