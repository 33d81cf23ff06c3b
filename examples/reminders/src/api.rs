//! Requests and their answers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value, json};
use tickwheel_durable::store::List;
use tickwheel_durable::{
    Cancelled, Durable, Health, IfTaken, Job, JobId, Refusal, Revived, State, StoreError, StoredJob,
};

/// The kind of the jobs that are reminders.
pub(crate) const KIND: &str = "reminder";
/// The largest body of a request.
const MOST_BODY: usize = 64 << 10;
/// The number of reminders in a list.
const PAGE: usize = 100;

pub(crate) struct Service {
    pub(crate) jobs: Durable,
    pub(crate) metrics: PrometheusHandle,
}

/// A status, and a body: JSON, or the text of the metrics.
type Answer = (StatusCode, Body);

enum Body {
    Json(Value),
    Text(String),
}

fn answer(status: StatusCode, value: Value) -> Answer {
    (status, Body::Json(value))
}

fn refuse(status: StatusCode, reason: impl ToString) -> Answer {
    answer(status, json!({"error": reason.to_string()}))
}

/// The store did not do it. Whoever asked may try again.
fn failed(error: &StoreError) -> Answer {
    refuse(StatusCode::SERVICE_UNAVAILABLE, error)
}

impl Service {
    pub(crate) async fn respond(
        self: Arc<Service>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let answer = match Limited::new(body, MOST_BODY).collect().await {
            Err(error) => refuse(StatusCode::BAD_REQUEST, error),
            Ok(body) => {
                let body = body.to_bytes();
                // The calls wait for the disk, so they have a thread of their own.
                let asked = move || {
                    let query = head.uri.query().unwrap_or_default();
                    self.answer(&head.method, head.uri.path(), query, &body)
                };
                let asked = tokio::task::spawn_blocking(asked).await;
                asked.unwrap_or_else(|error| refuse(StatusCode::INTERNAL_SERVER_ERROR, error))
            }
        };
        Ok(response(answer))
    }

    fn answer(&self, method: &Method, path: &str, query: &str, body: &[u8]) -> Answer {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match (method, &parts[..]) {
            (&Method::POST, ["reminders"]) => self.schedule(body),
            (&Method::GET, ["reminders"]) => self.list(query),
            (&Method::GET, ["reminders", id]) => with_id(id, |id| self.show(id)),
            (&Method::DELETE, ["reminders", id]) => with_id(id, |id| self.cancel(id)),
            (&Method::POST, ["reminders", id, "retry"]) => with_id(id, |id| self.retry(id)),
            (&Method::GET, ["health"]) => self.health(),
            (&Method::GET, ["metrics"]) => self.metrics(),
            _ => refuse(StatusCode::NOT_FOUND, "no such path or method"),
        }
    }

    fn schedule(&self, body: &[u8]) -> Answer {
        let job = match reminder(body) {
            Ok(job) => job,
            Err(reason) => return refuse(StatusCode::BAD_REQUEST, reason),
        };
        match self.jobs.schedule(job) {
            Ok(id) => answer(StatusCode::CREATED, json!({"id": id.to_string()})),
            Err(refused) => match refused.reason {
                Refusal::Store(error) => failed(&error),
                reason @ Refusal::KeyTaken(_) => refuse(StatusCode::CONFLICT, reason),
                reason => refuse(StatusCode::BAD_REQUEST, reason),
            },
        }
    }

    fn show(&self, id: JobId) -> Answer {
        match self.jobs.get(id) {
            Ok(Some(job)) => answer(StatusCode::OK, object(&job)),
            Ok(None) => gone(),
            Err(error) => failed(&error),
        }
    }

    fn list(&self, query: &str) -> Answer {
        match self.page(query) {
            Ok(Some(jobs)) => answer(StatusCode::OK, jobs.iter().map(object).collect()),
            Ok(None) => refuse(StatusCode::BAD_REQUEST, "`after` is the id of a stored reminder"),
            Err(error) => failed(&error),
        }
    }

    /// Returns a page of reminders, or `None` if the one before it is unknown.
    fn page(&self, query: &str) -> Result<Option<Vec<StoredJob>>, StoreError> {
        let (mut list, mut after) = (List::Live, None);
        for part in query.split('&') {
            match part.split_once('=') {
                Some(("after", id)) => match id.parse().map(|id| self.jobs.get(id)) {
                    Ok(Ok(Some(job))) => after = Some(job),
                    Ok(Err(error)) => return Err(error),
                    _ => return Ok(None),
                },
                None if part == "dead" => list = List::Dead,
                _ => {}
            }
        }
        self.jobs.list(list, after.as_ref(), PAGE).map(Some)
    }

