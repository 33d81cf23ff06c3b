//! A search for calls on a shard that break each other between two holds of its lock.
//!
//! A hold of a shard's lock is one step for all other threads. Whatever threads do to a
//! shard is therefore a sequence of holds. This search makes random sequences, in which
//! walks, drains, shrinks and shutdowns are under way while timers are scheduled, moved,
//! taken and ended. It compares nothing with a model. After each hold, every payload must
//! have exactly one owner, and all counts must be those of the entries.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use super::credit::Pool;
use super::*;
use crate::shard::body::Tag;
use crate::timer::{Cancel, CancelledMany, Closed};
use crate::wheel::Cursor;

const QUEUES: usize = 2;
const MOST_TIMERS: usize = 200;

/// A firing that a worker holds.
struct Held {
    id: TimerId,
    number: u64,
    payload: u64,
    /// Whether the task may be consumed.
    task: bool,
    rearmed: bool,
}

/// A walk over all timers.
struct Looking {
    cursor: Cursor,
    expected: BTreeSet<u64>,
    seen: BTreeSet<u64>,
}

struct Search {
    shard: Shard<u64>,
    now: Time,
    next: u64,
    /// The payloads that the shard has.
    inside: BTreeSet<u64>,
    ids: Vec<TimerId>,
    unstarted: Vec<TimerId>,
    reserved: Vec<TimerId>,
    held: Vec<Held>,
    looking: Option<Looking>,
    cancelling: Option<CancelWalk>,
    closing: Option<Cursor>,
    is_shrinking: bool,
    drains: Vec<DrainKey>,
    bells: [bool; QUEUES + 1],
    names: BTreeSet<u64>,
    settled: usize,
    random: fastrand::Rng,
}

/// Creates a shard with a tick of a millisecond, at a tick soon before outer slots have
/// their turns.
fn shard(size: usize, credit: Credit) -> Shard<u64> {
    let tick = TickLength::new(Duration::from_millis(1)).unwrap();
    let geometry = Geometry::new(size).unwrap();
    let start = Tick(size as u64 * 4 - 2);
    Shard::new(
        WheelNumber::reserve(1),
        start,
        geometry,
        QUEUES,
        credit,
        tick,
    )
}

impl Search {
    fn new(seed: u64) -> Search {
        let mut random = fastrand::Rng::with_seed(seed);
        let size = [2, 4, 64][random.usize(..3)];
        let shard = shard(size, Pool::share(Some(MOST_TIMERS), 2)());
        Search {
            now: Time::from_millis(shard.wheel.now().0),
            shard,
            next: 0,
            inside: BTreeSet::new(),
            ids: Vec::new(),
            unstarted: Vec::new(),
            reserved: Vec::new(),
            held: Vec::new(),
            looking: None,
            cancelling: None,
            closing: None,
            is_shrinking: false,
            drains: Vec::new(),
            bells: [false; QUEUES + 1],
            names: BTreeSet::new(),
            settled: 0,
            random,
        }
    }

    fn payload(&mut self) -> u64 {
        let payload = self.next;
        self.next += 1;
        payload
    }

    fn came_in(&mut self, payload: u64) {
        assert!(self.inside.insert(payload), "{payload} is inside already");
    }

    fn came_out(&mut self, payload: u64) {
        assert!(self.inside.remove(&payload), "{payload} came out twice");
    }

    /// The end of a hold.
    fn release(&mut self) {
        let _ = self.shard.take_earliest_new();
        if !self.shard.has_signals() {
            return;
        }
        let mut signals = self.shard.take_signals();
        let bells = &mut self.bells;
        signals.each_bell(|queue| assert!(!std::mem::replace(&mut bells[queue], true)));
        let names = &mut self.names;
        signals.take_unnamed(|place| assert!(names.remove(&place.age)));
        self.settled += usize::from(signals.settled);
    }

    fn some_time(&mut self) -> Time {
        let ms = match self.random.u32(..8) {
            0 => return Time::from_nanos(self.now.as_nanos() - 1_000_000),
            1..5 => self.random.u64(..4),
            5..7 => self.random.u64(..80),
            _ => self.random.u64(..100_000),
        };
        self.now + Duration::from_millis(ms)
    }

    fn some_id(&mut self) -> Option<TimerId> {
        let count = self.ids.len();
        let recent = self.random.bool();
        match (count, recent) {
            (0, _) => None,
            (_, true) => Some(self.ids[count - 1 - self.random.usize(..count.min(6))]),
            (_, false) => Some(self.ids[self.random.usize(..count)]),
        }
    }

