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
    pub value: f64,
}

impl Reading {
    pub fn new(metric: impl Into<String>, unit: impl Into<String>, value: f64) -> Reading {
        Reading {
            metric: metric.into(),
            unit: unit.into(),
            value,
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

#[derive(Serialize)]
pub struct Summary {
    pub metric: String,
    pub unit: String,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub rounds: usize,
}

impl Summary {
    /// Summarizes the values of one metric, one per round. There is at least one.
    pub fn of(metric: &str, unit: &str, mut values: Vec<f64>) -> Summary {
        values.sort_unstable_by(f64::total_cmp);
        let rounds = values.len();
        let middle = values[rounds / 2];
        let median = match rounds % 2 {
            0 => (middle + values[rounds / 2 - 1]) / 2.0,
            _ => middle,
        };
        Summary {
            metric: metric.into(),
            unit: unit.into(),
            median,
            min: values[0],
            max: values[rounds - 1],
            rounds,
        }
    }
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
        let odd = Summary::of("m", "ns", vec![9.0, 1.0, 2.0]);
        assert_eq!((odd.median, odd.min, odd.max), (2.0, 1.0, 9.0));
        let even = Summary::of("m", "ns", vec![4.0, 1.0, 2.0, 9.0]);
        assert_eq!((even.median, even.rounds), (3.0, 4));
    }
}
