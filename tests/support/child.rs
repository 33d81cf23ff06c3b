//! Forked processes.
//!
//! A child of a process with threads has only one of them, and must not touch
//! what the others may have locked: not even the test harness, so it ends by
//! `_exit`, and the parent kills one that takes too long.

use std::thread;
use std::time::{Duration, Instant};

/// Longer than any machine takes for what a child does.
const PATIENCE: Duration = Duration::from_secs(60);

/// A forked process.
pub struct Child(libc::pid_t);

impl Child {
    pub fn fork(child: impl FnOnce()) -> Child {
        // SAFETY: the child touches only what this thread alone has a hold of,
        // allocates with an allocator that survives a fork, and ends by `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "no process to be had");
        if pid == 0 {
            child();
            // SAFETY: ends the process; nothing comes after it.
            unsafe { libc::_exit(0) }
        }
        Child(pid)
    }

    /// Waits for its end, and says whether it came to that by itself.
    pub fn ends_by_itself(self) -> bool {
        let begun = Instant::now();
        loop {
            let mut status = 0;
            // SAFETY: the child is ours, and the pointer is valid for writes.
            let ended = unsafe { libc::waitpid(self.0, &mut status, libc::WNOHANG) };
            assert!(ended >= 0, "the child is gone");
            if ended == self.0 {
                return status == 0;
            }
            if begun.elapsed() > PATIENCE {
                // SAFETY: the child has not been waited for, so it is ours.
                unsafe { libc::kill(self.0, libc::SIGKILL) };
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Ends a forked process badly, unless all is well.
pub fn exit_unless(well: bool) {
    if !well {
        // SAFETY: ends the process; nothing comes after it.
        unsafe { libc::_exit(1) }
    }
}
