//! tickwheel's wheel behind the standard library's mutex: an engine's shard with
//! another lock, and without the engine's other work.

use std::sync::{Mutex, PoisonError};

use tickwheel::{Tick, TimerId, Wheel};

use crate::rival::{Caller, Shared};

pub struct LockedWheel(Mutex<Wheel<u64>>);

impl LockedWheel {
    fn with<R>(&self, work: impl FnOnce(&mut Wheel<u64>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared for LockedWheel {
    const NAME: &'static str = "Mutex<Wheel>";
    const FIRES: bool = false;
    type Id = TimerId;
    type Caller<'a> = &'a LockedWheel;

    fn start() -> LockedWheel {
        LockedWheel(Mutex::new(Wheel::new(64)))
    }

    fn caller(&self) -> &LockedWheel {
        self
    }
}

impl Caller for &LockedWheel {
    type Id = TimerId;

    fn schedule(&mut self, delay_ticks: u64, payload: u64) -> TimerId {
        self.with(|wheel| wheel.schedule_at(Tick(delay_ticks), payload))
    }

    fn cancel(&mut self, id: TimerId) {
        self.with(|wheel| wheel.cancel(id));
    }
}
