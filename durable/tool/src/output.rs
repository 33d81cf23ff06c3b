//! What is printed, for people and for programs.

use std::io::{self, BufWriter, Stdout, Write, stdout};

use serde_json::{Value, json};
use tickwheel_durable::{Recurrence, State, StoredJob, WallTime};

use crate::time::from_now;

/// The standard output.
pub(crate) struct Output {
    pub(crate) is_json: bool,
    /// Whether it is a pipe whose reader has ended. What is printed then is gone, and that is no failure.
    pub(crate) is_closed: bool,
    out: BufWriter<Stdout>,
}

impl Output {
    pub(crate) fn new(is_json: bool) -> Output {
        let out = BufWriter::new(stdout());
        Output { is_json, is_closed: false, out }
    }

    /// Prints a line: the text for people, the object for programs.
    pub(crate) fn line(&mut self, text: &str, object: impl FnOnce() -> Value) -> io::Result<()> {
        let written = if self.is_json {
            writeln!(self.out, "{}", object())
        } else {
            writeln!(self.out, "{}", text.trim_end())
        };
        self.check(written)
    }

    /// Prints a line that programs do not need.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        if self.is_json { Ok(()) } else { self.line(text, || Value::Null) }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.check(flushed)
    }

    fn check(&mut self, written: io::Result<()>) -> io::Result<()> {
        let is_closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        self.is_closed |= written.as_ref().is_err_and(is_closed);
        written.or_else(|error| if is_closed(&error) { Ok(()) } else { Err(error) })
    }
}

/// Prints a line to the standard error, whether or not somebody reads it.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Returns text without control characters, which could change the terminal.
pub(crate) fn plain(text: &str) -> String {
    let shown =
        |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// Returns the state. A job that was started may still run, or its process has died.
pub(crate) fn state(job: &StoredJob) -> &'static str {
    match job.state {
        State::Waiting => "waiting",
        State::Started { .. } => "started",
        State::Dead => "dead",
    }
}

pub(crate) fn recurrence(job: &StoredJob) -> Option<String> {
    job.recurrence.as_ref().map(|recurrence| match recurrence {
        Recurrence::Every { period, .. } => format!("every {period:?}"),
        Recurrence::Cron(expression) => format!("cron {expression}"),
    })
}

/// Returns the head of a table of jobs.
pub(crate) fn head() -> String {
    format!(
        "{:<20} {:<16} {:<8} {:<28} {:<12} {:>8}  KEY",
        "ID", "KIND", "STATE", "DUE", "", "ATTEMPTS"
    )
}

/// Returns a job as a row of that table.
pub(crate) fn row(job: &StoredJob, now: WallTime) -> String {
    format!(
        "{:<20} {:<16} {:<8} {:<28} {:<12} {:>8}  {}",
        job.id.to_string(),
        plain(&job.kind),
        state(job),
        job.due.to_string(),
        from_now(job.due, now),
        job.attempts,
        plain(job.key.as_deref().unwrap_or_default()),
    )
}

/// Returns a job for programs. The payload is text if it is UTF-8, and hexadecimal in any case.
pub(crate) fn object(job: &StoredJob) -> Value {
    json!({
        "id": job.id.to_string(),
        "kind": job.kind,
        "key": job.key,
        "state": state(job),
        "due": job.due.to_string(),
        "due_unix_micros": job.due.as_unix_micros(),
        "version": job.version,
        "attempts": job.attempts,
        "recurrence": recurrence(job),
        "failure": job.failure,
        "payload_bytes": job.payload.len(),
    })
}

/// Returns the same with the payload.
pub(crate) fn whole_object(job: &StoredJob) -> Value {
    let mut object = object(job);
    object["payload_text"] = json!(std::str::from_utf8(&job.payload).ok());
    object["payload_hex"] = json!(hex(&job.payload));
    object
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\n\u{20ac}"), "a\\u{1b}[2Jb\\n\u{20ac}");
    }
}
