//! nexus-timer: a wheel without cascades, one owner, deadlines as `Instant`.

use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

use nexus_timer::{TimerHandle, Wheel};

use crate::rival::{Rival, Timers};

const CHUNK: usize = 4_096;

pub struct Nexus {
    wheel: Wheel<u64>,
    start: Instant,
}

impl Nexus {
    fn instant(&self, tick: u64) -> Instant {
        self.start + Duration::from_millis(tick)
    }
}

impl Rival for Nexus {
    const NAME: &'static str = "nexus-timer";
    const LESS: &'static str = "no order among equal deadlines";
}

impl Timers for Nexus {
    /// Dropping a handle is an error in nexus-timer. Here a collection may be dropped
    /// with its timers.
    type Id = ManuallyDrop<TimerHandle<u64>>;

    fn new() -> Nexus {
        let start = Instant::now();
        let wheel = Wheel::unbounded(CHUNK, start);
        Nexus { wheel, start }
    }

    fn schedule(&mut self, deadline: u64, payload: u64) -> Self::Id {
        let deadline = self.instant(deadline);
        ManuallyDrop::new(self.wheel.schedule(deadline, payload))
    }

    fn cancel(&mut self, id: Self::Id) {
        self.wheel.cancel(ManuallyDrop::into_inner(id));
    }

    fn postpone(&mut self, id: Self::Id, deadline: u64, _: u64) -> Self::Id {
        let deadline = self.instant(deadline);
        let handle = ManuallyDrop::into_inner(id);
        ManuallyDrop::new(self.wheel.reschedule(handle, deadline))
    }

    fn advance(&mut self, now: u64, fired: &mut Vec<u64>) {
        let now = self.instant(now);
        self.wheel.poll_and_rebalance(now, fired);
    }

    fn ended(&mut self, id: Self::Id) {
        self.wheel.free(ManuallyDrop::into_inner(id));
    }
}
