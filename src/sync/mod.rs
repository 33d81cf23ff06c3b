//! Locks, channels, atomics and threads: the real ones, or those of a model.
//!
//! No other folder knows which of them it uses. With `--cfg loom` or `--cfg
//! shuttle`, every primitive through which threads interact belongs to that
//! scheduler, so the models in `loom-tests` explore the shipped code and not a copy
//! of it. The rest of the crate does not name either scheduler: code that differs
//! in a model is behind `any(loom, shuttle)`.

mod channel;
mod lock;
mod primitives;
mod thread_number;

pub use channel::{Channel, Place, Wait};
#[cfg(any(loom, shuttle))]
pub use lock::{CondvarParker, RawLock};
pub(crate) use lock::{Lock, LockGuard};
pub(crate) use primitives::*;
pub(crate) use thread_number::{known_number, thread_number};
