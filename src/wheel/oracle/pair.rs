//! A wheel and a sorted map that nobody can doubt, given the same operations
//! and compared after each of them.
//!
//! The property tests use it, and so does the fuzz target (`tests/fuzz`), which
//! sees only the public face of the crate: so names come from whoever has this
//! module.

use std::collections::BTreeMap;

use super::{Advance, Expired, Geometry, Tick, TimerId, Wheel, assert_consistent, shrink};

/// Where a timer stands among those of its tick: by first scheduling, or, if
/// it was filed for a tick already reached, behind them by order of calls.
type Key = (u64, bool, u64);

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Schedule(Delay),
    /// So many timers, each some ticks after the one before: several in each
    /// lane.
    Fill(Delay, u8, u8),
    Cancel(usize),
    Move(usize, Delay),
    /// Moves so many timers to one tick, where they arrive out of order.
    Herd(usize, u8, Delay),
    /// Asks for everything that can be asked of one timer.
    Look(usize),
    Clear,
    /// Shrinks by so many cells, or all the way.
    Shrink(u8),
    Pop(Delay),
    Advance(Delay, usize),
    PopToNextWakeup(i8),
    /// What the next callback does while it runs.
    Nested(Vec<Op>),
}

/// A distance in ticks, scaled to the wheel when it is used.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delay {
    Past(u8),
    Near(u16),
    /// `size^level` ticks, one less, or one more.
    Boundary(u8, i8),
    Far(u64),
    EndOfTime(u8),
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
        }
    }
}

pub(crate) struct Pair {
    wheel: Wheel<u64>,
    oracle: Oracle,
}

impl Pair {
    pub(crate) fn new(start: u64, geometry: Geometry) -> Pair {
        Pair {
            wheel: Wheel::with_geometry(Tick(start), geometry),
            oracle: Oracle::default(),
        }
    }

    pub(crate) fn run(&mut self, op: &Op) {
        match op {
            Op::Pop(to) => self.pop(to.resolve(&self.wheel)),
            Op::Advance(to, budget) => self.advance(to.resolve(&self.wheel), *budget),
            Op::PopToNextWakeup(off) => {
                if let Some(next) = self.wheel.next_wakeup() {
                    self.pop(next.0.saturating_add_signed(i64::from(*off)));
                }
            }
            Op::Nested(ops) => self.oracle.nested.clone_from(ops),
            op => self.oracle.edit(&mut self.wheel, op),
        }
        self.check();
    }

    /// Pops everything that is left.
    pub(crate) fn pop_the_rest(&mut self) {
        self.pop(u64::MAX);
        self.check();
        assert!(self.wheel.is_empty());
    }

    /// Takes everything that is left out of the wheel, as nothing else does.
    pub(crate) fn take_the_rest(self) {
        let Pair { wheel, mut oracle } = self;
        let rest = wheel.into_iter();
        assert_eq!(rest.len(), oracle.live.len());
        for (id, deadline, payload) in rest {
            let key = oracle.end(payload as usize);
            assert_eq!(oracle.id(payload), id);
            assert_eq!(key.map(|key| Tick(key.0)), Some(deadline));
        }
        assert!(oracle.live.is_empty());
    }

    fn pop(&mut self, to: u64) {
        let to = to.max(self.wheel.now().0);
        while let Some(expired) = self.wheel.pop_due(Tick(to)) {
            self.oracle.expect(to, &expired);
            self.oracle.run_nested(&mut self.wheel);
        }
        self.assert_nothing_to_do(to);
    }

    fn advance(&mut self, to: u64, budget: usize) {
        let to = to.max(self.wheel.now().0);
        let oracle = &mut self.oracle;
        let mut fired = 0;
        let outcome = self.wheel.advance(Tick(to), budget, |wheel, expired| {
            assert_eq!(expired.deadline, wheel.now());
            fired += 1;
            oracle.expect(to, &expired);
            oracle.run_nested(wheel);
        });
        assert!(fired <= budget);
        match outcome {
            Advance::Done => self.assert_nothing_to_do(to),
            Advance::More => assert!(self.wheel.next_wakeup().is_some_and(|next| next.0 <= to)),
            Advance::Closed => unreachable!("a wheel is not shut down"),
        }
    }

    fn assert_nothing_to_do(&self, to: u64) {
        assert_eq!(self.wheel.now(), Tick(to));
        assert!(self.wheel.next_wakeup().is_none_or(|next| next.0 > to));
        let earliest = self.oracle.earliest();
        assert!(earliest.is_none_or(|earliest| earliest.0 > to));
    }

