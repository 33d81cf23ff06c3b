//! Records: periods, counts, reports and tasks, which only some timers have. And when a
//! repeating timer fires next.

use crate::tick::Tick;
use crate::timeline::Time;
use crate::timer::{CloseReason, Refusal, Timer};

pub(crate) struct TimerRecord<T> {
    /// `None` while a worker has the payload, or once the caller that ended the timer
    /// has received it.
    pub(crate) payload: Option<T>,
    pub(crate) state: State,
    /// The timer as it was scheduled, without its payload.
    pub(crate) timer: Timer<()>,
    /// The exact time at which the next firing is due. The tick is rounded up from it.
    pub(crate) requested: Time,
    /// The number of firings still to be delivered; `None` if the timer fires for ever.
    pub(super) left: Option<u64>,
    /// The number of due ticks so far, including the current or coming one.
    pub(crate) number: u64,
    /// The number of firings delivered.
    pub(crate) firings: u64,
    /// The time at which a worker took the lent firing, if takes are measured.
    pub(super) taken: Option<Time>,
    /// Whether a caller is waiting for the lent firing.
    pub(crate) awaited: bool,
    /// Whether the task runs once more when the timer is cancelled or shut down.
    pub(crate) run_on_end: bool,
    /// The hash under which the index has the timer, until it gives the name up.
    pub(super) name_hash: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Created, and on no list until it is started.
    Unstarted { cancelled: bool },
    /// In the wheel, or expired and waiting in a ready list.
    Waiting,
    /// A worker has a firing.
    Lent {
        /// The reason and the tick with which the timer ends when the firing comes back,
        /// if it was cancelled or shut down meanwhile. On a last firing, this refuses a
        /// re-arming, and has an effect only after such a re-arming.
        ending: Option<(CloseReason, Tick)>,
        /// The tick of the next firing, if the holder has re-armed the timer.
        next: Option<Tick>,
    },
    /// Shut down at `tick` while a worker has a firing. The timer is already in the
    /// ledger, and is reported when the firing comes back.
    Abandoned { tick: Tick },
    /// Ended. The entry waits for its task to have run once more, or for its report to
    /// be read.
    Ended { reason: CloseReason, tick: Tick },
}

impl State {
    /// The state of a timer whose firing a worker has just taken.
    pub(crate) const LENT: State = State::Lent { ending: None, next: None };

    /// Whether the timer was accepted and has not ended.
    pub(crate) fn is_live(self) -> bool {
        matches!(self, State::Waiting | State::Lent { .. })
    }

    /// The reason why a timer that is not waiting is not changed.
    pub(crate) fn obstacle(self) -> Refusal {
        match self {
            State::Unstarted { cancelled: false } => Refusal::Unstarted,
            State::Lent { ending: None, .. } => Refusal::Running,
            State::Lent { ending: Some((reason, _)), .. } => Refusal::by(reason),
            State::Abandoned { .. } => Refusal::ShutDown,
            _ => Refusal::Gone,
        }
    }
}

impl<T> TimerRecord<T> {
    /// Makes the record of a timer that is due at `requested`, and whose payload a worker may
    /// have.
    #[inline(always)]
    pub(crate) fn new(
        timer: Timer<Option<T>>,
        requested: Time,
        name_hash: Option<u64>,
    ) -> TimerRecord<T> {
        let mut payload = None;
        let timer = timer.map(|its| payload = its);
        TimerRecord {
            left: match timer.repeat {
                None => Some(1),
                Some(_) => Some(timer.times).filter(|&times| times > 0),
            },
            payload,
            state: State::Waiting,
            requested,
            number: 1,
            firings: 0,
            taken: None,
            awaited: false,
            run_on_end: timer.notified && timer.task,
            name_hash,
            timer,
        }
    }

    /// Takes out the timer that the record was made from.
    pub(crate) fn take_timer(&mut self) -> Option<Timer<T>> {
        let payload = self.payload.take()?;
        let timer = std::mem::replace(&mut self.timer, Timer::at(Time::START, ()));
        Some(timer.map(|()| payload))
    }

    pub(crate) fn is_repeating(&self) -> bool {
        self.timer.repeat.is_some()
    }

    /// Whether the lent firing, which has already been counted, is the last one.
    pub(crate) fn is_last(&self) -> bool {
        self.left == Some(0) && self.next().is_none()
    }

    /// Whether the timer has fired as often as its count says. A one-shot has no count.
    pub(crate) fn is_used_up(&self) -> bool {
        self.is_repeating() && self.left == Some(0)
    }

    /// Returns the tick for which the holder of the firing has re-armed the timer.
    pub(crate) fn next(&self) -> Option<Tick> {
        match self.state {
            State::Lent { next, .. } => next,
            _ => None,
        }
    }

    /// Whether a worker borrows the payload instead of getting it for good.
    pub(crate) fn is_lent_out(&self) -> bool {
        self.is_repeating() || self.timer.task || self.timer.rearmable
    }

