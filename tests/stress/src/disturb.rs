//! Threads that get in the way of all others while a round lasts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use crate::fault::Fault;
use crate::plan::Plan;
use crate::threads;

/// Starts what the plan asks for; it ends when `over` is set.
pub fn start<'scope>(plan: &Plan, over: &'scope AtomicBool, scope: &'scope Scope<'scope, '_>) {
    if plan.has(Fault::Signals) {
        scope.spawn(|| until(over, Duration::from_millis(1), nudge_all));
    }
    if plan.has(Fault::Starved) {
        scope.spawn(|| until(over, Duration::from_millis(5), starve_tickers));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..processors {
            scope.spawn(|| until(over, Duration::from_millis(3), spin));
        }
    }
}

fn until(over: &AtomicBool, pause: Duration, disturb: impl Fn()) {
    while !over.load(Ordering::Relaxed) {
        disturb();
        thread::sleep(pause);
    }
}

fn nudge_all() {
    let own = threads::this();
    let others = threads::all().into_iter().filter(|&thread| thread != own);
    others.for_each(threads::nudge);
}

fn starve_tickers() {
    threads::tickers().into_iter().for_each(threads::starve);
}

fn spin() {
    let end = Instant::now() + Duration::from_millis(20);
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}
