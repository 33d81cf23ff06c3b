//! A status for the recorder of the crate `metrics`.
//!
//! Counts are published as they stand, as those of an engine are: publishing keeps no state,
//! and costs nothing between two calls.

use std::time::Duration;

use metrics::{Label, Unit, counter, describe_counter, describe_gauge, gauge};
use tickwheel::Histogram;

use crate::observe::Counts;
use crate::status::Status;

const ATTEMPTS: &str = "tickwheel_durable_attempts_total";
const OUTCOMES: &str = "tickwheel_durable_outcomes_total";
const REFUSED: &str = "tickwheel_durable_outcomes_refused_total";
const LAG: &str = "tickwheel_durable_lag_runs_total";
const LEASES: &str = "tickwheel_durable_leases_total";
const COMMITS: &str = "tickwheel_durable_commits_total";
const CHANGES: &str = "tickwheel_durable_changes_total";
const FAILURES: &str = "tickwheel_durable_store_failures_total";
const RECOVERIES: &str = "tickwheel_durable_recoveries_total";
const STEPS: &str = "tickwheel_durable_clock_steps_total";
const ARMED: &str = "tickwheel_durable_window_jobs";
const RUNNING: &str = "tickwheel_durable_running_jobs";
const BEHIND: &str = "tickwheel_durable_behind_seconds";
const HORIZON: &str = "tickwheel_durable_horizon_timestamp_seconds";
const SET_ASIDE: &str = "tickwheel_durable_set_aside_jobs";
const LATE: &str = "tickwheel_durable_late_handlers";
const DIFFERS: &str = "tickwheel_durable_clock_differs_seconds";
const DELIVERS: &str = "tickwheel_durable_delivers";
const HELD: &str = "tickwheel_durable_lease_held";
const WRITES: &str = "tickwheel_durable_store_writes";

/// The bounds of the published lag, as powers of two in nanoseconds: from a microsecond to
/// five days, because jobs wait while no process runs.
const BUCKET_BITS: std::ops::RangeInclusive<u32> = 10..=48;

#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
impl Status {
    /// Passes the counts to the recorder of the crate
    /// [`metrics`](https://docs.rs/metrics/0.24), version 0.24. Call it whenever fresh counts
    /// are needed, for instance before each scrape. Without a recorder, nothing happens.
    ///
    /// Every metric carries the label `owner` with the [name](crate::Builder::owner) of the
    /// node. By default that name is random, and each start adds a set of metrics: give the
    /// node a name.
    ///
    /// | name | kind, unit | further labels |
    /// |---|---|---|
    /// | `tickwheel_durable_attempts_total` | counter, jobs started | |
    /// | `tickwheel_durable_outcomes_total` | counter, attempts | `outcome`: `done`, `again`, `failed`, `dead`, `given_up` |
    /// | `tickwheel_durable_outcomes_refused_total` | counter, outcomes that the store did not accept | |
    /// | `tickwheel_durable_lag_runs_total` | counter, runs that began no later than `within` after their due time | `within`: seconds, or `+Inf` |
    /// | `tickwheel_durable_leases_total` | counter, leases | `event`: `taken`, `lost` |
    /// | `tickwheel_durable_commits_total` | counter, commits | |
    /// | `tickwheel_durable_changes_total` | counter, changes in these commits | |
    /// | `tickwheel_durable_store_failures_total` | counter, commits and requests for a lease that failed | |
    /// | `tickwheel_durable_recoveries_total` | counter, recoveries of the store | |
    /// | `tickwheel_durable_clock_steps_total` | counter, steps of the wall clock | |
    /// | `tickwheel_durable_window_jobs` | gauge, jobs in the window | |
    /// | `tickwheel_durable_running_jobs` | gauge, jobs | |
    /// | `tickwheel_durable_behind_seconds` | gauge, seconds for which the first job has been due | |
    /// | `tickwheel_durable_horizon_timestamp_seconds` | gauge, the time before which the window holds every waiting job, in seconds since 1970 | |
    /// | `tickwheel_durable_set_aside_jobs` | gauge, jobs whose damaged rows the store could not start or complete | |
    /// | `tickwheel_durable_late_handlers` | gauge, handlers that run for longer than their limit | |
    /// | `tickwheel_durable_clock_differs_seconds` | gauge, seconds between the clock of this machine and the one by which jobs are due | |
    /// | `tickwheel_durable_delivers` | gauge, 1 if the node has handlers | |
    /// | `tickwheel_durable_lease_held` | gauge, 1 if the node may start jobs | |
    /// | `tickwheel_durable_store_writes` | gauge, 0 while the store accepts no changes | |
    ///
    /// Changes divided by commits is the mean batch. This query for Prometheus returns the lag
    /// that 99 of 100 runs stayed below:
    ///
    /// ```promql
    /// histogram_quantile(0.99, label_replace(
    ///     rate(tickwheel_durable_lag_runs_total[5m]), "le", "$1", "within", "(.*)"))
    /// ```
    ///
    /// ```
    /// use tickwheel_durable::{Durable, MemoryStore};
    ///
    /// // metrics_exporter_prometheus, or any other recorder, is installed here.
    /// let jobs = Durable::builder().owner("mailer").open(MemoryStore::new())?;
    /// jobs.status().publish();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn publish(&self) {
        describe();
        let labels = [Label::new("owner", self.owner.clone())];
        self.publish_state(&labels);
        publish_counts(&self.counts, &labels);
    }

    /// Names every field, so that a new one is published or left out on purpose.
    fn publish_state(&self, labels: &[Label]) {
        let Status {
            owner: _,
            delivers,
            armed,
            running,
            horizon,
            behind,
            holds_lease,
            set_aside,
            late,
            clock_differs,
            failure,
            counts: _,
        } = self;
        let set = |name, value: f64| gauge!(name, labels.to_vec()).set(value);
        let set_if = |name, holds: bool| set(name, f64::from(u8::from(holds)));
        set(ARMED, *armed as f64);
        set(RUNNING, *running as f64);
        set(HORIZON, horizon.as_unix_micros() as f64 / 1e6);
        set(BEHIND, behind.as_secs_f64());
        set(SET_ASIDE, *set_aside as f64);
        set(LATE, *late as f64);
        set(DIFFERS, clock_differs.as_secs_f64());
        set_if(DELIVERS, *delivers);
        set_if(HELD, *holds_lease);
        set_if(WRITES, failure.is_none());
    }
}

