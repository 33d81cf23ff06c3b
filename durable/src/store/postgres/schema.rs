//! Creating the tables, and leaving those of others alone.

use std::cmp::Ordering;

use tokio_postgres::{Client, Error, Transaction};

use super::error::reason;
use crate::store::{Result, StoreError};

/// The version of the tables.
const KNOWN: u64 = 4;
const TABLES: &str = include_str!("schema.sql");
const FUNCTIONS: &str = include_str!("functions.sql");
/// The longest name, which leaves room for the channel's.
const LONGEST_NAME: usize = 48;

/// Checks a schema's name, which becomes part of statements.
pub(super) fn check_name(name: &str) -> Result<()> {
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
pub(super) async fn open(
    client: &mut Client,
    schema: &str,
    parts: u32,
    creates: bool,
) -> Result<()> {
    let fail = |error: Error| reason(&error, schema);
    let transaction = client.transaction().await.map_err(fail)?;
    let names = relations(&transaction, schema).await.map_err(fail)?;
    let is_own = names.iter().any(|name| name == "tickwheel_durable");
    match names.first() {
        None if creates => fill(&transaction, schema, parts).await.map_err(fail)?,
        None => {
            let why = format!("schema {schema} has no jobs: open it with a service first");
            return Err(StoreError::Refused(why));
        }
        Some(name) if !is_own => {
            let found = format!("schema {schema} has a relation {name}");
            return Err(StoreError::Foreign(found));
        }
        Some(_) => {}
    }
    let version = format!("SELECT version FROM {schema}.tickwheel_durable");
    let version = transaction.query_one(&version, &[]).await.map_err(fail)?;
    let (found, known) = (version.get::<_, i64>(0) as u64, KNOWN);
    match found.cmp(&known) {
        Ordering::Equal => transaction.commit().await.map_err(fail),
        Ordering::Greater => Err(StoreError::Newer { found, known }),
        Ordering::Less => Err(StoreError::Refused(format!(
            "the tables have version {found}, and this version of the crate reads {known}"
        ))),
    }
}

/// Returns the names of what is in the schema, after all others that open it at once. Of these, one
/// creates it.
async fn relations(transaction: &Transaction<'_>, schema: &str) -> Result<Vec<String>, Error> {
    transaction.query("SELECT pg_advisory_xact_lock(hashtext($1))", &[&schema]).await?;
    let named = "SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n \
         ON n.oid = c.relnamespace WHERE n.nspname = $1::text AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')";
    let rows = transaction.query(named, &[&schema]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Creates the schema, unless somebody with the right to do so has created it, and fills it.
async fn fill(transaction: &Transaction<'_>, schema: &str, parts: u32) -> Result<(), Error> {
    let exists = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1::text";
    if transaction.query_opt(exists, &[&schema]).await?.is_none() {
        transaction.batch_execute(&format!("CREATE SCHEMA {schema}")).await?;
    }
    let row = format!("INSERT INTO {{schema}}.tickwheel_durable VALUES ({KNOWN}, {parts});");
    for text in [TABLES, &row, FUNCTIONS] {
        transaction.batch_execute(&text.replace("{schema}", schema)).await?;
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
            assert!(matches!(check_name(name), Err(StoreError::Refused(_))), "{name}");
        }
    }
}
