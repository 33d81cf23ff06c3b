//! Handlers that work in the transaction of their completion.

use tickwheel_durable::{Attempt, OpenError, Outcome, RedbStore, Transaction};

use super::*;

/// A table of the application's, in which each run leaves a row.
fn effects(schema: &Schema) -> String {
    let table = format!("{}_effects", schema.name);
    let create = format!("CREATE TABLE {table} (job text NOT NULL, attempt bigint NOT NULL)");
    schema.client().batch_execute(&create).unwrap();
    table
}

fn rows(schema: &Schema, table: &str) -> Vec<(String, i64)> {
    let text = format!("SELECT job, attempt FROM {table} ORDER BY job, attempt");
    let rows = schema.client().query(&text, &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn drop_table(schema: &Schema, table: &str) {
    schema.client().batch_execute(&format!("DROP TABLE {table}")).unwrap();
}

/// A node whose handler leaves a row, and then does what `then` says.
fn node(
    schema: &Schema,
    table: &str,
    then: impl AsyncFn(&Attempt, &mut Transaction<'_>) -> Outcome + Send + Sync + 'static,
) -> Durable {
    let insert = format!("INSERT INTO {table} VALUES ($1, $2)");
    let retry = Retry::attempts(5).first_pause(millis(5));
    let builder = Durable::builder().owner("node").retry("effect", retry);
    let handler = async move |attempt: &Attempt, transaction: &mut Transaction<'_>| {
        let name = String::from_utf8_lossy(attempt.payload()).into_owned();
        let number = i64::from(attempt.number());
        transaction.execute(&insert, &[&name, &number]).await.unwrap();
        then(attempt, transaction).await
    };
    let builder = builder.handler_in_transaction("effect", handler);
    builder.open(schema.open()).unwrap()
}

/// Runs a job to its end, and returns the rows that it has left.
fn effects_of(
    then: impl AsyncFn(&Attempt, &mut Transaction<'_>) -> Outcome + Send + Sync + 'static,
) -> Option<Vec<i64>> {
    let schema = Schema::new()?;
    let table = effects(&schema);
    let node = node(&schema, &table, then);
    node.schedule(Job::new("effect", "job")).unwrap();
    until("the end", || node.count(List::Live).unwrap() == 0 && node.status().running == 0);
    assert_eq!(node.count(List::Dead).unwrap(), 0);
    let rows = rows(&schema, &table);
    drop_table(&schema, &table);
    Some(rows.into_iter().map(|(_, attempt)| attempt).collect())
}

#[test]
fn effects_of_a_run_are_committed_once() {
    let Some(attempts) = effects_of(async |_, _| Outcome::Done) else {
        return;
    };
    assert_eq!(attempts, [1]);
}

#[test]
fn a_failure_leaves_no_effects() {
    let then = async |attempt: &Attempt, _: &mut Transaction<'_>| match attempt.number() {
        1 => Outcome::Failed("no".to_owned()),
        2 => panic!("worse"),
        _ => Outcome::Done,
    };
    let Some(attempts) = effects_of(then) else {
        return;
    };
    assert_eq!(attempts, [3]);
}

/// Its statement failed, and the handler takes no notice.
#[test]
fn a_transaction_that_cannot_commit_is_a_failure() {
    let then = async |attempt: &Attempt, transaction: &mut Transaction<'_>| {
        if attempt.number() == 1 {
            assert!(transaction.batch_execute("SELECT 1 / 0").await.is_err());
        }
        Outcome::Done
    };
    let Some(attempts) = effects_of(then) else {
        return;
    };
    assert_eq!(attempts, [2]);
}

#[test]
fn a_connection_that_ends_leaves_no_effects() {
    let then = async |attempt: &Attempt, transaction: &mut Transaction<'_>| {
        if attempt.number() == 1 {
            let end = "SELECT pg_terminate_backend(pg_backend_pid())";
            assert!(transaction.batch_execute(end).await.is_err());
        }
        Outcome::Done
    };
    let Some(attempts) = effects_of(then) else {
        return;
    };
    assert_eq!(attempts, [2]);
}

