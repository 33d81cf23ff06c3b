//! A live engine, drawn in the terminal.
//!
//! A [`Viewer`] shows an engine of your own program while the program runs: how full the
//! slots of its wheels are, which timers wait for a worker, how late timers are, how many
//! are scheduled, cancelled and fired a second, and whether the ledger balances. It only
//! reads, for at most a twentieth of the time. Where many timers share a slot, it holds a
//! shard's lock for as long as it takes to count 16,384 of them.
//!
//! ```no_run
//! use std::time::Duration;
//! use tickwheel::{Engine, Timer};
//! use tickwheel_see::Viewer;
//!
//! let engine = Engine::builder().name("sessions").start()?;
//! engine.schedule(Timer::after(Duration::from_secs(30), "session 7"))?;
//! Viewer::new(&engine).run()?; // until the user presses q
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/own_engine.rs` is a whole program. The program `tickwheel-see` shows an
//! engine of its own, a [`Playground`], whose load and whose time its user controls.

mod draw;
mod look;
mod numbers;
mod playground;
mod terminal;
mod viewer;

pub use look::{Eye, Look};
pub use playground::{ClockKind, Playground, Settings};
pub use viewer::{Key, Subject, Viewer};
