//! The handlers of a node, by kind, and what becomes of a job after its run.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(feature = "tokio")]
use std::pin::Pin;
#[cfg(feature = "tokio")]
use std::sync::Arc;
use std::time::Duration;

use crate::attempt::Attempt;
use crate::job::StoredJob;
use crate::node::Lanes;
use crate::outcome::{Outcome, Retry, cut, drop_thrown};
use crate::recurrence::InvalidCron;
#[cfg(feature = "postgres")]
use crate::store::Transaction;
use crate::store::{Kind, Then};
use crate::wall::WallTime;

/// The time that a run has unless it is set.
const LIMIT: Duration = Duration::from_secs(600);

/// A run of an asynchronous handler.
#[cfg(feature = "tokio")]
pub(crate) type Handling = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// A handler that works in a transaction, on a thread of the workers.
#[cfg(feature = "postgres")]
pub(crate) type InTransaction = dyn for<'a> Fn(&'a Attempt, &'a mut Transaction<'_>) -> Pin<Box<dyn Future<Output = Outcome> + 'a>>
    + Send
    + Sync;

pub(crate) enum Handler {
    Plain(Box<dyn Fn(&Attempt) -> Outcome + Send + Sync>),
    #[cfg(feature = "postgres")]
    InTransaction(Box<InTransaction>),
    #[cfg(feature = "tokio")]
    Async(tokio::runtime::Handle, Arc<dyn Fn(Attempt) -> Handling + Send + Sync>),
}

/// What is set for a kind.
#[derive(Default)]
pub(crate) struct Rules {
    pub(crate) handler: Option<Handler>,
    pub(crate) retry: Retry,
    pub(crate) time_limit: Option<Duration>,
    /// How many may run at a time on this node, and on all.
    pub(crate) here: Option<usize>,
    pub(crate) everywhere: Option<usize>,
}

#[derive(Default)]
pub(crate) struct Handlers(HashMap<String, Rules>);

impl Handlers {
    pub(crate) fn of(&mut self, kind: impl Into<String>) -> &mut Rules {
        self.0.entry(kind.into()).or_default()
    }

    pub(crate) fn handler(&self, kind: &str) -> Option<&Handler> {
        self.0.get(kind)?.handler.as_ref()
    }

    /// Returns how long a run may take.
    pub(crate) fn time_limit(&self, kind: &str) -> Duration {
        let limit = self.0.get(kind).and_then(|rules| rules.time_limit);
        limit.unwrap_or(LIMIT)
    }

    /// Returns the kinds that have handlers.
    pub(crate) fn lanes(&self) -> Lanes {
        let mut lanes = Lanes::default();
        let sorted: BTreeMap<_, _> = self.0.iter().collect();
        for (name, rules) in sorted {
            let kind = Kind { name: name.clone(), most: rules.everywhere };
            match &rules.handler {
                None => {}
                #[cfg(feature = "tokio")]
                Some(Handler::Async(..)) => lanes.add(kind, rules.here, false),
                Some(_) => lanes.add(kind, rules.here, true),
            }
        }
        lanes
    }

    /// Returns whether jobs of some kind have one attempt only.
    pub(crate) fn has_single_attempts(&self) -> bool {
        self.0.values().any(|rules| rules.retry.is_last(1))
    }

    /// Returns whether any handler works in a transaction.
    #[cfg(feature = "postgres")]
    pub(crate) fn need_transactions(&self) -> bool {
        let handlers = self.0.values().map(|rules| &rules.handler);
        handlers.into_iter().any(|handler| matches!(handler, Some(Handler::InTransaction(_))))
    }

    /// Returns what becomes of a job without a run, because runs that never ended have used up its
    /// attempts, or fewer are allowed than when it failed last.
    pub(crate) fn beyond(&self, job: &StoredJob) -> Option<Outcome> {
        let beyond = || {
            let ended = "the process ended during the last attempt";
            Outcome::Failed(match &job.failure {
                None => ended.to_owned(),
                Some(last) => format!("{ended}, or fewer are allowed now; it had failed: {last}"),
            })
        };
        self.retry(job).is_beyond(job.attempts).then(beyond)
    }

