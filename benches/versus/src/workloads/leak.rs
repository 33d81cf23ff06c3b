//! A million timers a second, each an hour away and cancelled at once. A cancelled
//! timer must not wait in memory for its deadline.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::{Caller, Shared};
use crate::rivals::shared;

const HOUR_TICKS: u64 = 3_600_000;

/// The timers of a burst, of which there is one per millisecond.
const BURST: usize = 1_000;
const BURSTS_PER_SECOND: usize = 1_000;

pub fn cases(effort: Effort) -> Vec<Case> {
    let seconds = effort.either(0.4, 30.0);
    let mut cases = shared!(case((seconds * BURSTS_PER_SECOND as f64) as usize));
    cases.retain(|case| !case.engine.starts_with("floor"));
    cases
}

fn case<E: Shared>(bursts: usize) -> Case {
    Case::new(E::NAME, E::THREAD_SAFE, bursts * BURST, move || {
        let engine = E::start();
        // The later bursts reuse the memory of the first.
        run(&engine, bursts / 10);
        let before = resident_kib();
        run(&engine, bursts - bursts / 10);
        let growth = resident_kib() - before;
        vec![Reading::new("resident growth", "KiB", growth.max(0.0))]
    })
}

fn run<E: Shared>(engine: &E, bursts: usize) {
    let mut caller = engine.caller();
    let mut next = Instant::now();
    for _ in 0..bursts {
        for _ in 0..BURST {
            let id = caller.schedule(HOUR_TICKS, 0);
            caller.cancel(id);
        }
        next += Duration::from_secs(1) / BURSTS_PER_SECOND as u32;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    engine.settle();
}

/// Returns the resident memory of this process.
fn resident_kib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    let kib = number.and_then(|number| number.parse().ok());
    kib.expect("a number of KiB")
}
