//! The queries of the dashboards and of the alarms.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

/// Returns a file, by its path in the repository.
///
/// # Panics
/// Panics if it cannot be read.
#[must_use]
pub fn file(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("../..").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A dashboard with its alarms, and their tests.
#[derive(Clone, Copy)]
pub struct Board {
    /// The file of the dashboard.
    pub dashboard: &'static str,
    /// The file of the alarms.
    pub alarms: &'static str,
    /// The number of alarms.
    pub alarm_count: usize,
    /// The page that says what each alarm means.
    pub page: &'static str,
    /// The tests of the alarms.
    pub tests: &'static str,
}

/// That of engines, and that of durable jobs.
pub const BOARDS: [Board; 2] = [
    Board {
        dashboard: "docs/dashboards/tickwheel.json",
        alarms: "docs/dashboards/alarms.yml",
        alarm_count: 12,
        page: "docs/dashboards/README.md",
        tests: "tests/dashboards/alarms-test.yml",
    },
    Board {
        dashboard: "durable/dashboards/tickwheel-durable.json",
        alarms: "durable/dashboards/durable-alarms.yml",
        alarm_count: 9,
        page: "durable/dashboards/README.md",
        tests: "tests/dashboards/durable-alarms-test.yml",
    },
];

impl Board {
    /// Returns the dashboard.
    ///
    /// # Panics
    /// Panics if it is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&file(self.dashboard)).expect("JSON")
    }
}

/// Returns the queries of both dashboards.
#[must_use]
pub fn of_all() -> Vec<(String, String)> {
    let boards = BOARDS.iter().map(Board::json);
    boards.flat_map(|board| of_panels(&board)).collect()
}

/// Returns the queries of the dashboard's panels, each with the title of its panel, and with
/// values in place of Grafana's variables.
///
/// # Panics
/// Panics if a panel has no title, or a target has no query.
#[must_use]
pub fn of_panels(dashboard: &Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().expect("panels");
    let of_panel = |panel: &Value| {
        let title = panel["title"].as_str().expect("a title").to_owned();
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        let query = |target: Value| with_values(target["expr"].as_str().expect("a query"));
        let queries = targets.into_iter().map(query);
        queries
            .map(|query| (title.clone(), query))
            .collect::<Vec<_>>()
    };
    panels.iter().flat_map(of_panel).collect()
}

fn with_values(query: &str) -> String {
    let query = query.replace("$__rate_interval", "5m");
    ["job", "instance", "engine", "owner"]
        .iter()
        .fold(query, |query, name| {
            query.replace(&format!("\"${name}\""), "\".*\"")
        })
}

/// Returns the names of the alarms and their queries.
#[must_use]
pub fn of_alarms(rules: &str) -> Vec<(String, String)> {
    let alarms = rules.split("- alert: ").skip(1);
    alarms
        .map(|alarm| {
            let (name, rest) = alarm.split_once('\n').expect("a line");
            let (_, query) = rest.split_once("expr: ").expect("a query");
            let lines = query.lines().take_while(|line| {
                !line.trim_start().starts_with("for: ") && !line.trim_start().starts_with("labels:")
            });
            let query: Vec<&str> = lines.map(str::trim).filter(|&line| line != "|").collect();
            (name.to_owned(), query.join(" "))
        })
        .collect()
}

/// Returns rules that record each query, for a check of their syntax by `promtool`.
#[must_use]
pub fn as_rules(queries: &[(String, String)]) -> String {
    let mut rules = String::from("groups:\n  - name: panels\n    rules:\n");
    for (number, (_, query)) in queries.iter().enumerate() {
        rules += &format!("      - record: panel:{number}\n        expr: '{query}'\n");
    }
    rules
}
