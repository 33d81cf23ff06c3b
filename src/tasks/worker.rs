//! The threads that run tasks.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::engine::{Engine, StartError};
use crate::id::TimerId;
use crate::observe;
use crate::queue::{Expired, Queue};
use crate::sync::{self, thread_local};
use crate::tasks::crew::Crew;
use crate::tasks::{Firing, Task};

thread_local! {
    /// The timer whose task this thread is running.
    // Loom's macro does not know `const`.
    #[allow(clippy::missing_const_for_thread_local)]
    static RUNNING: Cell<Option<TimerId>> = Cell::new(None);
}

/// Whether the calling thread is inside a task of this timer.
pub(crate) fn is_running_here(id: TimerId) -> bool {
    RUNNING.with(Cell::get) == Some(id)
}

/// Starts the workers. They end when the engine is shut down.
pub(super) fn spawn(engine: &Engine<Task>, workers: usize) -> Result<Arc<Crew>, StartError> {
    let crew = Arc::new(Crew::default());
    for n in 0..workers {
        let queue = engine.queue(0);
        queue.join();
        let name = format!("tickwheel-worker-{n}");
        let colleagues = Arc::clone(&crew);
        let work = move || {
            work(queue);
            colleagues.leave();
        };
        crew.hire(|| sync::spawn(name, work))
            .map_err(StartError::Thread)
            .inspect_err(observe::start_refused)?;
    }
    Ok(crew)
}

fn work(queue: Queue<Task>) {
    while let Ok(expired) = queue.recv() {
        run_counted(&queue, expired);
    }
}

/// Runs a task, and counts it if it panics.
pub(crate) fn run_counted(queue: &Queue<Task>, expired: Expired<Task>) {
    if run(expired) {
        queue.count_panic();
    }
}

/// Runs a task and returns whether it panicked.
fn run(mut expired: Expired<Task>) -> bool {
    let firing = Firing::of(&expired);
    RUNNING.with(|running| running.set(Some(firing.id())));
    let task = expired.payload_mut();
    let ran = catch_unwind(AssertUnwindSafe(|| task.run(&firing)));
    // What ends with this firing is dropped, which runs foreign code too.
    let ended = catch_unwind(AssertUnwindSafe(|| match &ran {
        Ok(()) => drop(expired),
        Err(_) => expired.fail(),
    }));
    RUNNING.with(|running| running.set(None));
    // So do telling of a panic, and dropping what it was thrown with.
    let panics = [ran, ended].into_iter().filter_map(Result::err);
    panics.fold(false, |_, thrown| {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            observe::panicked(firing.id(), &*thrown);
            drop(thrown);
        }));
        true
    })
}
