//! The results: a table for people, JSON for programs, plots for both.

mod answer;
mod canvas;
mod dots;
mod json;
mod lines;
mod plot;
mod table;
mod views;

pub use json::json;
pub use plot::plots;
pub use table::table;
