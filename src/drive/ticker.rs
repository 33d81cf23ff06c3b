//! The ticker thread: it makes due timers ready, sleeps, and repeats.

use std::io;

use crate::clock::Wake;
use crate::engine_name::Role;
use crate::hub::Core;
use crate::observe;
use crate::sync::{self, Arc};
use crate::timeline::Time;

/// Starts the ticker. It ends when the core's alarm is stopped; no thread waits
/// for its end.
pub(crate) fn spawn<T: Send + 'static>(core: Arc<Core<T>>) -> io::Result<()> {
    spawn_serving(core, Core::serve_a_round)
}

/// Starts a ticker that takes the payloads of due plain timers itself and hands them to
/// `sink`, without holding a lock.
pub(crate) fn spawn_sink<T: Send + 'static>(
    core: Arc<Core<T>>,
    mut sink: impl FnMut(&Core<T>, T) + Send + 'static,
) -> io::Result<()> {
    let mut taken = Vec::new();
    spawn_serving(core, move |core| core.take_a_round(&mut taken, &mut sink))
}

fn spawn_serving<T: Send + 'static>(
    core: Arc<Core<T>>,
    mut serve: impl FnMut(&Core<T>) -> Time + Send + 'static,
) -> io::Result<()> {
    let name = core.name.of_thread(Role::Ticker);
    sync::spawn(name, move || run(&core, &mut serve)).map(drop)
}

fn run<T>(core: &Core<T>, serve: &mut impl FnMut(&Core<T>) -> Time) {
    loop {
        let now = core.tick.tick_at(serve(core));
        // The timer that the ticker sleeps for is live when the sleep begins.
        if core.next_due() > now {
            core.confirm_next_due();
        }
        match core.alarm.sleep(now, || core.next_due()) {
            Wake::Expire => {}
            Wake::Stop => break,
        }
    }
    observe::ticker_ended(core.subject());
}
