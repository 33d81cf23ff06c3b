//! The ticker thread: it serves due timers, sleeps, and repeats.

use std::io;

use crate::engine::Core;
use crate::observe;
use crate::sync::{self, Arc};

/// Starts the ticker. It ends when the core's alarm is stopped; no thread waits
/// for its end.
pub(crate) fn spawn<T: Send + 'static>(core: Arc<Core<T>>) -> io::Result<()> {
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
