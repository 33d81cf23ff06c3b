//! What `tests/dashboards.sh` can't see: there alarms are tested with made-up series, and
//! Prometheus takes a label that nobody has for an empty one.

use std::collections::BTreeSet;

use crate::{DASHBOARDS, file, json, queries, rendered};

/// The alarms of each dashboard.
const ALARMS: [&str; 2] = ["docs/dashboards/alarms.yml", "durable/dashboards/durable-alarms.yml"];

/// Labels that Prometheus or a query adds.
const ADDED: [&str; 3] = ["job=\"", "instance=\"", "le=\""];

/// The metrics that a text names.
fn metrics(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let names = words.filter(|word| word.starts_with("tickwheel_"));
    names.collect()
}

/// Panels show every metric, rates of counters and nothing else as a rate; and no query names a
/// metric or a label that isn't published.
#[test]
fn dashboards_and_alarms_read_what_is_published() {
    let (plain, recommended) = (rendered(false).unwrap(), rendered(true).unwrap());
    for (n, published) in plain.iter().enumerate() {
        let all = metrics(published);
        assert_eq!(metrics(&recommended[n]), all, "an exporter adds suffixes");
        let panels = queries(&json(DASHBOARDS[n])).join("\n");
        assert_eq!(metrics(&panels), all);
        let ranges = panels.rsplit('[').skip(1);
        let rates = ranges.filter_map(|range| Some(&range[range.rfind("tickwheel_")?..]));
        let counters = all.iter().copied().filter(|name| name.ends_with("_total"));
        assert_eq!(metrics(&rates.collect::<String>()), counters.collect());
        let alarms = file(ALARMS[n]);
        assert!(metrics(&alarms).is_subset(&all), "{alarms}");
        for label in labels(&(panels + &alarms)) {
            let is_known = published.contains(&label) || ADDED.contains(&&*label);
            assert!(is_known, "nothing has {label}");
        }
        let (folder, name) = ALARMS[n].rsplit_once('/').unwrap();
        let page = file(&format!("{folder}/README.md"));
        let tests = format!("tests/dashboards/{}", name.replace(".yml", "-test.yml"));
        let tests = file(&tests);
        for alarm in alarms.split("- alert: ").skip(1) {
            let name = alarm.lines().next().unwrap();
            assert!(page.contains(&format!("`{name}`")), "{name}");
            assert!(tests.contains(&format!("name: {name}\n")), "{name}");
        }
    }
}

/// The labels by which queries select and group, as the exposition shows them.
fn labels(queries: &str) -> Vec<String> {
    let lists = queries.split(" by (").skip(1);
    let groups = lists.flat_map(|list| list.split(')').next().unwrap().split(", "));
    let words = queries.split(['{', '}', ' ']);
    let selectors = words.map(|word| word.trim_end_matches(','));
    let regular = selectors.clone().filter_map(|word| word.split_once("=~"));
    let regular = regular.map(|(label, _)| label);
    let shown = groups.chain(regular).map(|label| format!("{label}=\""));
    let exact = selectors.filter(|word| word.contains("=\""));
    shown.chain(exact.map(str::to_owned)).collect()
}

/// Grafana moves panels that overlap, and drops one of two with the same number.
#[test]
fn panels_have_places_and_numbers_of_their_own() {
    for dashboard in DASHBOARDS.map(json) {
        let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
        for panel in dashboard["panels"].as_array().unwrap() {
            assert!(ids.insert(panel["id"].as_u64()), "{panel}");
            let place = ["x", "y", "w", "h"].map(|of| panel["gridPos"][of].as_u64().unwrap());
            let [x, y, w, h] = place;
            assert!(x + w <= 24, "{panel}");
            let mut cells = (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y)));
            assert!(cells.all(|cell| taken.insert(cell)), "{panel}");
        }
    }
}
