//! A live engine, drawn in the terminal.
//!
//! A [`Viewer`] shows an engine of your own program while the program runs: how full the
//! slots of its wheels are, which timers wait for a worker, how late timers are, how many
//! are scheduled, cancelled and fired a second, and whether the ledger balances. It only
//! reads, in bounded holds of the engine's locks, and the cost of a frame does not grow
//! with the number of timers.
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
//!
//! The pictures of the documentation come from the same drawing code: a screen is a
//! [`Buffer`](ratatui::buffer::Buffer) of cells, which goes to a terminal, to a text file
//! ([`frames`]) or to an SVG file ([`svg`]).

pub mod draw;
pub mod frames;
mod keys;
mod look;
pub mod pictures;
mod playground;
mod rates;
pub mod record;
pub mod svg;
mod terminal;
mod viewer;

pub use keys::Key;
pub use look::{Eye, Look};
pub use playground::{ClockKind, Playground, Settings};
pub use rates::PerSecond;
pub use viewer::{Subject, Viewer};
