//! Starting an engine, and moving its time forward: by a thread that sleeps on one
//! timer, by the caller's own loop, or by the owner of a virtual clock.

mod builder;
mod driver;
mod virtual_clock;
mod weak;

use std::io;

use crate::engine::Core;
use crate::sync::{self, Arc};

pub use builder::{Builder, Family, StartError};
pub use driver::Driver;
pub use virtual_clock::VirtualClock;
pub use weak::WeakEngine;

pub(crate) use builder::{Sealed, check_workers};
pub(crate) use driver::ProcessFn;

/// Starts the ticker. It ends when the core's alarm is stopped; no thread waits for its end.
pub(crate) fn spawn_ticker<T: Send + 'static>(core: Arc<Core<T>>) -> io::Result<()> {
    let name = Arc::clone(&core);
    sync::spawn(&name.name, "tick", move || core.run_ticker()).map(drop)
}
