//! Running jobs that were started: their handlers are called, and the outcomes handed in.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::attempt::Attempt;
use crate::handlers::Handlers;
use crate::inner::{Inner, Run};
use crate::jobs::Jobs;
use crate::observe::Ending;
use crate::outcome::Outcome;
use crate::store::Then;

/// What the workers of a node share.
pub(crate) struct Runner {
    pub(crate) jobs: Jobs,
    pub(crate) handlers: Handlers,
    random: Mutex<fastrand::Rng>,
}

impl Runner {
    pub(crate) fn new(inner: Arc<Inner>, handlers: Handlers, seed: u64) -> Runner {
        Runner {
            jobs: Jobs { inner },
            handlers,
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
        }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.jobs.inner
    }

    /// Runs a job's handler, and hands in its outcome. Runs none if the lease is lost.
    pub(crate) fn run(&self, run: &Run) {
        let node = &self.inner().node;
        if !node.holds(run.fence) {
            node.give_up_run(run.job.id);
            return self.inner().after_commit();
        }
        let attempt = Attempt::new(&run.job, run.token, &self.jobs);
        let begin = Instant::now();
        let Some(outcome) = self.outcome(run, &attempt) else {
            return self.inner().after_commit();
        };
        let after = begin.elapsed();
        let ending = Ending::of(&outcome);
        let then = self.then(run, outcome);
        node.observer().ended(&run.job, ending, &then);
        node.note_return(run.job.id, after);
        self.inner().post(run.finish(then));
    }

    /// Runs a job's handler. Returns its outcome, unless that is committed already.
    fn outcome(&self, run: &Run, attempt: &Attempt<'_>) -> Option<Outcome> {
        #[cfg(feature = "postgres")]
        if self.handlers.is_in_transaction(&run.job.kind) {
            return self.run_in_transaction(run, attempt);
        }
        let node = &self.inner().node;
        let handle = || self.handlers.run(attempt);
        Some(node.observer().run(&run.job, node.now(), handle))
    }

    /// Decides what becomes of a job after its run.
    pub(crate) fn then(&self, run: &Run, outcome: Outcome) -> Then {
        let random = self
            .random
            .lock()
            .unwrap_or_else(|error| error.into_inner())
            .f64();
        let now = self.inner().node.now();
        self.handlers.then(&run.job, outcome, now, random)
    }
}