/// Names every field, as [`Status::publish_state`] does.
fn publish_counts(counts: &Counts, labels: &[Label]) {
    let Counts {
        attempts,
        done,
        again,
        failed,
        dead,
        given_up,
        refused,
        leases_taken,
        leases_lost,
        commits,
        changes,
        store_failures,
        recoveries,
        clock_steps,
        lag,
    } = counts;
    for (name, value) in [
        (ATTEMPTS, attempts),
        (REFUSED, refused),
        (COMMITS, commits),
        (CHANGES, changes),
        (FAILURES, store_failures),
        (RECOVERIES, recoveries),
        (STEPS, clock_steps),
    ] {
        counter!(name, labels.to_vec()).absolute(*value);
    }
    for (name, key, label, value) in [
        (OUTCOMES, "outcome", "done", done),
        (OUTCOMES, "outcome", "again", again),
        (OUTCOMES, "outcome", "failed", failed),
        (OUTCOMES, "outcome", "dead", dead),
        (OUTCOMES, "outcome", "given_up", given_up),
        (LEASES, "event", "taken", leases_taken),
        (LEASES, "event", "lost", leases_lost),
    ] {
        counter!(name, with(labels, key, label)).absolute(*value);
    }
    publish_lag(lag, labels);
}

/// Publishes the lag as one counter for each bound.
fn publish_lag(lag: &Histogram, labels: &[Label]) {
    for bound in BUCKET_BITS.map(|bits| Duration::from_nanos(1 << bits)) {
        let up_to = lag.buckets().take_while(|(below, _)| *below <= bound);
        let runs = up_to.map(|(_, runs)| runs).sum();
        let within = with(labels, "within", bound.as_secs_f64().to_string());
        counter!(LAG, within).absolute(runs);
    }
    counter!(LAG, with(labels, "within", "+Inf")).absolute(lag.count());
}

fn with(labels: &[Label], key: &'static str, value: impl Into<String>) -> Vec<Label> {
    let mut labels = labels.to_vec();
    labels.push(Label::new(key, value.into()));
    labels
}

/// Describes each metric. Repeats this on each call, because the recorder may have changed.
fn describe() {
    for (name, text) in [
        (ATTEMPTS, "Jobs that were started"),
        (OUTCOMES, "Attempts that ended, by outcome"),
        (REFUSED, "Outcomes that the store did not accept"),
        (
            LAG,
            "Runs that began no later than `within` seconds after their due time",
        ),
        (LEASES, "Leases that were taken, and lost"),
        (COMMITS, "Commits that succeeded"),
        (CHANGES, "Changes in the commits that succeeded"),
        (FAILURES, "Commits and requests for a lease that failed"),
        (RECOVERIES, "Recoveries of the store after a failure"),
        (STEPS, "Steps of the wall clock"),
    ] {
        describe_counter!(name, Unit::Count, text);
    }
    for (name, text) in [
        (ARMED, "Jobs in the window"),
        (RUNNING, "Jobs that run, or are about to"),
        (
            SET_ASIDE,
            "Jobs whose damaged rows the store could not start or complete",
        ),
        (LATE, "Handlers that run for longer than their limit"),
        (DELIVERS, "Whether the node has handlers"),
        (HELD, "Whether the node may start jobs"),
        (WRITES, "Whether the store accepts changes"),
    ] {
        describe_gauge!(name, Unit::Count, text);
    }
    for (name, text) in [
        (
            HORIZON,
            "The time before which the window holds every waiting job",
        ),
        (
            BEHIND,
            "Seconds for which the first job of the window has been due",
        ),
        (
            DIFFERS,
            "Seconds between this machine's clock and the one by which jobs are due",
        ),
    ] {
        describe_gauge!(name, Unit::Seconds, text);
    }
}
