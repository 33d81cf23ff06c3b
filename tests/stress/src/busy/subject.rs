//! What callers do to an engine, and to its control in the same way.

use std::sync::Arc;
use std::time::Duration;

use tickwheel::{Engine, Timer, TimerId};

pub type Name = Arc<str>;

/// Something that has timers and is used by many threads.
pub trait Subject: Sync {
    /// `None` if it is shut down.
    fn schedule(&self, delay: Duration, name: Option<&Name>) -> Option<TimerId>;
    fn cancel(&self, id: TimerId);
    fn reschedule(&self, id: TimerId, delay: Duration);
    /// Cancels one timer of a name.
    fn cancel_one(&self, name: &Name);
    /// Asks how many timers there are, as a dashboard does.
    fn look(&self);
    /// Asks whatever there is to ask: live timers, ledger, earliest deadline.
    fn look_closely(&self);
    fn shut_down(&self);
}

impl Subject for Engine<u64> {
    fn schedule(&self, delay: Duration, name: Option<&Name>) -> Option<TimerId> {
        let timer = Timer::after(delay, 0);
        let timer = match name {
            Some(name) => timer.named(Arc::clone(name)),
            None => timer,
        };
        Engine::schedule(self, timer).ok()
    }

    fn cancel(&self, id: TimerId) {
        let _ = Engine::cancel(self, id);
    }

    fn reschedule(&self, id: TimerId, delay: Duration) {
        // Of a timer that somebody else has ended there is nothing to move.
        let _ = Engine::reschedule(self, id, delay);
    }

    fn cancel_one(&self, name: &Name) {
        self.cancel_by_name(name, 1);
    }

    fn look(&self) {
        std::hint::black_box(self.snapshot());
    }

    fn look_closely(&self) {
        std::hint::black_box((self.ledger(), self.earliest_deadline(), self.live().count()));
    }

    fn shut_down(&self) {
        drop(self.shutdown());
    }
}
