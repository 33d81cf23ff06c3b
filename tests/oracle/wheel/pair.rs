//! A wheel and a sorted map that get the same operations, and are compared after
//! each operation.
//!
//! Both the property tests and the fuzz target (`tests/fuzz`) include this file.
//! The fuzz target sees only the public items of the crate, so this file imports all
//! names from the module that includes it.

use std::collections::BTreeSet;

use super::{Advance, Expired, Geometry, Tick, TimerId, Wheel, assert_consistent, shrink};

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Schedule(Delay),
    /// Schedules a number of timers, each the same number of ticks after the one
    /// before.
    Fill(Delay, u8, u8),
    Cancel(usize),
    Move(usize, Delay),
    /// Disarms a timer, and then arms it again.
    Reuse(usize, Delay),
    /// Moves a number of timers to one tick, at which they arrive out of order.
    Herd(usize, u8, Delay),
    /// Puts an expired timer back, counted from the last one that fired.
    Rearm(usize, Delay),
    /// Makes every call that reads or replaces one timer.
    Look(usize),
    /// Makes every call with an id that is forged from an index and a sequence number,
    /// and cancels at the end if the flag is set.
    Forge(Index, u64, Delay, bool),
    Clear,
    /// Goes on with a clone of the wheel.
    Clone,
    /// Shrinks by this many entries, or completely if the number is zero.
    Shrink(u8),
    /// Pops up to so many timers.
    Pop(Delay, usize),
    Advance(Delay, usize),
    /// Advances until one timer is left of the slot that has its turn.
    LeaveOne(Delay),
    PopToNextWakeup(i8),
    /// Makes the next callback run these operations.
    Nested(Vec<Op>),
}

/// A distance in ticks, scaled to the wheel when it is used.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delay {
    Past(u8),
    Near(u16),
    /// The next multiple of `size^level`, one tick less, or one more.
    Boundary(u8, i8),
    Far(u64),
    EndOfTime(u8),
    /// The tick of the pass that is under way, which thus goes on. Now, if there is none.
    Pass,
}

/// The index in a forged id.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Index {
    /// That of the timer that has the sequence number.
    Own,
    /// That of another timer.
    Of(usize),
    /// That of a list head, a vacant entry, a timer, or no entry.
    Any(u32),
}

impl Delay {
    fn resolve(self, wheel: &Wheel<u64>) -> u64 {
        let now = wheel.now().0;
        match self {
            Delay::Past(by) => now.saturating_sub(u64::from(by)),
            Delay::Near(by) => now.saturating_add(u64::from(by)),
            Delay::Boundary(level, off) => {
                let size = wheel.geometry().size() as u64;
                let unit = size.saturating_pow(u32::from(level));
                let next = (now / unit).saturating_add(1).saturating_mul(unit);
                next.saturating_add_signed(i64::from(off))
            }
            Delay::Far(by) => now.saturating_add(by),
            Delay::EndOfTime(before) => u64::MAX - u64::from(before),
            Delay::Pass => now,
        }
    }
}

pub(crate) struct Pair {
    wheel: Wheel<u64>,
    oracle: Oracle,
}

impl Pair {
    pub(crate) fn new(start: u64, geometry: Geometry) -> Pair {
        Pair { wheel: Wheel::with_geometry(Tick(start), geometry), oracle: Oracle::default() }
    }

    pub(crate) fn run(&mut self, op: &Op) {
        match op {
            Op::Pop(to, most) => self.pop(self.goal(*to), *most),
            Op::Advance(to, budget) => self.advance(self.goal(*to), *budget),
            Op::LeaveOne(to) => {
                let timers = self.wheel.slots().next().map_or(0, |slot| slot.timers.len());
                self.advance(to.resolve(&self.wheel), timers.saturating_sub(1));
            }
            Op::PopToNextWakeup(off) => {
                if let Some(next) = self.wheel.next_wakeup() {
                    self.pop(next.0.saturating_add_signed(i64::from(*off)), usize::MAX);
                }
            }
            Op::Nested(ops) => self.oracle.nested.clone_from(ops),
            Op::Clone => self.wheel = self.wheel.clone(),
            op => self.oracle.edit(&mut self.wheel, op),
        }
        self.check();
    }

