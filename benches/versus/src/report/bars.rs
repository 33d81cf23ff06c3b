//! The picture of docs/PERFORMANCE.md: for each of the ten rows, a bar for tickwheel and
//! one for the best rival. The longer of the two fills the width.

use std::fmt::Write;

use super::answer::Answer;
use super::asked::{ASKED, Asked, best};
use super::table::number;
use crate::rivals::promises::lacks;

const WIDTH: usize = 760;
const MARGIN: usize = 16;

/// The width of the longest bar. Its figure and its name stand beside it.
const LONGEST: f64 = 430.0;

/// The height of a row: a line of text and two bars.
const ROW: usize = 50;
const BAR: usize = 13;

/// Legible on a dark page and on a light one.
const STYLE: &str = "\
.p{fill:#fff;stroke:#d0d7de}.q,.v{fill:#1f2328}.v{font-size:12px}.n{fill:#656d76;font-size:12px}\
.o{fill:#cf222e}.r{fill:#8c959f}text{font:13px system-ui,sans-serif}\
@media(prefers-color-scheme:dark){.p{fill:#0d1117;stroke:#30363d}.q,.v{fill:#e6edf3}.n{fill:#8d96a0}\
.o{fill:#ff7b72}.r{fill:#6e7681}}";

/// Returns the picture as SVG. `None` if none of the rows was measured.
pub fn draw(answers: &[Answer<'_>]) -> Option<String> {
    let answered = |asked: &'static Asked| Some((asked.question, asked.place.find(answers)?));
    let rows: Vec<_> = ASKED.iter().filter_map(answered).collect();
    let height = 2 * MARGIN + (rows.len() + 1) * ROW - ROW / 2;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"Ten figures\" \
         viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\">\n<style>{STYLE}</style>\n\
         <rect class=\"p\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n",
        WIDTH - 1,
        height - 1,
    );
    for (index, (question, ours)) in rows.iter().enumerate() {
        row(&mut svg, MARGIN + index * ROW, question, ours, answers);
    }
    let key = "Shorter is better. Red: tickwheel. Grey: the best other. * It promises less.";
    text(&mut svg, "n", MARGIN, height - MARGIN, key);
    svg.push_str("</svg>\n");
    (!rows.is_empty()).then_some(svg)
}

fn row(svg: &mut String, top: usize, question: &str, ours: &Answer<'_>, answers: &[Answer<'_>]) {
    let rivals = ours.rivals(answers);
    let rival = [true, false].map(|is_equal| best(&rivals, is_equal));
    let rival = rival
        .into_iter()
        .flatten()
        .min_by(|a, b| a.summary.median.total_cmp(&b.summary.median));
    let medians =
        [Some(ours), rival].map(|answer| answer.map_or(0.0, |answer| answer.summary.median));
    let longest = medians[0].max(medians[1]);

    text(svg, "q", MARGIN, top + 13, question);
    bar(svg, "o", top + 18, medians[0] / longest, &figure(ours));
    if let Some(rival) = rival {
        let mark = if lacks(rival.row.engine).is_empty() {
            ""
        } else {
            " *"
        };
        let label = format!("{} {}{mark}", figure(rival), rival.row.engine);
        bar(svg, "r", top + 18 + BAR, medians[1] / longest, &label);
    }
}

fn bar(svg: &mut String, class: &str, top: usize, share: f64, label: &str) {
    let width = (share * LONGEST).max(1.0);
    let height = BAR - 2;
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{MARGIN}\" y=\"{top}\" width=\"{width:.1}\" height=\"{height}\"/>"
    );
    text(
        svg,
        "v",
        MARGIN + width as usize + 8,
        top + height - 1,
        label,
    );
}

fn text(svg: &mut String, class: &str, x: usize, y: usize, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
    );
}

fn figure(answer: &Answer<'_>) -> String {
    format!("{} {}", number(answer.summary.median), answer.summary.unit)
}

#[cfg(test)]
mod tests {
    use super::super::place::WHEEL;
    use super::super::samples::row;
    use super::*;
    use crate::case::Row;

    fn drawn(rows: &[Row]) -> Option<String> {
        draw(&rows.iter().filter_map(Answer::of).collect::<Vec<_>>())
    }

    #[test]
    fn the_longer_bar_fills_the_width_and_the_rival_that_promises_less_has_a_mark() {
        let rows = [
            row(WHEEL, &[10.0]),
            row("BTreeMap", &[90.0]),
            row("timer-queue", &[40.0]),
        ];
        let svg = drawn(&rows).unwrap();
        assert!(
            svg.contains("width=\"107.5\"") && svg.contains(">10.0 ns<"),
            "{svg}"
        );
        assert!(
            svg.contains("width=\"430.0\"") && svg.contains(">40.0 ns timer-queue *<"),
            "{svg}"
        );
    }

    #[test]
    fn rows_that_were_not_measured_make_no_picture() {
        assert_eq!(drawn(&[row("BTreeMap", &[90.0])]), None);
    }
}
