//! Who moves time along: a thread that sleeps on one timerfd, or the owner of
//! a virtual clock.

mod alarm;
mod clock;
mod driver;
mod thread;
#[cfg(target_os = "linux")]
mod timerfd;
mod virtual_clock;

pub use clock::ClockSource;
pub use driver::Driver;
pub use virtual_clock::VirtualClock;

pub(crate) use alarm::{Alarm, Device};
pub(crate) use clock::Clock;
pub(crate) use thread::spawn;
