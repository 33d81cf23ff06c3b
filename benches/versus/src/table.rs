//! The table: each row of tickwheel beside the best rival for the same work.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::case::{Case, Row, label};

/// One of the ten rows of the README: a question in a user's words, and the row that answers
/// it.
pub struct Asked {
    pub question: &'static str,
    workload: &'static str,
    metric: &'static str,
    threads: usize,
    size: usize,
}

const fn asked(
    question: &'static str,
    workload: &'static str,
    metric: &'static str,
    threads: usize,
    size: usize,
) -> Asked {
    Asked { question, workload, metric, threads, size }
}

#[rustfmt::skip]
pub const FRONT: [Asked; 10] = [
    asked("Cancel a timer and schedule another, one owner", "pair", "one owner", 1, 1_024),
    asked("The same in a shared engine, one thread", "pair", "shared", 1, 1_024),
    asked("The same, two threads", "pair", "shared", 2, 1_024),
    asked("The same with a closure, one thread that knows only a delay", "closures", "pair", 1, 1_024),
    asked("Schedule on one thread, cancel on another", "remote", "pair", 2, 256),
    asked("Fire each of 100,000 timers, spread, one owner", "expire", "spread, one owner", 1, 100_000),
    asked("Fire and take each of 100,000 timers, spread, processor time", "expire", "spread, to a worker", 1, 100_000),
    asked("Create, poll and drop a sleep in a task", "sleep", "delay given", 1, 1),
    asked("Memory of each of a million timers of 8 bytes", "memory", "live, shared", 1, 1_000_000),
    asked("Lateness with a tick of 1 ms, p99", "lateness", "p99", 1, 1_000),
];

impl Asked {
    /// Whether a case has this row.
    pub fn is_of(&self, case: &Case) -> bool {
        (case.workload, case.threads, case.size) == (self.workload, self.threads, self.size)
            && case.metrics.iter().any(|(metric, _)| *metric == self.metric)
    }

    /// Returns tickwheel's row.
    pub fn find<'r>(&self, rows: &'r [Row]) -> Option<&'r Row> {
        rows.iter().find(|row| {
            row.engine == "tickwheel"
                && (row.threads, row.size) == (self.threads, self.size)
                && (&*row.workload, &*row.metric) == (self.workload, self.metric)
        })
    }
}

/// A line of the table.
struct Line<'r> {
    question: String,
    ours: &'r Row,
    rival: Option<&'r Row>,
}

/// Returns the ten rows and then all others, as far as they were measured, in Markdown; the
/// rows in which a rival is ahead; and what the rivals promise less. For a terminal with so many
/// columns, folds cells, which Markdown can't, and has no marks of footnotes.
pub fn report(rows: &[Row], columns: Option<u16>) -> String {
    let front = FRONT.iter().filter_map(|asked| Some((asked, asked.find(rows)?)));
    let front = front.map(|(asked, ours)| line(asked.question.into(), ours, rows)).collect();
    let others = rows.iter().filter(|row| row.is_ours());
    let others = others.filter(|row| {
        !FRONT.iter().any(|it| it.find(rows).is_some_and(|front| std::ptr::eq(front, *row)))
    });
    let others = others.map(|row| line(question(row), row, rows)).collect();
    let mut text = String::new();
    let mut less = BTreeMap::new();
    for lines in [front, others] as [Vec<Line<'_>>; 2] {
        if !lines.is_empty() {
            text += &format!("{}\n\n", table(&lines, columns));
            text += &ahead(&lines);
        }
        let rivals = lines.iter().filter_map(|line| line.rival);
        less.extend(rivals.filter(|it| !it.less.is_empty()).map(|it| (&*it.engine, &*it.less)));
    }
    for (engine, less) in less {
        let note = if columns.is_none() { note(engine) + ": " } else { String::new() };
        text += &format!("{note}{engine}: {less}.\n");
    }
    text
}

fn line<'r>(question: String, ours: &'r Row, rows: &'r [Row]) -> Line<'r> {
    let rival = ours.best_rival(rows);
    Line { question, ours, rival }
}

