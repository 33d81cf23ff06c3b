//! What a recorder receives when a status is published.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::*;
use ::metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};

/// Keeps what it is given, by name and labels.
#[derive(Default)]
struct Kept {
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    gauges: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    described: Mutex<BTreeSet<String>>,
}

/// `name{key=value,…}`, without the owner.
fn shown(key: &Key) -> String {
    let mut labels: Vec<_> = key
        .labels()
        .map(|label| format!("{}={}", label.key(), label.value()))
        .collect();
    assert_eq!(labels.remove(0), "owner=node");
    format!("{}{{{}}}", key.name(), labels.join(","))
}

impl Kept {
    fn of(world: &World) -> Kept {
        let kept = Kept::default();
        with_local_recorder(&kept, || world.jobs.status().publish());
        kept
    }

    fn counter(&self, key: &str) -> u64 {
        self.counters.lock().unwrap()[&format!("tickwheel_durable_{key}")].load(Relaxed)
    }

    fn gauge(&self, key: &str) -> f64 {
        let gauges = self.gauges.lock().unwrap();
        f64::from_bits(gauges[&format!("tickwheel_durable_{key}{{}}")].load(Relaxed))
    }

    fn describe(&self, name: &KeyName) {
        self.described
            .lock()
            .unwrap()
            .insert(name.as_str().to_owned());
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.describe(&name);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("{name:?} would be recorded with each run");
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let mut counters = self.counters.lock().unwrap();
        Counter::from_arc(Arc::clone(counters.entry(shown(key)).or_default()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let mut gauges = self.gauges.lock().unwrap();
        Gauge::from_arc(Arc::clone(gauges.entry(shown(key)).or_default()))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("{key:?} would be recorded with each run");
    }
}

#[test]
fn metrics_of_runs_are_published() {
    let world = World::new();
    world.run_each();
    let kept = Kept::of(&world);
    assert_eq!(kept.counter("attempts_total{}"), 6);
    for (outcome, runs) in [
        ("done", 2),
        ("again", 1),
        ("failed", 1),
        ("dead", 2),
        ("given_up", 0),
    ] {
        let key = format!("outcomes_total{{outcome={outcome}}}");
        assert_eq!(kept.counter(&key), runs, "{outcome}");
    }
    assert_eq!(kept.counter("outcomes_refused_total{}"), 0);
    assert_eq!(kept.counter("leases_total{event=taken}"), 1);
    assert_eq!(kept.counter("leases_total{event=lost}"), 0);
    let counts = world.jobs.status().counts;
    assert_eq!(kept.counter("commits_total{}"), counts.commits);
    assert_eq!(kept.counter("changes_total{}"), counts.changes);
}

#[test]
fn metrics_of_lag_are_cumulative() {
    let world = World::new();
    world.schedule("done", 10);
    world.schedule("done", 20);
    world.node.run_until(at(19));
    world.clock.set(at(23)); // the second is three seconds late
    world.node.run_until(at(23));
    let kept = Kept::of(&world);
    let within = |within: &str| kept.counter(&format!("lag_runs_total{{within={within}}}"));
    assert_eq!(within("0.001048576"), 1);
    assert_eq!(within("2.147483648"), 1);
    assert_eq!(within("4.294967296"), 2);
    assert_eq!(within("+Inf"), 2);
}

#[test]
fn metrics_of_the_store_are_published() {
    let world = World::new();
    world.node.run_until(at(1));
    world.schedule("done", 50);
    let kept = Kept::of(&world);
    assert_eq!(
        (kept.gauge("window_jobs"), kept.gauge("running_jobs")),
        (1.0, 0.0)
    );
    assert_eq!(
        (kept.gauge("lease_held"), kept.gauge("store_writes")),
        (1.0, 1.0)
    );
    world.store.set(Mode::FailsBefore);
    assert!(world.jobs.schedule(Job::new("done", "")).is_err());
    let kept = Kept::of(&world);
    assert_eq!(kept.gauge("store_writes"), 0.0);
    assert_eq!(kept.counter("store_failures_total{}"), 1);
    world.clock.set(at(55));
    assert_eq!(Kept::of(&world).gauge("behind_seconds"), 5.0);
}

/// An exporter for Prometheus renders each counter as a family of its own.
#[test]
fn metrics_are_described_and_named_by_their_kind() {
    let kept = Kept::of(&World::new());
    let (counters, gauges) = (kept.counters.lock().unwrap(), kept.gauges.lock().unwrap());
    let name = |key: &String| key.split('{').next().unwrap().to_owned();
    let counters: BTreeSet<_> = counters.keys().map(name).collect();
    let gauges: BTreeSet<_> = gauges.keys().map(name).collect();
    assert!(counters.iter().all(|name| name.ends_with("_total")));
    assert!(!gauges.iter().any(|name| name.ends_with("_total")));
    let published: BTreeSet<_> = counters.union(&gauges).cloned().collect();
    assert_eq!(*kept.described.lock().unwrap(), published);
}
