//! tickwheel's data structure alone.

use tickwheel::{Tick, TimerId, Wheel};

use crate::rival::Timers;

const WHEEL_SIZE: usize = 64;

pub struct BareWheel(Wheel<u64>);

impl Timers for BareWheel {
    const NAME: &'static str = "tickwheel wheel";
    const ENDLESS: bool = true;
    type Id = TimerId;

    fn new() -> BareWheel {
        BareWheel(Wheel::new(WHEEL_SIZE))
    }

    fn schedule(&mut self, deadline: u64, payload: u64) -> TimerId {
        self.0.schedule_at(Tick(deadline), payload)
    }

    fn cancel(&mut self, id: TimerId) {
        self.0.cancel(id);
    }

    fn postpone(&mut self, id: TimerId, deadline: u64, _: u64) -> TimerId {
        let moved = self.0.reschedule(id, Tick(deadline));
        debug_assert!(moved);
        id
    }

    fn disarm(&mut self, id: TimerId) -> Option<TimerId> {
        self.0.reschedule(id, Tick::MAX).then_some(id)
    }

    fn advance(&mut self, now: u64, fired: &mut Vec<u64>) {
        while let Some(expired) = self.0.pop_due(Tick(now)) {
            fired.push(expired.payload);
        }
    }

    fn shrink(&mut self) {
        self.0.shrink();
    }
}
