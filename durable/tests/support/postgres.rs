//! Schemas in a PostgreSQL server, one for each test.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

use ::postgres::{Client, NoTls};
use tickwheel_durable::{PostgresOptions, PostgresStore};

/// How to connect to the server, for those tests that need one.
pub(crate) const SERVER: &str = "TICKWHEEL_POSTGRES";

/// A schema of a test's own, which is dropped with it.
pub(crate) struct Schema {
    pub(crate) server: String,
    pub(crate) name: String,
}

impl Schema {
    /// Returns a name that no other test uses, or `None` if there is no server.
    pub(crate) fn new() -> Option<Schema> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Ok(server) = std::env::var(SERVER) else {
            // Past the harness, which keeps to itself what a test that passes prints.
            let why = format!("SKIPPED: {SERVER} is not set; durable/tests/postgres.sh sets it\n");
            let _ = std::io::stderr().write_all(why.as_bytes());
            return None;
        };
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let name = format!("test_{}_{number}", std::process::id());
        Some(Schema { server, name })
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        PostgresOptions::new().schema(&self.name)
    }

    /// Opens a store of one more node.
    pub(crate) fn open(&self) -> PostgresStore {
        self.options().connect(&self.server).unwrap()
    }

    /// Returns a connection beside the stores.
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.server, NoTls).unwrap()
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        let _ = self.client().batch_execute(&drop);
    }
}
