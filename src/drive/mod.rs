//! Moving time along: a thread that sleeps on one timerfd, the caller's own
//! loop, or the owner of a virtual clock.

mod driver;
mod ticker;
mod virtual_clock;

pub use driver::Driver;
pub use virtual_clock::VirtualClock;

pub(crate) use ticker::spawn;