    fn some_timer<P>(&mut self, payload: P) -> Timer<P> {
        let at = self.some_time();
        let period = Duration::from_millis(1 + self.random.u64(..5));
        let mut timer = match self.random.bool() {
            true => Timer::every(period, payload)
                .starting(at)
                .times(self.random.u64(..3)),
            false => Timer::at(at, payload),
        };
        timer = timer.queue(self.random.usize(..QUEUES));
        timer.reported = self.random.bool();
        timer.rearmable = self.random.bool();
        timer.task = self.random.bool();
        timer.notified = self.random.bool();
        if self.random.u8(..4) == 0 {
            timer = timer.tolerance(Duration::from_millis(self.random.u64(..9)));
        }
        timer
    }

    fn some_place(&mut self) -> Option<Place> {
        let age = self.payload();
        self.random.bool().then_some(Place { hash: 7, age })
    }

    fn due(&self, time: Time) -> (Time, Tick) {
        (time, self.shard.tick.tick_after(time))
    }

    fn when<P>(&self, timer: &Timer<P>) -> (Time, Tick) {
        match timer.requested {
            crate::timeline::When::At(time) => self.due(time),
            crate::timeline::When::After(delay) => self.due(self.now + delay),
            crate::timeline::When::AtInstant(_) => unreachable!(),
        }
    }

    fn schedule_plain(&mut self) {
        let (payload, at) = (self.payload(), self.some_time());
        let (queue, task) = (self.random.usize(..QUEUES), self.random.u8(..3) == 0);
        let tick = self.shard.tick.tick_at(self.now);
        let now = self.random.bool().then_some(tick);
        let deadline = self.due(at).1;
        let shard = &mut self.shard;
        if shard.admit().is_ok() {
            let (id, _) = shard.schedule_plain(payload, now, deadline, Tag::one_shot(queue, task));
            self.ids.push(id);
            self.came_in(payload);
        }
    }

    fn schedule_recorded(&mut self) {
        let (payload, place) = (self.payload(), self.some_place());
        let timer = self.some_timer(payload);
        let (requested, deadline) = self.when(&timer);
        match self
            .shard
            .schedule_recorded(timer, requested, deadline, place)
        {
            Ok(id) => {
                self.ids.push(id);
                self.names.extend(place.map(|place| place.age));
                self.came_in(payload);
            }
            Err((_, refused)) => assert_eq!(refused.payload, payload),
        }
    }

    fn create(&mut self) {
        let (payload, place) = (self.payload(), self.some_place());
        let timer = self.some_timer(payload);
        match self.shard.create(timer, place) {
            Ok(id) => {
                self.ids.push(id);
                self.unstarted.push(id);
                self.names.extend(place.map(|place| place.age));
                self.came_in(payload);
            }
            Err((_, refused)) => assert_eq!(refused.payload, payload),
        }
    }

    fn some_of(&mut self, count: usize) -> Option<usize> {
        (count > 0).then(|| self.random.usize(..count))
    }

    fn start(&mut self) {
        let Some(at) = self.some_of(self.unstarted.len()) else {
            return;
        };
        let id = self.unstarted.swap_remove(at);
        let time = self.some_time();
        let (requested, deadline) = self.due(time);
        let tick = self.shard.tick.tick_at(self.now);
        match self.shard.start(id, requested, deadline, || tick) {
            Ok(()) | Err(None) => {}
            Err(Some(timer)) => self.came_out(timer.payload),
        }
    }

    fn dismiss(&mut self) {
        let Some(at) = self.some_of(self.unstarted.len()) else {
            return;
        };
        let id = self.unstarted.swap_remove(at);
        if let Some(timer) = self.shard.dismiss(id) {
            self.came_out(timer.payload);
        }
    }

    fn reserve(&mut self) {
        let place = self.some_place();
        let timer = self.some_timer(());
        let (requested, deadline) = self.when(&timer);
        if let Ok(id) = self.shard.reserve(timer, requested, deadline, place) {
            self.ids.push(id);
            self.reserved.push(id);
            self.names.extend(place.map(|place| place.age));
        }
    }

    fn fill(&mut self) {
        let Some(at) = self.some_of(self.reserved.len()) else {
            return;
        };
        let id = self.reserved.swap_remove(at);
        let payload = self.payload();
        let made = (self.random.u8(..5) > 0).then_some(payload);
        let time = self.some_time();
        let (requested, deadline) = self.due(time);
        if let Some(payload) = made {
            self.came_in(payload);
        }
        let filled = self.shard.fill(id, made, requested, deadline, self.now);
        if let Some(payload) = filled.payload {
            self.came_out(payload);
        }
    }

