//! tm-wheel: one owner. Keeps no order and has no bitmap of occupied slots.

use tm_wheel::{TimerDriver, TimerHandle};

use crate::rival::{Rival, Timers};

/// Six levels of 64 slots: enough for two years of milliseconds.
const LEVELS: usize = 6;
const SLOTS: usize = 64;

pub struct TmWheel(TimerDriver<u64, LEVELS, SLOTS>);

impl Rival for TmWheel {
    const NAME: &'static str = "tm-wheel";
    const LESS: &'static str = "no order among equal deadlines";
}

impl Timers for TmWheel {
    type Id = TimerHandle;

    fn new() -> TmWheel {
        TmWheel(TimerDriver::default())
    }

    fn schedule(&mut self, deadline: u64, payload: u64) -> TimerHandle {
        self.0.insert(payload, deadline)
    }

    fn cancel(&mut self, id: TimerHandle) {
        self.0.remove(id);
    }

    fn advance(&mut self, now: u64, fired: &mut Vec<u64>) {
        fired.extend(self.0.advance_to(now));
    }
}