    fn check(&self) {
        assert_consistent(&self.wheel);
        assert_eq!(self.wheel.len(), self.oracle.live.len());
        let earliest = self.oracle.earliest();
        assert_eq!(self.wheel.earliest_deadline(), earliest);
        let next = self.wheel.next_wakeup();
        assert_eq!(next.is_some(), earliest.is_some());
        assert!(next <= earliest);
        assert!(next.is_none_or(|next| next >= self.wheel.now()));
        let mut live: Vec<u64> = self.wheel.iter().map(|(_, _, &payload)| payload).collect();
        live.sort_unstable();
        let mut expected: Vec<u64> = self.oracle.live.values().copied().collect();
        expected.sort_unstable();
        assert_eq!(live, expected);
    }
}

/// What the wheel should hold. A timer's payload is its number.
#[derive(Default)]
struct Oracle {
    live: BTreeMap<Key, u64>,
    /// Every timer there ever was, with its key while it is live.
    timers: Vec<(TimerId, Option<Key>)>,
    late: u64,
    nested: Vec<Op>,
}

/// No timer's number.
const REPLACEMENT: u64 = u64::MAX;

impl Oracle {
    /// Does to both what moves no clock.
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
            Op::Herd(which, count, to) => {
                let deadline = to.resolve(wheel);
                for n in 0..usize::from(count) {
                    self.reschedule(wheel, which.wrapping_add(n), deadline);
                }
            }
            Op::Look(which) => self.look(wheel, which),
            Op::Clear => self.clear(wheel),
            Op::Shrink(cells) => shrink(wheel, cells),
            Op::Pop(_) | Op::Advance(..) | Op::PopToNextWakeup(_) | Op::Nested(_) => {}
        }
    }

    fn run_nested(&mut self, wheel: &mut Wheel<u64>) {
        for op in std::mem::take(&mut self.nested) {
            self.edit(wheel, &op);
        }
    }

    fn key(&mut self, now: Tick, deadline: u64, number: u64) -> Key {
        if deadline > now.0 {
            return (deadline, false, number);
        }
        self.late += 1;
        (now.0, true, self.late)
    }

    fn schedule(&mut self, wheel: &mut Wheel<u64>, deadline: u64) {
        let number = self.timers.len() as u64;
        let key = self.key(wheel.now(), deadline, number);
        let id = wheel.schedule_at(Tick(deadline), number);
        self.live.insert(key, number);
        self.timers.push((id, Some(key)));
        assert_eq!(wheel.deadline(id), Some(Tick(key.0)));
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
            let key = self.key(wheel.now(), deadline, which as u64);
            self.live.insert(key, which as u64);
            self.timers[which].1 = Some(key);
        }
    }

    fn look(&self, wheel: &mut Wheel<u64>, which: usize) {
        let Some(which) = self.choose(which) else {
            return;
        };
        let (id, key) = self.timers[which];
        let number = which as u64;
        assert_eq!(wheel.contains(id), key.is_some());
        assert_eq!(wheel.get(id), key.map(|_| &number));
        assert_eq!(wheel.deadline(id), key.map(|key| Tick(key.0)));
        let remaining = key.map(|key| key.0.saturating_sub(wheel.now().0));
        assert_eq!(wheel.remaining(id), remaining);
        let replaced = wheel.replace(id, REPLACEMENT);
        assert_eq!(replaced, key.map(|_| number).ok_or(REPLACEMENT));
        if let Some(payload) = wheel.get_mut(id) {
            assert_eq!(std::mem::replace(payload, number), REPLACEMENT);
        }
    }

    fn clear(&mut self, wheel: &mut Wheel<u64>) {
        wheel.clear();
        for number in std::mem::take(&mut self.live).into_values() {
            self.timers[number as usize].1 = None;
        }
    }

    /// What leaves the wheel is what the map has first.
    fn expect(&mut self, to: u64, expired: &Expired<u64>) {
        let (key, number) = self.live.pop_first().expect("nothing more is live");
        self.timers[number as usize].1 = None;
        assert_eq!(expired.payload, number);
        assert_eq!(expired.id, self.id(number));
        assert_eq!(expired.deadline, Tick(key.0));
        assert!(key.0 <= to, "fired early");
    }

    fn choose(&self, which: usize) -> Option<usize> {
        which.checked_rem(self.timers.len())
    }

    fn id(&self, number: u64) -> TimerId {
        self.timers[number as usize].0
    }

    /// Forgets a timer, and says where it stood if it was live.
    fn end(&mut self, which: usize) -> Option<Key> {
        let key = self.timers[which].1.take()?;
        self.live.remove(&key);
        Some(key)
    }

    fn earliest(&self) -> Option<Tick> {
        Some(Tick(self.live.first_key_value()?.0.0))
    }
}
