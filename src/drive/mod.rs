//! Moving time forward: by a thread that sleeps on one timerfd, by the
//! caller's own loop, or by the owner of a virtual clock.

mod driver;
mod ticker;
mod virtual_clock;

pub use driver::Driver;
pub use virtual_clock::VirtualClock;

pub(crate) use driver::ProcessFn;
pub(crate) use ticker::spawn;
