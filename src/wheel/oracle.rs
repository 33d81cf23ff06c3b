//! The wheel beside a slow oracle: a sorted map that nobody can doubt.
//!
//! Both are given the same random operations, at every start offset and wheel
//! size where such structures are known to go wrong, and after every step the
//! wheel's own invariants are checked.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Advance, Geometry, Wheel};
use crate::id::TimerId;
use crate::tick::Tick;

/// Where a timer stands among those of its tick: by first scheduling, or, if
/// it was filed for a tick already reached, behind them by order of calls.
type Key = (u64, bool, u64);

#[derive(Clone, Debug)]
enum Op {
    Schedule(Delay),
    Cancel(usize),
    Move(usize, Delay),
    Pop(Delay),
    Advance(Delay, usize),
    PopToNextWakeup(i8),
    /// What the next few callbacks do while they run.
    Nested(Vec<Op>),
}

/// A distance in ticks, scaled to the wheel when it is used.
#[derive(Clone, Copy, Debug)]
enum Delay {
    Past(u8),
    Near(u16),
    /// `size^level` ticks, one less, or one more.
    Boundary(u8, i8),
    Far(u64),
    EndOfTime(u8),
}

fn delay() -> impl Strategy<Value = Delay> {
    prop_oneof![
        1 => (0..9u8).prop_map(Delay::Past),
        8 => (0..300u16).prop_map(Delay::Near),
        4 => (0..12u8, -1..=1i8).prop_map(|(level, off)| Delay::Boundary(level, off)),
        1 => any::<u64>().prop_map(|far| Delay::Far(far >> (far % 61))),
        1 => (0..3u8).prop_map(Delay::EndOfTime),
    ]
}

/// How far the clock is moved: seldom to the end of time, where nothing is
/// left to test.
fn step() -> impl Strategy<Value = Delay> {
    prop_oneof![
        12 => (0..300u16).prop_map(Delay::Near),
        6 => (0..5u8, -1..=1i8).prop_map(|(level, off)| Delay::Boundary(level, off)),
        1 => any::<u64>().prop_map(|far| Delay::Far(far >> (20 + far % 41))),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let leaf = prop_oneof![
        12 => delay().prop_map(Op::Schedule),
        3 => any::<usize>().prop_map(Op::Cancel),
        5 => (any::<usize>(), delay()).prop_map(|(which, to)| Op::Move(which, to)),
        3 => step().prop_map(Op::Pop),
        4 => (step(), 0..20usize).prop_map(|(to, budget)| Op::Advance(to, budget)),
        3 => (-1..=1i8).prop_map(Op::PopToNextWakeup),
    ];
    leaf.prop_recursive(1, 8, 6, |leaf| vec(leaf, 1..6).prop_map(Op::Nested))
}

struct Pair {
    wheel: Wheel<u64>,
    oracle: BTreeMap<Key, (TimerId, u64)>,
    keys: Vec<(TimerId, Option<Key>)>,
    nested: Vec<Op>,
    scheduled: u64,
    late: u64,
}

impl Pair {
    fn new(start: u64, geometry: Geometry) -> Pair {
        Pair {
            wheel: Wheel::with_geometry(Tick(start), geometry),
            oracle: BTreeMap::new(),
            keys: Vec::new(),
            nested: Vec::new(),
            scheduled: 0,
            late: 0,
        }
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Schedule(delay) => self.schedule(*delay),
            Op::Cancel(which) => self.cancel(*which),
            Op::Move(which, to) => self.reschedule(*which, *to),
            Op::Pop(to) => self.pop(self.resolve(*to)),
            Op::Advance(to, budget) => self.advance(self.resolve(*to), *budget),
            Op::PopToNextWakeup(off) => {
                if let Some(next) = self.wheel.next_wakeup() {
                    self.pop(next.0.saturating_add_signed(i64::from(*off)));
                }
            }
            Op::Nested(ops) => self.nested = ops.clone(),
        }
        self.check();
    }

    fn resolve(&self, delay: Delay) -> u64 {
        let now = self.wheel.now().0;
        match delay {
            Delay::Past(by) => now.saturating_sub(u64::from(by)),
            Delay::Near(by) => now.saturating_add(u64::from(by)),
            Delay::Boundary(level, off) => {
                let size = self.wheel.geometry().size() as u64;
                let unit = size.saturating_pow(u32::from(level));
                let next = (now / unit).saturating_add(1).saturating_mul(unit);
                next.saturating_add_signed(i64::from(off))
            }
            Delay::Far(by) => now.saturating_add(by),
            Delay::EndOfTime(before) => u64::MAX - u64::from(before),
        }
    }

    fn key(&mut self, deadline: u64, sequence: u64) -> Key {
        let now = self.wheel.now().0;
        if deadline > now {
            return (deadline, false, sequence);
        }
        self.late += 1;
        (now, true, self.late)
    }

    fn schedule(&mut self, delay: Delay) {
        let deadline = self.resolve(delay);
        self.scheduled += 1;
        let key = self.key(deadline, self.scheduled);
        let id = self.wheel.schedule_at(Tick(deadline), self.scheduled);
        self.oracle.insert(key, (id, self.scheduled));
        self.keys.push((id, Some(key)));
        assert_eq!(self.wheel.deadline(id), Some(Tick(key.0)));
    }

    fn cancel(&mut self, which: usize) {
        if self.keys.is_empty() {
            return;
        }
        let which = which % self.keys.len();
        let (id, key) = &mut self.keys[which];
        let expected = key.take().and_then(|key| self.oracle.remove(&key));
        assert_eq!(self.wheel.cancel(*id), expected.map(|(_, payload)| payload));
    }

    fn reschedule(&mut self, which: usize, to: Delay) {
        if self.keys.is_empty() {
            return;
        }
        let which = which % self.keys.len();
        let deadline = self.resolve(to);
        let (id, old) = self.keys[which];
        assert_eq!(self.wheel.reschedule(id, Tick(deadline)), old.is_some());
        if let Some(old) = old {
            let (id, payload) = self.oracle.remove(&old).unwrap();
            let key = self.key(deadline, payload);
            self.oracle.insert(key, (id, payload));
            self.keys[which].1 = Some(key);
        }
    }

    fn pop(&mut self, to: u64) {
        let to = to.max(self.wheel.now().0);
        while let Some(expired) = self.wheel.pop_due(Tick(to)) {
            self.expect(to, expired.id, expired.deadline.0, expired.payload);
            self.run_nested();
        }
        assert_eq!(self.wheel.now(), Tick(to));
        self.assert_nothing_due(to);
    }

    fn advance(&mut self, to: u64, budget: usize) {
        let to = to.max(self.wheel.now().0);
        let mut fired = Vec::new();
        let outcome = self.wheel.advance(Tick(to), budget, |wheel, expired| {
            assert_eq!(expired.deadline, wheel.now());
            fired.push(expired);
        });
        assert!(fired.len() <= budget);
        for expired in fired {
            self.expect(to, expired.id, expired.deadline.0, expired.payload);
        }
        if outcome == Advance::Done {
            assert_eq!(self.wheel.now(), Tick(to));
            self.assert_nothing_due(to);
        }
    }

    fn expect(&mut self, to: u64, id: TimerId, deadline: u64, payload: u64) {
        let (key, expected) = self.oracle.pop_first().expect("nothing more is live");
        assert_eq!((id, payload), expected);
        assert_eq!(deadline, key.0);
        assert!(deadline <= to, "fired early");
        let slot = self.keys.iter_mut().find(|(other, _)| *other == id);
        slot.unwrap().1 = None;
    }

    fn run_nested(&mut self) {
        for op in std::mem::take(&mut self.nested) {
            match op {
                Op::Schedule(delay) => self.schedule(delay),
                Op::Cancel(which) => self.cancel(which),
                Op::Move(which, to) => self.reschedule(which, to),
                _ => {}
            }
        }
    }

    fn assert_nothing_due(&self, to: u64) {
        assert!(
            self.oracle
                .first_key_value()
                .is_none_or(|(key, _)| key.0 > to)
        );
    }

    fn check(&self) {
        self.wheel.assert_consistent();
        assert_eq!(self.wheel.len(), self.oracle.len());
        let earliest = self.oracle.first_key_value().map(|(key, _)| Tick(key.0));
        assert_eq!(self.wheel.earliest_deadline(), earliest);
        let next = self.wheel.next_wakeup();
        assert_eq!(next.is_some(), earliest.is_some());
        assert!(next <= earliest);
        assert!(next.is_none_or(|next| next >= self.wheel.now()));
        let mut live: Vec<u64> = self.wheel.iter().map(|(_, _, &payload)| payload).collect();
        live.sort_unstable();
        let mut expected: Vec<u64> = self.oracle.values().map(|&(_, payload)| payload).collect();
        expected.sort_unstable();
        assert_eq!(live, expected);
    }
}

