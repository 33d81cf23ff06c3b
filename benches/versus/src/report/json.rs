//! The rows as JSON.

use serde_json::{Value, json};

use crate::case::Row;

/// A list of rows. One that has no answer has a `note` instead of figures.
pub fn json(rows: &[Row]) -> serde_json::Result<String> {
    let rows: Vec<Value> = rows.iter().map(row).collect();
    serde_json::to_string_pretty(&rows)
}

fn row(row: &Row) -> Value {
    let figures = match &row.outcome {
        Ok(summary) => json!({
            "metric": summary.metric,
            "unit": summary.unit,
            "median": summary.median,
            "min": summary.min,
            "max": summary.max,
            "rounds": summary.rounds,
        }),
        Err(reason) => json!({
            "metric": null,
            "unit": null,
            "median": null,
            "min": null,
            "max": null,
            "rounds": 0,
            "note": reason,
        }),
    };
    let mut value = json!({
        "workload": row.workload,
        "engine": row.engine,
        "thread_safe": row.thread_safe,
        "threads": row.threads,
        "size": row.size,
    });
    if let (Value::Object(all), Value::Object(figures)) = (&mut value, figures) {
        all.extend(figures);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Summary;

    #[test]
    fn a_row_has_just_these_fields() {
        let answered = Row {
            workload: "pair",
            engine: "floor",
            thread_safe: false,
            threads: 1,
            size: 1_024,
            outcome: Ok(Summary::of("in flight", "ns", vec![8.5])),
        };
        let value = super::row(&answered);
        let fields: Vec<&str> = value
            .as_object()
            .unwrap()
            .keys()
            .map(|key| &**key)
            .collect();
        let mut wanted = [
            "workload",
            "engine",
            "thread_safe",
            "threads",
            "size",
            "metric",
            "unit",
            "median",
            "min",
            "max",
            "rounds",
        ];
        // An object of this library is sorted.
        wanted.sort_unstable();
        assert_eq!(fields, wanted);
        assert_eq!(value["median"], 8.5);
    }

    #[test]
    fn a_row_without_an_answer_says_why() {
        let cannot = Row {
            workload: "remote",
            engine: "floor",
            thread_safe: false,
            threads: 2,
            size: 256,
            outcome: Err("one owner"),
        };
        let value = super::row(&cannot);
        assert_eq!(value["note"], "one owner");
        assert_eq!(value["threads"], 2);
        assert!(value["median"].is_null());
    }
}
