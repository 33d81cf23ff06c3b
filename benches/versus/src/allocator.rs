//! The system's allocator, with a count of bytes that can be switched on.
//!
//! Where time is measured the count is off. It then costs one load that is always
//! in the cache.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

pub struct Counting;

static IS_ON: AtomicBool = AtomicBool::new(false);
/// Signed, because bytes from before the count may be freed during it.
static BYTES: AtomicI64 = AtomicI64::new(0);

fn count(bytes: i64) {
    if IS_ON.load(Relaxed) {
        BYTES.fetch_add(bytes, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller upholds the contract, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// Counts the bytes that are allocated and not freed while it lives.
pub struct Watch(());

impl Watch {
    pub fn start() -> Watch {
        BYTES.store(0, Relaxed);
        IS_ON.store(true, Relaxed);
        Watch(())
    }

    pub fn bytes(&self) -> i64 {
        BYTES.load(Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        IS_ON.store(false, Relaxed);
    }
}