/// Offsets at which levels begin, end and wrap.
fn start_offsets(size: u64) -> Vec<u64> {
    let two_to = |n: u32| 1u64 << n;
    vec![
        0,
        1,
        size - 1,
        size,
        size + 1,
        size.pow(2) - 1,
        size.pow(2),
        size.pow(2) + 1,
        size.saturating_pow(3),
        two_to(32) - 3,
        two_to(36) - 3,
        u64::MAX - size.pow(2),
        u64::MAX - 2,
    ]
}

fn geometry(size: usize, cap: usize) -> Geometry {
    let geometry = Geometry::new(size).unwrap();
    match cap {
        0 => geometry,
        cap => geometry.max_levels(cap).unwrap(),
    }
}

fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig {
        cases: cases
            .and_then(|cases| cases.parse().ok())
            .unwrap_or(default),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn the_wheel_does_what_a_sorted_map_does(
        size in prop::sample::select(vec![2usize, 3, 20, 64, 100, 256]),
        cap in prop_oneof![4 => Just(0usize), 1 => 1..4usize],
        offset in 0..13usize,
        ops in vec(op(), 1..120),
    ) {
        let start = start_offsets(size as u64)[offset];
        let mut pair = Pair::new(start, geometry(size, cap));
        for op in &ops {
            pair.run(op);
        }
        // Far from the end of time everything left is popped at once.
        pair.pop(u64::MAX);
        pair.check();
        prop_assert!(pair.wheel.is_empty());
    }
}

proptest! {
    #![proptest_config(cases(20))]

    #[test]
    fn so_does_a_flat_wheel_of_sixty_thousand_slots(
        offset in 0..13usize,
        ops in vec(op(), 1..12),
    ) {
        let start = start_offsets(60_000)[offset];
        for cap in [0, 2] {
            let mut pair = Pair::new(start, geometry(60_000, cap));
            for op in &ops {
                pair.run(op);
            }
        }
    }
}
