//! The lock around a shard: held for nanoseconds, taken millions of times a
//! second, nearly always by the same thread.
//!
//! Taking it is one atomic swap. Releasing it is a plain store and the check of a
//! word that is nearly always zero. `raw.rs` says what happens where two threads
//! meet: a waiter polls, requests the lock, and then sleeps. Waiters are counted by
//! priority, so that the ticker can step aside for them.
//!
//! Where two threads meet, both pay for every cache line that moves from one to
//! the other. So the value has lines of its own, which stay with the holder while
//! waiters poll the lock. And a waiter polls once early, then seldom, so that the
//! holder completes many critical sections before the lines move (DESIGN.md,
//! "How long a waiter polls"). A holder that wants waiters to come wakes those that
//! spin, through a line that is written for nothing else.
//!
//! In a model a mutex stands in for the lock of a shard, because the protocol has
//! more interleavings than the rest of the engine could be explored with. The
//! protocol has models of its own.

mod pace;
mod parker;
mod raw;

#[cfg(any(
    test,
    loom,
    shuttle,
    not(all(target_os = "linux", target_pointer_width = "64"))
))]
mod condvar;
#[cfg(all(
    target_os = "linux",
    target_pointer_width = "64",
    not(any(loom, shuttle))
))]
mod futex;
#[cfg(not(any(loom, shuttle)))]
mod guarded;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use guarded::{Lock, LockGuard};

#[cfg(any(loom, shuttle))]
mod mutex;
#[cfg(any(loom, shuttle))]
pub(crate) use mutex::{Lock, LockGuard};
#[cfg(any(loom, shuttle))]
pub use {condvar::CondvarParker, raw::RawLock};
