//! The listings are current, and the interfaces follow the guidelines for libraries.

use std::collections::BTreeSet;
use std::fs;

use tickwheel_api::{LIBRARIES, Library, Line};

#[test]
fn the_interface_is_the_one_that_is_listed() {
    LIBRARIES.into_iter().for_each(is_listed);
}

fn is_listed(library: Library) {
    let listed = fs::read_to_string(library.file()).unwrap();
    let is = library.listing().unwrap();
    let (listed, is): (BTreeSet<_>, BTreeSet<_>) = (listed.lines().collect(), is.lines().collect());
    let gone: Vec<_> = listed.difference(&is).collect();
    let new: Vec<_> = is.difference(&listed).collect();
    assert!(
        gone.is_empty() && new.is_empty(),
        "the public interface of {} has changed.\ngone: {gone:#?}\nnew: {new:#?}\n\
         If this is deliberate, run `cargo run -p tickwheel-api`, and read docs/RELEASING.md.",
        library.package
    );
}

/// Returns the items whose first line contains `kind` and for which `fails` holds.
fn items_that(kind: &str, fails: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let items = LIBRARIES.map(|library| library.items().unwrap());
    let items = items.into_iter().flatten();
    let failing = items.filter(|(path, lines)| {
        let head = lines.first().map(Line::to_string).unwrap_or_default();
        let text = lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>();
        head.contains(kind) && fails(path, &text)
    });
    failing.map(|(path, _)| path).collect()
}

#[test]
fn every_type_can_be_printed_for_debugging() {
    for kind in ["pub struct", "pub enum"] {
        let silent = items_that(kind, |_, text| !text.contains("Debug"));
        assert_eq!(silent, [""; 0]);
    }
}

#[test]
fn every_error_is_one() {
    let no_error = items_that("pub ", |path, text| {
        path.ends_with("Error") && !(text.contains("Error for") && text.contains("Display for"))
    });
    assert_eq!(no_error, [""; 0]);
}
