//! Rows that have an answer, and how they compare with each other.

use crate::case::{Row, Summary};

/// The question that a row answers. Rows with the same question can be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question<'a> {
    metric: &'a str,
    threads: usize,
    size: usize,
}

/// A row that has an answer.
pub struct Answer<'a> {
    pub row: &'a Row,
    pub summary: &'a Summary,
}

impl<'a> Answer<'a> {
    pub fn of(row: &'a Row) -> Option<Answer<'a>> {
        let summary = row.outcome.as_ref().ok()?;
        Some(Answer { row, summary })
    }

    pub fn question(&self) -> Question<'a> {
        Question {
            metric: &self.summary.metric,
            threads: self.row.threads,
            size: self.row.size,
        }
    }

    pub fn is_ours(&self) -> bool {
        self.row.engine.starts_with("tickwheel")
    }

    /// Whether this is neither tickwheel nor a floor, nor the lazy heap. A cancel of
    /// that heap only sets a flag and frees no memory.
    pub fn is_rival(&self) -> bool {
        !["tickwheel", "floor", "BinaryHeap"]
            .iter()
            .any(|ours| self.row.engine.starts_with(ours))
    }

    /// Whether any of this engine's figures is below zero, as only the lateness of
    /// an engine that fires too early is.
    fn is_ever_early(&self, answers: &[Answer<'_>]) -> bool {
        let of_it = |other: &&Answer<'_>| other.row.engine == self.row.engine;
        let same = |other: &&Answer<'_>| of_it(other) && other.row.workload == self.row.workload;
        let mut of_it = answers.iter().filter(same);
        of_it.any(|other| other.summary.min < 0.0)
    }

    /// Returns the answers of the rivals to the same question. The rivals of an engine
    /// that threads can share are those that they can share, too. Excludes rivals that
    /// fire before the deadline.
    pub fn rivals<'r>(&self, answers: &'r [Answer<'a>]) -> Vec<&'r Answer<'a>> {
        answers
            .iter()
            .filter(|other| other.is_rival() && other.question() == self.question())
            .filter(|other| other.row.workload == self.row.workload)
            .filter(|other| other.row.thread_safe || !self.row.thread_safe)
            .filter(|other| !other.is_ever_early(answers))
            .collect()
    }

    /// Returns this engine's figure over that of the best rival. Excludes
    /// figures of zero.
    pub fn ratio(&self, answers: &[Answer<'_>], figure: fn(&Summary) -> f64) -> Option<f64> {
        let best = self
            .rivals(answers)
            .into_iter()
            .map(|other| figure(other.summary))
            .filter(|&figure| figure > 0.0)
            .min_by(f64::total_cmp);
        best.map(|best| figure(self.summary) / best)
    }
}

/// A size for people: `1M`, `64k`.
pub fn label(size: usize) -> String {
    match size {
        0..1_000 => size.to_string(),
        1_000..1_000_000 => format!("{}k", size / 1_000),
        _ => format!("{}M", size / 1_000_000),
    }
}
