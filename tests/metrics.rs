//! The feature `metrics`: what a recorder receives when a snapshot is
//! published.

#![cfg(not(loom))]

#[path = "support/recorder.rs"]
mod recorder;
mod support;

use metrics::{Unit, with_local_recorder};
use recorder::Kept;
use support::MS;
use tickwheel::{Engine, TaskEngine, Timer};

#[test]
fn the_ledger_and_the_queues_are_published_as_they_stand() {
    let (engine, clock) = Engine::builder()
        .name("leases")
        .queues(2)
        .start_virtual()
        .unwrap();
    for n in 0..5 {
        engine.schedule(Timer::after(MS, n).queue(1)).unwrap();
    }
    let id = engine.schedule(Timer::after(9 * MS, 5).reported()).unwrap();
    engine.cancel(id).payload().unwrap();
    engine.schedule(Timer::after(9 * MS, 6)).unwrap();
    clock.advance(MS);
    drop(engine.queue(1).try_recv().unwrap());

    let kept = Kept::of(|| engine.snapshot().publish());
    let timers = |name: &str| kept.counter(&format!("tickwheel_timers_{name}"));
    assert_eq!(timers("accepted_total{engine=leases}"), 7);
    for (reason, count) in [
        ("completed", 1),
        ("cancelled", 1),
        ("shut_down", 0),
        ("failed", 0),
    ] {
        let ended = timers(&format!("ended_total{{engine=leases,reason={reason}}}"));
        assert_eq!(ended, count, "{reason}");
    }
    assert_eq!(kept.gauge("tickwheel_timers_live{engine=leases}"), 5.0);
    assert_eq!(
        kept.gauge("tickwheel_timers_queued{engine=leases,queue=0}"),
        0.0
    );
    assert_eq!(
        kept.gauge("tickwheel_timers_queued{engine=leases,queue=1}"),
        4.0
    );
    assert_eq!(kept.gauge("tickwheel_reports_unread{engine=leases}"), 1.0);
}

#[test]
fn publishing_again_adds_nothing_twice() {
    let (engine, _clock) = Engine::builder().name("twice").start_virtual().unwrap();
    engine.schedule(Timer::after(MS, ())).unwrap();
    engine.shutdown();
    let kept = Kept::default();
    with_local_recorder(&kept, || {
        engine.snapshot().publish();
        engine.snapshot().publish();
    });
    let key = "tickwheel_timers_ended_total{engine=twice,reason=shut_down}";
    assert_eq!(kept.counter(key), 1);
}

#[test]
fn lateness_is_published_in_cumulative_buckets() {
    let (engine, clock) = Engine::builder().name("late").start_virtual().unwrap();
    engine.schedule(Timer::after(1_000 * MS, ())).unwrap();
    engine.schedule(Timer::after(1_001 * MS, ())).unwrap();
    clock.advance(1_001 * MS); // one is on time, one a millisecond late
    engine.schedule(Timer::after(MS, ())).unwrap();
    clock.advance(3_601_000 * MS); // and one an hour

    let kept = Kept::of(|| engine.snapshot().publish());
    let bucket = |within: &str| {
        let labels = format!("engine=late,within={within}");
        kept.counter(&format!("tickwheel_lateness_firings_total{{{labels}}}"))
    };
    assert_eq!(bucket("0.000001024"), 1);
    assert_eq!(bucket("0.000524288"), 1);
    assert_eq!(bucket("0.001048576"), 2);
    assert_eq!(bucket("17.179869184"), 2);
    assert_eq!(bucket("+Inf"), 3);
}

#[test]
fn bounds_refusals_and_arrears_are_published() {
    let builder = Engine::builder().name("full").shards(1).max_timers(2);
    let (engine, clock) = builder.start_virtual().unwrap();
    for n in 0..5 {
        let _ = engine.schedule(Timer::after(MS, n));
    }
    let _ = clock.advance_within(1_501 * MS, 0); // finds no timer due
    let snapshot = engine.snapshot();
    let kept = Kept::of(|| snapshot.publish());
    let refused = |reason: &str| {
        let labels = format!("engine=full,reason={reason}");
        kept.counter(&format!("tickwheel_timers_refused_total{{{labels}}}"))
    };
    assert_eq!((refused("full"), refused("shut_down")), (3, 0));
    assert_eq!(kept.gauge("tickwheel_timers_limit{engine=full}"), 2.0);
    assert_eq!(kept.gauge("tickwheel_behind_seconds{engine=full}"), 1.5);
    let bytes = kept.gauge("tickwheel_memory_bytes{engine=full}");
    assert_eq!(bytes, snapshot.memory as f64);
}

