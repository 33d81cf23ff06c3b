//! The exposition is one that Prometheus accepts.

use tickwheel_prometheus::exposition::{read, rendered, snapshot};

/// Suffixes of samples that belong to a histogram or a summary. A family of another
/// type whose name ends in one is not valid OpenMetrics, and `promtool check metrics`
/// rejects it.
const RESERVED_SUFFIXES: [&str; 5] = ["_bucket", "_sum", "_count", "_created", "_info"];
/// Labels that only a histogram or a summary may carry.
const RESERVED_LABELS: [&str; 2] = ["le", "quantile"];

/// Every family is described, and is a counter whose name ends in `_total` or a gauge
/// whose name does not. None looks like a part of a histogram.
#[test]
fn the_exposition_is_valid() {
    let families = read(&rendered(|| snapshot().publish(), false));
    assert!(families.len() == 16, "{families:?}");
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
    let families = |recommended| read(&rendered(|| snapshot.publish(), recommended));
    assert_eq!(families(false), families(true));
}

/// What the documented query needs: bounds that parse, counts that grow with them, and
/// an infinite bound.
#[test]
fn lateness_is_cumulative_up_to_infinity() {
    let families = read(&rendered(|| snapshot().publish(), false));
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
