//! The locks and threads of the programs in this folder: the standard library's, or those
//! of a model's scheduler.

#[cfg(loom)]
pub use loom::{sync, thread};
#[cfg(shuttle)]
pub use shuttle::{sync, thread};
#[cfg(not(any(loom, shuttle)))]
pub use std::{sync, thread};
