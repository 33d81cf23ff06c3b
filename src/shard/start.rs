//! A shard's timers before they are started.

use crate::id::TimerId;
use crate::shard::record::{Extra, NameTag, State};
use crate::shard::{Phase, Shard};
use crate::tick::Tick;
use crate::time::{Time, When};
use crate::timer::CloseReason;
use crate::timer::{Refusal, Timer};

impl<T> Shard<T> {
    /// Creates a timer that is started later, or never.
    pub(crate) fn create(
        &mut self,
        timer: Timer<T>,
        name: Option<NameTag>,
    ) -> Result<TimerId, (Refusal, Timer<T>)> {
        if let Some(reason) = self.refuses() {
            return Err((reason, timer));
        }
        let first = timer.first;
        let mut extra = Extra::new(timer, Time::MAX, name);
        extra.state = State::Unstarted {
            first,
            cancelled: false,
        };
        let at = self.insert_extra(extra, Tick::MAX);
        Ok(self.wheel.id(at))
    }

    /// When an unstarted timer is to fire.
    pub(crate) fn first_of(&self, id: TimerId) -> Option<When> {
        let key = self.extra_of(self.wheel.find_own(id)?)?;
        match self.extras[key].state {
            State::Unstarted { first, .. } => Some(first),
            _ => None,
        }
    }

    /// Starts a timer that was created before. If that is refused the timer
    /// comes back, unless it was cancelled and has no payload any more; `now`
    /// is asked only where it was.
    pub(crate) fn start(
        &mut self,
        id: TimerId,
        due: Time,
        deadline: Tick,
        now: impl FnOnce() -> Tick,
    ) -> Result<(), Option<Timer<T>>> {
        let at = self.wheel.find_own(id).ok_or(None)?;
        let key = self.extra_of(at).ok_or(None)?;
        let State::Unstarted { first, cancelled } = self.extras[key].state else {
            return Err(None);
        };
        if self.phase != Phase::Open {
            return Err(self.dismiss(id).and_then(|extra| extra.into_timer(first)));
        }
        self.accept(self.extras[key].reported);
        self.extras[key].due = due;
        self.enter(key, State::Waiting);
        if cancelled {
            self.end_extra(at, CloseReason::Cancelled, now());
        } else {
            let deadline = self.within_tolerance(&self.extras[key], deadline);
            self.wheel.relink_at(at, deadline);
            self.filed = self.filed.min(self.wheel.due_at(at));
        }
        Ok(())
    }

    /// Gives up a timer that was never started.
    pub(crate) fn dismiss(&mut self, id: TimerId) -> Option<Extra<T>> {
        let at = self.wheel.find_own(id)?;
        let key = self.extra_of(at)?;
        let name = self.extras[key].name.clone();
        self.unname(key);
        let mut extra = self.forget(at);
        extra.name = name;
        Some(extra)
    }
}
