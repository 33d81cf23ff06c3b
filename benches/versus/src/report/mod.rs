//! The results: tables for people, JSON for programs, plots for both.

mod answer;
mod asked;
mod bars;
mod canvas;
mod dots;
mod json;
mod lines;
mod markdown;
mod plot;
#[cfg(test)]
mod samples;
mod table;
mod views;

pub use json::{json, read};
pub use markdown::{all, front};
pub use plot::plots;
pub use table::table;
