//! A program on `core` and `alloc` alone. The C library starts it and lends its
//! allocator; a program that linked `std` would have two handlers of panics, and would not
//! build. Exits with the number of the line whose check failed, modulo 256, or with zero.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_char, c_int, c_void};

use tickwheel::wheel::{Geometry, KeyedWheel, ReserveError};
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
    ids_of_other_wheels_are_refused();
    keyed_wheel_finds_its_timers();
    memory_is_given_back_and_bounded();
    // SAFETY: the line ends with a zero.
    unsafe { puts(c"a program without std: 4 checks passed".as_ptr()) };
    0
}

fn wheel_fires_in_order() {
    let geometry = Geometry::new(20).unwrap();
    let mut wheel = Wheel::with_geometry(Tick(7), geometry);
    let ids: Vec<TimerId> = (0..5_000)
        .map(|n: u64| wheel.schedule_at(Tick(7 + n * n % 40_009), n))
        .collect();
    for id in ids.iter().step_by(3) {
        assert!(wheel.cancel(*id).is_some());
    }
    let mut last = (Tick(0), 0);
    let mut fired = 0;
    while let Some(expired) = wheel.pop_due(Tick(50_000)) {
        let this = (expired.deadline, expired.payload);
        assert!(expired.payload % 3 != 0);
        assert!(this > last);
        (last, fired) = (this, fired + 1);
    }
    assert!(fired == 5_000 - 5_000_usize.div_ceil(3));
    assert!(wheel.is_empty() && wheel.now() == Tick(50_000));
}

fn ids_of_other_wheels_are_refused() {
    let mut wheels = [Wheel::new(64), Wheel::new(64)];
    let id = wheels[0].schedule_after(5, String::from("mine"));
    assert!(wheels[1].schedule_after(5, String::new()) != id);
    assert!(wheels[1].cancel(id).is_none());
    assert!(wheels[0].cancel(id).as_deref() == Some("mine"));
    assert!(wheels[0].cancel(id).is_none());
}

fn keyed_wheel_finds_its_timers() {
    let mut wheel = KeyedWheel::new(64);
    for key in 0..1_000_u64 {
        assert!(wheel.schedule_at(key, Tick(key + 1), ()).is_ok());
    }
    assert!(wheel.schedule_at(7, Tick(1), ()).is_err());
    for key in (0..1_000).step_by(2) {
        assert!(wheel.cancel(&key).is_some());
    }
    for key in (1..1_000).step_by(2) {
        assert!(wheel.pop_due(Tick(2_000)).unwrap().key == key);
    }
    assert!(wheel.is_empty() && !wheel.contains_key(&7));
}

fn memory_is_given_back_and_bounded() {
    let mut wheel = Wheel::<[u64; 40]>::new(64);
    assert!(wheel.try_reserve(usize::MAX) == Err(ReserveError::TooMany));
    let kept = wheel.schedule_at(Tick(9), [9; 40]);
    let others: Vec<TimerId> = (0..3_000)
        .map(|n| wheel.schedule_at(Tick(n), [n; 40]))
        .collect();
    for id in others {
        wheel.cancel(id);
    }
    wheel.shrink();
    assert!(wheel.cancel(kept) == Some([9; 40]));
}
