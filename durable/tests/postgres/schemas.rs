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
    assert!(
        matches!(error, StoreError::Newer { found: 7, known: 2 }),
        "{error}"
    );
}

#[test]
fn durable_13_a_schema_of_another_program_is_left_alone() {
    let Some(schema) = Schema::new() else { return };
    run(
        &schema,
        "CREATE SCHEMA {schema}; CREATE TABLE {schema}.theirs (n int)",
    );
    let error = refused(&schema);
    assert!(
        matches!(&error, StoreError::Foreign(found) if found.contains("theirs")),
        "{error}"
    );
}

/// An administrator has created the schema for a role without any other right.
#[test]
fn a_role_needs_its_schema_alone() {
    let Some(schema) = Schema::new() else { return };
    let role = format!("{}_role", schema.name);
    run(&schema, &format!("CREATE ROLE {role} LOGIN"));
    let server = schema
        .server
        .replace("user=tickwheel", &format!("user={role}"));
    assert_ne!(server, schema.server);
    let refused = schema.options().connect(&server).expect_err("was opened");
    assert!(
        matches!(&refused, StoreError::Refused(why) if why.contains("42501")),
        "{refused}"
    );

    run(
        &schema,
        &format!("CREATE SCHEMA {{schema}} AUTHORIZATION {role}"),
    );
    let store = schema.options().connect(&server).unwrap();
    let lease = store.acquire("node", HOUR).unwrap().unwrap();
    assert!(store.renew(lease, HOUR).unwrap());
    drop(store);
    run(
        &schema,
        &format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}"),
    );
}

/// The tables as the first version has created them, with a node at work: a job that runs, one
/// that waits, and a failed occurrence in the wrong shard.
struct First<'a> {
    schema: &'a Schema,
    client: postgres::Client,
}

impl First<'_> {
    const NODE: i64 = 1;

    fn new(schema: &Schema) -> First<'_> {
        run(schema, "CREATE SCHEMA {schema}");
        run(
            schema,
            include_str!("../../src/store/postgres/schema_1.sql"),
        );
        run(
            schema,
            "INSERT INTO {schema}.tickwheel_durable VALUES (1, 16);
             INSERT INTO {schema}.shards SELECT generate_series(0, 15)",
        );
        let client = schema.client();
        let mut first = First { schema, client };
        first.ask("SELECT * FROM {schema}.acquire('node', 60000000, 60000000)");
        assert_eq!(first.apply(1, 0), (1, 1), "placed");
        assert_eq!(first.apply(1, 0), (1, 2), "placed");
        assert_eq!(first.apply(8, 1), (6, 1), "started");
        run(
            schema,
            "INSERT INTO {schema}.jobs (number, born, shard, due, dead, kind, recurrence, payload)
                 VALUES (nextval('{schema}.numbers'), 5, 9, 5, true, 'job', '\\x00', '')",
        );
        first
    }

    fn try_ask(&mut self, text: &str) -> Result<Vec<postgres::Row>, postgres::Error> {
        let text = text.replace("{schema}", &self.schema.name);
        self.client.query(&text, &[])
    }

    fn ask(&mut self, text: &str) -> Vec<postgres::Row> {
        self.try_ask(text).unwrap()
    }

    /// One change as that version's code asks for it: an insert, or a start or end of a job.
    fn statement(op: i64, number: i64) -> String {
        format!(
            "SELECT * FROM {{schema}}.apply({node}, '{{{node}}}', '{{{op}}}', '{{{number}}}', '{{5}}', \
             '{{1}}', '{{{node}}}', '{{5}}', '{{NULL}}', ARRAY['\\x6a'::bytea], ARRAY[NULL::bytea], \
             ARRAY['\\x00'::bytea], ARRAY[NULL::bytea], ARRAY[''::bytea])",
            node = First::NODE,
        )
    }

    /// Returns the answer and the number of the job.
    fn apply(&mut self, op: i64, number: i64) -> (i64, i64) {
        let rows = self.ask(&First::statement(op, number));
        (rows[0].get(0), rows[0].get(1))
    }
}

/// The node of the first version is at work, and goes on until it is replaced.
#[test]
fn tables_of_the_first_version_are_brought_up_to_date() {
    let Some(schema) = Schema::new() else { return };
    let mut first = First::new(&schema);
    let end = First::statement(9, 1).replace("{schema}", &schema.name);
    let end = first.client.prepare(&end).unwrap();
    let looks = schema.options().creates(false).connect(&schema.server);
    assert!(
        matches!(&looks, Err(StoreError::Refused(why)) if why.contains("open it with a service")),
        "{looks:?}"
    );
    // Nodes of the new version open at once.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(schema.open().count(List::Live).unwrap(), 2));
        }
    });

    // What that node has prepared fails once, and then it connects again.
    assert!(first.client.query(&end, &[]).is_err());
    first.client = schema.client();
    assert_eq!(first.apply(9, 1), (4, 1), "the outcome counts");
    assert!(
        !first
            .ask("SELECT * FROM {schema}.renew(1, 60000000)")
            .is_empty()
    );
    let shards = first.ask("SELECT fence, token FROM {schema}.shards");
    for shard in &shards {
        let (fence, token): (i64, i64) = (shard.get(0), shard.get(1));
        assert!(fence == First::NODE && token > fence, "{fence}, {token}");
    }
    let store = schema.open();
    let dead = store.list(List::Dead, None, 9).unwrap();
    let id = dead[0].id;
    let due = WallTime::default();
    assert_eq!(dead.len(), 1);
    store.commit(&[Change::Revive { id, due }]).unwrap();
    // It ends, and a node of the new version has its jobs.
    let lease = store.acquire("node", HOUR).unwrap().unwrap();
    for job in store.due_before(lease, WallTime::MAX, 9).unwrap() {
        let (DueJob { id, version, .. }, fence) = (job, lease.fence);
        let started = store.commit(&[Change::Start { id, version, fence }]);
        let token = match started.unwrap().remove(0) {
            Answer::Started { token, .. } => token,
            answer => panic!("{answer:?}"),
        };
        assert!(
            shards
                .iter()
                .all(|shard| token > shard.get::<_, i64>(1) as u64)
        );
    }
    assert!(
        first
            .ask("SELECT * FROM {schema}.renew(1, 60000000)")
            .is_empty()
    );
}

/// Somebody reads the tables in a transaction that does not end.
#[test]
fn a_migration_that_must_wait_is_undone() {
    let Some(schema) = Schema::new() else { return };
    let mut first = First::new(&schema);
    let mut reader = schema.client();
    let mut transaction = reader.transaction().unwrap();
    let read = format!("SELECT 1 FROM {}.shards", schema.name);
    transaction.query(&read, &[]).unwrap();
    let error = refused(&schema);
    assert!(
        matches!(&error, StoreError::Refused(why) if why.contains("lock timeout")),
        "{error}"
    );
    assert_eq!(first.apply(9, 1), (4, 1), "the first version goes on");
    transaction.commit().unwrap();
    assert_eq!(schema.open().count(List::Live).unwrap(), 1);
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
