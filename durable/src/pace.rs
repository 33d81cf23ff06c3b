//! How many jobs are started ahead of the workers, so that these do not wait for commits.
//!
//! A backlog of short jobs doubles the number with each commit. Ahead of jobs that take longer
//! than a commit, none is started: it would wait behind them, and could be cancelled, moved or run
//! by another node meanwhile.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A run that takes no longer is short beside any commit. On a busy machine, a run of
/// microseconds may take that long, and a commit to a fast disk less.
const SHORT: Duration = Duration::from_millis(5);

pub(crate) struct Pace {
    most: usize,
    ahead: AtomicUsize,
    /// The number of short runs since the pace was set: those that took no longer than a commit,
    /// or than `SHORT`.
    short_runs: AtomicUsize,
    /// The time of the last commit of starts, in nanoseconds.
    commit_nanos: AtomicU64,
}

impl Pace {
    /// Returns a pace of zero, which does not rise above `most`.
    pub(crate) fn new(most: usize) -> Pace {
        Pace {
            most,
            ahead: AtomicUsize::new(0),
            short_runs: AtomicUsize::new(0),
            commit_nanos: AtomicU64::new(0),
        }
    }

    /// Returns the number of jobs that may be started beyond those that the workers run.
    pub(crate) fn ahead(&self) -> usize {
        self.ahead.load(Ordering::SeqCst)
    }

    /// Takes note of a run that took so long.
    pub(crate) fn note_run(&self, after: Duration) {
        let commit = Duration::from_nanos(self.commit_nanos.load(Ordering::SeqCst));
        if after <= commit.max(SHORT) {
            self.short_runs.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Calls `commit`, which commits starts, and sets the pace: twice the number
    /// of short runs since the last time, or half of the pace that it was.
    pub(crate) fn set_by<R>(&self, commit: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let result = commit();
        let nanos = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.commit_nanos.store(nanos, Ordering::SeqCst);
        let short = self.short_runs.swap(0, Ordering::SeqCst);
        let ahead = short.saturating_mul(2).max(self.ahead() / 2);
        self.ahead.store(ahead.min(self.most), Ordering::SeqCst);
        result
    }
}
