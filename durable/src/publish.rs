//! A status for the recorder of the crate `metrics`.
//!
//! Counts are published as they stand, as those of an engine are: publishing keeps no state,
//! and costs nothing between two calls.

use std::time::Duration;

use metrics::{Label, Unit, counter, describe_counter, describe_gauge, gauge};
use tickwheel::stats::Histogram;

use crate::observe::Counts;
use crate::status::Status;

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
    /// | `tickwheel_durable_store_failures_total` | counter, commits, requests for a lease and loads that failed | |
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
    /// | `tickwheel_durable_store_writes` | gauge, 0 while the store accepts no changes, or its due jobs cannot be read | |
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
    /// use tickwheel_durable::{Durable, RedbStore};
    ///
    /// // metrics_exporter_prometheus, or any other recorder, is installed here.
    /// let jobs = Durable::builder().owner("mailer").open(RedbStore::in_memory())?;
    /// jobs.status().publish();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn publish(&self) {
        let labels = [Label::new("owner", self.owner.clone())];
        self.publish_state(&labels);
        publish_counts(&self.counts, &labels);
    }

    /// Names every field, so that a new one is published or left out on purpose.
    fn publish_state(&self, labels: &[Label]) {
        #[rustfmt::skip]
        let Status {
            owner: _, delivers, armed, running, horizon, behind, holds_lease, set_aside, late,
            clock_differs, failure, counts: _,
        } = self;
        let one = |holds: bool| f64::from(u8::from(holds));
        let horizon = horizon.as_unix_micros() as f64 / 1e6;
        #[rustfmt::skip]
        let gauges = [
            ("window_jobs", *armed as f64, "Jobs in the window"),
            ("running_jobs", *running as f64, "Jobs that run, or are about to"),
            ("horizon_timestamp_seconds", horizon, "All jobs due before this are in the window"),
            ("behind_seconds", behind.as_secs_f64(), "For how long the first job has been due"),
            ("set_aside_jobs", *set_aside as f64, "Jobs whose rows are damaged"),
            ("late_handlers", *late as f64, "Handlers that run for longer than their limit"),
            ("clock_differs_seconds", clock_differs.as_secs_f64(), "From this clock to the jobs'"),
            ("delivers", one(*delivers), "Whether the node has handlers"),
            ("lease_held", one(*holds_lease), "Whether the node may start jobs"),
            ("store_writes", one(failure.is_none()), "Whether the store accepts changes and its due jobs can be read"),
        ];
        for (name, value, says) in gauges {
            let unit = if name.ends_with("_seconds") { Unit::Seconds } else { Unit::Count };
            let name = format!("tickwheel_durable_{name}");
            describe_gauge!(name.clone(), unit, says);
            gauge!(name, labels.to_vec()).set(value);
        }
    }
}

/// Names every field, as [`Status::publish_state`] does.
fn publish_counts(counts: &Counts, labels: &[Label]) {
    #[rustfmt::skip]
    let Counts {
        attempts, done, again, failed, dead, given_up, refused, leases_taken, leases_lost, commits,
        changes, store_failures, recoveries, clock_steps, lag,
    } = counts;
    const ENDED: &str = "Attempts that ended, by outcome";
    const LEASES: &str = "Leases that were taken, and lost";
    #[rustfmt::skip]
    let counters = [
        ("attempts", None, attempts, "Jobs that were started"),
        ("outcomes", Some(("outcome", "done")), done, ENDED),
        ("outcomes", Some(("outcome", "again")), again, ENDED),
        ("outcomes", Some(("outcome", "failed")), failed, ENDED),
        ("outcomes", Some(("outcome", "dead")), dead, ENDED),
        ("outcomes", Some(("outcome", "given_up")), given_up, ENDED),
        ("outcomes_refused", None, refused, "Outcomes that the store did not accept"),
        ("leases", Some(("event", "taken")), leases_taken, LEASES),
        ("leases", Some(("event", "lost")), leases_lost, LEASES),
        ("commits", None, commits, "Commits that succeeded"),
        ("changes", None, changes, "Changes in the commits that succeeded"),
        ("store_failures", None, store_failures, "Commits, requests for leases and loads that failed"),
        ("recoveries", None, recoveries, "Recoveries of the store after a failure"),
        ("clock_steps", None, clock_steps, "Steps of the wall clock"),
    ];
    for (name, label, value, says) in counters {
        let name = format!("tickwheel_durable_{name}_total");
        describe_counter!(name.clone(), Unit::Count, says);
        let label = label.map(|(key, value)| Label::new(key, value));
        counter!(name, with(labels, label)).absolute(*value);
    }
    publish_lag(lag, labels);
}

/// Publishes the lag as one counter for each bound.
fn publish_lag(lag: &Histogram, labels: &[Label]) {
    const LAG: &str = "tickwheel_durable_lag_runs_total";
    let says = "Runs that began no later than `within` seconds after their due time";
    describe_counter!(LAG, Unit::Count, says);
    let count = |within: String, runs| {
        let within = Label::new("within", within);
        counter!(LAG, with(labels, Some(within))).absolute(runs);
    };
    for bound in BUCKET_BITS.map(|bits| Duration::from_nanos(1 << bits)) {
        let up_to = lag.buckets().take_while(|(below, _)| *below <= bound);
        let runs = up_to.map(|(_, runs)| runs).sum();
        count(bound.as_secs_f64().to_string(), runs);
    }
    count("+Inf".to_owned(), lag.count());
}

fn with(labels: &[Label], further: Option<Label>) -> Vec<Label> {
    labels.iter().cloned().chain(further).collect()
}
