//! A snapshot for the recorder of the crate `metrics`.
//!
//! Counts are published as they stand, not as increments since the last time.
//! Publishing therefore keeps no state, may be done by two threads at once, and
//! costs the engine only the snapshot. For the same reason, each bucket of the
//! lateness is a counter, with a name and a label that no exporter takes for a part of
//! a histogram (DESIGN.md, "Lateness is published as counters").

use std::sync::Arc;
use std::time::Duration;

use metrics::{Label, Unit, counter, describe_counter, describe_gauge, gauge};

use crate::stats::{Histogram, Ledger, RefusedTimers, Snapshot};

const ACCEPTED: &str = "tickwheel_timers_accepted_total";
const ENDED: &str = "tickwheel_timers_ended_total";
const REFUSED: &str = "tickwheel_timers_refused_total";
const LIVE: &str = "tickwheel_timers_live";
const LIMIT: &str = "tickwheel_timers_limit";
const QUEUED: &str = "tickwheel_timers_queued";
const REPORTS: &str = "tickwheel_reports_unread";
const MEMORY: &str = "tickwheel_memory_bytes";
const BEHIND: &str = "tickwheel_behind_seconds";
const LATENESS: &str = "tickwheel_lateness_firings_total";
const LATENESS_AT_START: &str = "tickwheel_lateness_at_start_firings_total";
const DURATIONS: &str = "tickwheel_durations_firings_total";
const HELD: &str = "tickwheel_firings_held";
const WORKERS: &str = "tickwheel_workers";
const WAKEUPS: &str = "tickwheel_wakeups_total";
const PANICS: &str = "tickwheel_panics_total";

/// The bounds of the published buckets, as powers of two in nanoseconds: from a
/// microsecond to 17 seconds. They are fixed, because a bucket that first appears when it
/// has counted something has no rate.
const BUCKET_BITS: std::ops::RangeInclusive<u32> = 10..=34;

#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
impl Snapshot {
    /// Passes the counts to the recorder of the crate
    /// [`metrics`](https://docs.rs/metrics/0.24), version 0.24. Call it whenever fresh
    /// counts are needed, for instance before each scrape; the engine does no work for it
    /// in between. Without a recorder, nothing happens.
    ///
    /// Every metric carries the label `engine` with the [name](crate::Builder::name) of
    /// the engine. Engines of the same name in one process overwrite the counts of each
    /// other, so give each engine a name of its own:
    ///
    /// | name | kind, unit | further labels |
    /// |---|---|---|
    /// | `tickwheel_timers_accepted_total` | counter, timers | |
    /// | `tickwheel_timers_ended_total` | counter, timers | `reason`: `completed`, `cancelled`, `shut_down`, `failed` |
    /// | `tickwheel_timers_refused_total` | counter, timers | `reason`: `full`, `shut_down` |
    /// | `tickwheel_timers_live` | gauge, timers | |
    /// | `tickwheel_timers_limit` | gauge, timers; only with [`max_timers`](crate::Builder::max_timers) | |
    /// | `tickwheel_timers_queued` | gauge, expired timers that wait for a worker | `queue`: its number |
    /// | `tickwheel_reports_unread` | gauge, closed reports | |
    /// | `tickwheel_memory_bytes` | gauge, bytes allocated for timers | |
    /// | `tickwheel_behind_seconds` | gauge, seconds for which due timers have not been found due | |
    /// | `tickwheel_lateness_firings_total` | counter, firings no later than `within` | `within`: seconds, or `+Inf` |
    /// | `tickwheel_lateness_at_start_firings_total` | counter, firings taken no later than `within` | `within`: as above |
    /// | `tickwheel_durations_firings_total` | counter, firings held no longer than `within` | `within`: as above |
    /// | `tickwheel_firings_held` | gauge, firings that workers hold | |
    /// | `tickwheel_workers` | gauge, threads of a `TaskEngine` | |
    /// | `tickwheel_wakeups_total` | counter, wake-ups of the ticker thread | |
    /// | `tickwheel_panics_total` | counter, runs of tasks, and calls of wakers | |
    ///
    /// The label `within` counts as a histogram's `le`, once a query has renamed it. This
    /// query for Prometheus returns the lateness that 99 of 100 firings stayed below:
    ///
    /// ```promql
    /// histogram_quantile(0.99, label_replace(
    ///     rate(tickwheel_lateness_firings_total[5m]), "le", "$1", "within", "(.*)"))
    /// ```
    ///
    /// `docs/dashboards` in the package has a dashboard for Grafana and alarms for
    /// Prometheus, which use these names.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// // metrics_exporter_prometheus, or any other recorder, is installed here.
    /// let engine = Engine::builder().name("sessions").start()?;
    /// engine.schedule(Timer::after(Duration::from_secs(30), "session 7"))?;
    /// engine.snapshot().publish();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn publish(&self) {
        describe();
        let labels = vec![Label::new("engine", Arc::clone(&self.name))];
        self.publish_timers(&labels);
        self.publish_bounds(&labels);
        publish_histogram(LATENESS, &self.lateness, &labels);
        self.publish_work(&labels);
        counter!(WAKEUPS, labels.clone()).absolute(self.wakeups);
        counter!(PANICS, labels).absolute(self.panics);
    }

    fn publish_timers(&self, labels: &[Label]) {
        counter!(ACCEPTED, labels.to_vec()).absolute(self.ledger.accepted);
        gauge!(LIVE, labels.to_vec()).set(self.ledger.live as f64);
        for (reason, timers) in endings(&self.ledger) {
            counter!(ENDED, with(labels, "reason", reason)).absolute(timers);
        }
        for (reason, timers) in refusals(&self.refused) {
            counter!(REFUSED, with(labels, "reason", reason)).absolute(timers);
        }
        for (queue, &timers) in self.queued.iter().enumerate() {
            gauge!(QUEUED, with(labels, "queue", queue.to_string())).set(timers as f64);
        }
        gauge!(REPORTS, labels.to_vec()).set(self.reports as f64);
    }

    fn publish_bounds(&self, labels: &[Label]) {
        if let Some(limit) = self.max_timers {
            gauge!(LIMIT, labels.to_vec()).set(limit as f64);
        }
        gauge!(MEMORY, labels.to_vec()).set(self.memory as f64);
        gauge!(BEHIND, labels.to_vec()).set(self.behind.as_secs_f64());
    }

    fn publish_work(&self, labels: &[Label]) {
        publish_histogram(LATENESS_AT_START, &self.lateness_at_start, labels);
        publish_histogram(DURATIONS, &self.durations, labels);
        gauge!(HELD, labels.to_vec()).set(self.held as f64);
        gauge!(WORKERS, labels.to_vec()).set(self.workers as f64);
    }
}

