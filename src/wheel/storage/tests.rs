//! Growing, reserving, and giving back.

use super::*;
use crate::tick::Tick;
use crate::wheel::Wheel;

#[test]
fn an_entry_costs_24_bytes_beside_its_payload() {
    assert_eq!(size_of::<Entry<u64>>(), 32);
    assert_eq!(size_of::<Entry<[u64; 3]>>(), 48);
    let block = Storage::<u64>::layout(100);
    assert_eq!(block.size(), 100 * 32 + ALIGNMENT);
}

fn grows_and_keeps_its_entries<T: Copy + PartialEq + std::fmt::Debug>(count: u64, value: T) {
    let (mut storage, list) = Storage::new();
    for n in 1..=count {
        let at = storage.insert(n, Stamp::new(n, 0), value);
        storage.append(list, at);
        let alignment = ALIGNMENT.max(align_of::<T>());
        assert_eq!(storage.base.as_ptr().addr() % alignment, 0);
    }
    let mut at = storage.next(list);
    for n in 1..=count {
        assert_eq!(storage.entry(at).deadline, n);
        assert_eq!(*storage.payload(at), value);
        at = storage.next(at);
    }
    assert_eq!(at, list);
}

#[test]
fn growing_moves_the_entries_to_where_they_are_aligned() {
    #[derive(Clone, Copy, PartialEq, Debug)]
    #[repr(align(128))]
    struct Wide(u8);
    grows_and_keeps_its_entries(100_000, 7u8);
    grows_and_keeps_its_entries(100_000, [7u64; 5]);
    grows_and_keeps_its_entries(10_000, Wide(7));
    grows_and_keeps_its_entries(10_000, ());
}

#[test]
fn vacated_entries_are_reused_before_the_block_grows() {
    let (mut storage, list) = Storage::new();
    let mut taken = Vec::new();
    for n in 0..1_000u64 {
        let at = storage.insert(0, Stamp::new(n + 1, 0), n);
        storage.append(list, at);
        taken.push(at);
    }
    let used = storage.used;
    for &at in &taken {
        storage.unlink(at);
        storage.remove(at);
    }
    for n in 0..1_000u64 {
        storage.insert(0, Stamp::new(n + 2_000, 0), n);
    }
    assert_eq!(storage.used, used);
    assert_eq!(storage.live(), 1_000);
}

#[test]
fn what_is_still_stored_is_dropped_with_the_storage() {
    let token = std::rc::Rc::new(());
    let (mut storage, _) = Storage::new();
    for n in 1..=100 {
        storage.insert(0, Stamp::new(n, 0), token.clone());
    }
    drop(storage);
    assert_eq!(std::rc::Rc::strong_count(&token), 1);
}

fn fill<T: Copy>(storage: &mut Storage<T>, count: usize, value: T) {
    for n in 1..=count as u64 {
        storage.insert(n, Stamp::new(n, 0), value);
    }
}

#[test]
fn what_was_reserved_is_room_enough_and_is_not_reserved_again() {
    for timers in [FIRST_CAPACITY as usize, 1_000] {
        let (mut storage, _) = Storage::new();
        storage.reserve(timers);
        let capacity = storage.capacity;
        fill(&mut storage, timers, 7u8);
        storage.reserve(timers);
        assert_eq!(storage.capacity, capacity);
    }
}

#[test]
fn a_wheel_reserves_for_the_levels_that_its_timers_may_need() {
    for size in [2, 64, 100] {
        let mut wheel = Wheel::new(size);
        wheel.schedule_at(Tick(1), 0);
        wheel.reserve(1_000);
        let capacity = wheel.storage.capacity;
        for n in 1..1_000 {
            wheel.schedule_at(Tick(1 << (n % 64)), n);
        }
        assert_eq!(wheel.storage.capacity, capacity, "size {size}");
    }
}

#[test]
fn an_index_behind_the_last_entry_is_of_none() {
    let (mut storage, _) = Storage::new();
    let last = storage.insert(0, Stamp::new(1, 0), ());
    assert_eq!(storage.at(last.index()), Some(last));
    assert_eq!(storage.at(last.index() + 1), None);
}

#[test]
fn small_blocks_double_and_large_ones_grow_by_an_eighth() {
    let (mut storage, _) = Storage::new();
    fill(&mut storage, FIRST_CAPACITY as usize, 7u8);
    assert_eq!(storage.capacity, 2 * FIRST_CAPACITY);

    assert_eq!(size_of::<Entry<u64>>(), 32);
    let after = Storage::<u64>::capacity_after;
    assert_eq!((after(0), after(64)), (64, 128));
    assert_eq!(after((1 << 20) - 1), (1 << 21) - 2);
    assert_eq!(after(1 << 20), (1 << 20) + (1 << 17));
}

#[test]
fn vacated_entries_are_used_again_the_last_one_first() {
    let (mut storage, _) = Storage::new();
    let (mut stored, mut vacated) = (Vec::new(), Vec::<At>::new());
    let (mut random, mut most) = (1u64, 0);
    for step in 0..20_000u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005) + 1;
        // A thousand steps that mostly fill, a thousand that mostly vacate.
        let fills = (random >> 40) % 4 < 1 + 2 * (step / 1_000 % 2);
        if fills || stored.is_empty() {
            let expected = vacated.pop().unwrap_or(At(storage.used));
            let at = storage.insert(step, Stamp::new(step + 1, 0), ());
            assert_eq!(at, expected);
            stored.push(at);
        } else {
            let at = stored.swap_remove(random as usize % stored.len());
            storage.remove(at);
            vacated.push(at);
            most = most.max(vacated.len());
        }
    }
    assert!(most > 400, "{most}");
}
