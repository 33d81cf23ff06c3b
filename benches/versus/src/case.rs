//! One engine at one piece of work, and what came of it.

use std::time::Duration;

/// One engine at one piece of work.
pub struct Case {
    pub engine: &'static str,
    pub thread_safe: bool,
    pub threads: usize,
    /// How many timers there are, whatever that means for the workload.
    pub size: usize,
    pub work: Work,
}

pub enum Work {
    /// Does it once, set-up included, and returns what it measured: the same
    /// metrics in the same order every time.
    Measure(Box<dyn Fn() -> Vec<Reading>>),
    /// Why this engine cannot.
    Cannot(&'static str),
}

impl Case {
    /// A case with one thread.
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

    pub fn on_threads(self, threads: usize) -> Case {
        Case { threads, ..self }
    }

    /// The same case, which its engine cannot do if there is a reason.
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

/// One measured value.
pub struct Reading {
    pub metric: &'static str,
    pub unit: &'static str,
    pub value: f64,
}

impl Reading {
    pub fn new(metric: &'static str, unit: &'static str, value: f64) -> Reading {
        Reading {
            metric,
            unit,
            value,
        }
    }

    /// Nanoseconds for each of `count` steps.
    pub fn per_step(metric: &'static str, elapsed: Duration, count: usize) -> Reading {
        let nanos = elapsed.as_nanos() as f64 / count as f64;
        Reading::new(metric, "ns", nanos)
    }
}

/// What all rounds of one case say about one metric.
pub struct Row {
    pub workload: &'static str,
    pub engine: &'static str,
    pub thread_safe: bool,
    pub threads: usize,
    pub size: usize,
    pub outcome: Result<Summary, &'static str>,
}

pub struct Summary {
    pub metric: &'static str,
    pub unit: &'static str,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub rounds: usize,
}

impl Summary {
    /// Of one metric's values, one per round; at least one.
    pub fn of(metric: &'static str, unit: &'static str, mut values: Vec<f64>) -> Summary {
        values.sort_unstable_by(f64::total_cmp);
        let rounds = values.len();
        let middle = values[rounds / 2];
        let median = match rounds % 2 {
            0 => (middle + values[rounds / 2 - 1]) / 2.0,
            _ => middle,
        };
        Summary {
            metric,
            unit,
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
    fn the_median_is_in_the_middle() {
        let odd = Summary::of("m", "ns", vec![9.0, 1.0, 2.0]);
        assert_eq!((odd.median, odd.min, odd.max), (2.0, 1.0, 9.0));
        let even = Summary::of("m", "ns", vec![4.0, 1.0, 2.0, 9.0]);
        assert_eq!((even.median, even.rounds), (3.0, 4));
    }
}
