//! The handlers of a node, by kind, and what becomes of a job after its run.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::attempt::Attempt;
use crate::job::StoredJob;
use crate::outcome::{Outcome, Retry};
use crate::store::Then;
use crate::wall::WallTime;

type Handler = Box<dyn Fn(&Attempt<'_>) -> Outcome + Send + Sync>;

#[derive(Default)]
pub(crate) struct Handlers {
    handlers: HashMap<String, Handler>,
    retries: HashMap<String, Retry>,
}

impl Handlers {
    pub(crate) fn set_handler(&mut self, kind: String, handler: Handler) {
        self.handlers.insert(kind, handler);
    }

    pub(crate) fn set_retry(&mut self, kind: String, retry: Retry) {
        self.retries.insert(kind, retry);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.handlers.is_empty()
    }

    /// Runs the handler of a job, unless its attempts were used up by runs that never ended.
    pub(crate) fn run(&self, attempt: &Attempt<'_>) -> Outcome {
        let job = attempt.job();
        if self.retry(job).is_beyond(job.attempts) {
            return Outcome::Failed("the process ended during the last attempt".to_owned());
        }
        let Some(handler) = self.handlers.get(&job.kind) else {
            return Outcome::Failed(format!("no handler for jobs of kind {:?}", job.kind));
        };
        match catch_unwind(AssertUnwindSafe(|| handler(attempt))) {
            Ok(outcome) => outcome,
            Err(panic) => Outcome::Failed(format!("panicked: {}", message(&*panic))),
        }
    }

    /// Decides what becomes of a job whose run ended at `now`. `random` lies between 0 and 1.
    pub(crate) fn then(
        &self,
        job: &StoredJob,
        outcome: Outcome,
        now: WallTime,
        random: f64,
    ) -> Then {
        let next = || job.recurrence.as_ref()?.next_after(now);
        let again = |due| Then::Again { due, failure: None };
        match outcome {
            Outcome::Done => next().map_or(Then::End, again),
            Outcome::AgainAt(due) => again(due),
            Outcome::AgainAfter(delay) => again(now + delay),
            Outcome::Failed(failure) if self.retry(job).is_last(job.attempts) => Then::Die {
                failure,
                at: now,
                next: next(),
            },
            Outcome::Failed(failure) => Then::Again {
                due: now + self.retry(job).pause(job.attempts, random),
                failure: Some(failure),
            },
        }
    }

    fn retry(&self, job: &StoredJob) -> Retry {
        self.retries.get(&job.kind).copied().unwrap_or_default()
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let owned = || panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(owned).unwrap_or("a value that is no text")
}
