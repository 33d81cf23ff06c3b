//! What the errors of the database mean to a node.

use std::error::Error as _;
use std::io;
use std::sync::Arc;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::store::StoreError;

/// Returns the reason for a failure. The name of the schema helps whoever reads it.
pub(super) fn reason(error: &Error, schema: &str) -> StoreError {
    let Some(code) = error.code() else {
        return StoreError::Io(Arc::new(io_error(error)));
    };
    let message =
        error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
    match &code.code()[..2] {
        "57" if *code == SqlState::QUERY_CANCELED => {
            StoreError::Io(Arc::new(io::Error::new(io::ErrorKind::TimedOut, message)))
        }
        "53" if *code == SqlState::DISK_FULL => StoreError::Full,
        // Connections that end or are refused, transactions and locks in each other's way, a server
        // that stops or starts, or that lacks memory or a file. No job is to blame.
        "08" | "40" | "53" | "55" | "57" | "58" => {
            StoreError::Io(Arc::new(io::Error::other(message)))
        }
        "XX" => StoreError::Damaged(message),
        _ => StoreError::Refused(format!("schema {schema}, {}: {message}", code.code())),
    }
}

/// Returns whether the transaction was undone, and may succeed if it is repeated.
pub(super) fn is_passing(error: &Error) -> bool {
    let passing = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
    error.code().is_some_and(|code| passing.contains(code))
}

fn io_error(error: &Error) -> io::Error {
    let cause = error.source().map(|cause| format!(": {cause}"));
    io::Error::other(format!("{error}{}", cause.unwrap_or_default()))
}
