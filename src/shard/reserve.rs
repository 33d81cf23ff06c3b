//! Timers whose payload is made once their id is known.
//!
//! Until then, such a timer is in the state of one whose firing a worker holds: it is
//! live, on no list and without its payload, and a cancel or a shutdown marks it.

use crate::id::TimerId;
use crate::shard::Shard;
use crate::shard::firing::Returned;
use crate::shard::record::{Place, State, TimerRecord};
use crate::tick::Tick;
use crate::timeline::Time;
use crate::timer::{CloseReason, Refusal, Timer};
use crate::wheel::EntryIndex;

impl<T> Shard<T> {
    /// Accepts a timer whose payload comes later. `requested` lies in the tick
    /// `deadline`.
    pub(crate) fn reserve(
        &mut self,
        timer: Timer<()>,
        requested: Time,
        deadline: Tick,
        place: Option<Place>,
    ) -> Result<TimerId, (Refusal, Timer<()>)> {
        if let Err(reason) = self.admit() {
            return Err((reason, timer));
        }
        self.accept(timer.reported);
        let key = self.records.insert(TimerRecord {
            state: State::LENT,
            ..TimerRecord::of(timer.map(|()| None), requested, place)
        });
        let at = self.insert_recorded(key, deadline);
        Ok(self.wheel.id(at))
    }

    /// Starts a reserved timer. Without a payload, which means that the closure panicked,
    /// ends it as failed at `now`.
    pub(crate) fn fill(
        &mut self,
        id: TimerId,
        payload: Option<T>,
        requested: Time,
        deadline: Tick,
        now: Time,
    ) -> Returned<T> {
        let at = self.wheel.find_own(id);
        let at = at.expect("a reserved timer keeps its entry");
        let key = self.record_of(at).expect("a reserved timer has a record");
        let record = &mut self.records[key];
        let awaited = std::mem::take(&mut record.awaited);
        let fails = payload.is_none();
        record.payload = payload;
        let payload = match record.state {
            State::LENT if fails => {
                self.end_recorded(at, key, CloseReason::Failed, self.tick.tick_at(now))
            }
            State::LENT => {
                self.start_reserved(at, key, requested, deadline, now);
                None
            }
            State::Lent {
                ending: Some((reason, tick)),
                ..
            } => self.end_recorded(at, key, reason, tick),
            State::Abandoned { tick } => self.end_abandoned(at, key, tick),
            _ => unreachable!("only the maker of the payload moves on a reserved timer"),
        };
        Returned { payload, awaited }
    }

    fn start_reserved(
        &mut self,
        at: EntryIndex,
        key: usize,
        requested: Time,
        deadline: Tick,
        now: Time,
    ) {
        self.records[key].requested = requested;
        if self.records[key].paused.is_some() {
            self.reschedule_paused(at, key, requested, deadline, now);
            return self.lay_aside(at, key, now);
        }
        self.link_waiting(at, key, deadline);
    }
}