/// Publishes a histogram as one counter for each bound, under `name`.
fn publish_histogram(name: &'static str, histogram: &Histogram, labels: &[Label]) {
    for bound in BUCKET_BITS.map(|bits| Duration::from_nanos(1 << bits)) {
        let up_to = |&(below, _): &(Duration, u64)| below <= bound;
        let buckets = histogram.buckets().take_while(up_to);
        let firings = buckets.map(|(_, firings)| firings).sum();
        let within = with(labels, "within", bound.as_secs_f64().to_string());
        counter!(name, within).absolute(firings);
    }
    let all = with(labels, "within", "+Inf");
    counter!(name, all).absolute(histogram.count());
}

fn endings(ledger: &Ledger) -> [(&'static str, u64); 4] {
    [
        ("completed", ledger.completed),
        ("cancelled", ledger.cancelled),
        ("shut_down", ledger.shut_down),
        ("failed", ledger.failed),
    ]
}

fn refusals(refused: &RefusedTimers) -> [(&'static str, u64); 2] {
    [("full", refused.full), ("shut_down", refused.shut_down)]
}

fn with(labels: &[Label], key: &'static str, value: impl Into<String>) -> Vec<Label> {
    let mut labels = labels.to_vec();
    labels.push(Label::new(key, value.into()));
    labels
}

/// Describes each metric, for recorders that show descriptions. Repeats this on each
/// call, because the recorder may have changed.
fn describe() {
    describe_counter!(ACCEPTED, Unit::Count, "Timers accepted since the start");
    describe_counter!(ENDED, Unit::Count, "Timers that ended, by reason");
    describe_counter!(REFUSED, Unit::Count, "Timers that were refused, by reason");
    describe_gauge!(LIVE, Unit::Count, "Timers that have not ended");
    describe_gauge!(LIMIT, Unit::Count, "The bound on live timers");
    describe_gauge!(QUEUED, Unit::Count, "Expired timers that wait for a worker");
    describe_gauge!(REPORTS, Unit::Count, "Closed reports that have not been read");
    describe_gauge!(MEMORY, Unit::Bytes, "Bytes allocated for timers");
    describe_gauge!(
        BEHIND,
        Unit::Seconds,
        "Seconds for which due timers have been waiting to be found due"
    );
    describe_counter!(
        LATENESS,
        Unit::Count,
        "Firings that were found due no later than `within` seconds after their deadline"
    );
    describe_counter!(
        LATENESS_AT_START,
        Unit::Count,
        "Firings that were taken no later than `within` seconds after their deadline"
    );
    describe_counter!(
        DURATIONS,
        Unit::Count,
        "Firings that workers held no longer than `within` seconds"
    );
    describe_gauge!(HELD, Unit::Count, "Firings that workers hold");
    describe_gauge!(WORKERS, Unit::Count, "Threads that run tasks");
    describe_counter!(WAKEUPS, Unit::Count, "Wake-ups of the ticker thread");
    describe_counter!(PANICS, Unit::Count, "Runs of tasks and of wakers that panicked");
}
