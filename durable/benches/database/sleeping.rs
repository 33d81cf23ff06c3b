//! A loop that sleeps until the earliest due time of the table, and is woken by `NOTIFY` if an
//! earlier job is stored. The idea is that of the crate sqlxmq; none of its code is used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use postgres::Client;
use postgres::fallible_iterator::FallibleIterator;
use tickwheel_durable::{SystemClock, WallClock, WallTime};

use crate::contender::{Contender, Handler, Node, Scheduler};
use crate::queue::{Batch, CHANNEL, Claim, Table, connect, next_due, run_due};

/// The longest sleep: a node that died with rows leaves nobody with their due time.
const LOOK: Duration = Duration::from_secs(5);

pub(crate) struct Sleeping;

impl Contender for Sleeping {
    fn name(&self) -> &'static str {
        "sleeps until the earliest"
    }

    fn promises_less(&self) -> &'static str {
        "every node wakes for every job; each commit that schedules announces; attempts are not counted, so a job that kills its process runs for ever; a transaction is open while handlers run; no dead letters, keys or recurrences"
    }

    fn node(&self, database: &str, _: Duration, handler: Handler) -> Box<dyn Node> {
        let mut client = connect(database);
        client.batch_execute(&format!("LISTEN {CHANNEL}")).unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let claim = Claim::of(&mut client);
            while !ended.load(Ordering::SeqCst) {
                let (batch, next) = run(&mut client, &claim, &handler);
                if !batch.is_full {
                    sleep_until(&mut client, next);
                }
            }
        });
        Box::new(Sleeper { database: database.to_owned(), ends, thread: Some(thread) })
    }

    fn scheduler(&self, database: &str) -> Box<dyn Scheduler> {
        Box::new(Table::new(database, true))
    }
}

fn run(client: &mut Client, claim: &Claim, handler: &Handler) -> (Batch, Option<WallTime>) {
    let mut transaction = client.transaction().unwrap();
    let batch = run_due(&mut transaction, claim, handler);
    let next = next_due(&mut transaction, &batch);
    transaction.commit().unwrap();
    (batch, next)
}

/// Sleeps until `next`, or the due time that was announced meanwhile.
fn sleep_until(client: &mut Client, next: Option<WallTime>) {
    let mut next = next.unwrap_or(WallTime::MAX).min(SystemClock.now() + LOOK);
    while next > SystemClock.now() {
        let left = next.since(SystemClock.now());
        let mut notifications = client.notifications();
        let heard = notifications.timeout_iter(left).next().unwrap();
        if let Some(due) = heard.and_then(|heard| heard.payload().parse().ok()) {
            next = next.min(WallTime::from_unix_micros(due));
        }
    }
}

struct Sleeper {
    database: String,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Node for Sleeper {}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        let wake = format!("NOTIFY {CHANNEL}, '0'");
        connect(&self.database).batch_execute(&wake).unwrap();
        self.thread.take().unwrap().join().unwrap();
    }
}
