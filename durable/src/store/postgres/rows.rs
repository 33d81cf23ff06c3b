//! Changes as arguments of the database's function `apply`, and its rows as answers.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::connection::Argument;
use super::database::Member;
use crate::job::{JobId, State, StoredJob};
use crate::refusal::MOST_KIND;
use crate::store::{Answer, Change, DueJob, Result, StoreError, Target, Then};
use crate::wall::WallTime;

/// The statement that carries out changes.
pub(super) const APPLY: &str =
    "SELECT a.answer, a.token, a.here, (a.job).* FROM {schema}.apply($1, $2::json, $3) a";

/// The same for the last statement of a longer transaction. From then on the server ends the
/// transaction of a client that is paused, so that its locks keep nobody else.
pub(super) const COMPLETE: &str = "SELECT a.answer, a.token, a.here, (a.job).*, \
     set_config('idle_in_transaction_session_timeout', '1000', true) FROM {schema}.apply($1, $2::json, $3) a";

/// A time or a number, which the database keeps as a signed one. Later times count as the last
/// that it can keep, in the year 294,000.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn duration_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

pub(super) fn micros(time: WallTime) -> i64 {
    signed(time.as_unix_micros())
}

/// Reads a time.
pub(super) fn time(micros: i64) -> WallTime {
    WallTime::from_unix_micros(micros as u64)
}

pub(super) fn number(value: u64) -> Argument {
    (Box::new(signed(value)), Type::INT8)
}

pub(super) fn text(value: Option<&str>) -> Argument {
    (Box::new(value.map(str::to_owned)), Type::TEXT)
}

/// Returns a name, unless it has a NUL, which is in no text of the database: no job is called so, nor
/// is any found by a null.
pub(super) fn name(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.contains('\0'))
}

/// Returns the number of a job and the time at which it was born. No job has the number zero,
/// which stands for ids that the database cannot have given.
pub(super) fn numbers(id: JobId) -> (u64, u64) {
    let (number, born) = (id.number(), id.born().as_unix_micros());
    if number.max(born) <= i64::MAX as u64 { (number, born) } else { (0, 0) }
}

/// Returns the arguments of `apply`, for changes by the node whose lease has the fence `origin`.
pub(super) fn arguments(origin: u64, changes: &[Change]) -> Vec<Argument> {
    let payload = |change: &Change| match change {
        Change::Insert(new) => Some(new.job.payload.clone()),
        _ => None,
    };
    let payloads: Vec<Option<Vec<u8>>> = changes.iter().map(payload).collect();
    let changes = Value::from_iter(changes.iter().map(line)).to_string();
    vec![number(origin), text(Some(&changes)), (Box::new(payloads), Type::BYTEA_ARRAY)]
}

fn line(change: &Change) -> Value {
    match change {
        Change::Insert(new) => json!({
            "op": "insert",
            "kind": new.name().0,
            "key": new.name().1,
            "due": micros(new.due),
            "after": new.job.delay().map(|delay| signed(duration_micros(delay))),
            "if_taken": new.if_taken,
            "recurrence": new.recurrence().map(|recurrence| recurrence.to_string()),
        }),
        Change::Cancel(target) => of(target, json!({"op": "cancel"})),
        Change::Move { target, due } => of(target, json!({"op": "move", "due": micros(*due)})),
        Change::Start { id, version, fence } => run("start", *id, *version, *fence, json!({})),
        Change::Finish { id, version, fence, recurrence, then } => {
            let (op, mut line) = match then {
                Then::End => ("end", json!({})),
                Then::Again { due, failure } => {
                    ("again", json!({"due": micros(*due), "failure": failure}))
                }
                Then::Die { failure, at, next } => {
                    let (due, died) = (next.map(micros), micros(*at));
                    ("die", json!({"due": due, "died": died, "failure": failure}))
                }
            };
            line["recurrence"] = json!(recurrence.as_ref().map(ToString::to_string));
            run(op, *id, *version, *fence, line)
        }
        Change::Revive { id, due } => with_id(*id, json!({"op": "revive", "due": micros(*due)})),
        Change::Bury(id) => with_id(*id, json!({"op": "bury"})),
        // No job is of this kind, so there is nothing to do.
        Change::Pause { kind, .. } if name(kind).is_none() || kind.len() > MOST_KIND => json!({}),
        Change::Pause { kind, is_paused } => {
            json!({"op": "pause", "kind": kind, "paused": is_paused})
        }
    }
}

