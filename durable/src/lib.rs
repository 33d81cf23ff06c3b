//! Timers that outlive the process: jobs in a durable store, behind a timing wheel.
//!
//! A [`Job`] has a kind, a due time on the wall clock, and bytes. A [store](store::Store) keeps
//! it until it has ended: [`RedbStore`] in one file, or in memory for tests, and with the feature
//! `postgres` a `PostgresStore` in a database. A node, [`Durable`], holds the jobs of the near future
//! in a wheel, starts each when it is due, and runs the handler of its kind at least once.
//!
//! DESIGN.md, beside this package, gives the promises and the reasons.
//!
//! # Example
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("jobs.redb");
//! use std::time::Duration;
//! use tickwheel_durable::{Durable, IfTaken, Job, RedbStore, Retry};
//!
//! let jobs = Durable::builder()
//!     .handler("mail", |attempt| match attempt.payload() {
//!         [] => Err("no address"),
//!         _ => Ok(()),
//!     })
//!     .retry("mail", Retry::attempts(5))
//!     .open(RedbStore::open(path)?)?;
//!
//! let tomorrow = Duration::from_secs(24 * 3_600);
//! let reminder = Job::new("mail", "ada@example.org").key("ada", IfTaken::Replace);
//! let id = jobs.schedule(reminder.after(tomorrow))?;
//! jobs.schedule(Job::new("mail", "all@example.org").cron("0 6 * * MON Europe/Berlin")?)?;
//! assert!(jobs.cancel(id)?.is_cancelled());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_debug_implementations)]

// The support of the tests in `tests` names this crate.
#[cfg(test)]
extern crate self as tickwheel_durable;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;

#[cfg(all(doctest, feature = "postgres", feature = "tokio"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// Has a type tell some of what it holds.
macro_rules! debug {
    ($name:ident, $this:ident, $($field:ident: $value:expr),*) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let ($this, mut told) = (self, f.debug_struct(stringify!($name)));
                $(told.field(stringify!($field), &$value);)*
                told.finish_non_exhaustive()
            }
        }
    };
}

mod attempt;
mod builder;
mod commit;
mod durable;
mod handlers;
mod inner;
mod job;
mod jobs;
mod keeper;
mod node;
mod observe;
mod outcome;
mod pace;
#[cfg(feature = "metrics")]
mod publish;
mod recurrence;
mod refusal;
mod runner;
mod status;
pub mod store;
mod threads;
#[cfg(feature = "postgres")]
mod transaction;
mod virtual_node;
mod wall;
mod window;

pub use attempt::Attempt;
pub use builder::{Builder, OpenError};
pub use durable::Durable;
pub use job::{IfTaken, InvalidJobId, Job, JobId, State, StoredJob};
pub use jobs::{Cancelled, Jobs, Revived};
pub use observe::Counts;
pub use outcome::{Outcome, Retry};
pub use recurrence::{InvalidCron, Recurrence};
pub use refusal::{Refusal, Refused};
pub use status::{Health, Status};
#[cfg(feature = "postgres")]
pub use store::{PostgresOptions, PostgresStore, Transaction};
pub use store::{RedbOptions, RedbStore, StoreError};
pub use virtual_node::VirtualNode;
pub use wall::{ManualClock, SystemClock, WallClock, WallTime};
