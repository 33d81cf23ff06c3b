//! Running tasks in the caller's own loop.

use crate::drive::Driver;
use crate::hub::Wait;
use crate::tasks::Task;
use crate::tasks::worker::Runner;
use crate::wheel::Advance;

/// The number of entries that may be touched for each task that may run. A
/// timer cascades at most once per level, and is sorted at the end.
const TOUCHES_PER_TASK: usize = 16;

/// Runs at most `budget` due tasks in the calling thread, unless it is in such a call for
/// this engine already.
pub(super) fn process_due(driver: &Driver<Task>, budget: usize) -> Advance {
    match driver.enter_loop() {
        Some(_in_loop) => run_tasks(driver, budget),
        None => driver.done(),
    }
}

fn run_tasks(driver: &Driver<Task>, budget: usize) -> Advance {
    let queue = driver.queue();
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
            return driver.what_is_left(served);
        }
        if tasks == before {
            return driver.done();
        }
    }
}
