//! The handlers of a node, by kind, and what becomes of a job after its run.

use std::any::Any;
use std::collections::HashMap;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(feature = "tokio")]
use std::pin::Pin;
use std::time::Duration;

use crate::attempt::Attempt;
use crate::job::StoredJob;
use crate::outcome::{Outcome, Retry, cut};
use crate::recurrence::InvalidCron;
use crate::store::Then;
#[cfg(feature = "postgres")]
use crate::store::Transaction;
use crate::wall::WallTime;

/// The time that a run has unless it is set.
const LIMIT: Duration = Duration::from_secs(600);

type Plain = Box<dyn Fn(&Attempt) -> Outcome + Send + Sync>;
#[cfg(feature = "postgres")]
type InTransaction = Box<dyn Fn(&Attempt, &mut Transaction<'_>) -> Outcome + Send + Sync>;
/// A run of an asynchronous handler.
#[cfg(feature = "tokio")]
pub(crate) type Handling = Pin<Box<dyn Future<Output = Outcome> + Send>>;

pub(crate) enum Handler {
    Plain(Plain),
    #[cfg(feature = "postgres")]
    InTransaction(InTransaction),
    #[cfg(feature = "tokio")]
    Async(
        tokio::runtime::Handle,
        Box<dyn Fn(Attempt) -> Handling + Send + Sync>,
    ),
}

#[derive(Default)]
pub(crate) struct Handlers {
    handlers: HashMap<String, Handler>,
    retries: HashMap<String, Retry>,
    limits: HashMap<String, Duration>,
}

impl Handlers {
    pub(crate) fn set_handler(&mut self, kind: String, handler: Handler) {
        self.handlers.insert(kind, handler);
    }

    pub(crate) fn set_retry(&mut self, kind: String, retry: Retry) {
        self.retries.insert(kind, retry);
    }

    pub(crate) fn set_limit(&mut self, kind: String, limit: Duration) {
        self.limits.insert(kind, limit);
    }

    /// Returns how long a run may take.
    pub(crate) fn limit(&self, kind: &str) -> Duration {
        self.limits.get(kind).copied().unwrap_or(LIMIT)
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        self.handlers.keys().cloned().collect()
    }

    /// Returns whether jobs of some kind have one attempt only.
    pub(crate) fn has_single_attempts(&self) -> bool {
        self.retries.values().any(|retry| retry.is_last(1))
    }

    /// Returns whether handlers of this kind work in a transaction.
    pub(crate) fn is_in_transaction(&self, kind: &str) -> bool {
        match self.handlers.get(kind) {
            #[cfg(feature = "postgres")]
            Some(Handler::InTransaction(_)) => true,
            _ => false,
        }
    }

    /// Begins the run of a job whose handler is asynchronous. A panic before its first wait is
    /// that of the run.
    #[cfg(feature = "tokio")]
    pub(crate) fn run_async(
        &self,
        attempt: &Attempt,
    ) -> Option<(tokio::runtime::Handle, Handling)> {
        let job = attempt.job();
        let Some(Handler::Async(runtime, handler)) = self.handlers.get(&job.kind) else {
            return None;
        };
        // What the handler makes before its first wait may belong to the runtime, such as a sleep.
        let _entered = runtime.enter();
        let ready = |outcome| -> Handling { Box::pin(std::future::ready(outcome)) };
        let handling = match self.retry(job).is_beyond(job.attempts) {
            true => ready(beyond()),
            false => catch_unwind(AssertUnwindSafe(|| handler(attempt.clone())))
                .unwrap_or_else(|panic| ready(panicked(panic))),
        };
        Some((runtime.clone(), handling))
    }

    /// Returns whether any handler works in a transaction.
    #[cfg(feature = "postgres")]
    pub(crate) fn need_transactions(&self) -> bool {
        self.handlers
            .keys()
            .any(|kind| self.is_in_transaction(kind))
    }

    /// Runs the handler of a job in a transaction.
    #[cfg(feature = "postgres")]
    pub(crate) fn run_in(&self, attempt: &Attempt, transaction: &mut Transaction<'_>) -> Outcome {
        self.guarded(attempt, |handler| match handler {
            Handler::Plain(handler) => handler(attempt),
            Handler::InTransaction(handler) => handler(attempt, transaction),
            #[cfg(feature = "tokio")]
            Handler::Async(..) => Outcome::Failed("no runtime".to_owned()),
        })
    }

    /// Runs the handler of a job.
    pub(crate) fn run(&self, attempt: &Attempt) -> Outcome {
        self.guarded(attempt, |handler| match handler {
            Handler::Plain(handler) => handler(attempt),
            #[cfg(feature = "postgres")]
            Handler::InTransaction(_) => Outcome::Failed("no transaction".to_owned()),
            #[cfg(feature = "tokio")]
            Handler::Async(..) => Outcome::Failed("no runtime".to_owned()),
        })
    }

    /// Calls a job's handler, unless its attempts were used up by runs that never ended.
    fn guarded(&self, attempt: &Attempt, call: impl FnOnce(&Handler) -> Outcome) -> Outcome {
        let job = attempt.job();
        if self.retry(job).is_beyond(job.attempts) {
            return beyond();
        }
        let Some(handler) = self.handlers.get(&job.kind) else {
            return Outcome::Failed(format!("no handler for jobs of kind {:?}", job.kind));
        };
        match catch_unwind(AssertUnwindSafe(|| call(handler))) {
            Ok(outcome) => outcome,
            Err(panic) => panicked(panic),
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
        let again = |due| Then::Again { due, failure: None };
        let die = |failure, next| Then::Die {
            failure: cut(failure),
            at: now,
            next,
        };
        match outcome {
            Outcome::Done => match next_after(job, now) {
                Ok(next) => next.map_or(Then::End, again),
                Err(error) => die(error.to_string(), None),
            },
            Outcome::AgainAt(due) => again(due),
            Outcome::AgainAfter(delay) => again(now + delay),
            Outcome::Failed(failure) if !self.retry(job).is_last(job.attempts) => Then::Again {
                due: now + self.retry(job).pause(job.attempts, random),
                failure: Some(cut(failure)),
            },
            Outcome::Failed(failure) | Outcome::Never(failure) => match next_after(job, now) {
                Ok(next) => die(failure, next),
                Err(error) => die(format!("{error}; {failure}"), None),
            },
        }
    }

    fn retry(&self, job: &StoredJob) -> Retry {
        self.retries.get(&job.kind).copied().unwrap_or_default()
    }
}

/// Returns the failure of a job whose attempts were used up by runs that never ended.
fn beyond() -> Outcome {
    Outcome::Failed("the process ended during the last attempt".to_owned())
}

/// Returns the next occurrence of a job, if it recurs.
fn next_after(job: &StoredJob, now: WallTime) -> Result<Option<WallTime>, InvalidCron> {
    match &job.recurrence {
        Some(recurrence) => recurrence.try_next_after(now),
        None => Ok(None),
    }
}

/// Returns the failure of a handler that panicked. To drop what it threw may panic again, which
/// would end the worker; what that throws is leaked.
pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> Outcome {
    let failed = Outcome::Failed(format!("panicked: {}", message(&*panic)));
    catch_unwind(AssertUnwindSafe(|| drop(panic))).unwrap_or_else(mem::forget);
    failed
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let owned = || panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(owned).unwrap_or("a value that is no text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{JobId, State};
    use crate::recurrence::Recurrence;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("again");
        }
    }

    /// Otherwise its worker would end, and the job would never.
    #[test]
    fn durable_02_a_panic_whose_payload_panics_is_a_failure() {
        let failed = Outcome::Failed("panicked: a value that is no text".to_owned());
        assert_eq!(panicked(Box::new(Bomb)), failed);
    }

    /// A stored expression whose time zone this machine does not know.
    #[test]
    fn durable_02_an_unreadable_recurrence_ends_as_a_dead_letter() {
        let now = WallTime::from_unix_micros(9);
        let job = StoredJob {
            id: JobId::new(now, 1),
            kind: "job".to_owned(),
            key: None,
            due: now,
            version: 1,
            attempts: 10,
            state: State::Waiting,
            recurrence: Some(Recurrence::Cron("0 0 * * * Mars/Olympus".to_owned())),
            failure: None,
            payload: Vec::new(),
        };
        for outcome in [Outcome::Done, Outcome::Failed("no line".to_owned())] {
            let is_failed = outcome != Outcome::Done;
            let then = Handlers::default().then(&job, outcome, now, 0.0);
            let Then::Die { failure, next, .. } = then else {
                panic!("{then:?}");
            };
            assert!(failure.contains("not a cron expression"), "{failure}");
            assert_eq!((next, failure.contains("no line")), (None, is_failed));
        }
    }
}
