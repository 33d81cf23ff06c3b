//! Marks in a trace: where a call of some kind begins and ends.
//!
//! A mark is a store to a page whose address both sides know, so that the trace of all
//! stores contains it.

use std::ptr;

/// The address of the page. Nothing else is near it.
pub const PAGE: u64 = 0x5555_0000_0000;
pub const PAGE_SIZE: u64 = 4_096;

/// The distance of the addresses of two kinds.
pub const STRIDE: u64 = 64;

/// A kind of calls. Zero stands for no call.
pub type Kind = usize;

/// Provides the page. Called once, before the first mark.
pub fn provide() {
    let (address, size) = (PAGE as *mut libc::c_void, PAGE_SIZE as usize);
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: the flags forbid to replace any other memory.
    let page = unsafe { libc::mmap(address, size, rights, flags, -1, 0) };
    assert_eq!(page, address, "no page at that address");
}

/// Makes a call between two marks.
#[inline(always)]
pub fn call<R>(kind: Kind, call: impl FnOnce() -> R) -> R {
    set(kind);
    let done = call();
    set(0);
    done
}

#[inline(always)]
fn set(kind: Kind) {
    let place = (PAGE + kind as u64 * STRIDE) as *mut u8;
    // SAFETY: only a traced process marks its calls, and it has provided the page.
    unsafe { ptr::write_volatile(place, 1) };
}