    fn goal(&self, to: Delay) -> u64 {
        match (to, self.oracle.pass) {
            (Delay::Pass, Some(pass)) => pass,
            _ => to.resolve(&self.wheel),
        }
    }

    /// Pops all remaining timers that are not disarmed.
    pub(crate) fn pop_the_rest(&mut self) {
        while self.oracle.timers.iter().flat_map(|timer| timer.1).any(|tick| tick < u64::MAX) {
            self.pop(u64::MAX, usize::MAX);
            self.check();
        }
    }

    /// Takes all remaining timers out of the wheel, by iterating over it.
    pub(crate) fn take_the_rest(self) {
        let Pair { wheel, mut oracle } = self;
        let now = wheel.now();
        let rest = wheel.into_iter();
        assert_eq!(rest.len(), oracle.len());
        for (id, deadline, payload) in rest {
            assert_eq!(oracle.deadline(payload as usize, now), Some(deadline));
            oracle.end(payload as usize);
            assert_eq!(oracle.id(payload), id);
        }
        assert_eq!(oracle.len(), 0);
    }

    /// Pops timers that are due by `to`, or by now if `to` is in the past.
    fn pop(&mut self, to: u64, most: usize) {
        let reached = to.max(self.wheel.now().0);
        self.oracle.begin_pass(self.wheel.now(), reached);
        for _ in 0..most {
            let Some(expired) = self.wheel.pop_due(Tick(to)) else {
                return self.assert_nothing_to_do(reached);
            };
            self.oracle.expect(reached, &expired);
            assert_eq!(expired.deadline, self.wheel.now());
            self.oracle.run_nested(&mut self.wheel);
        }
    }

    /// Advances to `to`, with a budget.
    fn advance(&mut self, to: u64, budget: usize) {
        let before = self.wheel.now();
        let reached = to.max(before.0);
        let oracle = &mut self.oracle;
        oracle.begin_pass(before, reached);
        let mut fired = 0;
        let outcome = self.wheel.advance(Tick(to), budget, |wheel, expired| {
            assert_eq!(expired.deadline, wheel.now());
            fired += 1;
            oracle.expect(reached, &expired);
            oracle.run_nested(wheel);
        });
        assert!(fired <= budget);
        match outcome {
            Advance::Done => self.assert_nothing_to_do(reached),
            Advance::More => {
                let next = self.wheel.next_wakeup();
                assert!(next.is_some_and(|next| next.0 <= reached), "{next:?} {reached}");
                let now = self.wheel.now();
                assert!(before <= now && now.0 <= reached);
            }
            Advance::ShutDown => unreachable!("a wheel is not shut down"),
        }
    }

    fn assert_nothing_to_do(&mut self, to: u64) {
        assert_eq!(self.wheel.now(), Tick(to));
        let next = self.oracle.take_next(to);
        assert_eq!(next, None, "a due timer is left");
        self.oracle.pass = None;
        match self.wheel.next_wakeup() {
            Some(next) if !self.oracle.overdue.is_empty() => assert_eq!(next.0, to),
            next => assert!(next.is_none_or(|next| next.0 > to || to == u64::MAX)),
        }
    }

    fn check(&mut self) {
        assert_consistent(&self.wheel);
        let len = self.oracle.len();
        assert_eq!((self.wheel.len(), self.wheel.is_empty()), (len, len == 0));
        let earliest = self.oracle.earliest(self.wheel.now());
        assert_eq!(self.wheel.earliest_deadline(), earliest);
        let next = self.wheel.next_wakeup();
        assert_eq!(next.is_some(), earliest.is_some());
        assert!(next <= earliest);
        assert!(next.is_none_or(|next| next >= self.wheel.now()));
        let timer = |(id, due, payload): (TimerId, Tick, &mut u64)| (id, due, *payload);
        let mut live: Vec<_> = self.wheel.iter_mut().map(timer).collect();
        let seen = self.wheel.iter().map(|(id, due, &payload)| (id, due, payload));
        assert!(seen.eq(live.iter().copied()));
        let timer =
            |(tick, number)| (self.oracle.id(number), Tick(tick).max(self.wheel.now()), number);
        let mut expected: Vec<_> = self.oracle.in_order().into_iter().map(timer).collect();
        let in_order = self.wheel.iter_in_order().map(|(id, due, &payload)| (id, due, payload));
        assert!(in_order.eq(expected.iter().copied()));
        live.sort_unstable();
        expected.sort_unstable();
        assert_eq!(live, expected);
    }
}

