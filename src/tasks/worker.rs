//! The threads that run tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::caught;
use crate::engine::{Engine, StartError};
use crate::engine_name::Role;
use crate::hub::{SharedCore, Wait, running};
use crate::observe;
use crate::queue::{Queue, RecvError};
use crate::shard::{Claimed, Outcome};
use crate::sync;
use crate::tasks::workers::{AtWork, Change, Workers};
use crate::tasks::{Firing, Task};

/// Starts the first workers of an engine. They end when the engine is shut down.
pub(super) fn spawn(engine: &Engine<Task>, count: usize) -> Result<Arc<Workers>, StartError> {
    let workers = Arc::new(Workers::default());
    start_up_to(count, engine, &workers, &mut workers.change())
        .inspect_err(|error| observe::start_refused(engine.engine_name(), error))?;
    Ok(workers)
}

/// Starts workers until there are `count`. Those that have been started remain if the
/// system refuses one.
pub(super) fn start_up_to(
    count: usize,
    engine: &Engine<Task>,
    workers: &Arc<Workers>,
    change: &mut Change<'_>,
) -> Result<(), StartError> {
    for n in engine.worker_count()..count {
        start(engine, Arc::clone(workers), change)?;
        engine.set_worker_count(n + 1);
    }
    Ok(())
}

fn start(
    engine: &Engine<Task>,
    workers: Arc<Workers>,
    change: &mut Change<'_>,
) -> Result<(), StartError> {
    let queue = engine.queue(0);
    queue.join();
    let work = move || {
        // Dropped after the queue, however the work ends.
        let at_work = AtWork(workers);
        work(queue, &at_work.0);
    };
    let spawn = |n| sync::spawn(engine.engine_name().of_thread(Role::Worker(n)), work);
    change.start(spawn).map_err(StartError::Thread)
}

/// Runs tasks until the engine is shut down or the worker leaves.
fn work(queue: Queue<Task>, workers: &Workers) {
    loop {
        match queue.claim_next(Wait::Unless(workers.surplus())) {
            Ok(claimed) => run_counted(&queue, claimed),
            Err(RecvError::Empty) => {}
            Err(RecvError::ShutDown) if workers.begin_to_stop() => {}
            Err(RecvError::ShutDown) => return,
        }
        if workers.leave() {
            return;
        }
    }
}

/// Runs a task, and counts its panic.
pub(crate) fn run_counted(queue: &Queue<Task>, claimed: Claimed<Task>) {
    if run(queue.core(), claimed) {
        queue.count_panic();
    }
}

/// Runs a task and returns whether it panicked.
fn run(core: &sync::Arc<SharedCore<Task>>, claimed: Claimed<Task>) -> bool {
    let Claimed {
        firing,
        payload: mut task,
        recorded,
    } = claimed;
    let (lent, name) = recorded.map_or((false, None), |it| (it.lent, it.name));
    let name = name.as_deref();
    let running = running::enter(firing.id);
    let mut make = || Firing::of(&firing, name, core);
    let ran = catch_unwind(AssertUnwindSafe(|| task.run(&mut make)));
    let outcome = match &ran {
        Ok(()) => Outcome::Returned,
        Err(_) => Outcome::Panicked,
    };
    // Dropping a closure runs foreign code as well.
    let ended = catch_unwind(AssertUnwindSafe(|| match lent {
        true => core.return_firing(firing.id, Some(task), outcome),
        false => drop(task),
    }));
    drop(running);
    let panics = [ran, ended].into_iter().filter_map(Result::err);
    panics.fold(false, |_, thrown| {
        caught::dispose(thrown, |thrown| {
            observe::panicked(core.subject(), firing.id, name.map(|it| &**it), thrown)
        });
        true
    })
}
