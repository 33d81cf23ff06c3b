//! Each request, and an end by SIGTERM.

#![cfg(unix)]

mod support;

use serde_json::{Value, json};
use tempfile::TempDir;

use self::support::{Life, Place, ask};

struct World {
    folder: TempDir,
    life: Life,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let life = Life::begin(&Place::new(folder.path(), None), "reminders", 0);
        World { folder, life }
    }

    fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        ask(self.life.address, method, path, &body).unwrap()
    }

    fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, Value::Null)
    }

    /// Stores a reminder, and returns its path.
    fn store(&self, reminder: Value) -> String {
        let (status, answer) = self.ask("POST", "/reminders", reminder);
        assert_eq!(status, 201, "{answer}");
        format!("/reminders/{}", answer["id"].as_str().unwrap())
    }
}

#[test]
fn a_reminder_is_stored_shown_listed_and_cancelled() {
    let world = World::new();
    let path = world.store(json!({"text": "tea", "at": "2100-01-01T16:00:00Z"}));
    let (status, reminder) = world.get(&path);
    assert_eq!((status, &reminder["text"]), (200, &"tea".into()));
    assert_eq!(reminder["due"], "2100-01-01T16:00:00Z");
    assert_eq!(world.get("/reminders").1, json!([reminder]));
    assert_eq!(world.get(&format!("/reminders?after={}", &path[11..])).1, json!([]));
    assert_eq!(world.get("/reminders?dead").1, json!([]));
    assert_eq!(world.ask("DELETE", &path, Value::Null).0, 200);
    assert_eq!(world.ask("DELETE", &path, Value::Null).0, 404);
    assert_eq!(world.get(&path).0, 404);
    world.life.kill();
}

#[test]
fn a_key_replaces_the_reminder_that_has_it() {
    let world = World::new();
    let first = world.store(json!({"text": "tea", "in": "1h", "key": "ada"}));
    let second = world.store(json!({"text": "coffee", "cron": "0 9 * * MON UTC", "key": "ada"}));
    assert_eq!(first, second);
    assert_eq!(world.get(&first).1["text"], "coffee");
    world.life.kill();
}

#[test]
fn a_wrong_request_is_refused_with_its_reason() {
    let world = World::new();
    for body in [
        json!({"in": "1h"}),
        json!({"text": "tea"}),
        json!({"text": "tea", "in": 90}),
        json!({"text": "tea", "in": "1h", "key": 7}),
        json!({"text": "tea", "in": "soon"}),
        json!({"text": "tea", "in": "-1h"}),
        json!({"text": "tea", "at": "tomorrow"}),
        json!({"text": "tea", "cron": "now and then"}),
        json!("tea"),
    ] {
        let (status, answer) = world.ask("POST", "/reminders", body);
        assert_eq!(status, 400, "{answer}");
        assert!(answer["error"].as_str().is_some_and(|error| !error.is_empty()));
    }
    assert_eq!(world.get("/reminders/nonsense").0, 400);
    assert_eq!(world.get("/nowhere").0, 404);
    assert_eq!(world.ask("POST", "/reminders/1-1/retry", Value::Null).0, 404);
    world.life.kill();
}

#[test]
fn health_and_metrics_are_served() {
    let world = World::new();
    let (status, health) = world.get("/health");
    assert_eq!(status, 200, "{health}");
    world.store(json!({"text": "tea", "in": "1h"}));
    let (status, metrics) = world.get("/metrics");
    let metrics = metrics.as_str().unwrap();
    assert_eq!(status, 200);
    assert!(metrics.contains("tickwheel_durable_window_jobs{owner=\"reminders\"}"), "{metrics}");
    assert!(
        metrics.contains("tickwheel_durable_lag_runs_total{owner=\"reminders\",within=\"+Inf\"} 0")
    );
    world.life.kill();
}

/// The end closes the store, and the reminders are there afterwards.
#[test]
fn sigterm_ends_the_service_and_keeps_its_reminders() {
    let World { folder, life } = World::new();
    let body = json!({"text": "tea", "in": "1h"}).to_string();
    let (status, _) = ask(life.address, "POST", "/reminders", &body).unwrap();
    assert_eq!(status, 201);
    assert!(life.end());
    let life = Life::begin(&Place::new(folder.path(), None), "reminders", 1);
    let (_, list) = ask(life.address, "GET", "/reminders", "").unwrap();
    assert_eq!(list[0]["text"], "tea");
    life.kill();
}
