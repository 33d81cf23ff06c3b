//! What nobody will ask for any more.

use crate::shard::Shard;

impl<T> Shard<T> {
    /// Takes up to `count` of the tasks that wait to be told and of the reports
    /// that wait to be read.
    pub(crate) fn take_leftovers(&mut self, count: usize) -> Vec<Option<T>> {
        let mut leftovers = Vec::new();
        while leftovers.len() < count {
            let Some(leftover) = self.take_leftover() else {
                break;
            };
            leftovers.push(leftover);
        }
        leftovers
    }

    fn take_leftover(&mut self) -> Option<Option<T>> {
        let reports = self.ready.len() - 1;
        let task = (0..reports).find_map(|queue| self.claim(queue, false).0);
        match task {
            Some(task) => Some(Some(task.payload)),
            None => Some(self.claim_report(false).0?.payload),
        }
    }
}
