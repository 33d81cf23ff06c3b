//! The table.

use crate::contender::Contender;
use crate::rounds::Lags;

/// A row for each contender, and a column for each figure.
pub(crate) struct Rows {
    contenders: Vec<(&'static str, &'static str)>,
    columns: Vec<(String, Vec<String>)>,
    probe: [f64; 3],
}

impl Rows {
    pub(crate) fn new(contenders: &[Box<dyn Contender>]) -> Rows {
        let names =
            contenders.iter().map(|contender| (contender.name(), contender.promises_less()));
        Rows { contenders: names.collect(), columns: Vec::new(), probe: [0.0; 3] }
    }

    /// Adds a column, a figure for each contender.
    pub(crate) fn add(&mut self, title: impl Into<String>, figures: &[f64], digits: usize) {
        let figures = figures.iter().map(|figure| format!("{figure:.digits$}"));
        self.columns.push((title.into(), figures.collect()));
    }

    /// Adds a column with the median, the 99th percentile and the largest.
    pub(crate) fn add_spreads(&mut self, title: impl Into<String>, spreads: &[[f64; 3]]) {
        self.columns.push((title.into(), spreads.iter().map(shown).collect()));
    }

    pub(crate) fn add_lags(&mut self, rate: u64, lags: &[Lags]) {
        let spreads: Vec<[f64; 3]> = lags.iter().map(|lags| lags.spread).collect();
        let transactions: Vec<f64> = lags.iter().map(|lags| lags.transactions).collect();
        self.add_spreads(format!("lag at {rate}/s, ms"), &spreads);
        self.add(format!("transactions a job at {rate}/s"), &transactions, 3);
    }

    pub(crate) fn set_probe(&mut self, probe: [f64; 3]) {
        self.probe = probe;
    }

    pub(crate) fn print_table(&self) {
        let titles: Vec<&str> = self.columns.iter().map(|(title, _)| &**title).collect();
        println!("| design | {} | promises less |", titles.join(" | "));
        println!("|---|{}---|", "---|".repeat(titles.len()));
        for (row, (name, less)) in self.contenders.iter().enumerate() {
            let figures: Vec<&str> = self.columns.iter().map(|(_, column)| &*column[row]).collect();
            println!("| {name} | {} | {less} |", figures.join(" | "));
        }
        println!(
            "\nA commit of one row took {} ms: median / 99th percentile / most, as above.",
            shown(&self.probe)
        );
    }

    /// No text has a character that JSON would have escaped.
    pub(crate) fn print_json(&self) {
        for (row, (name, less)) in self.contenders.iter().enumerate() {
            let figures = self
                .columns
                .iter()
                .map(|(title, column)| format!(r#""{title}": "{}""#, column[row]));
            let figures: Vec<String> = figures.collect();
            println!(
                r#"{{"design": "{name}", {}, "promises_less": "{less}"}}"#,
                figures.join(", ")
            );
        }
    }
}

fn shown([p50, p99, most]: &[f64; 3]) -> String {
    format!("{p50:.1} / {p99:.1} / {most:.1}")
}
