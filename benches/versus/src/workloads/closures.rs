//! Closures that run later, on threads of the engine: a pair with the clock read, the
//! expiry and the run of many at once, and the memory that a live one takes. All processor
//! time is that of the whole process, because engines share the work with their threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tickwheel::{TaskEngine, Timer, TimerId};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::setup::SPAN;
use crate::allocator::Watch;
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::stopwatch::Stopwatch;

const FEW: usize = 1_024;
const MANY: usize = 65_536;
const AT_ONCE: usize = 100_000;

/// Puts the deadline after the last registration, with time to spare.
const LEAD: Duration = Duration::from_secs(2);

/// Longer than a round.
const FAR: Duration = Duration::from_secs(3_600);

/// An engine that runs closures.
trait Closures {
    const NAME: &'static str;
    type Id;

    fn start() -> Self;
    fn run_after(&self, delay: Duration, closure: impl FnOnce() + Send + 'static) -> Self::Id;
    fn run_at(&self, time: Instant, closure: impl FnOnce() + Send + 'static) -> Self::Id;
    fn cancel(&self, id: Self::Id);
}

impl Closures for TaskEngine {
    const NAME: &'static str = "tickwheel tasks";
    type Id = TimerId;

    fn start() -> TaskEngine {
        TaskEngine::builder().start().expect("the defaults start")
    }

    fn run_after(&self, delay: Duration, closure: impl FnOnce() + Send + 'static) -> TimerId {
        let id = TaskEngine::run_after(self, delay, closure);
        id.expect("there is no bound")
    }

    fn run_at(&self, time: Instant, closure: impl FnOnce() + Send + 'static) -> TimerId {
        let id = TaskEngine::run_at(self, time, closure);
        id.expect("there is no bound")
    }

    fn cancel(&self, id: TimerId) {
        TaskEngine::cancel(self, id);
    }
}

/// A tokio runtime with one worker, and a task that sleeps for each closure.
struct TokioTasks(Runtime);

impl Closures for TokioTasks {
    const NAME: &'static str = "tokio tasks";
    type Id = JoinHandle<()>;

    fn start() -> TokioTasks {
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_time().build();
        TokioTasks(runtime.expect("a runtime starts"))
    }

    fn run_after(
        &self,
        delay: Duration,
        closure: impl FnOnce() + Send + 'static,
    ) -> JoinHandle<()> {
        self.0.spawn(async move {
            tokio::time::sleep(delay).await;
            closure();
        })
    }

    fn run_at(&self, time: Instant, closure: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        self.0.spawn(async move {
            tokio::time::sleep_until(time.into()).await;
            closure();
        })
    }

    fn cancel(&self, id: JoinHandle<()>) {
        id.abort();
    }
}

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in [FEW, MANY] {
        cases.push(pair::<TaskEngine>(size, effort));
        cases.push(pair::<TokioTasks>(size, effort));
        cases.push(named_pair(size, effort));
    }
    cases.push(run::<TaskEngine>());
    cases.push(run::<TokioTasks>());
    for size in effort.sizes(&[10_000, 1_000_000]) {
        cases.push(memory::<TaskEngine>(size));
        cases.push(memory::<TokioTasks>(size));
    }
    cases
}

/// Returns a delay after which no closure runs in this round.
fn delay(rng: &mut Rng) -> Duration {
    FAR + Duration::from_millis(rng.u64(1..=SPAN))
}

fn pair<C: Closures>(size: usize, effort: Effort) -> Case {
    let steps = effort.steps();
    Case::new(C::NAME, true, size, move || {
        let (engine, mut rng, runs) = (C::start(), Rng::with_seed(1), Runs::new(usize::MAX).0);
        let mut schedule = || {
            let run = runs.one_more();
            engine.run_after(delay(&mut rng), run)
        };
        let in_flight: VecDeque<_> = (0..size).map(|_| schedule()).collect();
        let elapsed = replace_oldest(in_flight, steps, |oldest| {
            engine.cancel(oldest);
            schedule()
        });
        vec![Reading::per_step("pair", elapsed, steps)]
    })
}

/// The same with a name for each closure, which only tickwheel's can have.
fn named_pair(size: usize, effort: Effort) -> Case {
    let steps = effort.steps();
    Case::new(TaskEngine::NAME, true, size, move || {
        let (engine, mut rng) = (<TaskEngine as Closures>::start(), Rng::with_seed(1));
        let names: Vec<String> = (0..size).map(|n| format!("request {n}")).collect();
        let mut names = names.iter().cycle();
        let mut schedule = || {
            let name = names.next().expect("they come again and again");
            let timer = Timer::after(delay(&mut rng), |_| ()).named(name.as_str());
            engine.run_once(timer).expect("there is no bound")
        };
        let in_flight: VecDeque<_> = (0..size).map(|_| schedule()).collect();
        let elapsed = replace_oldest(in_flight, steps, |oldest| {
            Closures::cancel(&engine, oldest);
            schedule()
        });
        vec![Reading::per_step("pair, named", elapsed, steps)]
    })
}

fn replace_oldest<Id>(
    mut in_flight: VecDeque<Id>,
    steps: usize,
    mut replace: impl FnMut(Id) -> Id,
) -> Duration {
    let begun = Stopwatch::start_all();
    for _ in 0..steps {
        if let Some(oldest) = in_flight.pop_front() {
            in_flight.push_back(replace(oldest));
        }
    }
    begun.elapsed()
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

fn run<C: Closures>() -> Case {
    Case::new(C::NAME, true, AT_ONCE, move || {
        let (engine, (runs, all_ran)) = (C::start(), Runs::new(AT_ONCE));
        let deadline = Instant::now() + LEAD;
        let ids: Vec<_> = (0..AT_ONCE)
            .map(|_| engine.run_at(deadline, runs.one_more()))
            .collect();
        let begun = Stopwatch::start_all();
        all_ran.recv().expect("the last closure sends");
        let elapsed = begun.elapsed();
        drop(ids);
        vec![Reading::per_step("expire and run", elapsed, AT_ONCE)]
    })
}

/// The time in which a dropped engine ends its threads and frees its memory, so that those
/// bytes are not counted.
const LAST_ENGINE_ENDS: Duration = Duration::from_millis(20);

fn memory<C: Closures>(size: usize) -> Case {
    Case::new(C::NAME, true, size, move || {
        let mut ids = Vec::with_capacity(size);
        let (mut rng, runs) = (Rng::with_seed(11), Runs::new(usize::MAX).0);
        thread::sleep(LAST_ENGINE_ENDS);
        let watch = Watch::start();
        let engine = C::start();
        ids.extend((0..size).map(|_| engine.run_after(delay(&mut rng), runs.one_more())));
        let live = watch.bytes();
        drop(ids);
        vec![Reading::new("live", "B", live as f64 / size as f64)]
    })
}
