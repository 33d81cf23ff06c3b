//! Attempts that are repeated until one succeeds or the chain is stopped.
//!
//! The whole chain is one timer: a failed attempt sets the timer's next deadline. A cancel
//! therefore reaches the chain between two attempts and during one.

use std::time::Duration;

use tickwheel::{Firing, Refusal, TaskEngine, Time, Timer, TimerId};

/// Starts a chain. Calls `attempt` at `first` with the number of the attempt, counted
/// from 1, and again `pause` after each failure.
pub fn start(
    timers: &TaskEngine,
    first: Time,
    pause: Duration,
    mut attempt: impl FnMut(u64) -> bool + Send + 'static,
) -> Result<TimerId, Refusal> {
    let retry = move |firing: Firing| {
        if !attempt(firing.number()) {
            // Refused if the chain was stopped meanwhile.
            let _ = firing.rearm(pause);
        }
    };
    let started = timers.run(Timer::at(first, retry));
    started.map_err(|refused| refused.reason())
}

/// Stops a chain. When this has returned, no attempt is running and none will run.
pub fn stop(timers: &TaskEngine, chain: TimerId) {
    timers.cancel_and_wait(chain);
}
