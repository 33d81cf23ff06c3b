//! The system's allocator, which counts what is in use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static BYTES: AtomicI64 = AtomicI64::new(0);

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// How often something was allocated.
pub fn allocations() -> usize {
    ALLOCATIONS.load(Relaxed)
}

/// How many bytes are allocated.
pub fn bytes() -> i64 {
    BYTES.load(Relaxed)
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as i64, Relaxed);
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promises are the system allocator's demands.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as i64, Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}
