//! Running tasks, in threads of the engine's own or in the caller's loop, and what becomes of
//! one that panics.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::drive::Driver;
use crate::engine::Engine;
use crate::engine::doing::{self, Doing};
use crate::engine::workers::{AtWork, Workers};
use crate::id::TimerId;
use crate::queue::{Queue, RecvError};
use crate::shard::{Claimed, Outcome};
use crate::sync::thread::ThreadId;
use crate::sync::{Arc, IS_MODEL, Ordering, Wait};
use crate::tasks::{Firing, Task};
use crate::wheel::Advance;
use crate::{observe, sync};

/// Starts a worker.
pub(super) fn start(engine: &Engine<Task>, number: usize) -> io::Result<ThreadId> {
    let workers = Arc::clone(&engine.core().workers);
    let queue = engine.queue(0);
    queue.enrol();
    let work = move || {
        // Dropped after the queue, however the work ends.
        let at_work = AtWork(workers);
        work_on(queue, &at_work.0);
    };
    sync::spawn(engine.name(), &format!("w{number}"), work)
}

/// Works, and begins anew after a panic. Tasks are run where a panic is caught, so this
/// one comes from the engine itself; the worker must not take the other tasks along.
fn work_on(queue: Queue<Task>, workers: &Workers) {
    if IS_MODEL {
        // A model reports its failures by panics, which nobody may catch.
        return work(&queue, workers);
    }
    while let Err(thrown) = catch_unwind(AssertUnwindSafe(|| work(&queue, workers))) {
        let subject = queue.core().subject();
        observe::dispose(thrown, |thrown| observe::worker_panicked(subject, thrown));
        queue.core().outlive_a_panic();
    }
}

/// Runs tasks until the engine is shut down or the worker leaves.
fn work(queue: &Queue<Task>, workers: &Workers) {
    let mut runner = Runner::new(queue);
    loop {
        match runner.run_next(Wait::Unless(workers.surplus())) {
            Ok(()) | Err(RecvError::Empty) => {}
            Err(RecvError::ShutDown) if workers.begin_to_stop() => {}
            Err(RecvError::ShutDown) => return,
        }
        if workers.surplus().load(Ordering::Relaxed) {
            runner.finish();
            if workers.leave() {
                return;
            }
        }
    }
}

/// Runs the tasks of a queue, one after the other.
pub(super) struct Runner<'a> {
    queue: &'a Queue<Task>,
    /// The firing of the last task, if it is to be returned along with the next take.
    done: Option<TimerId>,
}

impl<'a> Runner<'a> {
    pub(super) fn new(queue: &'a Queue<Task>) -> Runner<'a> {
        Runner { queue, done: None }
    }

    /// Returns the last firing, takes the next task, and runs it. A panic is caught and
    /// counted.
    pub(super) fn run_next(&mut self, wait: Wait<'_>) -> Result<(), RecvError> {
        let claimed = match self.done.take() {
            Some(done) => self.queue.claim_after(done, wait),
            None => self.queue.receive(wait),
        };
        self.done = run(self.queue, claimed?);
        Ok(())
    }

    /// Returns the last firing.
    pub(super) fn finish(&mut self) {
        if let Some(done) = self.done.take() {
            let core = self.queue.core();
            core.return_firing(done, None, Outcome::Returned);
        }
    }
}

/// Runs a task. Returns its firing if the task is consumed; otherwise, returns it to the
/// engine.
fn run(queue: &Queue<Task>, claimed: Claimed<Task>) -> Option<TimerId> {
    let core = queue.core();
    let Claimed { firing, payload: mut task } = claimed;
    let (id, lent, name) = (firing.id, firing.lent, firing.name.as_deref().map(|name| &**name));
    let _running = doing::begin(Doing::Task(id));
    let mut make = || Firing::of(&firing, core);
    let ran = catch_unwind(AssertUnwindSafe(|| task.run(&mut make)));
    if lent && ran.is_ok() && task.is_consumed() {
        return Some(id);
    }
    let outcome = match &ran {
        Ok(()) => Outcome::Returned,
        Err(_) => {
            // First, because who reads the report may look at the count.
            core.count_panic();
            Outcome::Panicked
        }
    };
    // Dropping a closure runs foreign code as well.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        if lent {
            // A task that ran once and panicked is empty: no payload comes back.
            core.return_firing(id, (!task.is_consumed()).then_some(task), outcome)
        } else {
            drop(task)
        }
    }));
    if ran.is_ok() && ended.is_err() {
        core.count_panic();
    }
    for thrown in [ran, ended].into_iter().filter_map(Result::err) {
        observe::dispose(thrown, |thrown| observe::panicked(core.subject(), id, name, thrown));
    }
    None
}

/// The number of entries that may be touched for each task that may run. A
/// timer cascades at most once per level, and is sorted at the end.
const TOUCHES_PER_TASK: usize = 16;

/// Runs at most `budget` due tasks in the calling thread, unless it is in such a call for
/// this engine already.
pub(super) fn process_due(driver: &Driver<Task>, budget: usize) -> Advance {
    let Some(_in_loop) = driver.core.enter_loop() else {
        return driver.done();
    };
    // A queue of its own, because several threads may call at once.
    let queue = Queue::new(Arc::clone(&driver.core), 0);
    let mut runner = Runner::new(&queue);
    let mut tasks = budget;
    let mut touches = budget.saturating_mul(TOUCHES_PER_TASK);
    loop {
        let served = driver.serve(&mut touches);
        let before = tasks;
        while tasks > 0 && runner.run_next(Wait::No).is_ok() {
            tasks -= 1;
        }
        runner.finish();
        if tasks == 0 || !served {
            return driver.what_is_left();
        }
        if tasks == before {
            return driver.done();
        }
    }
}
