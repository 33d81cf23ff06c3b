//! Settings with which the database's administrator has a role's connections begin.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio_postgres::NoTls;

use super::*;

fn set(server: &str, settings: &str) -> String {
    format!("{server} options='{settings}'")
}

/// They hold for connections that are opened later, so one that was opened before is of no use.
#[test]
fn durable_14_a_lease_is_taken_once_the_database_is_writable() {
    let Some(schema) = Schema::new() else { return };
    drop(schema.open());
    let (read_only, server) = (Arc::new(AtomicBool::new(false)), schema.server.clone());
    let is_on = Arc::clone(&read_only);
    let connect = move || {
        let mode = is_on.load(Ordering::SeqCst);
        let params = set(&server, &format!("-c default_transaction_read_only={mode}"));
        async move { tokio_postgres::connect(&params, NoTls).await }
    };
    let store = schema.options().connect_by(connect).unwrap();
    read_only.store(true, Ordering::SeqCst);
    let refused = store.acquire("node", &kinds(), SECOND).unwrap_err();
    assert!(matches!(&refused, StoreError::Refused(_)), "{refused}");
    read_only.store(false, Ordering::SeqCst);
    assert!(store.acquire("node", &kinds(), SECOND).unwrap().is_some());
}

/// A store is silent for as long as nobody schedules, and its functions contain bytes.
#[test]
fn durable_01_no_setting_of_a_role_refuses_a_job() {
    let Some(schema) = Schema::new() else { return };
    let odd = "-c idle_session_timeout=600s -c standard_conforming_strings=off";
    let store = schema.options().connect(&set(&schema.server, odd)).unwrap();
    let (sender, limits) = std::sync::mpsc::channel();
    let builder = Durable::builder().handler_in_transaction("note", async move |_, transaction| {
        let row = transaction.query_one("SHOW idle_session_timeout", &[]).await?;
        sender.send(row.get::<_, String>(0)).unwrap();
        Ok::<(), tokio_postgres::Error>(())
    });
    let jobs = builder.open(store).unwrap();
    jobs.schedule(note("job")).unwrap();
    assert_eq!(limits.recv_timeout(SECOND * 60).unwrap(), "0");
}

/// There is only one shard, and of each a few more jobs are read than its part.
#[test]
fn durable_09_a_window_may_hold_all_jobs() {
    let Some(schema) = Schema::new() else { return };
    let ledger = Ledger::default();
    let store = schema.options().shards(1).connect(&schema.server).unwrap();
    let node = ledger.builder("node").window_jobs(usize::MAX).open(store).unwrap();
    node.schedule(note("job")).unwrap();
    until("the job", || ledger.jobs().len() == 1);
}