/// The expected contents of the wheel. A timer's payload is its number.
#[derive(Default)]
struct Oracle {
    /// The timers that fire in this pass or a later one, by tick and number.
    waiting: BTreeSet<(u64, u64)>,
    /// The timers that were due when the pass began. They fire first.
    late: BTreeSet<(u64, u64)>,
    /// The timers that were linked since then for a tick already reached.
    overdue: BTreeSet<(u64, u64)>,
    /// The tick to which the pass goes.
    pass: Option<u64>,
    /// Every timer ever scheduled, with its tick while it is live.
    timers: Vec<(TimerId, Option<u64>)>,
    /// Everything that fired, again and again if it was re-armed.
    fired: Vec<Expired<u64>>,
    nested: Vec<Op>,
    /// The tick of the last firing.
    now: u64,
}

/// A payload that is not the number of any timer.
const REPLACEMENT: u64 = u64::MAX;

/// The position of the sequence number in an id as a number. Below it stand the
/// number of the wheel and, in the lowest 32 bits, the index.
const SEQUENCE_SHIFT: u32 = 76;

fn index_of(id: TimerId) -> u32 {
    u128::from(id) as u32
}

/// Returns an id of the same wheel.
fn forged(of: TimerId, index: u32, sequence: u64) -> TimerId {
    let wheel = u128::from(of) & ((1 << SEQUENCE_SHIFT) - 1) & !u128::from(u32::MAX);
    let number = wheel | u128::from(sequence) << SEQUENCE_SHIFT | u128::from(index);
    TimerId::try_from(number).expect("the sequence number is not zero")
}

impl Oracle {
    /// Applies an operation to the wheel and the oracle. Ignores those that move the
    /// clock.
    fn edit(&mut self, wheel: &mut Wheel<u64>, op: &Op) {
        match *op {
            Op::Schedule(delay) => self.schedule(wheel, delay.resolve(wheel)),
            Op::Fill(delay, count, apart) => {
                let first = delay.resolve(wheel);
                for n in 0..u64::from(count) {
                    self.schedule(wheel, first.saturating_add(n * u64::from(apart)));
                }
            }
            Op::Cancel(which) => self.cancel(wheel, which),
            Op::Move(which, to) => self.reschedule(wheel, which, to.resolve(wheel)),
            Op::Reuse(which, to) => {
                self.reschedule(wheel, which, u64::MAX);
                assert_consistent(wheel);
                self.reschedule(wheel, which, to.resolve(wheel));
            }
            Op::Herd(which, count, to) => {
                let deadline = to.resolve(wheel);
                for n in 0..usize::from(count) {
                    self.reschedule(wheel, which.wrapping_add(n), deadline);
                }
            }
            Op::Rearm(which, to) => self.rearm(wheel, which, to.resolve(wheel)),
            Op::Look(which) => self.look(wheel, which),
            Op::Forge(index, sequence, to, cancels) => {
                let deadline = to.resolve(wheel);
                self.forge(wheel, index, sequence, deadline, cancels);
            }
            Op::Clear => self.clear(wheel),
            Op::Shrink(cells) => shrink(wheel, cells),
            Op::Pop(..) | Op::Advance(..) | Op::LeaveOne(_) | Op::PopToNextWakeup(_) => {}
            Op::Nested(_) | Op::Clone => {}
        }
    }

    fn run_nested(&mut self, wheel: &mut Wheel<u64>) {
        for op in std::mem::take(&mut self.nested) {
            self.edit(wheel, &op);
        }
    }