/// In the transaction of its completion.
#[test]
fn durable_11_a_handler_in_a_transaction_changes_its_own_schedule() {
    let Some(schema) = Schema::new() else { return };
    let builder = Durable::builder().handler_in_transaction("effect", async |_, transaction| {
        let job = Job::new("effect", "new").every(HOUR * 9);
        transaction.schedule(job).await.map(drop)
    });
    let node = builder.open(schema.open()).unwrap();
    let id = node.schedule(Job::new("effect", "old").every(HOUR)).unwrap();
    until("the end of the run", || node.status().counts.done == 1);
    let job = node.get(id).unwrap().unwrap();
    assert_eq!((job.attempts, &job.payload[..], job.failure), (0, &b"new"[..], None));
    assert!(job.due > SystemClock.now() + HOUR * 8, "{}", job.due);
}

/// The run of a job that is moved meanwhile leaves nothing, and the next one does.
#[test]
fn an_outcome_of_an_older_version_leaves_no_effects() {
    let Some(schema) = Schema::new() else { return };
    let (table, other) = (effects(&schema), Durable::builder().open(schema.open()).unwrap());
    let is_moved = std::sync::atomic::AtomicBool::new(false);
    let node = node(&schema, &table, async move |attempt, _| {
        if !is_moved.swap(true, std::sync::atomic::Ordering::SeqCst) {
            let soon = SystemClock.now() + millis(20);
            assert!(other.reschedule(attempt.id(), soon).unwrap());
        }
        Outcome::Done
    });
    node.schedule(Job::new("effect", "job")).unwrap();
    until("the end", || node.count(List::Live).unwrap() == 0);
    assert_eq!(rows(&schema, &table).len(), 1, "of the second run");
    drop_table(&schema, &table);
}

/// The handler fails three times, and each time has scheduled a job before.
#[test]
fn a_job_of_a_handler_is_stored_with_its_effects() {
    let Some(schema) = Schema::new() else { return };
    let retry = Retry::attempts(9).first_pause(millis(5));
    let builder = Durable::builder().retry("order", retry);
    let (sender, mails) = std::sync::mpsc::channel();
    let builder = builder.handler("mail", move |attempt| sender.send(attempt.payload().to_vec()));
    let builder = builder.handler_in_transaction("order", async |attempt, transaction| {
        let number = attempt.number();
        transaction.schedule(Job::new("mail", format!("{number}"))).await.unwrap();
        match number {
            1 => Err("no"),
            2 => panic!("worse"),
            3 => {
                attempt.jobs().schedule(Job::new("mail", "outside")).unwrap();
                Ok(())
            }
            _ => Ok(()),
        }
    });
    let node = builder.open(schema.open()).unwrap();
    node.schedule(Job::new("order", "")).unwrap();
    assert_eq!(mails.recv_timeout(SECOND * 60).unwrap(), b"4");
    until("the end", || node.count(List::Live).unwrap() == 0);
    assert!(mails.try_recv().is_err());
}

/// Of a thousand transactions of the caller's, half are rolled back. Each stores a job, in turn by
/// the call and by the function.
#[test]
fn a_job_is_stored_with_the_transaction_of_its_caller() {
    let Some(schema) = Schema::new() else { return };
    let ledger = Ledger::default();
    let node = ledger.builder("node").open(schema.open()).unwrap();
    until_ready(&node);
    let enqueue = format!("SELECT number FROM {}.enqueue('note', $1::text::bytea)", schema.name);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (mut client, connection) =
            tokio_postgres::connect(&schema.server, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        for number in 0..1_000 {
            let transaction = client.transaction().await.unwrap();
            let name = format!("{number}");
            if number % 4 < 2 {
                drop(transaction.query_one(&enqueue, &[&name]).await.unwrap())
            } else {
                let job = note(&name).key(name, tickwheel_durable::IfTaken::Refuse);
                schema.options().schedule_in(&transaction, job).await.unwrap();
            }
            match number % 2 {
                0 => transaction.commit().await.unwrap(),
                _ => transaction.rollback().await.unwrap(),
            }
        }
        // A key that is taken is no failure of the transaction.
        let transaction = client.transaction().await.unwrap();
        for text in ["first", "second"] {
            let job = note(text).after(HOUR).key("far", tickwheel_durable::IfTaken::Refuse);
            let stored = schema.options().schedule_in(&transaction, job).await;
            assert_eq!(stored.is_ok(), text == "first", "{stored:?}");
        }
        transaction.commit().await.unwrap();
    });
    until("the end of all jobs", || node.count(List::Live).unwrap() == 1);
    let far = node.find("note", "far").unwrap().unwrap();
    assert_eq!(far.payload, b"first");
    assert!(far.due > SystemClock.now() + SECOND * 3_000);
    let jobs = ledger.jobs();
    assert_eq!(jobs.len(), 500);
    assert!(jobs.iter().all(|(name, runs)| *runs == 1 && name.parse::<u32>().unwrap() % 2 == 0));
}

