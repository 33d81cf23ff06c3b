//! A sleep on the word itself, on 64-bit Linux and Android. With 32-bit pointers, a time
//! has 32 or 64 bits, depending on the C library, so a condition variable is used there.

use super::parker::{LONGEST, Parker};
use crate::sync::primitives::AtomicU32;

#[derive(Default)]
pub(crate) struct FutexParker;

impl Parker for FutexParker {
    fn park(&self, word: &AtomicU32, seen: u32) {
        let limit = libc::timespec {
            tv_sec: 0,
            tv_nsec: LONGEST.as_nanos() as _,
        };
        let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word and the limit are valid for as long as the call lasts.
        // The caller checks the lock whatever the call returns.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, seen, &raw const limit) };
    }

    fn wake_one(&self, word: &AtomicU32) {
        let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the kernel uses only the address of the word.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wake, 1) };
    }
}
