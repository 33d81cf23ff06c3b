//! tickwheel-durable itself.

use std::time::Duration;

use tickwheel_durable::store::List;
use tickwheel_durable::{Durable, Job, PostgresOptions, PostgresStore, WallTime};

use crate::contender::{Contender, Handler, Node, Scheduler};
use crate::queue::BODY;

pub(crate) struct Tickwheel;

fn store(database: &str) -> PostgresStore {
    PostgresOptions::new().connect(database).unwrap()
}

impl Contender for Tickwheel {
    fn name(&self) -> &'static str {
        "tickwheel-durable"
    }

    fn promises_less(&self) -> &'static str {
        "-"
    }

    fn node(&self, database: &str, lease: Duration, handler: Handler) -> Box<dyn Node> {
        let node = Durable::builder()
            .workers(8)
            .lease(lease)
            .handler("job", move |attempt| handler(attempt.due()));
        Box::new(node.open(store(database)).unwrap())
    }

    fn scheduler(&self, database: &str) -> Box<dyn Scheduler> {
        Box::new(Durable::builder().open(store(database)).unwrap())
    }
}

impl Node for Durable {}

impl Scheduler for Durable {
    fn schedule(&mut self, dues: &[WallTime]) {
        let jobs = dues.iter().map(|due| Job::new("job", BODY).at(*due));
        for scheduled in self.schedule_many(jobs) {
            scheduled.unwrap();
        }
    }

    fn left(&mut self) -> u64 {
        self.count(List::Live).unwrap()
    }
}
