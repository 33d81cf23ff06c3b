//! Published snapshots, as a real exporter renders them for Prometheus.
//!
//! A package of its own, because the exporter brings three dozen others, which the
//! tests of the crate itself do not need.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use tickwheel::{Engine, Snapshot, Timer};

const MS: Duration = Duration::from_millis(1);

/// Suffixes of samples that belong to a histogram or a summary. A family of another
/// type whose name ends in one is not valid OpenMetrics, and `promtool check metrics`
/// rejects it.
const RESERVED_SUFFIXES: [&str; 5] = ["_bucket", "_sum", "_count", "_created", "_info"];
/// Labels that only a histogram or a summary may carry.
const RESERVED_LABELS: [&str; 2] = ["le", "quantile"];

/// The families of an exposition: type and samples of each, by name.
#[derive(Debug, PartialEq)]
struct Family {
    kind: String,
    has_help: bool,
    samples: BTreeMap<String, f64>,
}

/// Reads an exposition. Panics unless each family has one type, stands in one place
/// and contains only samples of its own name.
fn read(text: &str) -> BTreeMap<String, Family> {
    let mut families = BTreeMap::new();
    let mut helped = BTreeSet::new();
    let mut current = String::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", name, _] => assert!(helped.insert(name.to_owned()), "{line}"),
            ["#", "TYPE", name, kind] => {
                let family = Family {
                    kind: kind.to_owned(),
                    has_help: helped.contains(name),
                    samples: BTreeMap::new(),
                };
                let before = families.insert(name.to_owned(), family);
                assert_eq!(before, None, "two types: {line}");
                current = name.to_owned();
            }
            _ => {
                let (sample, value) = line.rsplit_once(' ').expect(line);
                let name = sample.split('{').next().unwrap();
                assert_eq!(name, current, "a sample outside its family: {line}");
                let family = families.get_mut(name).expect(line);
                let before = family
                    .samples
                    .insert(sample.to_owned(), value.parse().expect(line));
                assert_eq!(before, None, "a sample stands twice: {line}");
            }
        }
    }
    families
}

/// Renders a snapshot, with the exporter's own names or with the recommended ones
/// (`_total` behind each counter, units behind each name).
fn rendered(snapshot: &Snapshot, recommended: bool) -> BTreeMap<String, Family> {
    let builder = PrometheusBuilder::new().with_recommended_naming(recommended);
    let recorder = builder.build_recorder();
    metrics::with_local_recorder(&recorder, || snapshot.publish());
    read(&recorder.handle().render())
}

/// A snapshot in which each count is above zero where it can be.
fn snapshot() -> Snapshot {
    let (engine, clock) = Engine::builder()
        .name("leases")
        .queues(2)
        .start_virtual()
        .unwrap();
    for (delay, queue) in [(1_000 * MS, 0), (1_001 * MS, 1)] {
        let timer = Timer::after(delay, ()).queue(queue);
        engine.schedule(timer.reported()).unwrap();
    }
    clock.advance(1_001 * MS); // one is on time, one a millisecond late
    engine.schedule(Timer::after(MS, ())).unwrap();
    clock.advance(3_601_000 * MS); // and one an hour
    engine.snapshot()
}

/// Every family is described, and is a counter whose name ends in `_total` or a gauge
/// whose name does not. None looks like a part of a histogram.
#[test]
fn the_exposition_is_valid() {
    let families = rendered(&snapshot(), false);
    assert!(families.len() >= 8, "{families:?}");
    for (name, family) in &families {
        assert!(family.has_help, "{name}");
        assert!(["counter", "gauge"].contains(&&*family.kind), "{name}");
        assert_eq!(family.kind == "counter", name.ends_with("_total"), "{name}");
        for suffix in RESERVED_SUFFIXES {
            assert!(!name.ends_with(suffix), "{name}");
        }
        for label in RESERVED_LABELS {
            let carries = |sample: &String| sample.contains(&format!("{label}=\""));
            assert!(!family.samples.keys().any(carries), "{family:?}");
        }
    }
}

/// An exporter that adds suffixes to names finds none missing.
#[test]
fn names_are_the_same_with_the_recommended_naming() {
    let snapshot = snapshot();
    assert_eq!(rendered(&snapshot, false), rendered(&snapshot, true));
}

/// What the documented query needs: bounds that parse, counts that grow with them, and
/// an infinite bound.
#[test]
fn lateness_is_cumulative_up_to_infinity() {
    let families = rendered(&snapshot(), false);
    let samples = &families["tickwheel_lateness_firings_total"].samples;
    let mut counts: Vec<(f64, f64)> = samples
        .iter()
        .map(|(sample, &count)| {
            let (_, within) = sample.split_once("within=\"").expect(sample);
            (within.split('"').next().unwrap().parse().unwrap(), count)
        })
        .collect();
    counts.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(counts.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    assert_eq!(counts.first().unwrap().1, 1.0);
    assert_eq!(counts.last().unwrap(), &(f64::INFINITY, 3.0));
}
