//! The rows in which a rival that promises as much is ahead.

use super::answer::{Answer, label};
use super::notes::figure;
use crate::case::Row;
use crate::rivals::promises::lacks;

/// Returns a table of the rows in which a rival that promises as much is ahead by its median
/// and by its fastest round.
pub fn behind(rows: &[Row]) -> String {
    let answers: Vec<Answer<'_>> = rows.iter().filter_map(Answer::of).collect();
    let mut lines = vec![
        "| workload | metric | threads | size | tickwheel | ahead |".to_owned(),
        "|---|---|--:|--:|--:|--:|".to_owned(),
    ];
    let ours = answers.iter().filter(|answer| answer.is_ours());
    lines.extend(ours.filter_map(|ours| line(ours, &answers)));
    match lines.len() {
        2 => "No rival that promises as much is ahead in any row.\n".to_owned(),
        _ => lines.join("\n") + "\n",
    }
}

fn line(ours: &Answer<'_>, answers: &[Answer<'_>]) -> Option<String> {
    let rivals = ours.rivals(answers).into_iter();
    let ahead: Vec<String> = rivals
        .filter(|rival| lacks(rival.row.engine).is_empty() && is_ahead(rival, ours))
        .map(|rival| format!("{} {}", figure(rival), rival.row.engine))
        .collect();
    let row = ours.row;
    (!ahead.is_empty()).then(|| {
        format!(
            "| `{}` | {} | {} | {} | {} {} | {} |",
            row.workload,
            ours.summary.metric,
            row.threads,
            label(row.size),
            figure(ours),
            row.engine.trim_start_matches("tickwheel "),
            ahead.join("<br>"),
        )
    })
}

fn is_ahead(rival: &Answer<'_>, ours: &Answer<'_>) -> bool {
    let (theirs, ours) = (rival.summary, ours.summary);
    theirs.median < ours.median && theirs.min < ours.min
}

#[cfg(test)]
mod tests {
    use super::super::place::WHEEL;
    use super::super::samples::row;
    use super::*;

    #[test]
    fn a_rival_is_ahead_by_both_figures_and_with_all_promises() {
        let rows = [
            row(WHEEL, &[10.0, 9.0, 12.0]),
            row("tm-wheel", &[1.0]),
            row("BTreeMap", &[9.5, 9.5, 11.0]),
        ];
        assert!(behind(&rows).starts_with("No rival"));
        let rows = [row(WHEEL, &[10.0]), row("BTreeMap", &[9.0])];
        let expected = "| `pair` | in flight | 1 | 1k | 10.0 ns wheel | 9.0 ns BTreeMap |";
        assert_eq!(behind(&rows).lines().nth(2), Some(expected));
    }
}
