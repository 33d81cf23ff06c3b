//! Running jobs that were started: their handlers are called, and the outcomes handed in.

#[cfg(feature = "tokio")]
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "tokio")]
use futures_util::FutureExt;
use parking_lot::Mutex;
#[cfg(feature = "tokio")]
use tickwheel::TimerId;
#[cfg(feature = "tokio")]
use tracing::Instrument;

use crate::attempt::Attempt;
#[cfg(feature = "tokio")]
use crate::handlers::panicked;
use crate::handlers::{Handler, Handlers, guarded};
use crate::inner::{Inner, Run};
use crate::job::StoredJob;
use crate::jobs::Jobs;
#[cfg(feature = "tokio")]
use crate::observe::Span;
use crate::outcome::Outcome;
use crate::store::{Answer, Change, Then};

#[cfg(feature = "tokio")]
tokio::task_local! {
    /// The address of the node whose asynchronous handler the task runs.
    pub(crate) static NODE: usize;
}

/// The pause after a run that did not begin.
#[cfg(feature = "tokio")]
const BEGIN_AGAIN: Duration = Duration::from_secs(1);

/// How long beyond its limit an asynchronous handler is late, unless it was dropped: it blocks.
#[cfg(feature = "tokio")]
const GRACE: Duration = Duration::from_secs(1);

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

    /// Runs a job's handler, and hands in its outcome. Runs none if the lease is lost. `_held` lasts
    /// until then. Returns whether the calling worker was replaced meanwhile.
    pub(crate) fn run(self: &Arc<Self>, run: Run, _held: impl Send + 'static) -> bool {
        let node = &self.inner().node;
        if !node.holds(run.fence) {
            node.give_up_run(run.job.id);
            self.inner().after_commit();
            return false;
        }
        let (run, jobs) = (Arc::new(run), self.jobs.clone());
        let handler = self.handlers.handler(&run.job.kind);
        #[cfg(feature = "postgres")]
        let in_transaction = matches!(handler, Some(Handler::InTransaction(_)));
        #[cfg(not(feature = "postgres"))]
        let in_transaction = false;
        let attempt = Attempt::new(Arc::clone(&run), jobs, in_transaction);
        let unknown = || Outcome::Failed(format!("no handler for jobs of kind {:?}", run.job.kind));
        match (self.handlers.beyond(&run.job), handler) {
            (Some(outcome), _) => self.finish(&run, outcome, Duration::MAX),
            (None, None) => self.finish(&run, unknown(), Duration::MAX),
            (None, Some(Handler::Plain(handler))) => {
                let span = node.observer.begun(&run.job, node.now());
                let handle = move || span.in_scope(|| handler(&attempt));
                return self.run_here(&run, || Some(guarded(handle)));
            }
            #[cfg(feature = "postgres")]
            (None, Some(Handler::InTransaction(handler))) => {
                let handle = || self.run_in_transaction(&run, &**handler, &attempt);
                return self.run_here(&run, handle);
            }
            #[cfg(feature = "tokio")]
            (None, Some(Handler::Async(runtime, handler))) => {
                let (within, handler) = (self.begun(&run), Arc::clone(handler));
                // What it is if its runtime has ended before it begins.
                let outcome = Outcome::AgainAfter(BEGIN_AGAIN);
                let late = self.handlers.time_limit(&run.job.kind).saturating_add(GRACE);
                let limit = node.begin_run(run.job.id, late);
                let mut spawned = Spawned { runner: Arc::clone(self), run, limit, outcome };
                let own = Arc::as_ptr(self.inner()).addr();
                drop(runtime.spawn(async move {
                    spawned.outcome = Outcome::Failed("its runtime has ended".to_owned());
                    let handling = async { handler(attempt).await };
                    spawned.outcome = NODE.scope(own, within.run(handling)).await;
                    drop(spawned);
                    drop(_held);
                }));
            }
        }
        false
    }

    /// Runs a handler on the calling thread. It returns its outcome unless that is committed already.
    fn run_here(self: &Arc<Self>, run: &Run, handle: impl FnOnce() -> Option<Outcome>) -> bool {
        let (node, begin) = (&self.inner().node, Instant::now());
        let limit = node.begin_run(run.job.id, self.handlers.time_limit(&run.job.kind));
        let outcome = handle();
        let is_replaced = limit.is_some_and(|limit| node.end_run(limit));
        match outcome {
            Some(outcome) => self.finish(run, outcome, begin.elapsed()),
            None => self.inner().after_commit(),
        }
        is_replaced
    }

    /// Takes note of the begin of an asynchronous run.
    #[cfg(feature = "tokio")]
    pub(crate) fn begun(&self, run: &Run) -> Within {
        let node = &self.inner().node;
        Within {
            limit: self.handlers.time_limit(&run.job.kind),
            span: node.observer.begun(&run.job, node.now()),
        }
    }

    /// Hands in the outcome of a run that took so long, and again if the job has another schedule then.
    fn finish(self: &Arc<Self>, run: &Run, outcome: Outcome, after: Duration) {
        let node = &self.inner().node;
        let then = self.then(&run.job, &outcome);
        node.observer.ended(&run.job, &outcome, &then);
        node.note_return(run.job.id, after);
        let finish = Change::finish(&run.job, run.fence, then);
        let (runner, fence) = (Arc::downgrade(self), run.fence);
        self.inner().commits.start(vec![finish], move |(answers, _)| {
            let [Answer::Changed(job)] = &answers.ok()?[..] else { return None };
            Some(Change::finish(job, fence, runner.upgrade()?.then(job, &outcome)))
        });
        self.inner().commit_here();
    }

    /// Decides what becomes of a job after its run.
    pub(crate) fn then(&self, job: &StoredJob, outcome: &Outcome) -> Then {
        let random = self.random.lock().f64();
        self.handlers.then(job, outcome, self.inner().node.now(), random)
    }
}

/// An asynchronous run. Its drop hands in the outcome, also if the runtime drops it.
#[cfg(feature = "tokio")]
struct Spawned {
    runner: Arc<Runner>,
    run: Arc<Run>,
    limit: Option<TimerId>,
    outcome: Outcome,
}

#[cfg(feature = "tokio")]
impl Drop for Spawned {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, Outcome::Done);
        if let Some(limit) = self.limit {
            self.runner.inner().node.end_run(limit);
        }
        self.runner.finish(&self.run, outcome, Duration::MAX);
    }
}

/// The limits within which an asynchronous handler runs.
#[cfg(feature = "tokio")]
pub(crate) struct Within {
    limit: Duration,
    span: Span,
}

#[cfg(feature = "tokio")]
impl Within {
    /// Waits for a handler for a limited time, and then drops it. A panic is a failure, even one of
    /// the drop.
    pub(crate) async fn run(self, handling: impl Future<Output = Outcome>) -> Outcome {
        let Within { limit, span } = self;
        let handling = async { tokio::time::timeout(limit, handling.instrument(span)).await };
        let late = |_| Outcome::Failed(format!("took longer than its limit of {limit:?}"));
        match AssertUnwindSafe(handling).catch_unwind().await {
            Ok(outcome) => outcome.unwrap_or_else(late),
            Err(panic) => panicked(panic),
        }
    }
}
