//! Starting an engine, and moving its time forward: by a thread that sleeps on one
//! timer, by the caller's own loop, or by the owner of a virtual clock.

mod builder;
mod driver;
mod virtual_clock;
mod weak;

use std::io;

use crate::engine::Core;
use crate::observe;
use crate::sync::{self, Arc};

pub use builder::{Builder, Family, StartError};
pub use driver::Driver;
pub use virtual_clock::VirtualClock;
pub use weak::WeakEngine;

pub(crate) use builder::{Sealed, check_workers};
pub(crate) use driver::ProcessFn;

/// Starts the ticker, which serves due timers, sleeps, and repeats. It ends when the core's
/// alarm is stopped; no thread waits for its end.
pub(crate) fn spawn_ticker<T: Send + 'static>(core: Arc<Core<T>>) -> io::Result<()> {
    let name = Arc::clone(&core);
    sync::spawn(&name.name, "tick", move || run(&core)).map(drop)
}

fn run<T>(core: &Core<T>) {
    loop {
        let now = core.tick.tick_at(core.serve_a_round());
        // The timer that the ticker sleeps for is live when the sleep begins.
        if core.next_due() > now {
            core.confirm_next_due();
        }
        if !core.alarm.sleep(now, || core.next_due()) {
            break;
        }
    }
    observe::ticker_ended(core.subject());
}