/// The database's clock is half an hour ahead. A job that recurs knows its phase before it is stored.
#[test]
fn durable_04_a_recurring_job_of_a_transaction_goes_by_the_clock_of_the_database() {
    let Some(schema) = Schema::new() else { return };
    drop(schema.open());
    let ahead = format!(
        "CREATE OR REPLACE FUNCTION {}.now_micros() RETURNS bigint LANGUAGE sql AS \
         $$ SELECT (extract(epoch FROM clock_timestamp() + interval '30 min') * 1000000)::bigint $$",
        schema.name
    );
    schema.client().batch_execute(&ahead).unwrap();
    let node = Durable::builder().open(schema.open()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(&schema.server, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        schema.options().schedule_in(&client, note("").every(HOUR)).await.unwrap();
    });
    let job = node.find("note", "note").unwrap().unwrap();
    assert!(job.due > SystemClock.now() + SECOND * 1_700, "{job:?}");
}

/// While the handler works, another node takes the lease.
#[test]
fn durable_08_a_late_outcome_leaves_no_effects() {
    let Some(schema) = Schema::new() else { return };
    let (table, thief) = (effects(&schema), schema.open());
    let node = node(&schema, &table, async move |attempt, _| {
        if attempt.number() == 1 {
            // Under the same name, so that it need not wait.
            thief.acquire("node", &kinds(), millis(1)).unwrap().unwrap();
        }
        Outcome::Done
    });
    node.schedule(Job::new("effect", "job")).unwrap();
    until("the end", || node.count(List::Live).unwrap() == 0);
    assert_eq!(rows(&schema, &table), [("job".to_owned(), 2)]);
    drop_table(&schema, &table);
}

/// The next handler has the same connection, and finds nothing of it.
#[test]
fn what_a_handler_leaves_in_its_session_is_gone() {
    let Some(schema) = Schema::new() else { return };
    let (sender, found) = std::sync::mpsc::channel();
    let builder = Durable::builder().workers(1);
    let builder = builder.handler_in_transaction("note", async move |_, transaction| {
        let left = "SELECT pg_backend_pid(), current_setting('lock_timeout'), \
             to_regclass('pg_temp.of_a_handler') IS NULL, \
             (SELECT count(*) FROM pg_listening_channels()), \
             (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory')";
        let row = transaction.query_one(left, &[]).await?;
        sender.send((row.get(0), row.get(1), row.get(2), row.get(3), row.get(4))).unwrap();
        let leave = "SET lock_timeout = 7000; CREATE TEMP TABLE of_a_handler (); \
             LISTEN of_a_handler; SELECT pg_advisory_lock(pg_backend_pid())";
        transaction.batch_execute(leave).await
    });
    let jobs = builder.open(schema.open()).unwrap();
    let mut processes = [0; 2];
    for process in &mut processes {
        jobs.schedule(note("job")).unwrap();
        let found: (i32, String, bool, i64, i64) = found.recv_timeout(SECOND * 60).unwrap();
        *process = found.0;
        assert_eq!((found.1.as_str(), found.2, found.3, found.4), ("0", true, 0, 0));
    }
    assert_eq!(processes[0], processes[1]);
}

#[test]
fn a_store_without_transactions_is_refused() {
    let builder = Durable::builder().handler_in_transaction("effect", async |_, _| ());
    let opened = builder.open(RedbStore::in_memory());
    assert!(matches!(opened, Err(OpenError::Store(StoreError::Refused(_)))), "{opened:?}");
}

/// A transaction that began before there was a node ends after the node has read its window.
#[test]
fn a_job_of_a_long_transaction_is_heard_of() {
    let Some(schema) = Schema::new() else { return };
    drop(schema.open());
    let (mut client, ledger) = (schema.client(), Ledger::default());
    let mut transaction = client.transaction().unwrap();
    let enqueue = format!("SELECT {}.enqueue('note', 'job')", schema.name);
    transaction.batch_execute(&enqueue).unwrap();
    // It reads its window every half an hour.
    let builder = ledger.builder("node").window(HOUR);
    let node = builder.open(schema.open()).unwrap();
    until_ready(&node);
    transaction.commit().unwrap();
    until("the job", || ledger.jobs().len() == 1);
}

