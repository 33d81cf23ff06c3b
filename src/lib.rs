//! A hierarchical timing-wheel engine.

mod engine;
mod id;
mod queue;
mod sync;
mod tasks;
mod tick;
mod ticker;
mod time;
pub mod wheel;

pub use engine::{
    Builder, Cancel, CancelledByName, CloseReason, Closed, Engine, Lateness, Ledger, LiveTimer,
    LiveTimers, MissedTicks, NotLive, Refusal, Refused, Snapshot, StartError, Timer, Unstarted,
};
pub use id::TimerId;
pub use queue::{Batch, ClosedReports, Expired, Queue, RecvError};
pub use tasks::{Firing, Task, TaskBuilder, TaskEngine};
pub use tick::Tick;
pub use ticker::{ClockSource, Driver, VirtualClock};
pub use time::{Time, When};
pub use wheel::Wheel;
