//! Libraries whose timers are futures, each in a file of its own.

pub mod async_io;
pub mod floor;
pub mod futures_timer;
mod race;
pub mod tickwheel;
pub mod tickwheel_driven;
pub mod tokio;
#[cfg(tokio_unstable)]
pub mod tokio_alt;
