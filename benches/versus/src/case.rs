//! One engine at one piece of work, and its results.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::args::Workload;

/// One engine at one piece of work.
pub struct Case {
    pub engine: &'static str,
    pub thread_safe: bool,
    pub threads: usize,
    /// The number of timers, as the workload counts them.
    pub size: usize,
    pub work: Work,
}

pub enum Work {
    /// Runs once, set-up included, and returns its readings: the same metrics in
    /// the same order every time.
    Measure(Box<dyn Fn() -> Vec<Reading>>),
    /// The reason why this engine cannot.
    Cannot(&'static str),
}

impl Case {
    /// Returns a case with one thread.
    pub fn new(
        engine: &'static str,
        thread_safe: bool,
        size: usize,
        measure: impl Fn() -> Vec<Reading> + 'static,
    ) -> Case {
        Case {
            engine,
            thread_safe,
            threads: 1,
            size,
            work: Work::Measure(Box::new(measure)),
        }
    }

    /// Whether the engine can do the work.
    pub fn is_measured(&self) -> bool {
        matches!(self.work, Work::Measure(_))
    }

    pub fn on_threads(self, threads: usize) -> Case {
        Case { threads, ..self }
    }

    /// Marks the case as one that its engine cannot do, if there is a reason.
    pub fn unless(self, reason: Option<&'static str>) -> Case {
        match reason {
            Some(reason) => Case {
                work: Work::Cannot(reason),
                ..self
            },
            None => self,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.engine, self.size)
    }
}

/// One measured value. A line of JSON takes it from one process to another.
#[derive(Serialize, Deserialize)]
pub struct Reading {
    pub metric: String,
    pub unit: String,
    /// `None` if no lap of the round counts.
    pub value: Option<f64>,
    pub processors: Option<Processors>,
}

/// The processors that a process of several threads had. A round consists of laps,
/// and only those count in which no thread waited long for a processor.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Processors {
    /// Processor time by the wall clock, in a typical lap that counts.
    pub busy: f64,
    pub laps_counted: usize,
    pub laps: usize,
}

impl Processors {
    /// Sums the laps of several rounds, or returns `None` for a single thread.
    fn of(rounds: &[&Reading]) -> Option<Processors> {
        let each = || rounds.iter().filter_map(|round| round.processors);
        let counted = each().filter(|round| round.laps_counted > 0);
        each().next().map(|_| Processors {
            busy: median(counted.map(|round| round.busy).collect()).unwrap_or_default(),
            laps_counted: each().map(|round| round.laps_counted).sum(),
            laps: each().map(|round| round.laps).sum(),
        })
    }
}

impl fmt::Display for Processors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Processors { busy, .. } = self;
        write!(out, "{busy:.2} in {}/{}", self.laps_counted, self.laps)
    }
}

impl Reading {
    pub fn new(metric: impl Into<String>, unit: impl Into<String>, value: f64) -> Reading {
        Reading {
            metric: metric.into(),
            unit: unit.into(),
            value: Some(value),
            processors: None,
        }
    }

    /// Nanoseconds for each of `count` steps.
    pub fn per_step(metric: impl Into<String>, elapsed: Duration, count: usize) -> Reading {
        let nanos = elapsed.as_nanos() as f64 / count as f64;
        Reading::new(metric, "ns", nanos)
    }
}

/// One metric of one case, over all rounds.
#[derive(Serialize)]
pub struct Row {
    pub workload: Workload,
    pub engine: &'static str,
    pub thread_safe: bool,
    pub threads: usize,
    pub size: usize,
    /// The figures, or the reason why there are none.
    #[serde(skip)]
    pub outcome: Result<Summary, &'static str>,
}

#[derive(Serialize, Deserialize)]
pub struct Summary {
    pub metric: String,
    pub unit: String,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub rounds: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<Processors>,
}

impl Summary {
    /// Summarizes the readings of one metric, one per round, of those rounds that
    /// count. Returns `None` if there are none.
    pub fn of(rounds: &[&Reading]) -> Option<Summary> {
        let values: Vec<f64> = rounds.iter().filter_map(|round| round.value).collect();
        let first = rounds.first()?;
        Some(Summary {
            metric: first.metric.clone(),
            unit: first.unit.clone(),
            min: values.iter().copied().min_by(f64::total_cmp)?,
            max: values.iter().copied().max_by(f64::total_cmp)?,
            rounds: values.len(),
            median: median(values)?,
            processors: Processors::of(rounds),
        })
    }
}

/// Returns the value in the middle, if there is any.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(match values.len() % 2 {
        0 => (upper + values[middle - 1]) / 2.0,
        _ => upper,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_survives_its_way_through_a_line() {
        let reading = Reading::new("p99.9, loaded", "µs", -0.5);
        let line = serde_json::to_string(&reading).unwrap();
        assert!(!line.contains('\n'));
        let read: Reading = serde_json::from_str(&line).unwrap();
        assert_eq!((read.metric, read.unit), (reading.metric, reading.unit));
        assert_eq!(read.value, reading.value);
        let rival = serde_json::from_str::<Reading>("something that a rival prints");
        assert!(rival.is_err());
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 9.0]), Some(3.0));
        assert_eq!(median(Vec::new()), None);
    }

    fn round(value: Option<f64>, laps_counted: usize) -> Reading {
        let processors = Some(Processors {
            busy: 2.0,
            laps_counted,
            laps: 10,
        });
        Reading {
            processors,
            ..Reading {
                value,
                ..Reading::new("m", "ns", 0.0)
            }
        }
    }

    #[test]
    fn rounds_without_two_processors_do_not_count() {
        let rounds = [round(Some(4.0), 7), round(None, 0), round(Some(2.0), 5)];
        let all: Vec<&Reading> = rounds.iter().collect();
        let summary = Summary::of(&all).unwrap();
        assert_eq!((summary.median, summary.min, summary.rounds), (3.0, 2.0, 2));
        let processors = summary.processors.unwrap();
        assert_eq!(processors.to_string(), "2.00 in 12/30");
        assert!(Summary::of(&all[1..2]).is_none());
    }
}
