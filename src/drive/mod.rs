//! Starting an engine, and moving its time forward: by a thread that sleeps on one
//! timerfd, by the caller's own loop, or by the owner of a virtual clock.

mod builder;
mod driver;
mod ticker;
mod virtual_clock;

pub use builder::{Builder, Family, StartError, WeakEngine};
pub use driver::Driver;
pub use virtual_clock::VirtualClock;

pub(crate) use builder::{Sealed, check_workers};
pub(crate) use driver::ProcessFn;