    /// Links a timer for `deadline`, as the wheel does if its clock is at `now`.
    fn link(&mut self, now: Tick, deadline: u64, number: u64) -> u64 {
        let is_overdue = deadline <= now.0 && deadline < u64::MAX;
        if is_overdue {
            self.overdue.insert((deadline, number))
        } else {
            self.waiting.insert((deadline, number))
        };
        deadline
    }

    /// Begins a pass to a tick, unless that is under way.
    fn begin_pass(&mut self, now: Tick, to: u64) {
        self.now = now.0;
        if self.pass == Some(to) {
            return;
        }
        self.pass = Some(to);
        self.late.append(&mut self.overdue);
        while let Some(&first) =
            self.waiting.first().filter(|first| first.0 <= now.0.min(u64::MAX - 1))
        {
            self.waiting.remove(&first);
            self.late.insert(first);
        }
    }

    /// Removes and returns the timer that fires next on the way to `to`.
    fn take_next(&mut self, to: u64) -> Option<u64> {
        let next = match self.late.first() {
            Some(&(_, number)) => number,
            None => {
                let &(tick, number) = self.waiting.first()?;
                if tick > to || tick == u64::MAX {
                    return None;
                }
                self.now = tick;
                number
            }
        };
        self.end(next as usize);
        Some(next)
    }

    /// Returns all timers by tick and number.
    fn in_order(&self) -> Vec<(u64, u64)> {
        let all = self.late.iter().chain(&self.overdue).chain(&self.waiting);
        let mut all: Vec<_> = all.copied().collect();
        all.sort_unstable();
        all
    }

    fn schedule(&mut self, wheel: &mut Wheel<u64>, deadline: u64) {
        let number = self.timers.len() as u64;
        let place = self.link(wheel.now(), deadline, number);
        let id = wheel.schedule_at(Tick(deadline), number);
        assert_eq!(u128::from(id) >> SEQUENCE_SHIFT, u128::from(number) + 1);
        self.timers.push((id, Some(place)));
        let due = self.deadline(number as usize, wheel.now());
        assert_eq!(wheel.deadline(id), due);
    }

    fn cancel(&mut self, wheel: &mut Wheel<u64>, which: usize) {
        let Some(which) = self.choose(which) else {
            return;
        };
        let expected = self.end(which).map(|_| which as u64);
        assert_eq!(wheel.cancel(self.timers[which].0), expected);
    }

    fn reschedule(&mut self, wheel: &mut Wheel<u64>, which: usize, deadline: u64) {
        let Some(which) = self.choose(which) else {
            return;
        };
        let was_live = self.end(which).is_some();
        let id = self.timers[which].0;
        assert_eq!(wheel.reschedule(id, Tick(deadline)), was_live);
        if was_live {
            let place = self.link(wheel.now(), deadline, which as u64);
            self.timers[which].1 = Some(place);
        }
    }

    /// Succeeds if the timer is not in the wheel, even if it has been re-armed and
    /// cancelled since it fired.
    fn rearm(&mut self, wheel: &mut Wheel<u64>, which: usize, deadline: u64) {
        let Some(which) = which.checked_rem(self.fired.len()) else {
            return;
        };
        let expired = self.fired[self.fired.len() - 1 - which];
        let timer = expired.payload as usize;
        assert_eq!(Wheel::new(64).rearm(expired, Tick(deadline)), Err(expired));
        if self.timers[timer].1.is_some() {
            return assert_eq!(wheel.rearm(expired, Tick(deadline)), Err(expired));
        }
        assert_eq!(wheel.rearm(expired, Tick(deadline)), Ok(()));
        let place = self.link(wheel.now(), deadline, expired.payload);
        self.timers[timer].1 = Some(place);
        assert_eq!(wheel.deadline(expired.id()), self.deadline(timer, wheel.now()));
    }

    fn look(&self, wheel: &mut Wheel<u64>, which: usize) {
        if let Some(which) = self.choose(which) {
            let due = self.deadline(which, wheel.now());
            self.look_at(wheel, self.timers[which].0, which as u64, due);
        }
    }

