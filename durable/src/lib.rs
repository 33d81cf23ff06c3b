//! Timers that outlive the process: jobs in a durable store, behind a timing wheel.
//!
//! A [`Job`] has a kind, a due time on the wall clock, and bytes. A [store](store::Store) keeps
//! it until it has ended: [`RedbStore`] in one file, [`MemoryStore`] for tests. DESIGN.md, beside
//! this package, gives the promises and the reasons.

mod job;
mod recurrence;
pub mod store;
mod wall;

pub use job::{IfTaken, InvalidJobId, Job, JobId, State, StoredJob};
pub use recurrence::{InvalidCron, Recurrence};
pub use store::{MemoryStore, RedbOptions, RedbStore, StoreError};
pub use wall::{ManualClock, SystemClock, WallClock, WallTime};
