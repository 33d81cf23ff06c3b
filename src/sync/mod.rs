//! Locks, channels, atomics and threads: the real ones, or those of a model.
//!
//! No other folder knows which. With `--cfg loom` or `--cfg shuttle`, every
//! primitive through which threads meet belongs to that scheduler, so the models
//! in `loom-tests` explore the shipped code and not a copy of it. The rest of the
//! crate names neither scheduler: code that differs in a model is behind
//! `any(loom, shuttle)`.

mod channel;
mod lock;
mod primitives;

pub use channel::Channel;
#[cfg(any(loom, shuttle))]
pub use lock::{CondvarParker, RawLock};
pub(crate) use lock::{Lock, LockGuard};
pub(crate) use primitives::*;
