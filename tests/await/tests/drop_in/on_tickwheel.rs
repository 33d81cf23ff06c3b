//! The same programs with another `use` line.

pub use tickwheel::time;

#[path = "client.rs"]
pub mod client;
#[path = "heartbeat.rs"]
pub mod heartbeat;
#[path = "idioms.rs"]
pub mod idioms;
#[path = "pool.rs"]
pub mod pool;