fn of(target: &Target, mut line: Value) -> Value {
    match target {
        Target::Id(id) => with_id(*id, line),
        Target::Key { kind, key } => {
            (line["kind"], line["key"]) = (json!(name(kind)), json!(name(key)));
            line
        }
    }
}

fn with_id(id: JobId, mut line: Value) -> Value {
    let (number, born) = numbers(id);
    (line["number"], line["born"]) = (json!(number), json!(born));
    line
}

/// A change of a run.
fn run(op: &str, id: JobId, version: u64, fence: u64, mut line: Value) -> Value {
    (line["op"], line["version"], line["fence"]) = (json!(op), json!(version), json!(fence));
    with_id(id, line)
}

/// Reads the answer to a change.
pub(super) fn answer(row: &Row, member: &Member) -> Answer {
    try_answer(row, member).unwrap_or_else(|error| Answer::Damaged(error.to_string()))
}

fn try_answer(row: &Row, member: &Member) -> Result<Answer> {
    let placed = || DueJob {
        kind: match row.get::<_, Option<bool>>("here") {
            Some(true) => member.place_of(row.get("kind")),
            _ => None,
        },
        ..due_job(row, member)
    };
    Ok(match row.get("answer") {
        "placed" => Answer::Placed(placed()),
        "kept" => Answer::Kept(id(row)),
        "taken" => Answer::Taken(id(row)),
        "removed" => Answer::Removed(Box::new(stored(row)?)),
        "running" => Answer::RemovedRunning(id(row)),
        "started" => Answer::Started {
            job: Box::new(stored(row)?),
            token: row.get::<_, i64>("token") as u64,
        },
        "full" => Answer::Full,
        "changed" => Answer::Changed(Box::new(stored(row)?)),
        "stale" => Answer::Stale(placed()),
        "gone" => Answer::Gone,
        "fenced" => Answer::Fenced,
        "set" => Answer::Set,
        other => return Err(StoreError::Damaged(format!("an answer {other}"))),
    })
}

fn id(row: &Row) -> JobId {
    JobId::new(time(row.get("born")), row.get::<_, i64>("number") as u64)
}

/// Reads a job's id, version, due time and kind.
pub(super) fn due_job(row: &Row, member: &Member) -> DueJob {
    DueJob {
        id: id(row),
        version: row.get::<_, i64>("version") as u64,
        due: time(row.get("due")),
        is_interrupted: ![0, signed(member.fence)].contains(&row.get("fence")),
        kind: member.place_of(row.get("kind")),
    }
}

/// Reads a job.
pub(super) fn stored(row: &Row) -> Result<StoredJob> {
    let id = id(row);
    let recurrence = row.get::<_, Option<&str>>("recurrence").map(str::parse).transpose();
    Ok(StoredJob {
        id,
        version: row.get::<_, i64>("version") as u64,
        due: time(row.get("due")),
        state: match (row.get("dead"), row.get::<_, i64>("fence") as u64) {
            (true, _) => State::Dead,
            (false, 0) => State::Waiting,
            (false, fence) => State::Started { fence },
        },
        attempts: u32::try_from(row.get::<_, i64>("attempts")).unwrap_or(u32::MAX),
        kind: row.get("kind"),
        key: row.get("key"),
        recurrence: recurrence
            .map_err(|_| StoreError::Damaged(format!("job {id} cannot be read")))?,
        failure: row.get("failure"),
        payload: row.get("payload"),
    })
}
