//! The period and the count of a repeating timer.

use std::time::Duration;

use crate::hub::Core;
use crate::id::TimerId;
use crate::timer::{Refusal, Repeat, Repetition};

impl<T> Core<T> {
    pub(crate) fn repetition(&self, id: TimerId) -> Option<Repetition> {
        self.cell_of(id)?.lock().repetition(id)
    }

    /// Returns the number of a timer's firings still to come; `None` means for ever.
    pub(crate) fn remaining(&self, id: TimerId) -> Option<u64> {
        self.repetition(id).map_or(Some(0), |it| it.left)
    }

    pub(crate) fn set_period(&self, id: TimerId, period: Duration) -> Result<(), Refusal> {
        let cell = self.cell_of(id).ok_or(Refusal::Gone)?;
        cell.lock().set_period(id, Repeat::every(period))
    }

    pub(crate) fn set_times(&self, id: TimerId, times: u64) -> Result<(), Refusal> {
        let cell = self.cell_of(id).ok_or(Refusal::Gone)?;
        cell.lock().set_times(id, times)
    }
}
