//! The layout of entries, and the growth of a block.

use super::memory::{ALIGNMENT, FIRST_CAPACITY};
use super::*;

#[test]
fn an_entry_costs_24_bytes_beside_its_payload() {
    assert_eq!(Block::<()>::STRIDE, 24);
    assert_eq!(Block::<u64>::STRIDE, 32);
    assert_eq!(Block::<[u64; 3]>::STRIDE, 48);
    assert_eq!(Block::<[u64; 13]>::STRIDE, 128);
    let layout = Memory::new(Block::<u64>::LAYOUT).layout(100).unwrap();
    assert_eq!(layout.size(), 100 * 32 + ALIGNMENT);
}

#[test]
fn an_entry_is_small_if_its_payload_is_large_or_aligned() {
    #[repr(align(64))]
    struct Wide(#[allow(dead_code)] u8);
    // What every entry costs, and the address of the payload.
    let stride = (24 + size_of::<usize>()).next_multiple_of(align_of::<u64>());
    assert_eq!(Block::<[u64; 14]>::STRIDE, stride);
    assert_eq!(Block::<[u64; 512]>::STRIDE, stride);
    assert_eq!(Block::<Wide>::STRIDE, stride);
    assert!(Block::<Wide>::LAYOUT.align() <= MOST_ALIGNED);
}

#[test]
fn entries_start_on_a_cache_line() {
    let mut block = Block::new();
    for n in 1..10_000u64 {
        block.push_timer(n, Stamp::new(n, 0), n);
        assert_eq!(block.memory.base().as_ptr().addr() % ALIGNMENT, 0);
    }
}

#[test]
fn small_blocks_double_and_large_ones_grow_by_less() {
    let mut block = Block::new();
    for n in 1..=u64::from(FIRST_CAPACITY) + 1 {
        block.push_timer(n, Stamp::new(n, 0), 7u8);
    }
    assert_eq!(block.capacity(), 2 * FIRST_CAPACITY);

    assert_eq!(Block::<u64>::STRIDE, 32);
    let memory = Memory::new(Block::<u64>::LAYOUT);
    let after = |capacity| memory.capacity_after(capacity);
    assert_eq!((after(0), after(64)), (16, 128));
    assert_eq!((after(1_023), after(1_024)), (2_046, 1_536));
    assert_eq!((after((1 << 15) - 2), after(1 << 15)), (49_149, 40_960));
    assert_eq!(after((1 << 20) - 4), 5 * (1 << 18) - 5);
    assert_eq!(after(1 << 20), (1 << 20) + (1 << 17));
}

#[test]
fn no_tag_makes_a_list_head_a_timer_or_a_timer_vacant() {
    let mut block = Block::<u64>::new();
    let head = block.push_sentinel(0);
    block.get_mut(head).mark(u16::MAX);
    assert!(!block.get(head).stamp().is_timer());
    let timer = block.push_timer(1, Stamp::new(1, 0), 7);
    block.get_mut(timer).unmark(u16::MAX);
    assert_eq!(*block.payload(timer), 7);
}
