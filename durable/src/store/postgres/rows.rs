//! Changes as arguments of the database's function `apply`, and its rows as answers.

use ::postgres::types::ToSql;
use ::postgres::{GenericClient, Row, Statement};

use super::line::Failure;

use crate::job::{IfTaken, JobId, State, StoredJob};
use crate::store::row::{recurrence_from_bytes, recurrence_to_bytes};
use crate::store::{Answer, Change, DueJob, NewJob, StoreError, Target, Then};
use crate::wall::WallTime;

/// The columns of a job, in the order in which [`stored`] reads them.
pub(super) const COLUMNS: &str = "j.number, j.born, j.version, j.due, j.fence, j.attempts, j.dead, \
     j.kind, j.key, j.recurrence, j.failure, j.payload";

/// The text of the statement that carries out changes.
pub(super) fn apply_text(schema: &str) -> String {
    let arguments: Vec<String> = (1..=14).map(|number| format!("${number}")).collect();
    format!("SELECT * FROM {schema}.apply({})", arguments.join(", "))
}

/// The same for the last statement of a longer transaction. From then on the server ends the
/// transaction of a client that is paused, so that its locks keep nobody else.
pub(super) fn complete_text(schema: &str) -> String {
    let limit = "set_config('idle_in_transaction_session_timeout', '1000', true)";
    apply_text(schema).replace("SELECT *", &format!("SELECT *, {limit}"))
}

/// A time or a number, which the database keeps as a signed one. Later times count as the last
/// that it can keep, in the year 294,000.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn micros(time: WallTime) -> i64 {
    signed(time.as_unix_micros())
}

/// Reads a time.
pub(super) fn time(micros: i64) -> WallTime {
    WallTime::from_unix_micros(micros as u64)
}

/// Returns the number of a job and the time at which it was born. No job has the number zero,
/// which stands for ids that the database cannot have given.
pub(super) fn numbers(id: JobId) -> (i64, i64) {
    let pair = (
        i64::try_from(id.number()),
        i64::try_from(id.born().as_unix_micros()),
    );
    match pair {
        (Ok(number), Ok(born)) => (number, born),
        _ => (0, 0),
    }
}

/// Changes by columns.
#[derive(Default)]
pub(super) struct Columns {
    origin: i64,
    needed: Vec<i64>,
    ops: Vec<i64>,
    numbers: Vec<i64>,
    borns: Vec<i64>,
    versions: Vec<i64>,
    fences: Vec<i64>,
    dues: Vec<Option<i64>>,
    ats: Vec<Option<i64>>,
    kinds: Vec<Option<Vec<u8>>>,
    keys: Vec<Option<Vec<u8>>>,
    recurrences: Vec<Option<Vec<u8>>>,
    failures: Vec<Option<Vec<u8>>>,
    payloads: Vec<Option<Vec<u8>>>,
}

