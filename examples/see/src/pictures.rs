//! The pictures of the documentation.

use crate::frames;
use crate::svg;

/// Returns the names and the texts of all pictures.
#[must_use]
pub fn all() -> Vec<(&'static str, String)> {
    vec![viewer()]
}

fn viewer() -> (&'static str, String) {
    let title = "A live engine in the terminal";
    let description = "Four levels of 64 slots with timers in them, four shards, two ready \
        lists, a histogram of lateness, and the balanced ledger.";
    (
        "viewer",
        svg::render(&frames::busy().play(), title, description),
    )
}
