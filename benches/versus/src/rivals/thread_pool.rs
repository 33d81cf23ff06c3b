//! scheduled-thread-pool: a heap behind a lock, and threads that wait for its first closure.

use std::time::{Duration, Instant};

use scheduled_thread_pool::{JobHandle, ScheduledThreadPool};

use crate::rival::{Closures, Rival};

pub struct Pool(ScheduledThreadPool);

impl Rival for Pool {
    const NAME: &'static str = "scheduled-thread-pool";
    const LESS: &'static str = "no order among equal deadlines; a cancelled closure keeps memory \
        until its deadline";
}

impl Closures for Pool {
    type Id = JobHandle;

    fn start() -> Pool {
        Pool(ScheduledThreadPool::new(1))
    }

    fn run_after(&self, delay: Duration, closure: impl FnOnce() + Send + 'static) -> JobHandle {
        self.0.execute_after(delay, closure)
    }

    fn run_at(&self, time: Instant, closure: impl FnOnce() + Send + 'static) -> JobHandle {
        self.run_after(time.saturating_duration_since(Instant::now()), closure)
    }

    fn cancel(&self, id: JobHandle) {
        id.cancel();
    }
}
