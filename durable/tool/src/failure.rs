//! Why a command was not carried out.

use std::io;
use std::process::ExitCode;

use serde_json::json;
use tickwheel_durable::StoreError;

use crate::output::complain;

/// The reason why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The store is open in another process.
    InUse(String),
    /// The store cannot be opened.
    Open(String),
    /// The store could not be read or written.
    Store(StoreError),
    /// The output could not be written.
    Output(io::Error),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Store(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

impl Failure {
    /// Returns the reason.
    pub(crate) fn message(self) -> String {
        match self {
            Failure::InUse(message) | Failure::Open(message) => message,
            Failure::Store(error) => error.to_string(),
            Failure::Output(error) => error.to_string(),
        }
    }

    /// Prints the reason, and returns the exit code.
    pub(crate) fn report(self, json: bool) -> ExitCode {
        let (code, kind) = match &self {
            Failure::InUse(_) => (3, "in_use"),
            Failure::Open(_) => (3, "open"),
            Failure::Store(_) => (4, "store"),
            Failure::Output(_) => (4, "output"),
        };
        let message = self.message();
        complain(&if json {
            json!({"error": kind, "message": message}).to_string()
        } else {
            format!("tickwheel-jobs: {message}")
        });
        ExitCode::from(code)
    }
}
