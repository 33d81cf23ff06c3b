//! Published snapshots, as a real exporter renders them for Prometheus, and the dashboards and
//! alarms that read them.
//!
//! A package of its own, because the exporter brings dozens of others, which the tests of the
//! crate itself do not need. The program is what `tests/dashboards.sh` needs: an exposition, the
//! dashboards' queries, and a server for Prometheus to scrape.

mod serve;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::{env, fs};

use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::Value;

/// The dashboards of engines and of durable jobs.
const DASHBOARDS: [&str; 2] =
    ["docs/dashboards/tickwheel.json", "durable/dashboards/tickwheel-durable.json"];

fn main() -> Result<(), Box<dyn Error>> {
    let queries = DASHBOARDS.iter().flat_map(|name| queries(&json(name)));
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["exposition"] => rendered(false)?.iter().for_each(|text| print!("{text}")),
        ["queries"] => queries.for_each(|query| println!("{query}")),
        ["serve", address] => serve::serve(address)?,
        _ => return Err("give `exposition`, `queries`, or `serve` and an address".into()),
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
        let names = ["$job", "$instance", "$engine", "$owner"].into_iter();
        names.fold(query, |query, name| query.replace(name, ".*"))
    };
    targets.flatten().map(with_values).collect()
}

/// What a busy engine and a busy node publish, with the exporter's own names or with the
/// recommended ones (`_total` behind each counter, units behind each name).
fn rendered(recommended: bool) -> Result<[String; 2], Box<dyn Error>> {
    let (timers, jobs) = (serve::busy_engine()?, serve::busy_node()?);
    let render = |publish: &dyn Fn()| {
        let builder = PrometheusBuilder::new().with_recommended_naming(recommended);
        let recorder = builder.build_recorder();
        metrics::with_local_recorder(&recorder, publish);
        recorder.handle().render()
    };
    Ok([render(&|| timers.snapshot().publish()), render(&|| jobs.status().publish())])
}
