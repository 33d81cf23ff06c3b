//! What callers do to an engine, and in the same way to its control: a wheel behind a mutex of
//! the standard library. What anybody would write.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Duration;

use tickwheel::{Engine, Tick, Timer, TimerId, Wheel};

use crate::account::lock;

const FAR: Duration = Duration::from_secs(3_600);
const FAR_TICKS: u64 = 3_600_000;

pub enum Call {
    Schedule,
    Cancel(TimerId),
    Move(TimerId),
    /// Asks how many timers there are, as a dashboard does.
    Look,
    /// Asks whatever there is to ask: live timers, ledger, earliest deadline.
    LookClosely,
}

/// Something that has timers and is used by many threads.
pub trait Subject: Sync {
    /// Makes a call, and returns the id of a new timer.
    fn call(&self, call: Call) -> Option<TimerId>;
}

impl Subject for Engine<u64> {
    fn call(&self, call: Call) -> Option<TimerId> {
        match call {
            Call::Schedule => return self.schedule(Timer::after(FAR, 0)).ok(),
            Call::Cancel(id) => drop(self.cancel(id)),
            Call::Move(id) => _ = self.reschedule(id, FAR / 2),
            Call::Look => drop(black_box(self.snapshot())),
            Call::LookClosely => {
                black_box((self.ledger(), self.earliest_deadline(), self.live().count()));
            }
        }
        None
    }
}

impl Subject for Mutex<Wheel<u64>> {
    fn call(&self, call: Call) -> Option<TimerId> {
        let mut wheel = lock(self);
        match call {
            Call::Schedule => return Some(wheel.schedule_after(FAR_TICKS, 0)),
            Call::Cancel(id) => _ = wheel.cancel(id),
            Call::Move(id) => _ = wheel.reschedule(id, Tick(FAR_TICKS / 2)),
            Call::Look => _ = black_box(wheel.len()),
            Call::LookClosely => _ = black_box((wheel.len(), wheel.next_wakeup())),
        }
        None
    }
}
