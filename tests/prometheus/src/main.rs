//! Published snapshots, as a real exporter renders them for Prometheus, and the dashboards and
//! alarms that read them.
//!
//! A package of its own, because the exporter brings dozens of others, which the tests of the
//! crate itself do not need. The program is what `tests/dashboards.sh` needs: an exposition, the
//! dashboards' queries as rules and as lines, and a server for Prometheus to scrape.

mod serve;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::time::Duration;
use std::{env, fs};

use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::Value;
use tickwheel::{Engine, Snapshot, Timer};
use tickwheel_durable::{Durable, Job, ManualClock, MemoryStore, Status, WallClock, WallTime};

const MS: Duration = Duration::from_millis(1);

/// The dashboards of engines and of durable jobs.
const DASHBOARDS: [&str; 2] = [
    "docs/dashboards/tickwheel.json",
    "durable/dashboards/tickwheel-durable.json",
];

fn main() -> Result<(), Box<dyn Error>> {
    let queries = DASHBOARDS.iter().flat_map(|name| queries(&json(name)));
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["exposition"] => {
            let (engine, node) = (snapshot(), status());
            print!("{}", rendered(|| (engine.publish(), node.publish()), false));
        }
        ["queries"] => queries.for_each(|query| println!("{query}")),
        // Rules that record each query, for a check of their syntax by `promtool`.
        ["rules"] => {
            println!("groups:\n  - name: panels\n    rules:");
            for (number, query) in queries.enumerate() {
                println!("      - record: panel:{number}\n        expr: '{query}'");
            }
        }
        ["serve", address] => serve::serve(address)?,
        _ => return Err("give `exposition`, `rules`, `queries`, or `serve` and an address".into()),
    }
    Ok(())
}

/// Returns a file, by its path in the repository.
fn file(name: &str) -> String {
    let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn json(name: &str) -> Value {
    serde_json::from_str(&file(name)).expect("JSON")
}

/// Returns the queries of a dashboard's panels, with values in place of Grafana's variables.
fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array());
    let with_values = |target: &Value| {
        let query = target["expr"].as_str().expect("a query");
        let query = query.replace("$__rate_interval", "5m");
        let names = ["job", "instance", "engine", "owner"].into_iter();
        names.fold(query, |query, name| {
            query.replace(&format!("${name}"), ".*")
        })
    };
    targets.flatten().map(with_values).collect()
}

/// Renders what `publish` hands to the recorder, with the exporter's own names or with the
/// recommended ones (`_total` behind each counter, units behind each name).
fn rendered<R>(publish: impl FnOnce() -> R, recommended: bool) -> String {
    let builder = PrometheusBuilder::new().with_recommended_naming(recommended);
    let recorder = builder.build_recorder();
    metrics::with_local_recorder(&recorder, publish);
    recorder.handle().render()
}

/// A snapshot in which each count is above zero where it can be.
fn snapshot() -> Snapshot {
    let builder = Engine::builder().name("leases").queues(2);
    let (engine, clock) = builder.max_timers(1_000).start_virtual().unwrap();
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
fn status() -> Status {
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
