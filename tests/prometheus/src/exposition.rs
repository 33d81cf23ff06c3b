//! Renders a snapshot, and reads what was rendered.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use tickwheel::{Engine, Snapshot, Timer};
use tickwheel_durable::{Durable, Job, ManualClock, MemoryStore, Status, WallClock, WallTime};

const MS: Duration = Duration::from_millis(1);

/// A family of an exposition.
#[derive(Debug, PartialEq)]
pub struct Family {
    /// The type: counter or gauge.
    pub kind: String,
    /// Whether a description stands before it.
    pub has_help: bool,
    /// The values, by name and labels.
    pub samples: BTreeMap<String, f64>,
}

/// Families by name.
pub type Families = BTreeMap<String, Family>;

/// Reads an exposition.
///
/// # Panics
/// Panics unless each family has one type, stands in one place and contains only samples of
/// its own name.
#[must_use]
pub fn read(text: &str) -> Families {
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

/// Renders what `publish` hands to the recorder, with the exporter's own names or with the
/// recommended ones (`_total` behind each counter, units behind each name).
#[must_use]
pub fn rendered(publish: impl FnOnce(), recommended: bool) -> String {
    let builder = PrometheusBuilder::new().with_recommended_naming(recommended);
    let recorder = builder.build_recorder();
    metrics::with_local_recorder(&recorder, publish);
    recorder.handle().render()
}

/// A snapshot in which each count is above zero where it can be.
///
/// # Panics
/// Panics if the engine does not start.
#[must_use]
pub fn snapshot() -> Snapshot {
    let (engine, clock) = Engine::builder()
        .name("leases")
        .queues(2)
        .max_timers(1_000)
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

/// The status of a node that has run a job three seconds late.
///
/// # Panics
/// Panics if the node does not start.
#[must_use]
pub fn status() -> Status {
    let clock = ManualClock::new(WallTime::from_unix_micros(1_800_000_000_000_000));
    let builder = Durable::builder().owner("mailer").handler("mail", |_| ());
    let store = MemoryStore::with_clock(clock.clone());
    let (jobs, node) = builder.open_virtual(store, clock.clone()).unwrap();
    let due = clock.now() + 1_000 * MS;
    jobs.schedule(Job::new("mail", "").at(due)).unwrap();
    clock.set(due + 3_000 * MS);
    node.run_until(clock.now());
    jobs.status()
}
