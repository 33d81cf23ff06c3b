//! Creating the tables, bringing older ones up to date, and leaving others alone.

use ::postgres::{Client, Transaction};

use super::error::reason;
use crate::store::StoreError;

/// The steps from each version of the schema to the next. A step stays as it is once tables of
/// its version may exist.
const STEPS: [&str; 2] = [include_str!("schema_1.sql"), include_str!("schema_2.sql")];
/// The functions of the newest version.
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

/// Creates the schema or brings it up to date, in one transaction. Returns the number of shards.
///
/// Nodes that work meanwhile wait for the end of the transaction. Those of an older version go on:
/// a step keeps the columns that they read.
pub(super) fn open(
    client: &mut Client,
    schema: &str,
    shards: u32,
    creates: bool,
) -> Result<usize, StoreError> {
    let fail = |error| reason(&error, schema);
    let mut transaction = client.transaction().map_err(fail)?;
    // Of nodes that open at once, one creates the schema.
    transaction
        .execute("SELECT pg_advisory_xact_lock(hashtext($1))", &[&schema])
        .map_err(fail)?;
    let found = version(&mut transaction, schema)?;
    let known = STEPS.len() as u64;
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    if found < known && !creates {
        return Err(StoreError::Refused(format!(
            "schema {schema} has no jobs of this version: open it with a service first"
        )));
    }
    if found > 0 && found < known {
        stop_renewals(&mut transaction, schema).map_err(fail)?;
    }
    for step in &STEPS[found as usize..] {
        let step = step.replace("{schema}", schema);
        transaction.batch_execute(&step).map_err(fail)?;
    }
    if found == 0 {
        fill(&mut transaction, schema, shards).map_err(fail)?;
    }
    if found < known {
        let functions = FUNCTIONS.replace("{schema}", schema);
        transaction.batch_execute(&functions).map_err(fail)?;
        let update = format!("UPDATE {schema}.tickwheel_durable SET version = {known}");
        transaction.execute(&update, &[]).map_err(fail)?;
    }
    let count = format!("SELECT shards FROM {schema}.tickwheel_durable");
    let count: i64 = transaction.query_one(&count, &[]).map_err(fail)?.get(0);
    transaction.commit().map_err(fail)?;
    Ok(count as usize)
}

/// Has nodes wait that take or renew leases, before anything else is locked. A step that waits for
/// somebody's long transaction keeps them for five seconds at most, and is undone.
fn stop_renewals(transaction: &mut Transaction<'_>, schema: &str) -> Result<(), ::postgres::Error> {
    transaction.batch_execute(&format!(
        "SET LOCAL lock_timeout = '5s'; SELECT 1 FROM {schema}.tickwheel_durable FOR UPDATE"
    ))
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
    shards: u32,
) -> Result<(), ::postgres::Error> {
    let shards = i64::from(shards);
    let versions = format!("INSERT INTO {schema}.tickwheel_durable VALUES (0, $1)");
    transaction.execute(&versions, &[&shards])?;
    let rows = format!("INSERT INTO {schema}.shards SELECT generate_series(0, $1::bigint - 1)");
    transaction.execute(&rows, &[&shards])?;
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
