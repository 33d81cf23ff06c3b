//! The exposition is valid, and the dashboards and alarms name only metrics and labels that an
//! engine or a node of durable jobs publishes, and all of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::{DASHBOARDS, file, json, queries, rendered, snapshot, status};

/// The alarms of each dashboard with their number, the page that says what each means, and their
/// tests.
const ALARMS: [(&str, usize, &str, &str); 2] = [
    (
        "docs/dashboards/alarms.yml",
        12,
        "docs/dashboards/README.md",
        "tests/dashboards/alarms-test.yml",
    ),
    (
        "durable/dashboards/durable-alarms.yml",
        9,
        "durable/dashboards/README.md",
        "tests/dashboards/durable-alarms-test.yml",
    ),
];

/// Labels that Prometheus or a query adds.
const ADDED: [&str; 3] = ["job", "instance", "le"];

/// Samples, with their labels, by the name and the type of their family.
type Families = BTreeMap<String, (String, BTreeSet<String>)>;

/// What is published for each dashboard.
fn families() -> [Families; 2] {
    let (engine, node) = (snapshot(), status());
    [
        read(&rendered(|| engine.publish(), false)),
        read(&rendered(|| node.publish(), false)),
    ]
}

/// Reads an exposition, in which each family is described, has one type, stands in one place and
/// contains only samples of its own name, each once.
fn read(text: &str) -> Families {
    let mut families = Families::new();
    let mut current = String::new();
    let mut described = BTreeSet::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.splitn(4, ' ').collect::<Vec<_>>()[..] {
            ["#", "HELP", name, _] => assert!(described.insert(name), "{line}"),
            ["#", "TYPE", name, kind] => {
                assert!(described.contains(name), "{line}");
                let before = families.insert(name.into(), (kind.into(), BTreeSet::new()));
                assert_eq!(before, None, "two types: {line}");
                current = name.into();
            }
            _ => {
                let (sample, value) = line.rsplit_once(' ').expect(line);
                value.parse::<f64>().expect(line);
                assert_eq!(sample.split('{').next(), Some(&*current), "{line}");
                let samples = &mut families.get_mut(&current).expect(line).1;
                assert!(samples.insert(sample.into()), "{line}");
            }
        }
    }
    families
}

/// Every family is a counter whose name ends in `_total`, or a gauge whose name does not. None
/// looks like a part of a histogram, which `promtool check metrics` would reject.
#[test]
fn the_exposition_is_valid() {
    let families = &families()[0];
    assert_eq!(families.len(), 16, "{families:?}");
    for (name, (kind, samples)) in families {
        let expected = if name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        assert_eq!(kind, expected, "{name}");
        for suffix in ["_bucket", "_sum", "_count", "_created", "_info"] {
            assert!(!name.ends_with(suffix), "{name}");
        }
        let is_reserved =
            |sample: &&String| sample.contains("le=\"") || sample.contains("quantile=\"");
        assert_eq!(samples.iter().find(is_reserved), None);
    }
}

/// An exporter that adds suffixes to names finds none missing.
#[test]
fn names_are_the_same_with_the_recommended_naming() {
    let snapshot = snapshot();
    let families = |recommended| read(&rendered(|| snapshot.publish(), recommended));
    assert_eq!(families(false), families(true));
}

/// A metric in a query, with what its labels must be, and whether it is read over time.
struct Selector<'a> {
    name: &'a str,
    labels: Vec<&'a str>,
    is_range: bool,
}

/// Splits a query at its metrics, all of which have the crate's name in front.
fn selectors(query: &str) -> Vec<Selector<'_>> {
    let starts = query
        .match_indices("tickwheel_")
        .map(|(at, _)| &query[at..]);
    starts
        .map(|text| {
            let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
            let (name, rest) = text.split_at(end.unwrap_or(text.len()));
            let (labels, rest) = match rest.strip_prefix('{') {
                Some(rest) => rest.split_once('}').expect(query),
                None => ("", rest),
            };
            let labels = labels
                .split(", ")
                .filter(|label| !label.is_empty())
                .collect();
            let is_range = rest.starts_with('[');
            Selector {
                name,
                labels,
                is_range,
            }
        })
        .collect()
}

/// The labels by which a query groups.
fn groupings(query: &str) -> impl Iterator<Item = &str> {
    let groups = query
        .split(" by (")
        .skip(1)
        .filter_map(|text| text.split(')').next());
    groups.flat_map(|group| group.split(", "))
}

/// Asserts that every name, label and chosen value of a query is published.
fn assert_published(families: &Families, query: &str) {
    for Selector { name, labels, .. } in selectors(query) {
        let (_, samples) = families
            .get(name)
            .unwrap_or_else(|| panic!("{name}: {query}"));
        let labels = labels
            .into_iter()
            .map(|label| label.split("=~").next().unwrap_or(label));
        for label in labels.chain(groupings(query)) {
            let (label, exact) = label.split_once('=').unwrap_or((label, "\""));
            let wanted = format!("{label}={exact}");
            let is_known = samples.iter().any(|sample| sample.contains(&wanted));
            assert!(
                ADDED.contains(&label) || is_known,
                "{name} without {wanted}: {query}"
            );
        }
    }
}

#[test]
fn panels_show_every_metric_and_no_other_and_only_counters_as_rates() {
    for (dashboard, families) in DASHBOARDS.into_iter().zip(families()) {
        let mut shown = BTreeSet::new();
        for query in queries(&json(dashboard)) {
            assert_published(&families, &query);
            for Selector { name, is_range, .. } in selectors(&query) {
                assert_eq!(is_range, name.ends_with("_total"), "{query}");
                shown.insert(name.to_owned());
            }
        }
        assert_eq!(shown, families.into_keys().collect());
    }
}

/// Every alarm names only what is published, has a line in the table of the page, and a test.
#[test]
fn every_alarm_is_documented_and_tested() {
    for ((alarms, count, page, tests), families) in ALARMS.into_iter().zip(families()) {
        let (alarms, page, tests) = (file(alarms), file(page), file(tests));
        let alarms: Vec<&str> = alarms.split("- alert: ").skip(1).collect();
        assert_eq!(alarms.len(), count);
        for alarm in alarms {
            let (name, rest) = alarm.split_once('\n').expect("a line");
            let query = rest.split("labels:").next().expect("a query");
            assert!(!selectors(query).is_empty(), "{name}");
            assert_published(&families, query);
            assert!(page.contains(&format!("`{name}`")), "{name}");
            assert!(tests.contains(&format!("name: {name}\n")), "{name}");
        }
    }
}

/// Grafana moves panels that overlap, and drops one of two with the same number.
#[test]
fn panels_have_places_and_numbers_of_their_own() {
    for dashboard in DASHBOARDS.map(json) {
        let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
        for panel in dashboard["panels"].as_array().unwrap() {
            assert!(ids.insert(panel["id"].as_u64()), "{panel}");
            let [x, y, w, h] =
                ["x", "y", "w", "h"].map(|of| panel["gridPos"][of].as_u64().unwrap());
            assert!(x + w <= 24, "{panel}");
            let mut cells = (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y)));
            assert!(cells.all(|cell| taken.insert(cell)), "{panel}");
            let text = panel["description"].as_str();
            assert!(panel["type"] == "row" || text.is_some_and(|text| text.ends_with('.')));
        }
    }
}