fn question(row: &Row) -> String {
    let Row { workload, metric, threads, size, engine, .. } = row;
    let how = engine.strip_prefix("tickwheel").unwrap_or_default();
    let threads = if *threads > 1 { format!(", {threads} threads") } else { String::new() };
    format!("{workload}, {}: {metric}{threads}{how}", label(*size))
}

fn table(lines: &[Line<'_>], columns: Option<u16>) -> Table {
    let mut table = Table::new();
    if let Some(columns) = columns {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(columns);
    }
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(["", "tickwheel", "best other", "times"]);
    for Line { question, ours, rival } in lines {
        let times = rival.map(|rival| rival.median() / ours.median());
        let times = times.filter(|times| times.is_finite());
        let is_ahead = rival.is_some_and(|rival| rival.median() < ours.median());
        let stars = if is_ahead || rival.is_none() { "" } else { "**" };
        table.add_row([
            question.clone(),
            format!("{stars}{}{stars}", figure(ours)),
            rival.map_or("–".into(), |rival| named(rival, columns.is_none())),
            times.map_or("–".into(), number),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Says in which rows a rival is ahead by its median, and whether also by its fastest round.
fn ahead(lines: &[Line<'_>]) -> String {
    let of = |line: &Line<'_>| {
        let (rival, ours) = (line.rival?, line.ours);
        let by = if rival.least() < ours.least() {
            "by the median and the fastest round"
        } else {
            "by the median only"
        };
        let is_ahead = rival.median() < ours.median();
        is_ahead.then(|| format!("- {}: {}, {by}\n", line.question, rival.engine))
    };
    let found: String = lines.iter().filter_map(of).collect();
    if found.is_empty() {
        "No rival is ahead in any of these rows.\n\n".into()
    } else {
        format!("A rival is ahead in these rows:\n\n{found}\n")
    }
}

fn named(row: &Row, is_markdown: bool) -> String {
    let has_note = is_markdown && !row.less.is_empty();
    let note = if has_note { note(&row.engine) } else { String::new() };
    format!("{} {}{note}", figure(row), row.engine)
}

/// Returns a median with the fastest and the slowest round, and the unit.
pub fn figure(row: &Row) -> String {
    let [median, least, greatest] = [row.median(), row.least(), row.greatest()].map(number);
    if least == greatest {
        format!("{median} {}", row.unit)
    } else {
        format!("{median} ({least}–{greatest}) {}", row.unit)
    }
}

/// Formats a value with about three digits.
pub fn number(value: f64) -> String {
    match value {
        0.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Returns the mark of an engine's footnote.
fn note(engine: &str) -> String {
    let words = engine.split(|letter: char| !letter.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    format!("[^{}]", words.join("-").to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::row;

    fn of_pair(engine: &str, rounds: &[f64]) -> Row {
        Row { metric: "one owner".into(), ..row(engine, rounds) }
    }

    #[test]
    fn a_row_has_the_spread_and_the_best_rival_with_its_note() {
        let mut rival = of_pair("timer-queue", &[14.0, 15.0, 20.4]);
        rival.less = "no order".into();
        let rows = [of_pair("tickwheel", &[11.0, 13.5, 11.7]), rival, of_pair("slow", &[99.0])];
        let text = report(&rows, None);
        let line = text.lines().find(|line| line.contains("Cancel")).unwrap();
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        assert_eq!(cells[2], "**11.7 (11.0–13.5) ns**");
        assert_eq!(cells[3], "15.0 (14.0–20.4) ns timer-queue[^timer-queue]");
        assert_eq!(cells[4], "1.3");
        assert!(text.contains("No rival is ahead"));
        assert!(text.contains("\n[^timer-queue]: timer-queue: no order.\n"));
        let text = report(&rows, Some(120));
        assert!(!text.contains("[^") && text.contains("\ntimer-queue: no order.\n"), "{text}");
    }

    #[test]
    fn a_rival_that_is_ahead_is_named() {
        let rows =
            [of_pair("tickwheel", &[9.0, 11.0, 12.0]), of_pair("BTreeMap", &[9.5, 10.0, 30.0])];
        let text = report(&rows, None);
        assert!(text.contains("one owner: BTreeMap, by the median only\n"), "{text}");
        assert!(!text.contains("**11.0"), "{text}");
    }
}
