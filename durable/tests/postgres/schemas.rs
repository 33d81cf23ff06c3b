//! Opening: rights, other programs, other versions.

use super::*;

fn run(schema: &Schema, text: &str) {
    let text = text.replace("{schema}", &schema.name);
    schema.client().batch_execute(&text).unwrap();
}

fn refused(schema: &Schema) -> StoreError {
    let opened = schema.options().connect(&schema.server);
    opened.expect_err("was opened")
}

#[test]
fn durable_13_a_newer_schema_is_left_alone() {
    let Some(schema) = Schema::new() else { return };
    drop(schema.open());
    run(&schema, "UPDATE {schema}.tickwheel_durable SET version = 7");
    let error = refused(&schema);
    assert!(matches!(error, StoreError::Newer { found: 7, known: 4 }), "{error}");
}

#[test]
fn durable_13_a_schema_of_another_program_is_left_alone() {
    let Some(schema) = Schema::new() else { return };
    run(&schema, "CREATE SCHEMA {schema}; CREATE TABLE {schema}.theirs (n int)");
    let error = refused(&schema);
    assert!(matches!(&error, StoreError::Foreign(found) if found.contains("theirs")), "{error}");
}

/// An administrator has created the schema for a role without any other right.
#[test]
fn a_role_needs_its_schema_alone() {
    let Some(schema) = Schema::new() else { return };
    let role = format!("{}_role", schema.name);
    run(&schema, &format!("CREATE ROLE {role} LOGIN"));
    let server = schema.server.replace("user=tickwheel", &format!("user={role}"));
    assert_ne!(server, schema.server);
    let refused = schema.options().connect(&server).expect_err("was opened");
    assert!(matches!(&refused, StoreError::Refused(why) if why.contains("42501")), "{refused}");

    run(&schema, &format!("CREATE SCHEMA {{schema}} AUTHORIZATION {role}"));
    let store = schema.options().connect(&server).unwrap();
    let lease = store.acquire("node", &kinds(), HOUR).unwrap().unwrap();
    assert!(store.renew(lease, HOUR).unwrap());
    drop(store);
    run(&schema, &format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}"));
}

#[test]
fn nodes_that_open_at_once_create_one_schema() {
    let Some(schema) = Schema::new() else { return };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| schema.open().count(List::Live).unwrap());
        }
    });
}

#[test]
fn a_server_that_is_not_there_is_an_error() {
    let opened = PostgresStore::connect("host=/nowhere user=nobody");
    assert!(matches!(opened, Err(StoreError::Io(_))), "{opened:?}");
    let opened = PostgresStore::connect("no parameters");
    assert!(opened.is_err());
}
