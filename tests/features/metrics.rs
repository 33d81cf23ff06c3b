//! What a recorder receives when a snapshot is published. `tests/prometheus` reads what a real
//! exporter makes of it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use metrics::{Unit, with_local_recorder};
use tickwheel::{Engine, Snapshot, TaskEngine, Timer};

use crate::recorder::Kept;
use crate::support::MS;

type Counts = Mutex<BTreeMap<String, Arc<AtomicU64>>>;

/// Returns the values by name and labels, without the crate's prefix and the engine's label.
fn published(snapshot: &Snapshot) -> BTreeMap<String, f64> {
    let kept = Kept::of(|| snapshot.publish());
    let keys = |counts: &Counts| counts.lock().unwrap().keys().cloned().collect::<Vec<_>>();
    let (counters, gauges) = (keys(&kept.counters), keys(&kept.gauges));
    let counters = counters.iter().map(|key| (key, kept.counter(key) as f64));
    let gauges = gauges.iter().map(|key| (key, kept.gauge(key)));
    let engine = format!("engine={}", snapshot.name);
    let short = |key: &str| {
        assert!(
            key.starts_with("tickwheel_") && key.contains(&engine),
            "{key}"
        );
        let key = key["tickwheel_".len()..].replace(&engine, "");
        key.replace("{,", "{").replace("{}", "")
    };
    let all = counters.chain(gauges);
    all.map(|(key, value)| (short(key), value)).collect()
}

fn assert_published(snapshot: &Snapshot, expected: &[(&str, f64)]) {
    let published = published(snapshot);
    for &(key, value) in expected {
        assert_eq!(published.get(key), Some(&value), "{key}: {published:?}");
    }
}

#[test]
fn the_ledger_and_the_queues_are_published_as_they_stand() {
    let builder = Engine::builder().name("leases").queues(2);
    let (engine, clock) = builder.start_virtual().unwrap();
    for n in 0..5 {
        engine.schedule(Timer::after(MS, n).queue(1)).unwrap();
    }
    let id = engine.schedule(Timer::after(9 * MS, 5).reported()).unwrap();
    engine.cancel(id).payload().unwrap();
    engine.schedule(Timer::after(9 * MS, 6)).unwrap();
    clock.advance(MS);
    drop(engine.queue(1).try_recv().unwrap());
    let expected = [
        ("timers_accepted_total", 7.0),
        ("timers_ended_total{reason=completed}", 1.0),
        ("timers_ended_total{reason=cancelled}", 1.0),
        ("timers_ended_total{reason=shut_down}", 0.0),
        ("timers_ended_total{reason=failed}", 0.0),
        ("timers_live", 5.0),
        ("timers_queued{queue=0}", 0.0),
        ("timers_queued{queue=1}", 4.0),
        ("reports_unread", 1.0),
    ];
    assert_published(&engine.snapshot(), &expected);
    assert!(
        !published(&engine.snapshot()).contains_key("timers_limit"),
        "it has no bound"
    );
}

#[test]
fn publishing_again_adds_nothing_twice() {
    let (engine, _clock) = Engine::builder().name("twice").start_virtual().unwrap();
    engine.schedule(Timer::after(MS, ())).unwrap();
    engine.shutdown();
    let kept = Kept::default();
    with_local_recorder(&kept, || [(); 2].map(|()| engine.snapshot().publish()));
    let key = "tickwheel_timers_ended_total{engine=twice,reason=shut_down}";
    assert_eq!(kept.counter(key), 1);
}

#[test]
fn lateness_is_published_in_cumulative_buckets() {
    let (engine, clock) = Engine::builder().start_virtual().unwrap();
    engine.schedule(Timer::after(1_000 * MS, ())).unwrap();
    engine.schedule(Timer::after(1_001 * MS, ())).unwrap();
    clock.advance(1_001 * MS); // one is on time, one a millisecond late
    engine.schedule(Timer::after(MS, ())).unwrap();
    clock.advance(3_601_000 * MS); // and one an hour
    let expected = [
        ("lateness_firings_total{within=0.000001024}", 1.0),
        ("lateness_firings_total{within=0.000524288}", 1.0),
        ("lateness_firings_total{within=0.001048576}", 2.0),
        ("lateness_firings_total{within=17.179869184}", 2.0),
        ("lateness_firings_total{within=+Inf}", 3.0),
    ];
    assert_published(&engine.snapshot(), &expected);
}

#[test]
fn bounds_refusals_and_arrears_are_published() {
    let builder = Engine::builder().shards(1).max_timers(2);
    let (engine, clock) = builder.start_virtual().unwrap();
    for n in 0..5 {
        let _ = engine.schedule(Timer::after(MS, n));
    }
    let _ = clock.advance_within(1_501 * MS, 0); // finds no timer due
    let snapshot = engine.snapshot();
    let expected = [
        ("timers_refused_total{reason=full}", 3.0),
        ("timers_refused_total{reason=shut_down}", 0.0),
        ("timers_limit", 2.0),
        ("behind_seconds", 1.5),
        ("memory_bytes", snapshot.memory as f64),
    ];
    assert_published(&snapshot, &expected);
}

#[test]
fn work_and_panics_are_published() {
    let builder = TaskEngine::builder().workers(3);
    let (tasks, clock) = builder.start_virtual().unwrap();
    tasks.run_after(MS, || panic!("on purpose")).unwrap();
    clock.run_until(tasks.now() + MS);
    let expected = [
        ("lateness_at_start_firings_total{within=0.000001024}", 1.0),
        ("durations_firings_total{within=0.000001024}", 1.0),
        ("firings_held", 0.0),
        ("workers", 3.0),
        ("panics_total", 1.0),
        ("wakeups_total", 0.0),
    ];
    assert_published(&tasks.engine().snapshot(), &expected);
}

#[test]
fn wakeups_are_published() {
    let engine = Engine::builder().start().unwrap();
    // A ticker that a busy machine starts late finds a timer due without a sleep.
    while engine.snapshot().wakeups == 0 {
        engine.schedule(Timer::after(MS, ())).unwrap();
        drop(engine.queue(0).recv().unwrap());
    }
    assert!(published(&engine.snapshot())["wakeups_total"] > 0.0);
}

#[test]
fn everything_that_is_published_is_described() {
    let engine = Engine::<()>::builder().start().unwrap();
    let kept = Kept::of(|| engine.snapshot().publish());
    let described = kept.described.lock().unwrap();
    for key in published(&engine.snapshot()).keys() {
        let name = key.split('{').next().unwrap();
        let unit = match name.rsplit('_').next() {
            Some("bytes") => Unit::Bytes,
            Some("seconds") => Unit::Seconds,
            _ => Unit::Count,
        };
        let described = described.get(&format!("tickwheel_{name}"));
        assert_eq!(described, Some(&Some(unit)), "{name}");
    }
    assert_eq!(described.len(), 16);
}
