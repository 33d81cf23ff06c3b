//! Timers that their owner looks at while it waits for them: registering, and looking at
//! the payload. Cancelling and moving them are the calls for any timer.

use crate::engine::Core;
use crate::id::TimerId;
use crate::shard::Phase;
use crate::tick::Tick;
use crate::timeline::Time;
use crate::wheel::Tag;

/// The answer to [`Core::register`].
pub(crate) enum Registered<T> {
    /// The timer is waiting for its deadline.
    Waiting(TimerId),
    /// The deadline has passed, so there is no timer. Returns the payload.
    Due(T),
    /// The engine refuses new timers.
    Refused(T),
}

/// The answer to [`Core::look_at`].
pub(crate) enum Seen<R> {
    /// The timer is live, and this is what the look returned.
    Live(R),
    /// The timer has fired, or ended after its deadline.
    Gone,
    /// The engine was shut down before the timer was due.
    ShutDown,
    /// Another call ended the timer before it was due.
    Cancelled,
}

impl<T> Core<T> {
    /// Schedules a plain timer, unless the shard's wheel has reached the deadline. Does
    /// not read the clock.
    ///
    /// Inlined, because an id that is returned in memory costs its reader a stall.
    #[inline(always)]
    pub(crate) fn register(&self, deadline: Time, payload: T) -> Registered<T> {
        let tick = self.tick.tick_after(deadline);
        let mut held = self.hold_own();
        if tick <= self.reached(held.shard.wheel.now()) {
            return Registered::Due(payload);
        }
        // The wheel may lag behind, and that of a closed shard stands still.
        if held.shard.phase != Phase::Open && deadline <= self.clock.now() {
            return Registered::Due(payload);
        }
        if held.shard.admit().is_err() {
            return Registered::Refused(payload);
        }
        let (id, earliest_new) =
            held.shard.schedule_plain(payload, None, tick, Tag::one_shot(0, false));
        self.release_quiet(held, earliest_new);
        Registered::Waiting(id)
    }

    /// Returns the tick that time has certainly reached. A shard's wheel may lag behind.
    /// On a virtual clock the answer must not depend on that.
    #[inline]
    fn reached(&self, wheel: Tick) -> Tick {
        if self.clock.is_virtual() { self.tick_now() } else { wheel }
    }

    /// Calls `look` with the payload of a live plain timer, under the lock of its shard.
    /// `look` must not run foreign code. The timer's deadline tells an expiry from an end
    /// before it.
    #[inline]
    pub(crate) fn look_at<R>(
        &self,
        id: TimerId,
        deadline: Time,
        look: impl FnOnce(&T) -> R,
    ) -> Seen<R> {
        let Some(cell) = self.cell_of(id) else {
            return Seen::Gone;
        };
        let shard = cell.lock();
        match shard.plain_payload(id) {
            Some(payload) => Seen::Live(look(payload)),
            None if shard.wheel.now() < self.tick.tick_after(deadline) => match shard.phase {
                Phase::Closed => Seen::ShutDown,
                _ => Seen::Cancelled,
            },
            None => Seen::Gone,
        }
    }
}