#[test]
fn an_engine_without_a_bound_publishes_none() {
    let (engine, _clock) = Engine::<()>::builder()
        .name("free")
        .start_virtual()
        .unwrap();
    let kept = Kept::of(|| engine.snapshot().publish());
    let gauges = kept.gauges.lock().unwrap();
    assert!(!gauges.contains_key("tickwheel_timers_limit{engine=free}"));
}

#[test]
fn work_is_published() {
    let builder = TaskEngine::builder().name("work").workers(3);
    let (tasks, clock) = builder.start_virtual().unwrap();
    tasks.run_after(MS, || ()).unwrap();
    clock.run_until(tasks.now() + MS);
    let kept = Kept::of(|| tasks.engine().snapshot().publish());
    for name in ["lateness_at_start", "durations"] {
        let key = format!("tickwheel_{name}_firings_total{{engine=work,within=0.000001024}}");
        assert_eq!(kept.counter(&key), 1, "{name}");
    }
    assert_eq!(kept.gauge("tickwheel_firings_held{engine=work}"), 0.0);
    assert_eq!(kept.gauge("tickwheel_workers{engine=work}"), 3.0);
}

#[test]
fn wakeups_and_panics_are_published() {
    let (tasks, clock) = TaskEngine::builder().name("tasks").start_virtual().unwrap();
    tasks.run_after(MS, || panic!("on purpose")).unwrap();
    clock.run_until(tasks.now() + MS);
    let kept = Kept::of(|| tasks.engine().snapshot().publish());
    assert_eq!(kept.counter("tickwheel_panics_total{engine=tasks}"), 1);
    assert_eq!(kept.counter("tickwheel_wakeups_total{engine=tasks}"), 0);

    let engine = Engine::builder().name("awake").start().unwrap();
    // A ticker that a busy machine starts late finds a timer due without a sleep.
    while engine.snapshot().wakeups == 0 {
        engine.schedule(Timer::after(MS, ())).unwrap();
        drop(engine.queue(0).recv().unwrap());
    }
    let kept = Kept::of(|| engine.snapshot().publish());
    assert!(kept.counter("tickwheel_wakeups_total{engine=awake}") > 0);
}

#[test]
fn everything_that_is_published_is_described() {
    let engine = Engine::<()>::builder().start().unwrap();
    let kept = Kept::of(|| engine.snapshot().publish());
    let described = kept.described.lock().unwrap();
    let (counters, gauges) = (kept.counters.lock().unwrap(), kept.gauges.lock().unwrap());
    for key in counters.keys().chain(gauges.keys()) {
        let name = key.split('{').next().unwrap();
        let unit = match name.rsplit('_').next() {
            Some("bytes") => Unit::Bytes,
            Some("seconds") => Unit::Seconds,
            _ => Unit::Count,
        };
        assert_eq!(described.get(name), Some(&Some(unit)), "{name}");
    }
    assert_eq!(described.len(), 16);
}

/// An exporter for Prometheus renders each counter as a family of its own. Names and
/// labels of a histogram's parts are therefore left to histograms, and every counter ends
/// in `_total`. `tests/prometheus` reads what a real exporter renders.
#[test]
fn no_counter_looks_like_a_part_of_a_histogram() {
    let engine = Engine::<()>::builder().start().unwrap();
    let kept = Kept::of(|| engine.snapshot().publish());
    for key in kept.counters.lock().unwrap().keys() {
        let (name, labels) = key.split_once('{').unwrap();
        assert!(name.ends_with("_total"), "{name}");
        assert!(!labels.contains("le="), "{key}");
    }
    for key in kept.gauges.lock().unwrap().keys() {
        assert!(!key.split('{').next().unwrap().ends_with("_total"), "{key}");
    }
}
