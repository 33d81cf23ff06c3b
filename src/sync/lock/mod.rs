//! The lock around a shard: held for nanoseconds, taken millions of times a
//! second, nearly always by the same thread.
//!
//! Taking it is one atomic swap; releasing it a plain store, and a look at a
//! word that is nearly always zero. What happens where two threads meet in it
//! is in `raw.rs`: a waiter polls, asks to be let in, and then sleeps. Waiters
//! are counted, so that the ticker can step aside for them; patient ones apart.
//!
//! Two threads that meet in a lock pay for every cache line that goes from one
//! to the other. So the value has lines of its own, which those who look at the
//! lock leave with its holder; and a waiter polls early, in case that this was
//! all, and then seldom, so that the holder gets many turns before the lines go
//! over (DESIGN.md, "The engine"). A holder who wants others to come invites
//! them, through a line that is written for nothing else.
//!
//! In a model a mutex stands in a shard's lock's place, because the protocol has
//! more interleavings than the rest of the engine could be explored with; the
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
mod bed;
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
pub use {bed::Bed, raw::RawLock};
