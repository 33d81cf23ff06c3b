//! The threads that run tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::caught;
use crate::engine::{Engine, StartError};
use crate::engine_name::Role;
use crate::hub::running;
use crate::observe;
use crate::queue::{Expired, Queue, RecvError};
use crate::sync;
use crate::tasks::Task;
use crate::tasks::task::Call;
use crate::tasks::workers::{AtWork, Change, Workers};

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
        match queue.recv_unless(workers.surplus()) {
            Ok(expired) => run_counted(&queue, expired),
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
pub(crate) fn run_counted(queue: &Queue<Task>, expired: Expired<Task>) {
    if run(queue, expired) {
        queue.count_panic();
    }
}

/// Runs a task and returns whether it panicked.
fn run(queue: &Queue<Task>, mut expired: Expired<Task>) -> bool {
    let (id, name) = (expired.id(), expired.shared_name());
    let call = Call::of(&expired, queue.core());
    let running = running::enter(id);
    let task = expired.payload_mut();
    let ran = catch_unwind(AssertUnwindSafe(|| task.run(call)));
    // Dropping a closure runs foreign code as well.
    let ended = catch_unwind(AssertUnwindSafe(|| match &ran {
        Ok(()) => drop(expired),
        Err(_) => expired.fail(),
    }));
    drop(running);
    let panics = [ran, ended].into_iter().filter_map(Result::err);
    panics.fold(false, |_, thrown| {
        let core = queue.core();
        caught::dispose(thrown, |thrown| {
            observe::panicked(core.subject(), id, name.as_deref(), thrown)
        });
        true
    })
}
