//! A loop that asks for due rows again and again, by `FOR UPDATE SKIP LOCKED`.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::contender::{Contender, Handler, Node, Scheduler};
use crate::queue::{Claim, Table, connect, run_due};

pub(crate) struct Polling {
    every: Duration,
}

impl Polling {
    pub(crate) fn every(every: Duration) -> Polling {
        Polling { every }
    }
}

impl Contender for Polling {
    fn name(&self) -> &'static str {
        match self.every.as_secs() {
            0 => "polls every 100 ms",
            _ => "polls every 1 s",
        }
    }

    fn promises_less(&self) -> &'static str {
        "lag of up to the pause; attempts are not counted, so a job that kills its process runs for ever; a transaction is open while handlers run; no dead letters, keys or recurrences"
    }

    fn node(&self, database: &str, _: Duration, handler: Handler) -> Box<dyn Node> {
        // The first statement creates the table, before a scheduler needs it.
        let mut client = connect(database);
        let claim = Claim::of(&mut client);
        let (end, ended) = channel();
        let every = self.every;
        let thread = thread::spawn(move || {
            poll(&ended, every, || {
                let mut transaction = client.transaction().unwrap();
                let batch = run_due(&mut transaction, &claim, &handler);
                transaction.commit().unwrap();
                batch.is_full
            });
        });
        Box::new(Poller { end: Some(end), thread: Some(thread) })
    }

    fn scheduler(&self, database: &str) -> Box<dyn Scheduler> {
        Box::new(Table::new(database, false))
    }
}

/// Calls `run`, at once again if it returns true, and otherwise after a pause.
fn poll(ended: &Receiver<()>, every: Duration, mut run: impl FnMut() -> bool) {
    let mut pause = Duration::ZERO;
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        pause = if run() { Duration::ZERO } else { every };
    }
}

struct Poller {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Node for Poller {}

impl Drop for Poller {
    fn drop(&mut self) {
        self.end = None;
        self.thread.take().unwrap().join().unwrap();
    }
}
