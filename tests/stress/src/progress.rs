//! What is going on, in one line.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::plan::Plan;

/// Counts for display; nothing is judged by them.
#[derive(Default)]
pub struct Tally {
    pub operations: AtomicU64,
    pub live: AtomicU64,
    pub fired: AtomicU64,
    pub cancelled: AtomicU64,
    /// Rounds of sleepers in which the machine itself stood still.
    pub stalls: AtomicU64,
}

impl Tally {
    /// Changes as long as anything moves.
    pub fn moves(&self) -> u64 {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        count(&self.operations) + count(&self.fired)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "{} operations, {} live, {} fired, {} cancelled, {} stalls of the machine",
            count(&self.operations),
            count(&self.live),
            count(&self.fired),
            count(&self.cancelled),
            count(&self.stalls),
        )
    }
}

pub struct Progress {
    bar: ProgressBar,
    tally: Arc<Tally>,
    begun: Instant,
}

impl Progress {
    pub fn start(seed: u64) -> Progress {
        let style = ProgressStyle::with_template("{spinner} seed {prefix} [{elapsed}] {msg}");
        let bar = ProgressBar::new_spinner()
            .with_style(style.expect("the template is a literal"))
            .with_prefix(seed.to_string());
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress {
            bar,
            tally: Arc::default(),
            begun: Instant::now(),
        }
    }

    pub fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// A new round has begun.
    pub fn round(&self, plan: &Plan) {
        let operations = self.tally.operations.load(Ordering::Relaxed);
        let rate = operations as f64 / self.begun.elapsed().as_secs_f64().max(0.001);
        let (round, kind) = (plan.round, plan.kind);
        let tally = &self.tally;
        let message = format!("round {round}, {kind:?}: {rate:.0} operations/s; {tally}");
        self.bar.set_message(message);
    }

    /// A line that stays.
    pub fn note(&self, line: &str) {
        self.bar.suspend(|| println!("{line}"));
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.tally, f)
    }
}
