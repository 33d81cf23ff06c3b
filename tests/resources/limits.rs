//! Letting the system run out of things.

use std::fs;
use std::io;

pub use libc::{RLIMIT_AS as MEMORY, RLIMIT_NOFILE as DESCRIPTORS, RLIMIT_NPROC as THREADS};

/// Runs `act` where no more than `most` may be had; what is there, stays.
pub fn with_limit(limit: libc::__rlimit_resource_t, most: u64, act: impl FnOnce()) {
    let check = |result| assert_eq!(result, 0, "{}", io::Error::last_os_error());
    // SAFETY: two numbers, for which all zero is a value.
    let mut before: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for writes.
    check(unsafe { libc::getrlimit(limit, &mut before) });
    let lowered = libc::rlimit { rlim_cur: most, ..before };
    // SAFETY: the pointer is valid for reads.
    check(unsafe { libc::setrlimit(limit, &lowered) });
    act();
    // SAFETY: as above.
    check(unsafe { libc::setrlimit(limit, &before) });
}

/// The superuser has as many threads as it likes: so this becomes a user of
/// whom there is nobody else. Returns whether that was possible.
pub fn become_nobody() -> bool {
    let nobody = 60_000 + std::process::id() % 5_000;
    // SAFETY: the calls take no pointers; what they do to this process is
    // what it was started for.
    let changed = unsafe {
        let changed = libc::setgid(nobody) == 0 && libc::setuid(nobody) == 0;
        // A process that changes its user may not read its own files in /proc,
        // unless it asks to.
        libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
        changed
    };
    assert!(fs::read_dir("/proc/self/fd").is_ok());
    changed
}
