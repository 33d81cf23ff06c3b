//! tickwheel

mod id;
mod tick;
pub mod wheel;

pub use id::TimerId;
pub use tick::Tick;
pub use wheel::Wheel;
