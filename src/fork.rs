//! Distinguishes the process that created a value from a forked child with a copy.
//!
//! The process id alone does not suffice, because in a PID namespace of its own a
//! child may have the id of its parent. Forks are therefore counted too, by a
//! handler that the system calls in each child. A child created by the bare system
//! call, not by the C library's `fork`, is not counted, but its id differs.

/// A process, distinguished from its ancestors and descendants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Process {
    id: u32,
    /// The number of forks from the process that began to count to this one.
    forks: u64,
}

impl Process {
    /// Returns the calling process.
    pub(crate) fn this() -> Process {
        forks::start_counting();
        Process::now()
    }

    /// Returns whether this is the calling process.
    pub(crate) fn is_this(self) -> bool {
        self == Process::now()
    }

    /// Returns whether this process was forked from that one. Cheaper than
    /// [`Process::is_this`], and blind to forks by the bare system call.
    #[inline]
    pub(crate) fn has_forked(self) -> bool {
        self.forks != forks::count()
    }

    fn now() -> Process {
        Process {
            id: std::process::id(),
            forks: forks::count(),
        }
    }
}

/// Returns the number of forks from the process that began to count to this one. Cheaper
/// than a [`Process`], and blind to forks by the bare system call.
#[inline]
pub(crate) fn count() -> u64 {
    forks::count()
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod forks {
    use std::sync::Once;
    use std::sync::atomic::{AtomicU64, Ordering};

    static FORKS: AtomicU64 = AtomicU64::new(0);

    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    /// Starts to count forks.
    pub(super) fn start_counting() {
        static COUNTING: Once = Once::new();
        COUNTING.call_once(|| {
            // SAFETY: the handler only adds to an atomic, which is allowed in a
            // child of a process with threads. If there is no memory for the
            // handler, ids alone distinguish processes.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
    }

    #[inline]
    pub(super) fn count() -> u64 {
        FORKS.load(Ordering::Relaxed)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod forks {
    pub(super) fn start_counting() {}

    #[inline]
    pub(super) fn count() -> u64 {
        0
    }
}

#[cfg(all(test, target_os = "linux", not(any(loom, shuttle))))]
pub(crate) mod tests {
    use super::*;

    /// The time after which the system ends a child that is stuck, in seconds.
    const PATIENCE: libc::c_uint = 30;

    /// Returns the result of `check` in a child of this process, or `false` if the child
    /// is stuck.
    pub(crate) fn in_a_child(check: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child has only this thread, uses what this thread owns or an
        // allocator that survives a fork, and then ends.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "cannot fork");
        if pid == 0 {
            // SAFETY: the call takes no pointers, and concerns only the child.
            unsafe { libc::alarm(PATIENCE) };
            let status = i32::from(!check());
            // SAFETY: ends the process, so no code runs after it.
            unsafe { libc::_exit(status) }
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the pointer is valid for writes.
        let ended = unsafe { libc::waitpid(pid, &mut status, 0) };
        assert_eq!(ended, pid);
        status == 0
    }

    #[test]
    fn a_child_is_another_process_whatever_its_id() {
        let parent = Process::this();
        assert!(parent.is_this());
        assert!(in_a_child(|| !parent.is_this() && Process::this().is_this()));
        assert!(in_a_child(
            || parent.has_forked() && !Process::this().has_forked()
        ));
        let same_id = || Process {
            id: std::process::id(),
            ..parent
        };
        assert!(in_a_child(|| !same_id().is_this()));
        assert!(parent.is_this(), "the parent has changed");
    }
}
