//! Closures that run later, on threads of the engine: a pair with the clock read, the expiry
//! and the run of many at once, and the memory that a live one takes. All processor time is
//! that of the whole process, because engines share the work with their threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::common::SPAN;
use crate::allocator::Watch;
use crate::case::{Case, Effort};
use crate::rival::Closures;
use crate::rivals::closures;
use crate::stopwatch::Stopwatch;

/// Puts the deadline after the last registration, with time to spare.
const LEAD: Duration = Duration::from_secs(1);

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in [1_024, 65_536] {
        cases.extend(closures!(pair(size, effort)));
    }
    // A program that isn't optimised, on a busy machine, could not schedule more within the lead.
    let at_once = if effort == Effort::Check { 10_000 } else { 100_000 };
    cases.extend(closures!(run(at_once)));
    for size in effort.sizes(&[10_000, 1_000_000]) {
        cases.extend(closures!(memory(size)));
    }
    cases
}

/// Returns a delay after which no closure runs in this round.
fn delay(rng: &mut Rng) -> Duration {
    Duration::from_millis(3_600_000 + rng.u64(1..=SPAN))
}

fn pair<C: Closures>(size: usize, effort: Effort) -> Case {
    let steps = effort.steps();
    Case::of::<C>(&[("pair", "ns")], size, move || {
        let (engine, mut rng, runs) = (C::start(), Rng::with_seed(1), Runs::new(usize::MAX).0);
        let mut schedule = || {
            let run = runs.one_more();
            engine.run_after(delay(&mut rng), run)
        };
        let mut in_flight: VecDeque<_> = (0..size).map(|_| schedule()).collect();
        let begun = Stopwatch::start_all();
        for _ in 0..steps {
            if let Some(oldest) = in_flight.pop_front() {
                engine.cancel(oldest);
            }
            in_flight.push_back(schedule());
        }
        vec![begun.per_step(steps)]
    })
}

/// The closures that have not run. The last one sends a message.
#[derive(Clone)]
struct Runs(Arc<(AtomicUsize, Sender<()>)>);

impl Runs {
    fn new(count: usize) -> (Runs, Receiver<()>) {
        let (send, receive) = channel();
        (Runs(Arc::new((AtomicUsize::new(count), send))), receive)
    }

    /// Returns a closure that captures one word.
    fn one_more(&self) -> impl FnOnce() + Send + 'static {
        let Runs(runs) = self.clone();
        move || {
            if runs.0.fetch_sub(1, Ordering::Relaxed) == 1 {
                let _ = runs.1.send(());
            }
        }
    }
}

fn run<C: Closures>(at_once: usize) -> Case {
    Case::of::<C>(&[("expire and run", "ns")], at_once, move || {
        let (engine, (runs, all_ran)) = (C::start(), Runs::new(at_once));
        let deadline = Instant::now() + LEAD;
        let schedule = |_| engine.run_at(deadline, runs.one_more());
        let _ids: Vec<_> = (0..at_once).map(schedule).collect();
        assert!(Instant::now() < deadline, "scheduling has taken too long");
        let begun = Stopwatch::start_all();
        all_ran.recv().expect("the last closure sends");
        vec![begun.per_step(at_once)]
    })
}

fn memory<C: Closures>(size: usize) -> Case {
    Case::of::<C>(&[("memory", "B")], size, move || {
        let mut ids = Vec::with_capacity(size);
        let (mut rng, runs) = (Rng::with_seed(11), Runs::new(usize::MAX).0);
        let watch = Watch::start();
        let engine = C::start();
        ids.extend((0..size).map(|_| engine.run_after(delay(&mut rng), runs.one_more())));
        vec![watch.bytes() as f64 / size as f64]
    })
}
