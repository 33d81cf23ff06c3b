//! Endless work on a runtime, watched lap by lap.
//!
//! A lap is so short that on a machine with other work, too, some laps are
//! undisturbed. Work of several threads counts only in laps in which each of them
//! had a processor.

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::case::{Processors, Reading, median};
use crate::effort::Effort;
use crate::processors;
use crate::rival::Awaited;
use crate::runtime;
use crate::stopwatch::Stopwatch;

const LENGTH: Duration = Duration::from_millis(12);

/// The time in which caches and the runtime's queues come to their usual state.
const WARM_UP: Duration = Duration::from_millis(30);

/// The longest share of a lap that the threads may wait for processors, together.
const LONGEST_WAIT: f64 = 0.1;

/// Counts the steps of one task. It has cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub struct Count(AtomicU64);

impl Count {
    /// Adds steps. Only one thread does so at a time.
    pub fn add(&self, steps: u64) {
        self.0.store(self.get() + steps, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Tasks that work for good, in a runtime of their own.
pub struct Crew {
    runtime: Runtime,
    workers: u32,
    tasks: Vec<JoinHandle<()>>,
    counts: Vec<&'static Count>,
}

impl Crew {
    pub fn new<A: Awaited>(workers: usize) -> Crew {
        Crew {
            runtime: runtime::with_workers::<A>(workers),
            workers: workers as u32,
            tasks: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Returns a count for a task of this crew.
    pub fn count(&mut self) -> &'static Count {
        let count = Box::leak(Box::default());
        self.counts.push(count);
        count
    }

    /// Spawns a task without tokio's budget. When the budget is used up, tokio's
    /// timers neither register nor fire, and would seem fast.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let task = self.runtime.spawn(tokio::task::unconstrained(task));
        self.tasks.push(task);
    }

    /// Spawns a task that repeats a step, and yields after a number of steps. The
    /// runtime looks after its timers only then.
    pub fn spawn_steps(
        &mut self,
        steps_per_turn: u64,
        mut step: impl FnMut(&mut Context<'_>) + Send + 'static,
    ) {
        let count = self.count();
        self.spawn(poll_fn(move |context| {
            (0..steps_per_turn).for_each(|_| step(context));
            count.add(steps_per_turn);
            context.waker().wake_by_ref();
            Poll::Pending
        }));
    }

    /// Watches the tasks. They go on until the process ends.
    pub fn watch(self, effort: Effort) -> Laps {
        thread::sleep(WARM_UP);
        // One lap more, because the last one never counts as undisturbed.
        let laps = (0..=effort.either(8, 40)).map(|_| self.lap()).collect();
        let is_over = self.tasks.iter().any(JoinHandle::is_finished);
        assert!(!is_over, "a task has panicked");
        std::mem::forget(self.runtime);
        Laps::new(laps)
    }

    fn lap(&self) -> Lap {
        let done = || self.counts.iter().map(|count| count.get()).sum::<u64>();
        let waited = processors::waited();
        let stopwatch = Stopwatch::start_all();
        let (begun, before) = (Instant::now(), done());
        thread::sleep(LENGTH);
        let steps = done() - before;
        let (wall, processor) = (begun.elapsed(), stopwatch.elapsed());
        let waited = processors::waited().zip(waited);
        Lap {
            steps,
            wall,
            processor,
            waited: match waited {
                Some((after, before)) => after.saturating_sub(before),
                // Without the kernel's count, idle threads count as waiting.
                None => (wall * self.workers).saturating_sub(processor),
            },
        }
    }
}

struct Lap {
    steps: u64,
    wall: Duration,
    processor: Duration,
    /// The sum of all waits for a processor that ended in this lap.
    waited: Duration,
}

impl Lap {
    fn wall_per_step(&self) -> f64 {
        self.wall.as_nanos() as f64 / self.steps as f64
    }

    fn processor_per_step(&self) -> f64 {
        self.processor.as_nanos() as f64 / self.steps as f64
    }

    /// Returns the number of processors that were busy.
    fn busy(&self) -> f64 {
        self.processor.as_secs_f64() / self.wall.as_secs_f64()
    }
}

/// The laps of a round, each with whether it was undisturbed.
pub struct Laps(Vec<(Lap, bool)>);

impl Laps {
    /// Judges laps in the order in which they ran. A wait that ended in one lap may
    /// have begun in an earlier one.
    fn new(laps: Vec<Lap>) -> Laps {
        let mut waited_later = LENGTH;
        let judge = |lap: Lap| {
            let waited = lap.waited.max(waited_later);
            let is_undisturbed = waited < lap.wall.mul_f64(LONGEST_WAIT);
            waited_later = lap.waited.max(waited_later.saturating_sub(lap.wall));
            (lap, is_undisturbed)
        };
        Laps(laps.into_iter().rev().map(judge).collect())
    }

    /// Returns the processor time of the process per step.
    pub fn alone(&self, metric: &str) -> Reading {
        let reading = self.of(metric.into(), Lap::processor_per_step, |_| true);
        Reading {
            processors: None,
            ..reading
        }
    }

    /// Returns the processor time per step of threads that share one processor.
    pub fn on_one_processor(&self, metric: &str) -> Reading {
        let metric = format!("{metric}, one processor");
        self.of(metric, Lap::processor_per_step, |_| true)
    }

    /// Returns the time and the processor time per step of all threads together, in
    /// undisturbed laps.
    pub fn together(&self, metric: &str) -> Vec<Reading> {
        let cpu = format!("{metric}, CPU");
        vec![
            self.of(metric.into(), Lap::wall_per_step, |is_undisturbed| {
                is_undisturbed
            }),
            self.of(cpu, Lap::processor_per_step, |is_undisturbed| {
                is_undisturbed
            }),
        ]
    }

    fn of(&self, metric: String, figure: fn(&Lap) -> f64, counts: fn(bool) -> bool) -> Reading {
        let Laps(laps) = self;
        let counted = || laps.iter().filter(|(lap, is)| lap.steps > 0 && counts(*is));
        let middle =
            |figure: fn(&Lap) -> f64| median(counted().map(|(lap, _)| figure(lap)).collect());
        let processors = Processors {
            busy: middle(Lap::busy).unwrap_or_default(),
            laps_counted: counted().count(),
            laps: laps.len(),
        };
        Reading {
            metric,
            unit: "ns".into(),
            value: middle(figure),
            processors: Some(processors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(waits_in_millis: &[u64]) -> Vec<bool> {
        let lap = |&millis: &u64| Lap {
            steps: 1,
            wall: LENGTH,
            processor: LENGTH,
            waited: Duration::from_millis(millis),
        };
        let Laps(laps) = Laps::new(waits_in_millis.iter().map(lap).collect());
        laps.iter()
            .rev()
            .map(|(_, is_undisturbed)| *is_undisturbed)
            .collect()
    }

    #[test]
    fn the_last_lap_never_counts() {
        assert_eq!(judged(&[0, 1, 0]), [true, true, false]);
    }

    #[test]
    fn a_wait_disturbs_the_laps_in_which_it_may_have_begun() {
        let judged = judged(&[0, 0, 0, 26, 0, 0]);
        assert_eq!(judged, [false, false, false, false, true, false]);
    }
}
