//! The next firing of a repeating timer.

use crate::rounding::TickLength;
use crate::shard::record::{State, TimerRecord};
use crate::tick::Tick;
use crate::timeline::Time;

impl<T> TimerRecord<T> {
    /// Sets up the firing that follows the one just done, and returns its tick.
    pub(crate) fn rearm(&mut self, now: Time, tick: TickLength) -> Tick {
        let deadline = match self.next() {
            Some(next) => self.rearm_at(next),
            None => self.rearm_in_phase(now, tick),
        };
        self.state = State::Waiting;
        deadline
    }

    fn rearm_in_phase(&mut self, now: Time, tick: TickLength) -> Tick {
        let period = self.period.unwrap_or(u64::MAX);
        let next = self.requested.as_nanos().saturating_add(period);
        let is_missed = tick.tick_after(Time::from_nanos(next)) <= tick.tick_at(now);
        let (requested, steps) = self.missed.next(self.requested, period, now, is_missed);
        self.requested = requested;
        self.number = self.number.saturating_add(steps);
        tick.tick_after(self.requested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

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
        let (next, steps) = match record.missed {
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
        let mut record = TimerRecord::new(timer, Time::from_nanos(due), None);
        record.number = number;
        let expected = rearmed(&record, period, now, tick);
        let length = TickLength::new(Duration::from_nanos(tick)).unwrap();
        record.rearm(Time::from_nanos(now), length);
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
