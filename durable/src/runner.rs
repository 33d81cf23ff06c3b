//! Running jobs that were started: their handlers are called, and the outcomes handed in.

#[cfg(feature = "tokio")]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
#[cfg(feature = "tokio")]
use std::task::Poll;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::attempt::Attempt;
use crate::handlers::Handlers;
#[cfg(feature = "tokio")]
use crate::handlers::{Handling, panicked};
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

    /// Runs a job's handler, and hands in its outcome. Runs none if the lease is lost. `held` lasts
    /// until then. Returns whether the calling worker was replaced meanwhile.
    pub(crate) fn run(self: &Arc<Self>, run: Run, held: impl Send + 'static) -> bool {
        let node = &self.inner().node;
        if !node.holds(run.fence) {
            node.give_up_run(run.job.id);
            self.inner().after_commit();
            return false;
        }
        let in_transaction = self.handlers.is_in_transaction(&run.job.kind);
        let (run, jobs) = (Arc::new(run), self.jobs.clone());
        let attempt = Attempt::new(Arc::clone(&run), jobs, in_transaction);
        #[cfg(feature = "tokio")]
        if let Some((runtime, future)) = self.handlers.run_async(&attempt) {
            node.note_return(run.job.id, Duration::MAX);
            drop(runtime.spawn(Arc::clone(self).run_async(run, future, held)));
            return false;
        }
        if node.begin_run(run.job.id, self.handlers.limit(&run.job.kind)) {
            self.inner().call_keeper();
        }
        let begin = Instant::now();
        let outcome = self.outcome(&run, &attempt);
        let is_replaced = node.end_run(run.job.id);
        match outcome {
            Some(outcome) => self.finish(&run, outcome, begin.elapsed()),
            None => self.inner().after_commit(),
        }
        drop(held);
        is_replaced
    }

    /// Runs an asynchronous handler within its time limit.
    #[cfg(feature = "tokio")]
    async fn run_async(self: Arc<Self>, run: Arc<Run>, mut future: Handling, held: impl Send) {
        let node = &self.inner().node;
        let (limit, span) = (
            self.handlers.limit(&run.job.kind),
            node.observer().begun(&run.job, node.now()),
        );
        let guarded = std::future::poll_fn(|context| {
            let poll = || span.in_scope(|| future.as_mut().poll(context));
            let polled = catch_unwind(AssertUnwindSafe(poll));
            polled.unwrap_or_else(|panic| Poll::Ready(panicked(panic)))
        });
        let outcome = tokio::time::timeout(limit, guarded).await;
        let late = |_| Outcome::Failed(format!("took longer than its limit of {limit:?}"));
        self.finish(&run, outcome.unwrap_or_else(late), Duration::MAX);
        drop(held);
    }

    /// Hands in the outcome of a run that took so long.
    fn finish(&self, run: &Run, outcome: Outcome, after: Duration) {
        let node = &self.inner().node;
        let ending = Ending::of(&outcome);
        let then = self.then(run, outcome);
        node.observer().ended(&run.job, ending, &then);
        node.note_return(run.job.id, after);
        self.inner().post(run.finish(then));
    }

    /// Runs a job's handler. Returns its outcome, unless that is committed already.
    fn outcome(&self, run: &Run, attempt: &Attempt) -> Option<Outcome> {
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
        let random = self.random.lock().f64();
        let now = self.inner().node.now();
        self.handlers.then(&run.job, outcome, now, random)
    }
}