/// More than the 24 days for which the database lets a statement run.
#[test]
fn a_handler_in_a_transaction_may_take_a_year() {
    let Some(schema) = Schema::new() else { return };
    let builder = Durable::builder().time_limit("effect", HOUR * 9_999);
    let builder = builder.handler_in_transaction("effect", async |_, _| ());
    let node = builder.retry("effect", Retry::attempts(1)).open(schema.open()).unwrap();
    node.schedule(Job::new("effect", "")).unwrap();
    until("the end", || node.count(List::Live).unwrap() == 0);
    assert_eq!(node.list(List::Dead, None, 9).unwrap(), []);
}

/// Whose microseconds are more than any number holds.
#[test]
fn durable_04_a_job_of_a_delay_without_end_waits() {
    let Some(schema) = Schema::new() else { return };
    let node = Durable::builder().open(schema.open()).unwrap();
    let id = node.schedule(note("").after(Duration::from_secs(1 << 58))).unwrap();
    let due = node.get(id).unwrap().unwrap().due;
    assert!(due > SystemClock.now() + HOUR * 24 * 365 * 100_000, "{due}");
}

/// Its first occurrence is over, and then it has its kind as its key, as one that `schedule_in` stores.
#[test]
fn durable_11_a_recurring_job_of_another_language_is_there_once() {
    let Some(schema) = Schema::new() else { return };
    let ledger = Ledger::default();
    let node = ledger.builder("node").open(schema.open()).unwrap();
    let enqueue = |text, due, recurrence| {
        let name = &schema.name;
        let call =
            format!("SELECT {name}.enqueue('note', '{text}', {due}, recurrence => '{recurrence}')");
        schema.client().batch_execute(&call)
    };
    enqueue("first", "'1960-01-01'", "cron 0 0 1 1 * UTC").unwrap();
    until("the first run", || ledger.jobs().contains_key("first"));
    enqueue("second", "now()", "cron 0 0 1 1 * UTC").unwrap();
    let live = node.list(List::Live, None, 9).unwrap();
    assert_eq!(live.iter().map(|job| &job.payload[..]).collect::<Vec<_>>(), [b"second"]);
    for odd in ["0 0 1 1 * UTC", "every day", "every 5", "every 05 from 0"] {
        assert!(enqueue("odd", "now()", odd).is_err(), "{odd}");
    }
}

/// They are those that the README names. A limited kind has its rows locked.
#[test]
fn a_role_with_few_rights_enqueues() {
    let Some(schema) = Schema::new() else { return };
    let node = Durable::builder().handler("note", |_| ()).limit_on_all_nodes("note", 1);
    let node = node.open(schema.open()).unwrap();
    until_ready(&node);
    let (name, role, mut client) =
        (&schema.name, format!("{}_clerk", schema.name), schema.client());
    let rights = format!(
        "CREATE ROLE {role}; GRANT USAGE ON SCHEMA {name} TO {role}; \
         GRANT USAGE ON SEQUENCE {name}.numbers TO {role}; \
         GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA {name} TO {role}; SET ROLE {role}"
    );
    client.batch_execute(&rights).unwrap();
    for if_taken in ["refuse", "keep", "replace", "update"] {
        let key = format!("key => 'k', if_taken => '{if_taken}', due => now() + interval '1 h'");
        client.batch_execute(&format!("SELECT {name}.enqueue('note', 'job', {key})")).unwrap();
    }
    client.batch_execute(&format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")).unwrap();
    assert_eq!(node.count(List::Live).unwrap(), 1);
}

/// A client that passes a null has left it out, and must not replace the job that has the key.
#[test]
fn durable_06_a_null_replaces_no_job() {
    let Some(schema) = Schema::new() else { return };
    let node = Durable::builder().open(schema.open()).unwrap();
    let enqueue = |text, if_taken| {
        let name = &schema.name;
        let call =
            format!("SELECT {name}.enqueue('note', '{text}', key => 'k', if_taken => {if_taken})");
        schema.client().batch_execute(&call)
    };
    enqueue("first", "'refuse'").unwrap();
    assert!(enqueue("second", "NULL").is_err());
    assert_eq!(node.find("note", "k").unwrap().unwrap().payload, b"first");
}