    fn cancel(&self, id: JobId) -> Answer {
        match self.jobs.cancel(id) {
            Ok(Cancelled::Cancelled(_)) => answer(StatusCode::OK, json!({"result": "cancelled"})),
            Ok(Cancelled::Running(_)) => answer(StatusCode::ACCEPTED, json!({"result": "running"})),
            Ok(Cancelled::Gone) => gone(),
            Err(error) => failed(&error),
        }
    }

    fn retry(&self, id: JobId) -> Answer {
        match self.jobs.revive(id, SystemTime::now()) {
            Ok(Revived::Revived) => answer(StatusCode::OK, json!({"result": "revived"})),
            Ok(Revived::KeyTaken(holder)) => {
                refuse(StatusCode::CONFLICT, format!("job {holder} has the key"))
            }
            Ok(Revived::Gone) => gone(),
            Err(error) => failed(&error),
        }
    }

    fn health(&self) -> Answer {
        let status = self.jobs.status();
        let report = |health: &str| {
            json!({
                "health": health,
                "behind_seconds": status.behind.as_secs_f64(),
                "running": status.running,
                "window": status.armed,
            })
        };
        match status.health() {
            Health::Working => answer(StatusCode::OK, report("working")),
            Health::StandingBy => answer(StatusCode::OK, report("standing by")),
            Health::Stuck(_) => answer(StatusCode::SERVICE_UNAVAILABLE, report("stuck")),
            Health::Failing(error) => failed(&error),
        }
    }

    fn metrics(&self) -> Answer {
        self.jobs.status().publish();
        (StatusCode::OK, Body::Text(self.metrics.render()))
    }
}

fn with_id(text: &str, act: impl FnOnce(JobId) -> Answer) -> Answer {
    match text.parse() {
        Ok(id) => act(id),
        Err(error) => refuse(StatusCode::BAD_REQUEST, error),
    }
}

fn gone() -> Answer {
    refuse(StatusCode::NOT_FOUND, "no such reminder: it has ended, or never was")
}

/// Reads a reminder: `text`, one of `in`, `at` and `cron`, and perhaps a `key`. A reminder with
/// the same key is replaced. The text of one that recurs is its key, unless there is another.
fn reminder(body: &[u8]) -> Result<Job, String> {
    let wrong = |name: &str, error: &dyn ToString| format!("{name}: {}", error.to_string());
    let read: Value = serde_json::from_slice(body).map_err(|error| wrong("body", &error))?;
    // A number, say, must not count as absent: the reminder would be due at once.
    let field = |name: &str| match &read[name] {
        Value::Null => Ok(None),
        value => value.as_str().map(Some).ok_or_else(|| wrong(name, &"write it as a string")),
    };
    let text = field("text")?.ok_or("text: write what to remind of")?;
    let (length, at, cron) = (field("in")?, field("at")?, field("cron")?);
    if length.or(at).or(cron).is_none() {
        return Err("in, at or cron: write when to remind".to_owned());
    }
    let mut job = Job::new(KIND, text);
    if let Some(length) = length {
        let length: SignedDuration = length.parse().map_err(|error| wrong("in", &error))?;
        job = job.after(Duration::try_from(length).map_err(|error| wrong("in", &error))?);
    }
    if let Some(at) = at {
        let at: Timestamp = at.parse().map_err(|error| wrong("at", &error))?;
        job = job.at(SystemTime::from(at));
    }
    if let Some(cron) = cron {
        let cron = job.cron(cron).map_err(|error| wrong("cron", &error))?;
        job = cron.key(text, IfTaken::Replace);
    }
    if let Some(key) = field("key")? {
        job = job.key(key, IfTaken::Replace);
    }
    Ok(job)
}

fn object(job: &StoredJob) -> Value {
    let state = match job.state {
        State::Waiting => "waiting",
        State::Started { .. } => "started",
        State::Dead => "dead",
    };
    json!({
        "id": job.id.to_string(),
        "text": String::from_utf8_lossy(&job.payload),
        "key": job.key,
        "due": job.due.to_string(),
        "state": state,
        "attempts": job.attempts,
        "failure": job.failure,
    })
}

fn response((status, body): Answer) -> Response<Full<Bytes>> {
    let (content, text) = match body {
        Body::Json(value) => ("application/json", format!("{value}\n")),
        Body::Text(text) => ("text/plain; version=0.0.4", text),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let content = hyper::header::HeaderValue::from_static(content);
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, content);
    response
}
