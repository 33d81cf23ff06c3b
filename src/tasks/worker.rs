//! The threads that run tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::caught;
use crate::engine::{Engine, StartError};
use crate::engine_name::Role;
use crate::hub::running;
use crate::observe;
use crate::queue::{Expired, Queue};
use crate::sync;
use crate::tasks::Task;
use crate::tasks::task::Call;
use crate::tasks::workers::{AtWork, Workers};

/// Starts the workers. They end when the engine is shut down.
pub(super) fn spawn(engine: &Engine<Task>, count: usize) -> Result<Arc<Workers>, StartError> {
    let workers = Arc::new(Workers::default());
    for n in 0..count {
        let queue = engine.queue(0);
        queue.join();
        let name = engine.engine_name().of_thread(Role::Worker(n));
        let these = Arc::clone(&workers);
        let work = move || {
            // Dropped after the queue, however the work ends.
            let _at_work = AtWork(these);
            work(queue);
        };
        workers
            .start(|| sync::spawn(name, work))
            .map_err(StartError::Thread)
            .inspect_err(|error| observe::start_refused(engine.engine_name(), error))?;
    }
    engine.set_worker_count(count);
    Ok(workers)
}

fn work(queue: Queue<Task>) {
    while let Ok(expired) = queue.recv() {
        run_counted(&queue, expired);
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
