//! Chooses the panels of a workload: lines over the size and over the number of
//! threads where these vary, and dots otherwise.

use super::answer::{Answer, label};
use crate::args::Workload;

pub struct View<'a> {
    pub title: String,
    pub kind: Kind,
    pub answers: Vec<&'a Answer<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Dots,
    OverSize,
    OverThreads,
}

impl Kind {
    /// Returns the place of an answer on the axis.
    pub fn place(self, answer: &Answer<'_>) -> usize {
        match self {
            Kind::Dots => 0,
            Kind::OverSize => answer.row.size,
            Kind::OverThreads => answer.row.threads,
        }
    }
}

/// Returns all views of one workload, metric by metric.
pub fn views<'a>(workload: Workload, answers: &[&'a Answer<'a>]) -> Vec<View<'a>> {
    let metrics = in_order(answers.iter().map(|answer| &answer.summary.metric));
    let of = |metric| {
        let of_it = those(answers, |answer| &answer.summary.metric == metric);
        of_metric(&format!("{workload}: {metric}"), &of_it)
    };
    metrics.into_iter().flat_map(of).collect()
}

fn of_metric<'a>(name: &str, answers: &[&'a Answer<'a>]) -> Vec<View<'a>> {
    let unit = answers.first().map_or("", |answer| &answer.summary.unit);
    let view = |detail: String, kind, answers| View {
        title: format!("{name}{detail} ({unit})"),
        kind,
        answers,
    };
    let mut views = Vec::new();
    let fewest = answers.iter().map(|answer| answer.row.threads).min();
    let alone = those(answers, |answer| Some(answer.row.threads) == fewest);
    if varies(&alone, Kind::OverSize) {
        views.push(view(String::new(), Kind::OverSize, alone));
    }
    for size in in_order(answers.iter().map(|answer| answer.row.size)) {
        let of_size = those(answers, |answer| answer.row.size == size);
        if varies(&of_size, Kind::OverThreads) {
            let detail = format!(", {}, over threads", label(size));
            views.push(view(detail, Kind::OverThreads, of_size));
        }
    }
    if views.is_empty() {
        views.push(view(String::new(), Kind::Dots, answers.to_vec()));
    }
    views
}

fn those<'a>(
    answers: &[&'a Answer<'a>],
    wanted: impl Fn(&Answer<'a>) -> bool,
) -> Vec<&'a Answer<'a>> {
    let wanted = |answer: &&'a Answer<'a>| wanted(answer);
    answers.iter().copied().filter(wanted).collect()
}

fn varies(answers: &[&Answer<'_>], kind: Kind) -> bool {
    in_order(answers.iter().map(|answer| kind.place(answer))).len() > 1
}

/// Returns each value once, in the order of its first occurrence.
pub fn in_order<V: PartialEq>(values: impl Iterator<Item = V>) -> Vec<V> {
    let mut once = Vec::new();
    for value in values {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Reading, Row, Summary};

    fn kinds(threads_and_sizes: &[(usize, usize)]) -> Vec<Kind> {
        let row = |&(threads, size): &(usize, usize)| Row {
            workload: Workload::Pair,
            engine: "tickwheel engine",
            thread_safe: true,
            threads,
            size,
            outcome: Summary::of(&[&Reading::new("in flight", "ns", 1.0)]).ok_or("nothing"),
        };
        let rows: Vec<Row> = threads_and_sizes.iter().map(row).collect();
        let answers: Vec<Answer<'_>> = rows.iter().filter_map(Answer::of).collect();
        let answers: Vec<&Answer<'_>> = answers.iter().collect();
        let views = views(Workload::Pair, &answers);
        views.iter().map(|view| view.kind).collect()
    }

    #[test]
    fn what_varies_is_on_the_axis() {
        assert_eq!(kinds(&[(1, 1_000)]), [Kind::Dots]);
        assert_eq!(kinds(&[(2, 256)]), [Kind::Dots]);
        assert_eq!(kinds(&[(1, 1_000), (1, 10_000)]), [Kind::OverSize]);
        assert_eq!(kinds(&[(1, 1_000), (2, 1_000)]), [Kind::OverThreads]);
        let both = [(1, 1_000), (1, 10_000), (2, 10_000)];
        assert_eq!(kinds(&both), [Kind::OverSize, Kind::OverThreads]);
    }
}
