//! Creating the tables, and leaving those of others alone.

use ::postgres::{Client, Transaction};

use super::error::reason;
use crate::store::StoreError;

/// The version of the tables.
const KNOWN: u64 = 3;
const TABLES: &str = include_str!("schema.sql");
const FUNCTIONS: &str = include_str!("functions.sql");
/// The longest name, which leaves room for the channel's.
const LONGEST_NAME: usize = 48;

/// Checks a schema's name, which becomes part of statements.
pub(super) fn check_name(name: &str) -> Result<(), StoreError> {
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let is_next = |byte: u8| is_first(byte) || byte.is_ascii_digit();
    let is_name = name.bytes().next().is_some_and(is_first) && name.bytes().all(is_next);
    if is_name && name.len() <= LONGEST_NAME {
        return Ok(());
    }
    Err(StoreError::Refused(format!(
        "{name:?} is no name of a schema: use up to {LONGEST_NAME} lower-case letters, digits and underscores"
    )))
}

/// Creates the tables unless they exist, in one transaction.
pub(super) fn open(
    client: &mut Client,
    schema: &str,
    parts: u32,
    creates: bool,
) -> Result<(), StoreError> {
    let fail = |error| reason(&error, schema);
    let mut transaction = client.transaction().map_err(fail)?;
    // Of nodes that open at once, one creates the schema.
    transaction
        .execute("SELECT pg_advisory_xact_lock(hashtext($1))", &[&schema])
        .map_err(fail)?;
    match version(&mut transaction, schema)? {
        KNOWN => {}
        0 if creates => fill(&mut transaction, schema, parts).map_err(fail)?,
        found if found > KNOWN => {
            return Err(StoreError::Newer {
                found,
                known: KNOWN,
            });
        }
        _ => {
            return Err(StoreError::Refused(format!(
                "schema {schema} has no jobs of this version: open it with a service first"
            )));
        }
    }
    transaction.commit().map_err(fail)
}

/// Returns the version of the schema, or zero if it is empty or new.
fn version(transaction: &mut Transaction<'_>, schema: &str) -> Result<u64, StoreError> {
    let fail = |error| reason(&error, schema);
    let named = "SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n \
         ON n.oid = c.relnamespace WHERE n.nspname = $1::text AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')";
    let relations = transaction.query(named, &[&schema]).map_err(fail)?;
    let names: Vec<String> = relations.iter().map(|row| row.get(0)).collect();
    match names.first() {
        None => {
            create(transaction, schema)?;
            Ok(0)
        }
        Some(_) if names.iter().any(|name| name == "tickwheel_durable") => {
            let version = format!("SELECT version FROM {schema}.tickwheel_durable");
            let version = transaction.query_one(&version, &[]).map_err(fail)?;
            Ok(version.get::<_, i64>(0) as u64)
        }
        Some(name) => Err(StoreError::Foreign(format!(
            "schema {schema} has a relation {name}"
        ))),
    }
}

/// Creates the schema unless somebody with the right to do so has created it.
fn create(transaction: &mut Transaction<'_>, schema: &str) -> Result<(), StoreError> {
    let exists = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1::text";
    let exists = transaction.query_opt(exists, &[&schema]);
    let exists = exists.map_err(|error| reason(&error, schema))?;
    if exists.is_none() {
        let create = format!("CREATE SCHEMA {schema}");
        let created = transaction.batch_execute(&create);
        created.map_err(|error| reason(&error, schema))?;
    }
    Ok(())
}

fn fill(
    transaction: &mut Transaction<'_>,
    schema: &str,
    parts: u32,
) -> Result<(), ::postgres::Error> {
    let row = "INSERT INTO {schema}.tickwheel_durable VALUES ";
    let row = format!("{row} ({KNOWN}, {parts});");
    for text in [TABLES, &row, FUNCTIONS] {
        transaction.batch_execute(&text.replace("{schema}", schema))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_be_more_than_a_name() {
        for name in ["jobs", "_a9", &"a".repeat(48)] {
            check_name(name).unwrap();
        }
        for name in ["", "9", "Jobs", "a;b", "a\"", "a b", &"a".repeat(49)] {
            assert!(
                matches!(check_name(name), Err(StoreError::Refused(_))),
                "{name}"
            );
        }
    }
}
