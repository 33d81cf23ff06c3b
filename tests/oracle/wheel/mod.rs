//! The wheel compared with a slow oracle: a sorted map, too simple to be wrong.
//!
//! Both get the same random operations, at start offsets and wheel sizes at which
//! such structures are known to fail. After every step the wheel's own invariants
//! are checked.

mod pair;

#[path = "../../support/scripts.rs"]
mod scripts;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Advance, Expired, Geometry, Wheel};
use crate::id::TimerId;
use crate::tick::Tick;
use pair::{Delay, Index, Op, Pair};
use scripts::{cases, start_offsets};

fn assert_consistent(wheel: &Wheel<u64>) {
    wheel.assert_consistent();
}

/// Shrinks by a few entries, as an engine does, or completely if `cells` is zero.
fn shrink(wheel: &mut Wheel<u64>, cells: u8) {
    if cells == 0 {
        return wheel.shrink();
    }
    let _ = wheel.entries.trim_some(&mut usize::from(cells));
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

/// The deadline of a timer that was disarmed, and may stay so.
fn armed() -> impl Strategy<Value = Delay> {
    prop_oneof![2 => delay(), 1 => Just(Delay::EndOfTime(0))]
}

/// A step of the clock. It rarely goes to the end of time, after which nothing is
/// left to test.
fn step() -> impl Strategy<Value = Delay> {
    prop_oneof![
        2 => (1..300u16).prop_map(|by| Delay::Past(by.min(255) as u8)),
        12 => (0..300u16).prop_map(Delay::Near),
        6 => (0..5u8, -1..=1i8).prop_map(|(level, off)| Delay::Boundary(level, off)),
        1 => any::<u64>().prop_map(|far| Delay::Far(far >> (20 + far % 41))),
        10 => Just(Delay::Pass),
    ]
}

/// Enough timers to put several into a slot, or to occupy every slot of a small level.
fn fill() -> impl Strategy<Value = Op> {
    let apart = prop_oneof![2 => Just(0u8), 2 => 1..4u8, 1 => any::<u8>()];
    (delay(), 2..40u8, apart).prop_map(|(from, count, apart)| Op::Fill(from, count, apart))
}

fn herd() -> impl Strategy<Value = Op> {
    (any::<usize>(), 2..40u8, delay()).prop_map(|(which, count, to)| Op::Herd(which, count, to))
}

fn forge() -> impl Strategy<Value = Op> {
    let index = prop_oneof![
        2 => Just(Index::Own),
        3 => any::<usize>().prop_map(Index::Of),
        4 => (0..2_000u32).prop_map(Index::Any),
        1 => any::<u32>().prop_map(Index::Any),
    ];
    let sequence = prop_oneof![1 => 0..40u64, 1 => any::<u64>()];
    (index, sequence, delay(), any::<bool>())
        .prop_map(|(index, sequence, to, cancels)| Op::Forge(index, sequence, to, cancels))
}

/// Mostly the timer that has just fired.
fn recent() -> impl Strategy<Value = usize> {
    prop_oneof![3 => Just(0), 2 => 0..4usize, 1 => any::<usize>()]
}

/// All that are due, or a few.
fn most() -> impl Strategy<Value = usize> {
    prop_oneof![2 => Just(usize::MAX), 1 => 1..9usize]
}

fn op() -> impl Strategy<Value = Op> {
    let leaf = prop_oneof![
        24 => delay().prop_map(Op::Schedule),
        4 => fill(),
        6 => any::<usize>().prop_map(Op::Cancel),
        10 => (any::<usize>(), delay()).prop_map(|(which, to)| Op::Move(which, to)),
        6 => (any::<usize>(), armed()).prop_map(|(which, to)| Op::Reuse(which, to)),
        4 => herd(),
        2 => any::<usize>().prop_map(Op::Look),
        8 => (recent(), delay()).prop_map(|(which, to)| Op::Rearm(which, to)),
        4 => forge(),
        8 => (step(), most()).prop_map(|(to, most)| Op::Pop(to, most)),
        8 => (step(), 0..20usize).prop_map(|(to, budget)| Op::Advance(to, budget)),
        3 => step().prop_map(Op::LeaveOne),
        6 => (-1..=1i8).prop_map(Op::PopToNextWakeup),
        3 => prop_oneof![Just(0u8), any::<u8>()].prop_map(Op::Shrink),
        2 => Just(Op::Clone),
    ];
    let op = leaf.prop_recursive(1, 8, 6, |leaf| vec(leaf, 1..6).prop_map(Op::Nested));
    prop_oneof![100 => op, 1 => Just(Op::Clear)]
}

/// A list of operations on a wheel. Most lists begin by filling the wheel.
fn script(longest: usize) -> impl Strategy<Value = Vec<Op>> {
    (vec(fill(), 0..3), vec(op(), 1..longest)).prop_map(|(first, then)| [first, then].concat())
}

fn geometry(size: usize, cap: usize) -> Geometry {
    let geometry = Geometry::new(size).unwrap();
    match cap {
        0 => geometry,
        cap => geometry.max_levels(cap).unwrap(),
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn the_wheel_does_what_a_sorted_map_does(
        // Of 124, the first level ends with a word, and two words share a bit.
        size in prop::sample::select(vec![2usize, 3, 20, 64, 124, 256]),
        cap in prop_oneof![4 => Just(0usize), 1 => 1..4usize],
        offset in 0..13usize,
        ops in script(120),
        pop_the_rest in any::<bool>(),
    ) {
        let start = start_offsets(size as u64)[offset];
        let mut pair = Pair::new(start, geometry(size, cap));
        for op in &ops {
            pair.run(op);
        }
        if pop_the_rest { pair.pop_the_rest() } else { pair.take_the_rest() }
    }
}

fn run(cap: usize, ops: &[Op]) {
    let mut pair = Pair::new(100, geometry(2, cap));
    ops.iter().for_each(|op| pair.run(op));
}

#[test]
fn what_a_pass_was_sorting_is_sorted_with_what_is_late_since() {
    let (late, more) = (|by| Op::Schedule(Delay::Past(by)), Op::Advance(Delay::Near(50), 2));
    run(0, &[late(1), late(3), more, late(2), Op::Pop(Delay::Near(60), 9)]);
}

#[test]
fn a_timer_that_is_sorted_again_has_its_new_place() {
    let (late, more) = (|by| Op::Schedule(Delay::Past(by)), Op::Advance(Delay::Near(50), 2));
    let later = Op::Move(0, Delay::Past(0));
    run(0, &[late(3), late(4), more, later, late(2), Op::Pop(Delay::Near(60), 9)]);
}

#[test]
fn a_timer_that_is_moved_while_it_is_sorted_waits_for_the_next_pass() {
    let (late, more) = (|by| Op::Schedule(Delay::Past(by)), |n| Op::Advance(Delay::Near(50), n));
    let again = Op::Move(0, Delay::Past(3));
    run(0, &[late(3), late(4), late(1), more(3), again, more(20)]);
}

#[test]
fn a_paused_cascade_keeps_the_clock_before_its_slot() {
    let (two, one) = (Op::Fill(Delay::Near(4), 2, 0), Op::Advance(Delay::Near(4), 1));
    let late = Op::Schedule(Delay::Past(0));
    run(0, &[two.clone(), one.clone(), late, Op::Pop(Delay::Near(9), 9)]);
    // Nor does what it has brought fire before an older timer that it has not reached.
    let [away, back] = [5, 4].map(|by| Op::Move(0, Delay::Near(by)));
    run(0, &[two, away, back, one, Op::Pop(Delay::Pass, 9)]);
}

#[test]
fn a_far_timer_is_not_looked_at_in_the_rotation_of_one_that_was_cancelled() {
    let (near, far) = (Op::Schedule(Delay::Near(5)), Op::Schedule(Delay::Near(200)));
    run(1, &[near, Op::Cancel(0), far, Op::Advance(Delay::Near(5), 0)]);
}

proptest! {
    #![proptest_config(cases(20))]

    #[test]
    fn so_does_a_flat_wheel_of_sixty_thousand_slots(
        offset in 0..13usize,
        ops in script(12),
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
