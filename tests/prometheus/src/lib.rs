//! Published snapshots, as a real exporter renders them for Prometheus, and the dashboard
//! and alarms that read them.
//!
//! A package of its own, because the exporter and the parser bring dozens of others, which
//! the tests of the crate itself do not need.

pub mod exposition;
pub mod queries;
pub mod serve;
