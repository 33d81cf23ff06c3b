//! Counts of jobs.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tickwheel_durable::store::List;
use tickwheel_durable::{Jobs, State, StoreError, StoredJob, WallTime};

use crate::failure::Failure;
use crate::look::for_each;
use crate::open::Opened;
use crate::output::{Output, plain};
use crate::time::{from_now, rough};

/// The pause between two looks at a store that is being drained.
const PAUSE: Duration = Duration::from_millis(250);

/// The bounds of due times, by which jobs are counted.
const SPANS: [(&str, u64); 4] =
    [("overdue", 0), ("within a minute", 60), ("within an hour", 3_600), ("within a day", 86_400)];

/// What is counted of the jobs of a kind.
#[derive(Default)]
struct Kind {
    waiting: u64,
    started: u64,
    dead: u64,
    first: Option<WallTime>,
}

/// The counts of a store.
pub(crate) struct Stats {
    now: WallTime,
    kinds: BTreeMap<String, Kind>,
    /// The number of live jobs in each span, and of those beyond.
    spans: [u64; SPANS.len() + 1],
    first: Option<WallTime>,
}

impl Stats {
    /// Counts the jobs of a store. Reads them all.
    pub(crate) fn of(jobs: &Opened) -> Result<Stats, StoreError> {
        let mut stats = Stats {
            now: jobs.now(),
            kinds: BTreeMap::new(),
            spans: Default::default(),
            first: None,
        };
        for list in [List::Live, List::Dead] {
            for_each(jobs, list, None, |job| {
                stats.count(job);
                Ok::<bool, StoreError>(true)
            })?;
        }
        Ok(stats)
    }

    fn count(&mut self, job: &StoredJob) {
        let kind = self.kinds.entry(job.kind.clone()).or_default();
        match job.state {
            State::Dead => kind.dead += 1,
            State::Waiting => kind.waiting += 1,
            State::Started { .. } => kind.started += 1,
        }
        if job.state != State::Dead {
            kind.first.get_or_insert(job.due);
            self.first.get_or_insert(job.due);
            self.spans[span(job.due, self.now)] += 1;
        }
    }

    fn sum(&self, of: impl Fn(&Kind) -> u64) -> u64 {
        self.kinds.values().map(of).sum()
    }

    /// Returns the time for which the first job has been due.
    fn behind(&self) -> Duration {
        self.first.map_or(Duration::ZERO, |first| self.now.since(first))
    }

    pub(crate) fn object(&self) -> Value {
        let kinds: serde_json::Map<String, Value> = self
            .kinds
            .iter()
            .map(|(name, kind)| {
                let first = kind.first.map(|first| first.to_string());
                let counts = json!({"waiting": kind.waiting, "started": kind.started, "dead": kind.dead, "first_due": first});
                (name.clone(), counts)
            })
            .collect();
        json!({
            "waiting": self.sum(|kind| kind.waiting),
            "started": self.sum(|kind| kind.started),
            "dead": self.sum(|kind| kind.dead),
            "overdue": self.spans[0],
            "behind_seconds": self.behind().as_secs_f64(),
            "first_due": self.first.map(|first| first.to_string()),
            "kinds": kinds,
        })
    }

    pub(crate) fn text(&self) -> String {
        let mut lines = vec![format!(
            "{:<24} {:>10} {:>10} {:>10}  FIRST DUE",
            "KIND", "WAITING", "STARTED", "DEAD"
        )];
        let row = |name: &str, counts: [u64; 3], first: Option<WallTime>| {
            let [waiting, started, dead] = counts;
            let first = first.map_or(String::new(), |first| from_now(first, self.now));
            format!("{name:<24} {waiting:>10} {started:>10} {dead:>10}  {first}")
        };
        for (name, kind) in &self.kinds {
            let counts = [kind.waiting, kind.started, kind.dead];
            lines.push(row(&plain(name), counts, kind.first));
        }
        let sums = [
            self.sum(|kind| kind.waiting),
            self.sum(|kind| kind.started),
            self.sum(|kind| kind.dead),
        ];
        lines.push(row("all", sums, self.first));
        lines.push(String::new());
        let names = SPANS.map(|(name, _)| name).into_iter().chain(["later"]);
        let spans = names.zip(self.spans);
        lines.extend(spans.map(|(name, jobs)| format!("{name:<24} {jobs:>10}")));
        lines.push(format!("{:<24} {:>10}", "behind", rough(self.behind())));
        lines.join("\n")
    }
}

/// Returns the number of the span in which a due time lies.
fn span(due: WallTime, now: WallTime) -> usize {
    let is_in = |(_, secs): &(&str, u64)| due <= now + Duration::from_secs(*secs);
    SPANS.iter().position(is_in).unwrap_or(SPANS.len())
}

pub(crate) fn show(jobs: &Opened, output: &mut Output) -> Result<bool, Failure> {
    let stats = Stats::of(jobs)?;
    output.line(&stats.text(), || stats.object())?;
    output.flush()?;
    Ok(true)
}

/// Returns whether the first job is due by `end`.
fn is_left(jobs: &Jobs, end: WallTime) -> Result<bool, StoreError> {
    let first = jobs.list(List::Live, None, 1)?;
    Ok(first.first().is_some_and(|job| job.due <= end))
}

/// Waits until no job is left, of those that are due within a time if it is given, and says how
/// many are left.
pub(crate) fn drain(
    jobs: &Opened,
    within: Option<Duration>,
    wait: Duration,
    output: &mut Output,
) -> Result<bool, Failure> {
    let begun = Instant::now();
    let end = within.map_or(WallTime::MAX, |within| jobs.now() + within);
    while begun.elapsed() < wait && is_left(jobs, end)? {
        thread::sleep(PAUSE);
    }
    let (mut waiting, mut started) = (0, 0);
    for_each(jobs, List::Live, None, |job| {
        match job.state {
            _ if job.due > end => return Ok(false),
            State::Started { .. } => started += 1,
            _ => waiting += 1,
        }
        Ok::<bool, StoreError>(true)
    })?;
    let left = waiting + started;
    let text = match left {
        0 => "drained: no job is left".to_owned(),
        _ => format!(
            "{left} jobs are left: {waiting} wait, {started} were started and have not ended"
        ),
    };
    output.line(&text, || json!({"left": left, "waiting": waiting, "started": started}))?;
    output.flush()?;
    Ok(left == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_fall_into_spans() {
        let now = WallTime::from_unix_micros(1_000_000_000_000);
        let spans = [0, 1, 60, 61, 86_400, 86_401].map(|secs| {
            let due = now + Duration::from_secs(secs);
            span(due, now)
        });
        assert_eq!(spans, [0, 1, 1, 2, 3, 4]);
    }
}
