//! tm-wheel: one owner, keeps no order, has no bitmap of what is occupied.

use tm_wheel::{TimerDriver, TimerHandle};

use crate::rival::Timers;

/// 64 slots to the power of six: enough for two years of milliseconds.
const LEVELS: usize = 6;
const SLOTS: usize = 64;

pub struct TmWheel(TimerDriver<u64, LEVELS, SLOTS>);

impl Timers for TmWheel {
    const NAME: &'static str = "tm-wheel";
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