    /// Decides what becomes of a job whose run ended at `now`. `random` lies between 0 and 1.
    pub(crate) fn then(
        &self,
        job: &StoredJob,
        outcome: &Outcome,
        now: WallTime,
        random: f64,
    ) -> Then {
        let again = |due| Then::Again { due, failure: None };
        let die = |failure: &str, next| Then::Die { failure: cut(failure), at: now, next };
        match outcome {
            Outcome::Done => match next_after(job, now) {
                Ok(next) => next.map_or(Then::End, again),
                Err(error) => die(&error.to_string(), None),
            },
            Outcome::AgainAt(due) => again(*due),
            Outcome::AgainAfter(delay) => again(now + *delay),
            Outcome::Failed(failure) if !self.retry(job).is_last(job.attempts) => Then::Again {
                due: now + self.retry(job).pause(job.attempts, random),
                failure: Some(cut(failure)),
            },
            Outcome::Failed(failure) | Outcome::Never(failure) => match next_after(job, now) {
                Ok(next) => die(failure, next),
                Err(error) => die(&format!("{error}; {failure}"), None),
            },
        }
    }

    fn retry(&self, job: &StoredJob) -> Retry {
        let rules = self.0.get(&job.kind);
        rules.map(|rules| rules.retry).unwrap_or_default()
    }
}

/// Returns the next occurrence of a job, if it recurs: not that of the run, the last one by its due
/// time, if the clock was set back before it.
fn next_after(job: &StoredJob, now: WallTime) -> Result<Option<WallTime>, InvalidCron> {
    let Some(recurrence) = &job.recurrence else { return Ok(None) };
    let next = recurrence.try_next_after(now)?;
    let Some(again) = next.filter(|&next| next <= job.due) else { return Ok(next) };
    let following = recurrence.try_next_after(again)?;
    Ok(if following.is_none_or(|it| it > job.due) { following } else { next })
}

/// Calls a handler. A panic is a failure.
pub(crate) fn guarded(handler: impl FnOnce() -> Outcome) -> Outcome {
    catch_unwind(AssertUnwindSafe(handler)).unwrap_or_else(panicked)
}

/// Returns the failure of a handler that panicked.
pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> Outcome {
    let failed = Outcome::Failed(format!("panicked: {}", message(&*panic)));
    drop_thrown(panic);
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
    use crate::outcome::Bomb;
    use crate::recurrence::Recurrence;

    /// Otherwise its worker would end, and the job would never.
    #[test]
    fn durable_02_a_panic_whose_payload_panics_is_a_failure() {
        let failed = Outcome::Failed("panicked: a value that is no text".to_owned());
        assert_eq!(panicked(Box::new(Bomb)), failed);
    }

    fn job(attempts: u32, recurrence: Option<Recurrence>) -> StoredJob {
        let due = WallTime::default();
        StoredJob {
            id: JobId::new(due, 1),
            kind: "job".to_owned(),
            key: None,
            due,
            version: 1,
            attempts,
            state: State::Waiting,
            recurrence,
            failure: None,
            payload: Vec::new(),
        }
    }

    /// A run may begin late, and take long.
    #[test]
    fn a_pause_begins_at_the_end_of_the_run() {
        let (now, second) = (WallTime::from_unix_micros(9), Duration::from_secs(1));
        for outcome in [Outcome::AgainAfter(second), Outcome::Failed("no line".to_owned())] {
            let then = Handlers::default().then(&job(1, None), &outcome, now, 0.0);
            assert!(matches!(then, Then::Again { due, .. } if due == now + second), "{then:?}");
        }
    }

    /// A stored expression whose time zone this machine does not know, and one whose zone left out a
    /// day, behind which no search gets.
    #[test]
    fn durable_02_an_unreadable_recurrence_ends_as_a_dead_letter() {
        for (now, zone) in [(9, "Mars/Olympus"), (1_325_160_000_000_000, "Pacific/Apia")] {
            dies(WallTime::from_unix_micros(now), zone);
        }
    }

    fn dies(now: WallTime, zone: &str) {
        let job = job(10, Some(Recurrence::Cron(format!("0 1 * * * {zone}"))));
        for outcome in [Outcome::Done, Outcome::Failed("no line".to_owned())] {
            let is_failed = outcome != Outcome::Done;
            let then = Handlers::default().then(&job, &outcome, now, 0.0);
            let Then::Die { failure, next, .. } = then else {
                panic!("{then:?}");
            };
            assert!(failure.contains("not a cron expression"), "{failure}");
            assert_eq!((next, failure.contains("no line")), (None, is_failed));
        }
    }
}
