//! Letting the system run out of things.

use std::fs;
use std::io;

#[derive(Clone, Copy)]
pub enum Limit {
    Descriptors,
    Threads,
}

impl Limit {
    fn resource(self) -> libc::__rlimit_resource_t {
        match self {
            Limit::Descriptors => libc::RLIMIT_NOFILE,
            Limit::Threads => libc::RLIMIT_NPROC,
        }
    }
}

/// Runs `act` where no more than `most` may be had; what is there, stays.
pub fn with_limit(limit: Limit, most: u64, act: impl FnOnce()) {
    let before = get(limit);
    let lowered = libc::rlimit {
        rlim_cur: most,
        ..before
    };
    set(limit, &lowered);
    act();
    set(limit, &before);
}

fn get(limit: Limit) -> libc::rlimit {
    let mut found = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is valid for writes.
    let result = unsafe { libc::getrlimit(limit.resource(), &mut found) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
    found
}

fn set(limit: Limit, to: &libc::rlimit) {
    // SAFETY: the pointer is valid for reads.
    let result = unsafe { libc::setrlimit(limit.resource(), to) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
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
