//! What a recorder receives when a status is published.

use std::collections::BTreeSet;

use super::*;
use crate::recorder::Kept;
use tickwheel_durable::store::Change;

/// The name of the node, which is the first label of each metric.
const OWNER: &str = "owner=node";

/// What a recorder receives of a node.
struct Published(Kept);

impl Published {
    fn of(world: &World) -> Published {
        Published(Kept::of(|| world.jobs.status().publish()))
    }

    /// Returns a counter, by its name and the labels behind the owner.
    fn counter(&self, key: &str) -> u64 {
        let (name, labels) = key.split_once('{').unwrap();
        let labels = match labels {
            "}" => labels.to_owned(),
            labels => format!(",{labels}"),
        };
        self.0.counter(&format!("tickwheel_durable_{name}{{{OWNER}{labels}"))
    }

    fn gauge(&self, name: &str) -> f64 {
        self.0.gauge(&format!("tickwheel_durable_{name}{{{OWNER}}}"))
    }
}

#[test]
fn metrics_of_runs_are_published() {
    let world = World::new();
    world.run_each();
    let kept = Published::of(&world);
    assert_eq!(kept.counter("attempts_total{}"), 6);
    for (outcome, runs) in [("done", 2), ("again", 1), ("failed", 1), ("dead", 2), ("given_up", 0)]
    {
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
    let kept = Published::of(&world);
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
    let kept = Published::of(&world);
    assert_eq!((kept.gauge("window_jobs"), kept.gauge("running_jobs")), (1.0, 0.0));
    assert_eq!((kept.gauge("lease_held"), kept.gauge("store_writes")), (1.0, 1.0));
    world.store.set(Mode::FailsBefore);
    assert!(world.jobs.schedule(Job::new("done", "")).is_err());
    let kept = Published::of(&world);
    assert_eq!(kept.gauge("store_writes"), 0.0);
    assert_eq!(kept.counter("store_failures_total{}"), 1);
    world.clock.set(at(55));
    assert_eq!(Published::of(&world).gauge("behind_seconds"), 5.0);
}

/// A job whose row is damaged, and a node that has read the store up to its horizon.
#[test]
fn metrics_of_the_window_are_published() {
    let world = World::new();
    let none = Published::of(&world);
    assert_eq!(none.gauge("horizon_timestamp_seconds"), 0.0);
    world.schedule("done", 5);
    world.store.damage(|change| matches!(change, Change::Start { .. }));
    world.node.run_until(at(10));
    let published = Published::of(&world);
    assert_eq!(published.gauge("set_aside_jobs"), 1.0);
    assert_eq!(published.gauge("delivers"), 1.0);
    let horizon = world.jobs.status().horizon.as_unix_micros() as f64 / 1e6;
    assert_eq!(published.gauge("horizon_timestamp_seconds"), horizon);
    assert!(horizon > at(10).as_unix_micros() as f64 / 1e6);
}

/// An exporter for Prometheus renders each counter as a family of its own.
#[test]
fn metrics_are_described_and_named_by_their_kind() {
    let Published(kept) = Published::of(&World::new());
    let (counters, gauges) = (kept.counters.lock().unwrap(), kept.gauges.lock().unwrap());
    let name = |key: &String| key.split('{').next().unwrap().to_owned();
    let counters: BTreeSet<_> = counters.keys().map(name).collect();
    let gauges: BTreeSet<_> = gauges.keys().map(name).collect();
    assert!(counters.iter().all(|name| name.ends_with("_total")));
    assert!(!gauges.iter().any(|name| name.ends_with("_total")));
    let published: BTreeSet<_> = counters.union(&gauges).cloned().collect();
    let described: BTreeSet<_> = kept.described.lock().unwrap().keys().cloned().collect();
    assert_eq!(described, published);
}
