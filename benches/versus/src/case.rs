//! One engine at one piece of work, and its figures.

use serde::{Deserialize, Serialize};

use crate::rival::Rival;

/// The amount of work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    Check,
    Quick,
    Full,
}

impl Effort {
    /// Returns `full` for a full run, and `quick` otherwise.
    pub fn either<T>(self, quick: T, full: T) -> T {
        match self {
            Effort::Full => full,
            Effort::Check | Effort::Quick => quick,
        }
    }

    /// Returns the number of steps that are timed in one round.
    pub fn steps(self) -> usize {
        match self {
            Effort::Check => 2_000,
            Effort::Quick => 200_000,
            Effort::Full => 1_000_000,
        }
    }

    /// Returns the sizes for which there is time.
    pub fn sizes(self, sizes: &[usize]) -> Vec<usize> {
        let largest = match self {
            Effort::Check => 10_000,
            Effort::Quick => 1_000_000,
            Effort::Full => usize::MAX,
        };
        let fits = |size: &usize| *size <= largest;
        sizes.iter().copied().filter(fits).collect()
    }
}

/// The name of a figure and its unit. Less is better, whatever the figure is.
pub type Metric = (&'static str, &'static str);

/// One engine at one piece of work.
pub struct Case {
    /// Set by [`workloads::cases`](crate::workloads::cases).
    pub workload: &'static str,
    pub engine: &'static str,
    /// What the engine promises less than tickwheel.
    pub less: &'static str,
    pub threads: usize,
    /// The number of timers, as the workload counts them.
    pub size: usize,
    pub metrics: &'static [Metric],
    /// Runs once, set-up included, and returns a figure for each metric.
    pub measure: Box<dyn Fn() -> Vec<f64>>,
}

impl Case {
    /// Returns a case of an engine with one thread.
    pub fn of<R: Rival>(
        metrics: &'static [Metric],
        size: usize,
        measure: impl Fn() -> Vec<f64> + 'static,
    ) -> Case {
        Case {
            workload: "",
            engine: R::NAME,
            less: R::LESS,
            threads: 1,
            size,
            metrics,
            measure: Box::new(measure),
        }
    }

    pub fn on_threads(self, threads: usize) -> Case {
        Case { threads, ..self }
    }

    /// Whether both are at the same work.
    pub fn asks_the_same(&self, other: &Case) -> bool {
        (self.workload, self.metrics) == (other.workload, other.metrics)
            && (self.threads, self.size) == (other.threads, other.size)
    }
}

/// One metric of one case, over all rounds.
#[derive(Clone, Serialize, Deserialize)]
pub struct Row {
    pub workload: String,
    pub metric: String,
    pub unit: String,
    pub threads: usize,
    pub size: usize,
    pub engine: String,
    pub less: String,
    /// The figure of each round.
    pub rounds: Vec<f64>,
}

impl Row {
    pub fn is_ours(&self) -> bool {
        self.engine.starts_with("tickwheel")
    }

    /// Whether two rows can be compared.
    pub fn asks_the_same(&self, other: &Row) -> bool {
        let question = |row: &Row| (row.threads, row.size);
        question(self) == question(other)
            && (&self.workload, &self.metric) == (&other.workload, &other.metric)
    }

    /// Returns the value in the middle.
    pub fn median(&self) -> f64 {
        let mut rounds = self.rounds.clone();
        rounds.sort_unstable_by(f64::total_cmp);
        let middle = rounds.len() / 2;
        match rounds.len() % 2 {
            0 => (rounds[middle - 1] + rounds[middle]) / 2.0,
            _ => rounds[middle],
        }
    }

    pub fn least(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn greatest(&self) -> f64 {
        self.rounds.iter().copied().fold(0.0, f64::max)
    }

    /// Returns the row of the rival with the least median for the same work.
    pub fn best_rival<'r>(&self, rows: &'r [Row]) -> Option<&'r Row> {
        let rivals = rows.iter().filter(|row| !row.is_ours());
        rivals
            .filter(|row| row.asks_the_same(self))
            .min_by(|a, b| a.median().total_cmp(&b.median()))
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

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn row(engine: &str, rounds: &[f64]) -> Row {
        Row {
            workload: "pair".into(),
            metric: "in flight".into(),
            unit: "ns".into(),
            threads: 1,
            size: 1_024,
            engine: engine.into(),
            less: String::new(),
            rounds: rounds.into(),
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(row("", &[9.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(row("", &[4.0, 1.0, 2.0, 9.0]).median(), 3.0);
    }

    #[test]
    fn the_best_rival_is_neither_ours_nor_of_other_work() {
        let of_two = Row { threads: 2, ..row("c", &[0.5]) };
        let rows = [
            row("tickwheel", &[1.0]),
            row("a", &[3.0, 3.0, 9.0]),
            row("b", &[1.0, 4.0, 4.0]),
            of_two,
        ];
        assert_eq!(rows[0].best_rival(&rows).unwrap().engine, "a");
    }
}