    /// Makes every call that reads or replaces the timer with this id, which is due
    /// at `due` if it is live.
    fn look_at(&self, wheel: &mut Wheel<u64>, id: TimerId, number: u64, due: Option<Tick>) {
        assert_eq!(wheel.contains(id), due.is_some());
        assert_eq!(wheel.get(id), due.map(|_| &number));
        assert_eq!(wheel.deadline(id), due);
        let remaining = due.map(|due| due.since(wheel.now()));
        assert_eq!(wheel.remaining(id), remaining);
        let replaced = wheel.replace(id, REPLACEMENT);
        assert_eq!(replaced, due.map(|_| number).ok_or(REPLACEMENT));
        if let Some(payload) = wheel.get_mut(id) {
            assert_eq!(std::mem::replace(payload, number), REPLACEMENT);
        }
    }

    /// Uses a forged id, with a sequence number of up to two more than were given out.
    /// The id leads to the timer of its sequence number, if the index is right. It may
    /// also do so with a wrong index, after the timer was moved.
    fn forge(
        &mut self,
        wheel: &mut Wheel<u64>,
        index: Index,
        sequence: u64,
        deadline: u64,
        cancels: bool,
    ) {
        let Some(&(first, _)) = self.timers.first() else {
            return;
        };
        let number = sequence % (self.timers.len() as u64 + 2);
        let timer = self.timers.get(number as usize);
        let index = match index {
            Index::Own => index_of(timer.map_or(first, |timer| timer.0)),
            Index::Of(which) => index_of(self.timers[which % self.timers.len()].0),
            Index::Any(index) => index,
        };
        let id = forged(first, index, number + 1);
        let due = timer.and_then(|_| self.deadline(number as usize, wheel.now()));
        let is_real = due.is_some() && id == self.id(number);
        if due.is_none() || !is_real && !wheel.contains(id) {
            self.look_at(wheel, id, number, None);
            assert!(!wheel.reschedule(id, Tick(deadline)));
            return assert_eq!(wheel.cancel(id), None);
        }
        self.look_at(wheel, id, number, due);
        self.end(number as usize);
        assert!(wheel.reschedule(id, Tick(deadline)));
        if cancels {
            assert_eq!(wheel.cancel(id), Some(number))
        } else {
            let place = self.link(wheel.now(), deadline, number);
            self.timers[number as usize].1 = Some(place);
        }
    }

    fn clear(&mut self, wheel: &mut Wheel<u64>) {
        wheel.clear();
        self.waiting.clear();
        self.late.clear();
        self.overdue.clear();
        self.timers.iter_mut().for_each(|timer| timer.1 = None);
    }

    /// Asserts that an expired timer is the one that the oracle expects next.
    fn expect(&mut self, to: u64, expired: &Expired<u64>) {
        assert_eq!(Some(expired.payload), self.take_next(to));
        assert_eq!(expired.id(), self.id(expired.payload));
        assert_eq!(expired.deadline, Tick(self.now));
        assert!(self.now <= to, "fired early");
        self.fired.push(*expired);
    }

    fn choose(&self, which: usize) -> Option<usize> {
        which.checked_rem(self.timers.len())
    }

    fn id(&self, number: u64) -> TimerId {
        self.timers[number as usize].0
    }

    /// Returns the tick at which a timer is due, if it is live.
    fn deadline(&self, which: usize, now: Tick) -> Option<Tick> {
        Some(Tick(self.timers[which].1?.max(now.0)))
    }

    /// Forgets a timer. Returns its tick if it was live.
    fn end(&mut self, which: usize) -> Option<u64> {
        let tick = self.timers[which].1.take()?;
        let timer = (tick, which as u64);
        let lists = [&mut self.late, &mut self.overdue, &mut self.waiting];
        let removed = lists.map(|list| list.remove(&timer));
        assert_eq!(removed.into_iter().filter(|&is| is).count(), 1);
        Some(tick)
    }

    fn len(&self) -> usize {
        self.waiting.len() + self.late.len() + self.overdue.len()
    }

    fn earliest(&self, now: Tick) -> Option<Tick> {
        let &(tick, _) = self.in_order().first()?;
        Some(Tick(tick).max(now))
    }
}
