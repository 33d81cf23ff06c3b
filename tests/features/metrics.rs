//! What a recorder receives when a snapshot is published. `tests/prometheus` reads what a real
//! exporter makes of it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics::Unit;
use tickwheel::Engine;
use tickwheel::stats::Snapshot;

use crate::recorder::Kept;
use crate::support::MS;

type Counts = Mutex<BTreeMap<String, Arc<AtomicU64>>>;

/// A snapshot in which no two counts are the same.
fn snapshot() -> Snapshot {
    let builder = Engine::<()>::builder().name("leases").queues(2);
    let (engine, _clock) = builder.start_virtual().unwrap();
    let mut snapshot = engine.snapshot();
    let (ledger, refused) = (&mut snapshot.ledger, &mut snapshot.refused);
    (ledger.accepted, ledger.live, ledger.completed) = (10, 11, 12);
    (ledger.cancelled, ledger.shut_down, ledger.failed) = (13, 14, 15);
    (refused.full, refused.shut_down) = (16, 17);
    (snapshot.max_timers, snapshot.memory) = (Some(18), 19);
    (snapshot.behind, snapshot.queued) = (1_500 * MS, vec![20, 21]);
    (snapshot.reports, snapshot.held, snapshot.workers) = (22, 23, 24);
    (snapshot.wakeups, snapshot.panics) = (25, 26);
    for lateness in [Duration::ZERO, MS, 3_600_000 * MS] {
        snapshot.lateness.record(lateness);
        snapshot.lateness_at_start.record(MS);
    }
    snapshot.lateness_at_start.record(MS);
    snapshot.durations.record(MS);
    snapshot
}

/// Returns the values by name and labels, without the crate's prefix and the engine's label.
/// Counts that are published twice are not added.
fn published(snapshot: &Snapshot) -> BTreeMap<String, f64> {
    let kept = Kept::of(|| (0..2).for_each(|_| snapshot.publish()));
    let described = kept.described.lock().unwrap();
    assert_eq!(described.len(), 16);
    let keys = |counts: &Counts| counts.lock().unwrap().keys().cloned().collect::<Vec<_>>();
    let counters = keys(&kept.counters).into_iter();
    let counters = counters.map(|key| (kept.counter(&key) as f64, key));
    let gauges = keys(&kept.gauges).into_iter();
    let all = counters.chain(gauges.map(|key| (kept.gauge(&key), key)));
    let short = |(value, key): (f64, String)| {
        let (name, labels) = key.split_once("{engine=leases").expect("an engine");
        let unit = match name.rsplit('_').next() {
            Some("bytes") => Unit::Bytes,
            Some("seconds") => Unit::Seconds,
            _ => Unit::Count,
        };
        assert_eq!(described[name], Some(unit), "{name}");
        let name = name.strip_prefix("tickwheel_").expect("the crate's name");
        (format!("{name}{}", labels.trim_end_matches('}')), value)
    };
    all.map(short).collect()
}

/// What the snapshot comes to, with four of the buckets, which are cumulative.
const COUNTS: [(&str, f64); 25] = [
    ("behind_seconds", 1.5),
    ("durations_firings_total,within=+Inf", 1.0),
    ("firings_held", 23.0),
    ("lateness_at_start_firings_total,within=+Inf", 4.0),
    ("lateness_firings_total,within=0.000001024", 1.0),
    ("lateness_firings_total,within=0.000524288", 1.0),
    ("lateness_firings_total,within=0.001048576", 2.0),
    ("lateness_firings_total,within=17.179869184", 2.0),
    ("lateness_firings_total,within=+Inf", 3.0),
    ("memory_bytes", 19.0),
    ("panics_total", 26.0),
    ("reports_unread", 22.0),
    ("timers_accepted_total", 10.0),
    ("timers_ended_total,reason=cancelled", 13.0),
    ("timers_ended_total,reason=completed", 12.0),
    ("timers_ended_total,reason=failed", 15.0),
    ("timers_ended_total,reason=shut_down", 14.0),
    ("timers_limit", 18.0),
    ("timers_live", 11.0),
    ("timers_queued,queue=0", 20.0),
    ("timers_queued,queue=1", 21.0),
    ("timers_refused_total,reason=full", 16.0),
    ("timers_refused_total,reason=shut_down", 17.0),
    ("wakeups_total", 25.0),
    ("workers", 24.0),
];

#[test]
fn counts_are_published_as_they_stand() {
    let mut snapshot = snapshot();
    let all = published(&snapshot);
    for (key, value) in COUNTS {
        assert_eq!(all.get(key), Some(&value), "{key}: {all:?}");
    }
    let is_bucket = |key: &&String| key.contains("within=") && !key.ends_with("+Inf");
    let others = all.len() - all.keys().filter(is_bucket).count();
    assert_eq!(others, COUNTS.len() - 4, "{all:?}");
    snapshot.max_timers = None;
    assert!(!published(&snapshot).contains_key("timers_limit"));
}
