//! The entries that are left after shrinking, and the timers, which are unchanged.

mod search;

use super::*;
use crate::id::TimerId;
use crate::tick::Tick;

const COUNT: u64 = 8_000;

/// Returns a wheel of many timers, all cancelled except those that `stays` selects,
/// and the ids and payloads of the remaining timers.
fn with_few(stays: impl Fn(u64) -> bool) -> (Wheel<u64>, Vec<(TimerId, u64)>) {
    let mut wheel = Wheel::new(64);
    let deadline = |n| 1 + n * 7_919 % 100_000;
    let all: Vec<_> = (0..COUNT)
        .map(|n| (wheel.schedule_at(Tick(deadline(n)), n), n))
        .collect();
    let (few, gone): (Vec<_>, Vec<_>) = all.into_iter().partition(|&(_, n)| stays(n));
    for (id, n) in gone {
        assert_eq!(wheel.cancel(id), Some(n));
    }
    (wheel, few)
}

/// Shrinks a wheel and checks that its timers are unchanged. Returns the number of
/// entries that are left.
fn shrinks_to(stays: impl Fn(u64) -> bool) -> usize {
    let (mut wheel, few) = with_few(stays);
    wheel.shrink();
    wheel.assert_consistent();
    let few_entries = few.len() + wheel.levels.geometry.size() * LANES * 3 + 2;
    let used = wheel.entries.used() as usize;
    assert!(
        used <= few_entries + few_entries / 8 + 64,
        "{used} for {few_entries}"
    );
    for &(id, n) in few.iter().step_by(2) {
        assert_eq!(wheel.cancel(id), Some(n));
        assert_eq!(wheel.cancel(id), None);
    }
    let mut fired = 0;
    while let Some(expired) = wheel.pop_due(Tick(200_000)) {
        assert!(few.contains(&(expired.id(), expired.payload)));
        fired += 1;
    }
    assert_eq!(fired, few.len() / 2);
    used
}

#[test]
fn the_rest_of_the_block_is_cut_off_whichever_timers_stay() {
    shrinks_to(|n| n < COUNT / 10);
    shrinks_to(|n| n >= COUNT - COUNT / 10);
    shrinks_to(|n| n % 10 == 3);
    shrinks_to(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60 == 0);
}

#[test]
fn timers_of_a_single_lane_move_to_other_lanes() {
    shrinks_to(|n| n % 8 == 3);
    shrinks_to(|n| n % 64 == 11);
}

#[test]
fn an_empty_wheel_shrinks_to_the_size_of_a_new_one() {
    let (mut wheel, _) = with_few(|_| false);
    wheel.shrink();
    wheel.assert_consistent();
    let new = Wheel::<u64>::new(64);
    assert_eq!(wheel.entries.used(), new.entries.used());
    assert!(wheel.entries.capacity() <= 16);
    wheel.schedule_at(Tick(70), 7);
    assert_eq!(wheel.pop_due(Tick(70)).map(|e| e.payload), Some(7));
}

#[test]
fn list_heads_that_were_added_late_move_down() {
    let (mut wheel, few) = with_few(|n| n % 100 == 0);
    let far = wheel.schedule_at(Tick(1 << 40), 1);
    let before = wheel.entries.used();
    wheel.shrink();
    wheel.assert_consistent();
    assert!(wheel.entries.used() < before / 3);
    assert_eq!(wheel.cancel(far), Some(1));
    while wheel.pop_due(Tick(100_000)).is_some() {}
    assert!(wheel.is_empty() && !few.is_empty());
}

#[test]
fn an_entry_that_a_timer_leaves_below_late_heads_is_reused() {
    // The timers that stay are all in one lane, so they move to other lanes.
    let (mut wheel, few) = with_few(|n| n % 8 == 3);
    wheel.schedule_at(Tick(1 << 40), 1);
    wheel.begin_shrink();
    // Stops before the end of the block is cut off.
    let _ = wheel.shrink_some(&mut 7_000, |_, _| Linkage::InWheel);
    wheel.stop_gathering();
    while !wheel.shrink_some(&mut 1_000, |_, _| Linkage::InWheel) {}
    wheel.assert_consistent();
    assert_eq!(wheel.len(), few.len() + 1);
}

#[test]
fn a_timer_in_the_entry_of_a_head_that_a_pass_has_left_behind_is_kept() {
    let mut wheel = Wheel::new(64);
    wheel.schedule_at(Tick(1), 0);
    assert!(wheel.pop_due(Tick(1)).is_some());
    wheel.begin_shrink();
    assert!(!wheel.shrink_some(&mut 1, |_, _| Linkage::InWheel));
    // The last of these timers gives the slots more lanes. No slot needs its heads.
    let overdue: Vec<_> = (0..17).map(|n| wheel.schedule_at(Tick(0), n)).collect();
    wheel.assert_consistent();
    wheel.shrink();
    wheel.assert_consistent();
    assert!(overdue.iter().all(|&id| wheel.contains(id)));
}

#[test]
fn so_is_one_in_an_entry_that_the_walk_for_vacant_entries_has_passed() {
    let some = |wheel: &mut Wheel<u64>, mut budget| {
        wheel.begin_shrink();
        let _ = wheel.shrink_some(&mut budget, |_, _| Linkage::InWheel);
        wheel.assert_consistent();
    };
    let mut wheel = Wheel::starting_at(Tick(4_095), 64);
    wheel.schedule_at(Tick(4_160), 0);
    assert!(wheel.pop_due(Tick(4_096)).is_none());
    let far = wheel.schedule_at(Tick(1 << 48), 1);
    some(&mut wheel, 1);
    assert!(wheel.reschedule(far, Tick(4_000)));
    // Its level gets heads behind everything, and the walk passes them.
    wheel.schedule_at(Tick(4_160), 2);
    some(&mut wheel, 18);
    for n in 3..17 {
        wheel.schedule_at(Tick(0), n);
        wheel.assert_consistent();
    }
    some(&mut wheel, usize::MAX);
    wheel.shrink();
    wheel.assert_consistent();
    assert_eq!(wheel.len(), 17);
}

#[test]
fn the_memory_of_large_payloads_is_given_back() {
    let mut wheel = Wheel::new(64);
    let ids: Vec<_> = (0..1_000u64)
        .map(|n| wheel.schedule_at(Tick(n + 1), [n; 99]))
        .collect();
    for &id in &ids[..900] {
        wheel.cancel(id);
    }
    wheel.shrink();
    wheel.assert_consistent();
    assert_eq!(wheel.entries.cells(), 100);
    for (id, n) in ids.into_iter().zip(0..).skip(900) {
        assert_eq!(wheel.cancel(id), Some([n; 99]));
    }
}

#[test]
fn a_step_touches_no_more_entries_than_its_budget() {
    let (mut wheel, few) = with_few(|n| n % 10 == 0);
    wheel.begin_shrink();
    let mut steps = 0;
    while !wheel.shrink_some(&mut 100, |_, _| Linkage::InWheel) {
        wheel.assert_consistent();
        steps += 1;
    }
    assert!(steps >= 80, "{steps}");
    assert_eq!(wheel.len(), few.len());
}
