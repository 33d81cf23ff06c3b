//! Figures in Markdown, and the footnotes that say what a rival does not promise.

use std::collections::BTreeSet;

use super::answer::Answer;
use super::table::number;
use crate::case::Summary;
use crate::rivals::promises::{Lack, lacks};

/// Returns a median with the fastest and the slowest round, and the unit.
pub fn figure(answer: &Answer<'_>) -> String {
    let Summary {
        median,
        min,
        max,
        unit,
        ..
    } = answer.summary;
    let space = if unit.is_empty() { "" } else { " " };
    match min == max {
        true => format!("{}{space}{unit}", number(*median)),
        false => format!(
            "{} ({}–{}){space}{unit}",
            number(*median),
            number(*min),
            number(*max)
        ),
    }
}

/// Returns a rival's figure with its name and footnote.
pub fn named(rival: Option<&Answer<'_>>, notes: &mut Notes) -> String {
    let Some(rival) = rival else {
        return "–".into();
    };
    let engine = rival.row.engine;
    format!("{} {engine}{}", figure(rival), notes.mark(engine))
}

/// The footnotes of a table.
#[derive(Default)]
pub struct Notes {
    prefix: String,
    engines: BTreeSet<&'static str>,
}

impl Notes {
    /// Returns no footnotes yet. Their marks begin with `prefix`, so that two tables of a page
    /// do not share any.
    pub fn new(prefix: impl Into<String>) -> Notes {
        let prefix = prefix.into();
        Notes {
            prefix,
            ..Notes::default()
        }
    }

    /// Notes an engine, and returns the mark of its footnote.
    pub fn mark(&mut self, engine: &'static str) -> String {
        if lacks(engine).is_empty() {
            return String::new();
        }
        self.engines.insert(engine);
        format!("[^{}{}]", self.prefix, anchor(engine))
    }

    fn text(&self, engine: &str) -> String {
        let lacks: Vec<&str> = lacks(engine).iter().copied().map(Lack::text).collect();
        let anchor = anchor(engine);
        format!(
            "[^{}{anchor}]: {engine}: {}.",
            self.prefix,
            lacks.join("; ")
        )
    }
}

/// Returns a name as a footnote can have it.
fn anchor(engine: &str) -> String {
    let plain = |letter: char| {
        if letter.is_alphanumeric() {
            letter
        } else {
            '-'
        }
    };
    engine.to_lowercase().chars().map(plain).collect()
}

/// Returns the lines of a table and its footnotes.
pub fn finished(mut lines: Vec<String>, notes: &Notes) -> String {
    if !notes.engines.is_empty() {
        lines.push(String::new());
        lines.extend(notes.engines.iter().map(|engine| notes.text(engine)));
    }
    lines.join("\n") + "\n"
}
