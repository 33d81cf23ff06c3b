//! The dashboards and the alarms name only metrics and labels that an engine or a node of durable
//! jobs publishes, and all of them.

use std::collections::BTreeSet;

use promql_parser::label::MatchOp;
use promql_parser::parser::{self, Expr, LabelModifier, VectorSelector};
use serde_json::Value;
use tickwheel_prometheus::exposition::{Families, Family, read, rendered, snapshot, status};
use tickwheel_prometheus::queries::{BOARDS, Board, file, of_alarms, of_all, of_panels};

/// Labels that Prometheus or a query adds.
const ADDED: [&str; 3] = ["job", "instance", "le"];

/// Each dashboard, with what is published for it.
fn boards() -> [(Board, Families); 2] {
    let [engine, durable] = BOARDS;
    [
        (engine, read(&rendered(|| snapshot().publish(), false))),
        (durable, read(&rendered(|| status().publish(), false))),
    ]
}

fn parsed(title: &str, query: &str) -> Expr {
    parser::parse(query).unwrap_or_else(|error| panic!("{title}: {query}: {error}"))
}

/// Calls `see` with the expression and all expressions in it.
fn walk(expr: &Expr, see: &mut impl FnMut(&Expr)) {
    see(expr);
    match expr {
        Expr::Aggregate(aggregate) => walk(&aggregate.expr, see),
        Expr::Unary(unary) => walk(&unary.expr, see),
        Expr::Binary(binary) => {
            walk(&binary.lhs, see);
            walk(&binary.rhs, see);
        }
        Expr::Paren(paren) => walk(&paren.expr, see),
        Expr::Subquery(subquery) => walk(&subquery.expr, see),
        Expr::Call(call) => call.args.args.iter().for_each(|arg| walk(arg, see)),
        _ => {}
    }
}

/// Returns the selectors of an expression.
fn selectors(expr: &Expr) -> Vec<VectorSelector> {
    let mut found = Vec::new();
    walk(expr, &mut |expr| match expr {
        Expr::VectorSelector(selector) => found.push(selector.clone()),
        Expr::MatrixSelector(matrix) => found.push(matrix.vs.clone()),
        _ => {}
    });
    found
}

/// Returns the labels by which an expression groups.
fn groupings(expr: &Expr) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    walk(expr, &mut |expr| {
        if let Expr::Aggregate(aggregate) = expr
            && let Some(LabelModifier::Include(labels)) = &aggregate.modifier
        {
            found.extend(labels.labels.iter().cloned());
        }
    });
    found
}

fn has(family: &Family, label: &str, value: Option<&str>) -> bool {
    let wanted = match value {
        Some(value) => format!("{label}=\"{value}\""),
        None => format!("{label}=\""),
    };
    family.samples.keys().any(|sample| sample.contains(&wanted))
}

/// Asserts that every name, label and chosen value of a query is published. Returns the
/// names.
fn assert_published(families: &Families, title: &str, query: &str) -> BTreeSet<String> {
    let expr = parsed(title, query);
    let selectors = selectors(&expr);
    assert!(!selectors.is_empty(), "{title}: {query}");
    let mut grouped = groupings(&expr);
    grouped.retain(|label| !ADDED.contains(&label.as_str()));
    let mut names = BTreeSet::new();
    for selector in selectors {
        let name = selector.name.expect("a name");
        let family = families.get(&name);
        let family = family.unwrap_or_else(|| panic!("{title}: {name} is not published"));
        for matcher in &selector.matchers.matchers {
            let value = (matcher.op == MatchOp::Equal).then_some(matcher.value.as_str());
            let is_known = ADDED.contains(&&*matcher.name) || has(family, &matcher.name, value);
            assert!(is_known, "{title}: {name} without {matcher:?}");
        }
        for label in &grouped {
            assert!(has(family, label, None), "{title}: {name} without {label}");
        }
        names.insert(name);
    }
    names
}

#[test]
fn panels_show_every_metric_and_no_other() {
    for (board, families) in boards() {
        let queries = of_panels(&board.json());
        let shown: BTreeSet<String> = queries
            .iter()
            .flat_map(|(title, query)| assert_published(&families, title, query))
            .collect();
        let published: BTreeSet<String> = families.into_keys().collect();
        assert_eq!(shown, published);
    }
}

#[test]
fn alarms_name_only_published_metrics() {
    for (board, families) in boards() {
        let alarms = of_alarms(&file(board.alarms));
        assert_eq!(alarms.len(), board.alarm_count);
        for (name, query) in alarms {
            assert_published(&families, &name, &query);
        }
    }
}

/// A rate of a gauge means nothing, nor does a counter that is shown as it stands.
#[test]
fn counters_are_shown_as_rates_and_gauges_are_not() {
    for (title, query) in of_all() {
        let (mut all, mut in_rates) = (0, 0);
        walk(&parsed(&title, &query), &mut |expr| match expr {
            Expr::VectorSelector(selector) => {
                all += 1;
                let name = selector.name.as_deref().unwrap();
                assert!(!name.ends_with("_total"), "{title}: {query}");
            }
            Expr::MatrixSelector(matrix) => {
                in_rates += 1;
                let name = matrix.vs.name.as_deref().unwrap();
                assert!(name.ends_with("_total"), "{title}: {query}");
            }
            _ => {}
        });
        assert!(all + in_rates > 0, "{title}");
    }
}

/// Every alarm has a line in the table of the page, and a test.
#[test]
fn every_alarm_is_documented_and_tested() {
    for board in BOARDS {
        let page = file(board.page);
        let tests = file(board.tests);
        for (name, _) in of_alarms(&file(board.alarms)) {
            assert!(page.contains(&format!("`{name}`")), "{name}");
            assert!(tests.contains(&format!("name: {name}\n")), "{name}");
        }
    }
}

fn edges(panel: &Value) -> [u64; 4] {
    let of = |name: &str| panel["gridPos"][name].as_u64().expect("a number");
    [of("x"), of("y"), of("x") + of("w"), of("y") + of("h")]
}

/// Grafana moves panels that overlap, and drops one of two with the same number.
#[test]
fn panels_have_places_and_numbers_of_their_own() {
    BOARDS.iter().for_each(|board| assert_places(&board.json()));
}

fn assert_places(dashboard: &Value) {
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels
        .iter()
        .map(|panel| panel["id"].as_u64().unwrap())
        .collect();
    assert_eq!(ids.len(), panels.len());
    for (n, panel) in panels.iter().enumerate() {
        let [left, top, right, bottom] = edges(panel);
        assert!(right <= 24, "{panel}");
        for other in &panels[..n] {
            let [l, t, r, b] = edges(other);
            let overlaps = left < r && l < right && top < b && t < bottom;
            assert!(!overlaps, "{} and {}", panel["title"], other["title"]);
        }
        let is_row = panel["type"] == "row";
        assert!(
            is_row
                || panel["description"]
                    .as_str()
                    .is_some_and(|text| text.ends_with('.'))
        );
    }
}