    /// Whether the timer ends as cancelled if it is cancelled now.
    pub(crate) fn ends_if_cancelled(&self) -> bool {
        match self.state {
            State::Waiting => true,
            State::Lent { ending, .. } => ending.is_none() && !self.is_last(),
            _ => false,
        }
    }

    pub(crate) fn deliver(&mut self) {
        self.firings += 1;
        self.left = self.left.map(|left| left - 1);
    }
}

impl<T> TimerRecord<T> {
    /// Sets up the firing that follows the one just done. Returns its deadline: the one that its
    /// holder has set or, if there is none, `rounded` of the time at which it is due.
    pub(crate) fn rearm(
        &mut self,
        now: Time,
        now_tick: Tick,
        rounded: impl Fn(Time) -> Tick,
    ) -> Tick {
        let next = self.next();
        self.state = State::Waiting;
        if let Some(next) = next {
            self.number = self.number.saturating_add(1);
            self.left = self.left.map(|left| left.max(1));
            return next;
        }
        let period = self.timer.repeat.unwrap_or(u64::MAX);
        let follows = self.requested.as_nanos().saturating_add(period);
        let is_missed = rounded(Time::from_nanos(follows)) <= now_tick;
        let (requested, steps) = self.timer.missed.next(self.requested, period, now, is_missed);
        self.requested = requested;
        self.number = self.number.saturating_add(steps);
        rounded(requested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    use crate::rounding::TickLength;
    use crate::timer::{MissedTicks, Timer};
    use proptest::prelude::*;

    /// Computes the result of [`TimerRecord::rearm`] without overflow: the time at which
    /// the timer is due next, and the number of that firing.
    fn rearmed(record: &TimerRecord<()>, period: u64, now: u64, tick: u64) -> (u64, u64) {
        let [due, period, now, tick] =
            [record.requested.as_nanos(), period, now, tick].map(u128::from);
        let never = u128::from(u64::MAX);
        let next = due + period;
        let last_tick_begins = (never - 1) / tick * tick;
        let is_missed =
            next <= last_tick_begins && next.div_ceil(tick) <= (now / tick).min(never - 1);
        let (next, steps) = match record.timer.missed {
            MissedTicks::Skip if is_missed => {
                let steps = (now - due) / period + 1;
                (due + steps * period, steps)
            }
            MissedTicks::Delay if is_missed => (now + period, 1),
            _ => (next, 1),
        };
        let number = u128::from(record.number) + steps;
        (next.min(never) as u64, number.min(never) as u64)
    }

    /// Generates any number, but mostly numbers near the ends of the range.
    fn anywhere() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            0..40u64,
            (0..40u64).prop_map(|less| u64::MAX - less),
            (any::<u64>(), 0..64u32).prop_map(|(bits, shift)| bits >> shift),
        ]
    }

    proptest! {
        #[test]
        fn rearming_is_right_to_the_end_of_time(
            due in anywhere(),
            period in anywhere(),
            now in anywhere(),
            tick in anywhere(),
            number in anywhere(),
            missed in prop_oneof![
                Just(MissedTicks::CatchUp),
                Just(MissedTicks::Skip),
                Just(MissedTicks::Delay)
            ],
        ) {
            let (period, tick, number) = (period.max(1), tick.max(1), number.max(1));
            assert_rearmed(due, period, now, tick, number, missed);
        }
    }

    fn assert_rearmed(
        due: u64,
        period: u64,
        now: u64,
        tick: u64,
        number: u64,
        missed: MissedTicks,
    ) {
        let timer = Timer::every(Duration::from_nanos(period), ()).missed(missed);
        let mut record = TimerRecord::new(timer.map(Some), Time::from_nanos(due), None);
        record.number = number;
        let expected = rearmed(&record, period, now, tick);
        let length = TickLength::new(Duration::from_nanos(tick)).unwrap();
        let now = Time::from_nanos(now);
        record.rearm(now, length.tick_at(now), |time| length.tick_after(time));
        assert_eq!(
            (record.requested.as_nanos(), record.number),
            expected,
            "due {due}, period {period}, now {now}, tick {tick}, number {number}, {missed:?}"
        );
    }

    const ENDS: [u64; 5] = [0, 1, 2, u64::MAX - 1, u64::MAX];

    /// Calls `f` with every pair of numbers near zero or `u64::MAX`.
    fn at_the_ends(f: impl Fn(u64, u64)) {
        for one in ENDS {
            ENDS.iter().for_each(|&other| f(one, other));
        }
    }

    #[test]
    fn rearming_is_right_where_everything_is_at_an_end_of_time() {
        at_the_ends(|due, now| {
            at_the_ends(|period, number| {
                for missed in [MissedTicks::CatchUp, MissedTicks::Skip, MissedTicks::Delay] {
                    for tick in ENDS.map(|tick| tick.max(1)) {
                        assert_rearmed(due, period.max(1), now, tick, number.max(1), missed);
                    }
                }
            });
        });
    }
}
