//! A sleep on the word itself: Linux. Where a pointer has 32 bits a time has 32
//! or 64 of them, depending on the C library, so there it is a condition variable.

use super::parker::{LONGEST, Parker};
use crate::sync::primitives::AtomicU32;

#[derive(Default)]
pub(crate) struct Futex;

impl Parker for Futex {
    fn park(&self, word: &AtomicU32, seen: u32) {
        let limit = libc::timespec {
            tv_sec: 0,
            tv_nsec: LONGEST.as_nanos() as _,
        };
        let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word and the limit are valid for as long as the call lasts.
        // Whatever it returns, the caller looks for itself.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, seen, &raw const limit) };
    }

    fn wake_one(&self, word: &AtomicU32) {
        let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the kernel takes nothing of the word but its address.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wake, 1) };
    }
}