/// One change; what it does not need is empty.
#[derive(Default)]
struct Line<'a> {
    op: i64,
    id: Option<JobId>,
    version: u64,
    fence: u64,
    due: Option<WallTime>,
    at: Option<WallTime>,
    kind: Option<&'a str>,
    key: Option<&'a str>,
    new: Option<&'a NewJob>,
    failure: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn of(change: &'a Change) -> Line<'a> {
        match change {
            Change::Insert(new) => Line::insert(new),
            Change::Cancel(target) => Line::target(4, target),
            Change::Move { target, due } => Line {
                due: Some(*due),
                ..Line::target(6, target)
            },
            Change::Start { id, version, fence } => Line::fenced(8, *id, *version, *fence),
            Change::Finish {
                id,
                version,
                fence,
                then,
            } => Line::fenced(9, *id, *version, *fence).then(then),
            Change::Revive { id, due } => Line {
                op: 12,
                id: Some(*id),
                due: Some(*due),
                ..Line::default()
            },
            Change::Bury(id) => Line {
                op: 13,
                id: Some(*id),
                ..Line::default()
            },
        }
    }

    fn insert(new: &'a NewJob) -> Line<'a> {
        let (kind, key) = new.name();
        Line {
            op: match new.if_taken() {
                IfTaken::Refuse => 1,
                IfTaken::Keep => 2,
                IfTaken::Replace => 3,
                IfTaken::Update => 0,
            },
            due: Some(new.due()),
            kind: Some(kind),
            key,
            new: Some(new),
            ..Line::default()
        }
    }

    /// A change of a job by its id, or with the next code by its key.
    fn target(op: i64, target: &'a Target) -> Line<'a> {
        match target {
            Target::Id(id) => Line {
                op,
                id: Some(*id),
                ..Line::default()
            },
            Target::Key { kind, key } => Line {
                op: op + 1,
                kind: Some(kind),
                key: Some(key),
                ..Line::default()
            },
        }
    }

    fn fenced(op: i64, id: JobId, version: u64, fence: u64) -> Line<'a> {
        Line {
            op,
            id: Some(id),
            version,
            fence,
            ..Line::default()
        }
    }

    fn then(self, then: &'a Then) -> Line<'a> {
        match then {
            Then::End => self,
            Then::Again { due, failure } => Line {
                op: 10,
                due: Some(*due),
                failure: failure.as_deref(),
                ..self
            },
            Then::Die { failure, at, next } => Line {
                op: 11,
                due: *next,
                at: Some(*at),
                failure: Some(failure),
                ..self
            },
        }
    }
}

impl Columns {
    /// Returns the columns of changes by the node whose lease has the fence `origin`.
    pub(super) fn of(origin: u64, changes: &[Change]) -> Columns {
        let mut columns = Columns {
            origin: signed(origin),
            needed: vec![signed(origin)],
            ..Columns::default()
        };
        for change in changes {
            columns.push(Line::of(change));
        }
        columns.needed.sort_unstable();
        columns.needed.dedup();
        columns
    }

    fn push(&mut self, line: Line<'_>) {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let (number, born) = line.id.map_or((0, 0), numbers);
        let fence = signed(line.fence);
        if fence != 0 {
            self.needed.push(fence);
        }
        self.ops.push(line.op);
        self.numbers.push(number);
        self.borns.push(born);
        self.versions.push(signed(line.version));
        self.fences.push(fence);
        self.dues.push(line.due.map(micros));
        self.ats.push(line.at.map(micros));
        self.kinds.push(line.kind.map(bytes));
        self.keys.push(line.key.map(bytes));
        self.failures.push(line.failure.map(bytes));
        let recurrence = line.new.map(|new| recurrence_to_bytes(new.recurrence()));
        self.recurrences.push(recurrence);
        self.payloads
            .push(line.new.map(|new| new.job().payload.clone()));
    }
}

/// Carries out changes in one statement, and returns its rows.
pub(super) fn apply(
    client: &mut impl GenericClient,
    statement: &Statement,
    columns: &Columns,
) -> Result<Vec<Row>, Failure> {
    let arguments: [&(dyn ToSql + Sync); 14] = [
        &columns.origin,
        &columns.needed,
        &columns.ops,
        &columns.numbers,
        &columns.borns,
        &columns.versions,
        &columns.fences,
        &columns.dues,
        &columns.ats,
        &columns.kinds,
        &columns.keys,
        &columns.recurrences,
        &columns.failures,
        &columns.payloads,
    ];
    client.query(statement, &arguments)
}

/// Reads the answer to a change.
pub(super) fn answer(row: &Row) -> Result<Answer, StoreError> {
    Ok(match row.get::<_, i64>(0) {
        1 => Answer::Placed(placed(row)),
        2 => Answer::Kept(id(row, 1)),
        3 => Answer::Taken(id(row, 1)),
        4 => Answer::Removed(Box::new(stored(row, 1)?)),
        5 => Answer::RemovedRunning(id(row, 1)),
        6 => Answer::Started {
            job: Box::new(stored(row, 1)?),
            token: row.get::<_, i64>(13) as u64,
        },
        7 => Answer::Stale(placed(row)),
        8 => Answer::Gone,
        9 => Answer::Fenced,
        other => return Err(StoreError::Damaged(format!("an answer of code {other}"))),
    })
}

fn placed(row: &Row) -> DueJob {
    DueJob {
        is_here: row.get::<_, Option<bool>>(14).unwrap_or(false),
        ..due_job(row, 1)
    }
}

fn id(row: &Row, from: usize) -> JobId {
    JobId::new(time(row.get(from + 1)), row.get::<_, i64>(from) as u64)
}

/// Reads a job's id, version and due time from the column `from` on.
pub(super) fn due_job(row: &Row, from: usize) -> DueJob {
    DueJob {
        id: id(row, from),
        version: row.get::<_, i64>(from + 2) as u64,
        due: time(row.get(from + 3)),
        is_interrupted: false,
        is_here: true,
    }
}

/// Reads a job from the column `from` on.
pub(super) fn stored(row: &Row, from: usize) -> Result<StoredJob, StoreError> {
    let DueJob {
        id, version, due, ..
    } = due_job(row, from);
    let damaged = || StoreError::Damaged(format!("job {id} cannot be read"));
    let text = |bytes: Option<Vec<u8>>| bytes.map(String::from_utf8).transpose();
    let recurrence: &[u8] = row.get(from + 9);
    Ok(StoredJob {
        id,
        version,
        due,
        state: match (row.get(from + 6), row.get::<_, i64>(from + 4) as u64) {
            (true, _) => State::Dead,
            (false, 0) => State::Waiting,
            (false, fence) => State::Started { fence },
        },
        attempts: u32::try_from(row.get::<_, i64>(from + 5)).unwrap_or(u32::MAX),
        kind: String::from_utf8(row.get(from + 7)).map_err(|_| damaged())?,
        key: text(row.get(from + 8)).map_err(|_| damaged())?,
        recurrence: recurrence_from_bytes(recurrence).map_err(|_| damaged())?,
        failure: text(row.get(from + 10)).map_err(|_| damaged())?,
        payload: row.get(from + 11),
    })
}
