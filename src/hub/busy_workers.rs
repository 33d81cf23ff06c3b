//! The number of workers of each queue, and the number of busy ones, for a virtual
//! clock's `run_until`. Kept up to date only under a virtual clock.

use crate::hub::waiters::Waiters;

pub(crate) struct Census(Waiters<Workers>);

struct Workers {
    /// The number of workers of each queue.
    counts: Vec<usize>,
    busy: usize,
}

impl Census {
    pub(super) fn new(queues: usize) -> Census {
        Census(Waiters::new(Workers {
            counts: vec![0; queues],
            busy: 0,
        }))
    }

    /// Adds a worker of `queue`, which is busy until it calls `set_busy`.
    pub(crate) fn join(&self, queue: usize) {
        self.0.with(|workers, _| {
            workers.counts[queue] += 1;
            workers.busy += 1;
        });
    }

    /// Removes a worker of `queue`.
    pub(crate) fn leave(&self, queue: usize, busy: bool) {
        self.0.change(|workers| {
            workers.counts[queue] -= 1;
            workers.busy -= usize::from(busy);
        });
    }

    /// Notes that a worker has begun to work, or that it is waiting.
    pub(crate) fn set_busy(&self, busy: bool) {
        match busy {
            true => self.0.with(|workers, _| workers.busy += 1),
            false => self.0.change(|workers| workers.busy -= 1),
        }
    }

    /// Notes that a queue has changed, but not through its workers.
    #[inline]
    pub(crate) fn notify(&self) {
        self.0.notify();
    }

    /// Blocks until no worker is busy and `is_empty` holds for every queue that has
    /// workers.
    pub(super) fn wait_until_idle(&self, is_empty: impl Fn(usize) -> bool) {
        self.0.wait_until(|| self.is_idle(&is_empty), || None);
    }

    /// Returns whether no worker is busy and, as all their queues are empty, none will
    /// be. Returns false if anything changed while the queues were visited.
    fn is_idle(&self, is_empty: impl Fn(usize) -> bool) -> bool {
        let (busy, staffed, seen) = self
            .0
            .with(|workers, changes| (workers.busy, workers.staffed(), changes));
        let unchanged = |workers: &mut Workers, changes| workers.busy == 0 && changes == seen;
        busy == 0 && staffed.into_iter().all(is_empty) && self.0.with(unchanged)
    }
}

impl Workers {
    fn staffed(&self) -> Vec<usize> {
        let queues = 0..self.counts.len();
        queues.filter(|&queue| self.counts[queue] > 0).collect()
    }
}
