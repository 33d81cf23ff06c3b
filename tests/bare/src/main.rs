//! A program on `core` and `alloc` alone. The C library starts it and lends its
//! allocator; a program that linked `std` would have two handlers of panics, and would not
//! build. Exits with the number of the line whose check failed, modulo 256, or with zero.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_char, c_int, c_void};

use tickwheel::wheel::{Geometry, KeyedWheel};
use tickwheel::{Tick, TimerId, Wheel};

#[link(name = "c")]
unsafe extern "C" {
    fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
    fn exit(status: c_int) -> !;
    fn puts(line: *const c_char) -> c_int;
}

struct Malloc;

#[global_allocator]
static MALLOC: Malloc = Malloc;

// SAFETY: `aligned_alloc` returns memory of this alignment, or null, and `free` frees it.
unsafe impl GlobalAlloc for Malloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size().next_multiple_of(layout.align());
        // SAFETY: the size is a multiple of the alignment, which is a power of two.
        unsafe { aligned_alloc(layout.align(), size).cast() }
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: `alloc` returned this memory.
        unsafe { free(memory.cast()) }
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let line = info.location().map_or(1, |location| location.line());
    // SAFETY: `exit` may be called at any time.
    unsafe { exit((line % 256).max(1) as c_int) }
}

/// Unoptimized builds of `core` name it. Nothing calls it, because a panic aborts.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[unsafe(no_mangle)]
extern "C" fn main() -> c_int {
    wheel_fires_in_order();
    keyed_wheel_finds_its_timers();
    // SAFETY: the line ends with a zero.
    unsafe { puts(c"a program without std: both wheels work".as_ptr()) };
    0
}

fn wheel_fires_in_order() {
    let geometry = Geometry::new(20).unwrap();
    let mut wheel = Wheel::with_geometry(Tick(7), geometry);
    let deadlines = (0..5_000).map(|n: u64| Tick(7 + n * n % 40_009));
    let ids: Vec<TimerId> = deadlines.map(|at| wheel.schedule_at(at, at)).collect();
    for id in ids.iter().step_by(3) {
        assert!(wheel.cancel(*id).is_some());
    }
    let mut fired = Vec::new();
    while let Some(expired) = wheel.pop_due(Tick(50_000)) {
        fired.push(expired.payload);
    }
    assert!(fired.is_sorted() && fired.len() == 5_000 - 5_000_usize.div_ceil(3));
    wheel.shrink();
    assert!(wheel.is_empty());
}

fn keyed_wheel_finds_its_timers() {
    let mut wheel = KeyedWheel::new(64);
    for key in 0..1_000_u64 {
        assert!(wheel.insert(key, Tick(key + 1), ()).is_none());
    }
    assert!(wheel.cancel(&7).is_some() && !wheel.contains_key(&7));
    assert!(wheel.pop_due(Tick(1)).unwrap().key == 0);
}