    fn expire(&mut self) {
        if self.random.bool() {
            self.now = self.now + Duration::from_micros(self.random.u64(..9_000));
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
        if claimed.is_lent() {
            let at = self.shard.wheel.find(claimed.firing.id).unwrap();
            let task = self.shard.record_of(at).is_none_or(|key| {
                let record = &self.shard.records[key];
                record.task && !record.is_repeating()
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

    fn claim(&mut self) {
        let queue = self.random.usize(..QUEUES);
        let bell = self.bells[queue] && self.random.bool();
        let now = self.random.bool().then_some(self.now);
        if self.random.bool() {
            if let Some(claimed) = self.shard.claim(queue, now) {
                self.took(claimed);
            }
        } else {
            let (most, mut payloads) = (self.random.usize(1..9), Vec::new());
            let lent = self.shard.claim_many(queue, most, now, &mut payloads);
            assert!(payloads.len() + usize::from(lent.is_some()) <= most);
            for payload in payloads {
                self.came_out(payload);
            }
            if let Some(claimed) = lent {
                assert!(claimed.is_lent());
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

    fn claim_report(&mut self) {
        let bell = self.bells[QUEUES] && self.random.bool();
        if let Some(Closed {
            payload: Some(payload),
            ..
        }) = self.shard.claim_report()
        {
            self.came_out(payload);
        }
        self.answer(QUEUES, bell);
    }

    fn return_firing(&mut self) {
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
        let returned = self
            .shard
            .return_firing(held.id, payload, outcome, self.now);
        if let Some(payload) = returned.payload {
            self.came_out(payload);
        }
    }

    fn rearm(&mut self) {
        let Some(at) = self.some_of(self.held.len()) else {
            return;
        };
        let time = self.some_time();
        let (requested, deadline) = self.due(time);
        let next = Next {
            requested,
            deadline,
        };
        let now = self.now;
        if self.random.bool() {
            let Held { id, number, .. } = self.held[at];
            let set = self.shard.rearm_lent(id, number, next, || now);
            self.held[at].rearmed |= set.is_ok();
            return;
        }
        let held = self.held.swap_remove(at);
        let (id, number) = (held.id, held.number);
        let returned = self
            .shard
            .rearm_and_return(id, number, held.payload, next, now);
        match returned {
            Ok(_) => self.came_in(held.payload),
            Err((_, payload)) => {
                assert_eq!(payload, held.payload);
                self.held.push(held);
            }
        }
    }

    fn change_one(&mut self) {
        let Some(id) = self.some_id() else {
            return;
        };
        let (now, time) = (self.now, self.some_time());
        let tick = self.shard.tick.tick_at(now);
        let (requested, deadline) = self.due(time);
        match self.random.u32(..12) {
            0..3 => {
                let plain = match self.random.bool() {
                    true => self.shard.find_plain(id),
                    false => None,
                };
                let cancelled = match plain {
                    Some(at) => Cancel::Cancelled(self.shard.cancel_plain(at)),
                    None => self.shard.cancel(id, || tick),
                };
                if let Some(payload) = cancelled.payload() {
                    self.came_out(payload);
                }
            }
            3..7 => {
                if !self.shard.postpone_plain(id, deadline) {
                    let _ = self.shard.reschedule(id, requested, deadline, || now);
                }
            }
            7 => {
                let payload = self.payload();
                if let Ok(old) = self.shard.replace(id, payload) {
                    self.came_out(old);
                    self.came_in(payload);
                }
            }
            8 => _ = self.shard.pause(id, now),
            9 => _ = self.shard.resume(id, now),
            10 => _ = self.shard.set_times(id, self.random.u64(..3)),
            _ => _ = self.shard.await_return(id),
        }
    }

    fn shrink(&mut self) {
        let budget = [1, 3, 9, 40, 400, 4_000][self.random.usize(..6)];
        if !self.is_shrinking || self.random.u8(..16) == 0 {
            drop(self.shard.begin_shrink());
        }
        self.is_shrinking = !self.shard.shrink_within(&mut { budget });
    }

    fn walk(&mut self) {
        let shard = &mut self.shard;
        let Some(looking) = &mut self.looking else {
            shard.begin_walk();
            let entries = shard.wheel.iter().map(|(id, ..)| id.sequence());
            self.looking = Some(Looking {
                cursor: Cursor::START,
                expected: entries.collect(),
                seen: BTreeSet::new(),
            });
            return;
        };
        let mut budget = self.random.usize(1..200);
        while let Some(at) = shard.wheel.next_entry(&mut looking.cursor, &mut budget) {
            let is_new = looking.seen.insert(shard.wheel.sequence(at));
            assert!(is_new, "seen twice");
        }
        if shard.wheel.is_at_end(looking.cursor) {
            shard.end_walk();
            let looking = self.looking.take().unwrap();
            for (id, ..) in shard.wheel.iter() {
                let sequence = id.sequence();
                let is_owed = looking.expected.contains(&sequence);
                assert!(!is_owed || looking.seen.contains(&sequence), "not seen");
            }
        }
    }

    fn cancel_all(&mut self) {
        let tick = self.shard.tick.tick_at(self.now);
        let Some(walk) = &mut self.cancelling else {
            self.cancelling = Some(self.shard.begin_cancel_all());
            return;
        };
        let mut cancelled = CancelledMany::none();
        let done = self.shard.cancel_some(walk, tick, &mut cancelled);
        for payload in cancelled.payloads {
            self.came_out(payload);
        }
        if done {
            self.cancelling = None;
        }
    }

    fn drain(&mut self) {
        if self.shard.phase == Phase::Closed {
            return;
        }
        match self.random.usize(..self.drains.len() + 1) {
            0 => {
                let time = self.some_time();
                self.drains.push(self.shard.begin_drain(self.due(time).1));
            }
            n => self.count(self.drains[n - 1]),
        }
    }

    /// Does what `count_some` does, for fewer cells.
    fn count(&mut self, DrainKey(drain): DrainKey) {
        let shard = &mut self.shard;
        let mut awaited = shard.drains[drain];
        let mut budget = self.random.usize(1..200);
        while let Some(at) = shard.wheel.next_entry(&mut awaited.counted, &mut budget) {
            awaited.left += usize::from(shard.is_awaited(at, awaited.last));
        }
        if shard.wheel.is_at_end(awaited.counted) {
            awaited.counted = Cursor::END;
        }
        shard.drains[drain] = awaited;
    }

    fn close(&mut self) {
        let tick = self.shard.tick.tick_at(self.now);
        let Some(cursor) = &mut self.closing else {
            self.shard.close();
            self.closing = Some(Cursor::START);
            return;
        };
        let mut closed = Vec::new();
        let mut budget = self.random.usize(1..200);
        while let Some(at) = self.shard.wheel.next_entry(cursor, &mut budget) {
            closed.extend(self.shard.close_one(at, tick));
        }
        for payload in closed.into_iter().filter_map(|closed| closed.payload) {
            self.came_out(payload);
        }
    }

    fn step(&mut self) {
        let call = self.random.u32(..100);
        match call {
            0..12 => self.schedule_plain(),
            12..22 => self.schedule_recorded(),
            22..25 => self.create(),
            25..27 => self.start(),
            27 => self.dismiss(),
            28..30 => self.reserve(),
            30..32 => self.fill(),
            32..46 => self.expire(),
            46..56 => self.claim(),
            56..59 => self.claim_report(),
            59..64 => self.return_firing(),
            64..67 => self.rearm(),
            67..80 => self.change_one(),
            80..94 => self.shrink(),
            94..96 => self.walk(),
            96 if self.random.u8(..4) == 0 => self.cancel_all(),
            97 if self.random.u8(..16) == 0 => self.drain(),
            98 if self.random.u8(..16) == 0 => self.close(),
            _ => {}
        }
        if self.cancelling.is_some() && self.random.bool() {
            self.cancel_all();
        }
        if !self.drains.is_empty() && self.random.bool() {
            self.drain();
        }
        if self.closing.is_some() && self.random.bool() {
            self.close();
        }
        self.release();
        self.check();
    }

    /// Whether a timer is on no list that the wheel knows of.
    fn is_elsewhere(&self, at: EntryIndex) -> bool {
        let tag = Tag(self.shard.wheel.tag(at));
        let waits = |key: usize| self.shard.records[key].state == State::Waiting;
        tag.is_ready() || tag.is_lent() || !self.shard.record_of(at).is_none_or(waits)
    }

    fn check(&self) {
        let shard = &self.shard;
        let all = || {
            shard
                .wheel
                .iter()
                .map(|(id, ..)| shard.wheel.find(id).expect("it is there"))
        };
        if shard.phase != Phase::Closed {
            let elsewhere = all().filter(|&at| self.is_elsewhere(at)).count();
            shard.wheel.assert_consistent_beside(elsewhere);
        }
        assert!(shard.ledger().is_balanced());
        assert_eq!(shard.work.held, self.held.len());
        let has_payload = |at: EntryIndex| match shard.record_of(at) {
            Some(key) => shard.records[key].payload.is_some(),
            None => shard.tag(at).has_payload(),
        };
        let payloads = all().filter(|&at| has_payload(at)).count();
        assert_eq!(payloads, self.inside.len());
        let records = all().filter(|&at| shard.record_of(at).is_some()).count();
        assert_eq!(records, shard.records.len());
        for (queue, ready) in shard.ready.iter().enumerate() {
            assert!(ready.len() == 0 || ready.rung && self.bells[queue]);
            assert_eq!(ready.rung, self.bells[queue]);
        }
        if shard.phase == Phase::Draining {
            for awaited in &shard.drains {
                let is_counted = |&at: &EntryIndex| {
                    awaited.counted.is_past(at) && shard.is_awaited(at, awaited.last)
                };
                assert_eq!(all().filter(is_counted).count(), awaited.left);
            }
        }
        assert!(self.settled <= 1);
    }

    /// Ends everything, and expects that nothing is left.
    fn end(mut self) {
        while self.closing.is_none() {
            self.close();
        }
        while !self.shard.wheel.is_at_end(self.closing.unwrap()) {
            self.close();
            self.release();
            self.check();
        }
        while !self.held.is_empty() {
            self.return_firing();
            self.release();
            self.check();
        }
        while !self.reserved.is_empty() {
            self.fill();
            self.release();
            self.check();
        }
        while !self.unstarted.is_empty() {
            self.dismiss();
            self.release();
            self.check();
        }
        assert_eq!(self.shard.live(), 0);
        let leftovers = self.shard.take_leftovers(usize::MAX);
        for payload in leftovers.into_iter().flatten() {
            self.came_out(payload);
        }
        self.release();
        assert!(self.inside.is_empty(), "lost {:?}", self.inside);
        assert_eq!(self.settled, 1);
        assert!(self.names.is_empty());
        assert!(self.shard.wheel.is_empty());
        // All credits have come back.
        let credits = (0..).take_while(|_| self.shard.credit.take()).count();
        (0..credits).for_each(|_| self.shard.credit.put());
        assert!(credits >= MOST_TIMERS - MOST_TIMERS / 8, "{credits}");
    }
}

/// A slot is out of order if a timer was postponed to it. Its timers are sorted before
/// they expire, in as many holds as that takes.
#[test]
fn a_timer_that_is_paused_while_its_slot_is_sorted_does_not_expire() {
    for budget in 1..70 {
        let mut shard = shard(64, Pool::share(None, 1)());
        let mut schedule = |n, deadline| {
            shard.admit().unwrap();
            shard
                .schedule_plain(n, None, Tick(deadline), Tag::one_shot(0, false))
                .0
        };
        let oldest = schedule(0, 255);
        let younger: Vec<_> = (1..20).map(|n| schedule(n, 310)).collect();
        assert!(shard.postpone_plain(oldest, Tick(310)));
        // Comes to the slot of the others behind them.
        shard.expire(Time::from_millis(255), &mut { usize::MAX });
        let due = Time::from_millis(310);
        shard.expire(due, &mut { budget });
        shard.pause(younger[7], due).unwrap();
        shard.expire(due, &mut { usize::MAX });
        assert!(shard.cancel(younger[7], || Tick::MAX).is_cancelled());
        let mut payloads = Vec::new();
        assert!(shard.claim_many(0, 100, None, &mut payloads).is_none());
        assert!(payloads.into_iter().eq((0..20).filter(|&n| n != 8)));
    }
}

/// Random steps, the same in every run. `SCRIPTS` is the number of scripts.
#[test]
fn no_steps_between_holds_lose_a_payload_or_miscount() {
    let scripts = std::env::var("SCRIPTS").ok();
    let scripts = scripts.and_then(|scripts| scripts.parse().ok());
    for seed in 0..scripts.unwrap_or(150) {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut search = Search::new(seed);
            for _ in 0..search.random.usize(20..300) {
                search.step();
            }
            search.end();
        }));
        if let Err(thrown) = outcome {
            println!("seed {seed}");
            resume_unwind(thrown);
        }
    }
}
