//! The ledger: a line for each run of a handler.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use tickwheel_durable::Attempt;

/// A file to which lines are appended. Each line is one write, so a kill leaves whole lines.
pub(crate) struct Ledger {
    file: File,
    life: String,
}

impl Ledger {
    pub(crate) fn open(path: &Path, life: &str) -> io::Result<Ledger> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let life = life.to_owned();
        Ok(Ledger { file, life })
    }

    /// Writes `ran ID ATTEMPT LIFE TEXT`. The id and the attempt tell repeated runs apart.
    pub(crate) fn write(&self, attempt: &Attempt) -> io::Result<()> {
        let text = String::from_utf8_lossy(attempt.payload());
        let line = format!("ran {} {} {} {:?}\n", attempt.id(), attempt.number(), self.life, text);
        (&self.file).write_all(line.as_bytes())
    }
}
