//! Storing timers, growing, reserving, and dropping the remaining payloads.

use super::*;
use crate::tick::Tick;
use crate::wheel::Wheel;

fn grows_and_keeps_its_entries<T: Copy + PartialEq + std::fmt::Debug>(count: u64, value: T) {
    let (mut entries, list) = Entries::new();
    for n in 1..=count {
        let entry = entries.insert(n, Stamp::new(n, 0), value);
        entries.append(list, entry);
        let place = core::ptr::from_ref(entries.payload(entry));
        assert_eq!(place.addr() % align_of::<T>(), 0);
    }
    let mut entry = entries.next(list);
    for n in 1..=count {
        assert_eq!(entries.deadline(entry), n);
        assert_eq!(*entries.payload(entry), value);
        entry = entries.next(entry);
    }
    assert_eq!(entry, list);
}

#[test]
fn payloads_of_every_shape_are_kept_and_aligned() {
    #[derive(Clone, Copy, PartialEq, Debug)]
    #[repr(align(128))]
    struct Wide(u8);
    grows_and_keeps_its_entries(100_000, 7u8);
    grows_and_keeps_its_entries(100_000, [7u64; 5]);
    grows_and_keeps_its_entries(10_000, Wide(7));
    grows_and_keeps_its_entries(10_000, [7u64; 99]);
    grows_and_keeps_its_entries(10_000, ());
}

#[test]
fn vacated_entries_are_reused_before_the_block_grows() {
    let (mut entries, list) = Entries::new();
    let mut taken = Vec::new();
    for n in 0..1_000u64 {
        let entry = entries.insert(0, Stamp::new(n + 1, 0), n);
        entries.append(list, entry);
        taken.push(entry);
    }
    let used = entries.block.used();
    for &entry in &taken {
        entries.unlink(entry);
        entries.remove(entry);
    }
    for n in 0..1_000u64 {
        entries.insert(0, Stamp::new(n + 2_000, 0), n);
    }
    assert_eq!(entries.block.used(), used);
    assert_eq!(entries.live(), 1_000);
}

#[test]
fn payloads_that_are_still_stored_are_dropped_with_the_storage() {
    let token = std::rc::Rc::new(());
    let (mut entries, _) = Entries::new();
    for n in 1..=100 {
        entries.insert(0, Stamp::new(n, 0), token.clone());
    }
    drop(entries);
    assert_eq!(std::rc::Rc::strong_count(&token), 1);
}

#[test]
fn all_payloads_are_dropped_even_if_dropping_one_panics() {
    struct Fuse(#[allow(dead_code)] std::rc::Rc<()>, bool);
    impl Drop for Fuse {
        fn drop(&mut self) {
            assert!(!self.1, "as this test wants it");
        }
    }
    let token = std::rc::Rc::new(());
    let mut wheel = Wheel::new(64);
    for n in 0..100 {
        wheel.schedule_after(n, Fuse(token.clone(), n == 40));
    }
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(wheel)));
    assert!(dropped.is_err());
    assert_eq!(std::rc::Rc::strong_count(&token), 1);
}

fn fill<T: Copy>(entries: &mut Entries<T>, count: usize, value: T) {
    for n in 1..=count as u64 {
        entries.insert(n, Stamp::new(n, 0), value);
    }
}

#[test]
fn reserved_room_is_enough_and_is_not_reserved_twice() {
    for timers in [64, 1_000] {
        let (mut entries, _) = Entries::new();
        entries.try_reserve(timers, 0).unwrap();
        let capacity = entries.block.capacity();
        fill(&mut entries, timers, 7u8);
        entries.try_reserve(timers, 0).unwrap();
        assert_eq!(entries.block.capacity(), capacity);
    }
}

#[test]
fn a_wheel_reserves_for_the_levels_that_its_timers_may_need() {
    for size in [2, 64, 100] {
        let mut wheel = Wheel::new(size);
        wheel.schedule_at(Tick(1), 0);
        wheel.reserve(1_000);
        let capacity = wheel.entries.block.capacity();
        for n in 1..1_000 {
            wheel.schedule_at(Tick(1 << (n % 64)), n);
        }
        assert_eq!(wheel.entries.block.capacity(), capacity, "size {size}");
    }
}

#[test]
fn room_is_reserved_for_large_payloads_too() {
    let mut wheel = Wheel::new(64);
    wheel.reserve(1_000);
    assert_eq!(wheel.entries.block.spare_cells(), 1_000);
    for n in 0..1_000 {
        wheel.schedule_at(Tick(1 << (n % 64)), [n; 99]);
    }
    assert_eq!(wheel.entries.block.spare_cells(), 0);
}

#[test]
fn reserving_too_much_is_refused_and_changes_nothing() {
    fn refuses<T: Copy + PartialEq + std::fmt::Debug>(payload: T) {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(5), payload);
        let powers = [32, 57].map(|power| usize::try_from(1_u64 << power));
        let powers = powers.map(|power| power.unwrap_or(usize::MAX));
        for timers in [usize::MAX, usize::MAX - 70].into_iter().chain(powers) {
            assert_eq!(wheel.try_reserve(timers), Err(ReserveError::TooMany));
        }
        assert!(wheel.entries.block.capacity() < 10_000);
        assert_eq!(wheel.get(id), Some(&payload));
        wheel.assert_consistent();
    }
    refuses(());
    refuses(7u64);
    refuses([7u64; 512]);
    // No machine has this much memory. With 32 bits, not even a size counts it.
    let mut wheel = Wheel::<[u64; 1 << 20]>::new(64);
    let refused = wheel.try_reserve(u32::MAX as usize - 100_000);
    match usize::BITS {
        32 => assert_eq!(refused, Err(ReserveError::TooMany)),
        _ => assert_eq!(refused, Err(ReserveError::NoMemory)),
    }
}

#[test]
#[should_panic(expected = "reserve fewer")]
fn reserving_too_much_panics() {
    Wheel::<u64>::new(64).reserve(usize::MAX);
}

#[test]
fn an_index_behind_the_last_entry_has_no_entry() {
    let (mut entries, _) = Entries::new();
    let last = entries.insert(0, Stamp::new(1, 0), ());
    assert_eq!(entries.entry_at(last.index()), Some(last));
    assert_eq!(entries.entry_at(last.index() + 1), None);
}

#[test]
fn vacated_entries_are_reused_last_one_first() {
    let (mut entries, _) = Entries::new();
    let (mut stored, mut vacated) = (Vec::new(), Vec::<EntryIndex>::new());
    let (mut random, mut most) = (1u64, 0);
    for step in 0..20_000u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005) + 1;
        // A thousand steps mostly vacate, and the next thousand mostly fill.
        let fills = (random >> 40) % 4 < 1 + 2 * (step / 1_000 % 2);
        if fills || stored.is_empty() {
            let expected = vacated
                .pop()
                .map_or(entries.block.used(), EntryIndex::index);
            let entry = entries.insert(step, Stamp::new(step + 1, 0), ());
            assert_eq!(entry.index(), expected);
            stored.push(entry);
        } else {
            let entry = stored.swap_remove(random as usize % stored.len());
            entries.remove(entry);
            vacated.push(entry);
            most = most.max(vacated.len());
        }
    }
    assert!(most > 400, "{most}");
}
