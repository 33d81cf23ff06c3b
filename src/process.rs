//! Which process this is: the one that made something, or a child that got a
//! copy of it by `fork`.
//!
//! A process id alone does not say: in a PID namespace of its own a child may
//! have its parent's. So forks are counted as well, by a handler that the system
//! calls in each child. A child made without the system's `fork` (by the bare
//! system call) is not counted, and is told by its id.

/// A process, as told from its parents and children.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Process {
    id: u32,
    /// How many forks lie between it and the first one that looked.
    forks: u64,
}

impl Process {
    /// The calling one.
    pub(crate) fn this() -> Process {
        forks::count();
        Process::now()
    }

    /// Whether it is the calling one.
    pub(crate) fn is_this(self) -> bool {
        self == Process::now()
    }

    fn now() -> Process {
        Process {
            id: std::process::id(),
            forks: forks::counted(),
        }
    }
}

#[cfg(target_os = "linux")]
mod forks {
    use std::sync::Once;
    use std::sync::atomic::{AtomicU64, Ordering};

    static FORKS: AtomicU64 = AtomicU64::new(0);

    type Handler = Option<unsafe extern "C" fn()>;

    unsafe extern "C" {
        // POSIX; the `libc` crate does not declare it for Linux.
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> libc::c_int;
    }

    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }

    /// Has forks counted from here on.
    pub(super) fn count() {
        static COUNTING: Once = Once::new();
        COUNTING.call_once(|| {
            // SAFETY: the handler only adds to an atomic, which is allowed in a
            // child of a process with threads. Where there is no memory for the
            // handler, processes are told by their ids alone.
            let _ = unsafe { pthread_atfork(None, None, Some(in_child)) };
        });
    }

    pub(super) fn counted() -> u64 {
        FORKS.load(Ordering::Relaxed)
    }
}

#[cfg(not(target_os = "linux"))]
mod forks {
    pub(super) fn count() {}

    pub(super) fn counted() -> u64 {
        0
    }
}

#[cfg(all(test, target_os = "linux", not(any(loom, shuttle))))]
mod tests {
    use super::*;

    /// What `look` says in a child of this process.
    fn in_a_child(look: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child does nothing but compare numbers, and ends.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "no process to be had");
        if pid == 0 {
            let status = i32::from(!look());
            // SAFETY: ends the process; nothing comes after it.
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
        let same_id = || Process {
            id: std::process::id(),
            ..parent
        };
        assert!(in_a_child(|| !same_id().is_this()));
        assert!(parent.is_this(), "the parent has changed");
    }
}
