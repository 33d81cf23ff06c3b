//! A recorder of the crate `metrics` that keeps what it is given. The tests of `durable` use it too.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};

/// Keeps what it is given, by name and labels.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    pub(crate) gauges: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    pub(crate) described: Mutex<BTreeMap<String, Option<Unit>>>,
}

/// `name{key=value,…}`
fn shown(key: &Key) -> String {
    let labels: Vec<_> =
        key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
    format!("{}{{{}}}", key.name(), labels.join(","))
}

impl Kept {
    /// Returns what the calling thread publishes while `publish` runs.
    pub(crate) fn of(publish: impl FnOnce()) -> Kept {
        let kept = Kept::default();
        with_local_recorder(&kept, publish);
        kept
    }

    pub(crate) fn counter(&self, key: &str) -> u64 {
        self.counters.lock().unwrap()[key].load(Relaxed)
    }

    pub(crate) fn gauge(&self, key: &str) -> f64 {
        f64::from_bits(self.gauges.lock().unwrap()[key].load(Relaxed))
    }

    fn describe(&self, name: &KeyName, unit: Option<Unit>) {
        let mut described = self.described.lock().unwrap();
        described.insert(name.as_str().to_owned(), unit);
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&name, unit);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(&name, unit);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("{name:?} would be recorded with each event");
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
        panic!("{key:?} would be recorded with each event");
    }
}
