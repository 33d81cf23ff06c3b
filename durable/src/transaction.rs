//! Runs whose handler works in the transaction of its completion.
//!
//! The outcome is committed with the handler's effects, by the change by which it would be
//! committed otherwise. If they are not committed, whatever the reason, the run has failed, and
//! that outcome is handed in like every other. If it is unknown whether they are, it is refused
//! where they are: the job is gone then, or has another version.

use std::time::Duration;

use crate::attempt::Attempt;
use crate::handlers::InTransaction;
use crate::inner::Run;
use crate::job::StoredJob;
use crate::outcome::Outcome;
use crate::runner::Runner;
use crate::store::{Change, Transaction};

impl Runner {
    /// Runs a job's handler in a transaction. Returns an outcome that is still to be handed in.
    pub(crate) fn run_in_transaction(
        &self,
        run: &Run,
        handler: &InTransaction,
        attempt: &Attempt,
    ) -> Option<Outcome> {
        let node = &self.inner().node;
        let Some(transactions) = node.store.transactions() else {
            return Some(Outcome::Failed("the store has no transactions".to_owned()));
        };
        let (mut failed, mut ended) = (None, None);
        let limit = self.handlers.time_limit(&run.job.kind);
        let mut work = async |transaction: &mut Transaction<'_>, changed: Option<StoredJob>| {
            let outcome = match ended.take() {
                Some((outcome, _)) => outcome,
                None => self.begun(run).run(handler(attempt, transaction)).await,
            };
            if let Outcome::Failed(_) | Outcome::Never(_) = outcome {
                failed = Some(outcome);
                return None;
            }
            let job = changed.as_ref().unwrap_or(&run.job);
            let then = self.then(job, &outcome);
            ended = Some((outcome, then.clone()));
            Some(Change::finish(job, run.fence, then))
        };
        let committed = transactions.transact(limit, &mut work);
        match committed {
            Ok(None) => failed,
            Ok(Some((finish, answer))) => {
                if let Some((outcome, then)) = ended {
                    node.observer.ended(&run.job, &outcome, &then);
                }
                // A commit of its own is no short run.
                node.note_return(run.job.id, Duration::MAX);
                node.settle(&[finish], &[answer]);
                None
            }
            Err(error) => {
                let failure = Outcome::Failed(format!("not committed: {error}"));
                failed.or(Some(failure))
            }
        }
    }
}
