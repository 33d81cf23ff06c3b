//! The results: tables for people, JSON for programs, plots for both.

mod answer;
mod asked;
mod bars;
mod behind;
mod canvas;
mod dots;
mod json;
mod lines;
mod markdown;
mod notes;
mod place;
mod plot;
#[cfg(test)]
mod samples;
mod table;
mod targets;
mod views;

pub use behind::behind;
pub use json::{json, read};
pub use markdown::{all, front};
pub use plot::plots;
pub use table::table;
pub use targets::targets;
