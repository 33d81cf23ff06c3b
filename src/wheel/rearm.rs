//! Putting an expired timer back into the wheel, under its old id.
//!
//! A popped timer has left its entry, so a timer that is not re-armed costs nothing.
//! Re-arming stores the timer with its old sequence number. If the most recently
//! vacated entry is the one that the id names, as it is right after the pop, the
//! timer is found there. Any other entry is noted as if shrinking had moved the
//! timer there (see `entries/moved.rs`).

use super::Wheel;
use super::advance::Expired;
use crate::tick::Tick;

impl<T> Wheel<T> {
    /// Puts an expired timer back into the wheel, under the same id. The timer is
    /// due at `deadline`, or at once if that tick has been reached.
    ///
    /// This makes a repeating timer: the period and the number of firings left are
    /// part of the payload, where they can be read and changed at any time. Between
    /// the pop and this call, the timer is not in the wheel, so that `cancel` returns
    /// `None`.
    ///
    /// Among the timers of its new tick, a re-armed timer keeps the place of its
    /// first scheduling, as a rescheduled one does.
    ///
    /// # Errors
    /// Returns `expired` if the timer is in the wheel (a clone of `expired` was put
    /// back) or belongs to another wheel.
    ///
    /// # Cost
    /// Takes constant time and does not allocate if no other timer was popped,
    /// scheduled or cancelled since the timer was popped. Otherwise the timer may get
    /// another entry. Until it leaves the wheel, such a timer takes some twenty bytes
    /// more, and finding it takes a look-up in a sorted map.
    ///
    /// # Example
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// struct Buff {
    ///     period: u64,
    ///     times: u32,
    /// }
    ///
    /// let mut wheel = Wheel::new(64);
    /// let id = wheel.schedule_at(Tick(10), Buff { period: 10, times: 4 });
    /// let mut ticks = Vec::new();
    /// while let Some(mut expired) = wheel.pop_due(Tick(100)) {
    ///     ticks.push(expired.deadline.0);
    ///     expired.payload.times -= 1;
    ///     if expired.payload.times > 0 {
    ///         let next = expired.deadline.after(expired.payload.period);
    ///         assert!(wheel.rearm(expired, next).is_ok());
    ///     }
    ///     if ticks.len() == 2 {
    ///         // Another period from the next firing on.
    ///         wheel.get_mut(id).unwrap().period = 7;
    ///     }
    /// }
    /// assert_eq!(ticks, [10, 20, 30, 37]);
    /// assert!(!wheel.contains(id));
    /// ```
    pub fn rearm(&mut self, expired: Expired<T>, deadline: Tick) -> Result<(), Expired<T>> {
        let id = expired.id();
        if !id.is_of(self.number) || self.find_own(id).is_some() {
            return Err(expired);
        }
        if self.may_widen() {
            self.widen_for(self.len() + 1);
        }
        let entries = &mut self.entries;
        let entry = entries.put_back(id.index(), id.sequence(), deadline.0, expired.payload);
        self.relink(entry);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TimerId;

    /// Returns a wheel at tick 9, and `count` timers that it popped there.
    fn popped(count: u64) -> (Wheel<u64>, Vec<Expired<u64>>) {
        let mut wheel = Wheel::new(64);
        for n in 0..count {
            wheel.schedule_at(Tick(9), n);
        }
        let expired = core::iter::from_fn(|| wheel.pop_due(Tick(9))).collect();
        (wheel, expired)
    }

    fn pop_all(wheel: &mut Wheel<u64>, to: Tick) -> Vec<(TimerId, u64)> {
        let pop = || wheel.pop_due(to).map(|e| (e.id(), e.payload));
        core::iter::from_fn(pop).collect()
    }

    #[test]
    fn a_timer_that_is_put_back_at_once_is_not_noted_as_moved() {
        let mut wheel = Wheel::new(64);
        let id = wheel.schedule_at(Tick(1), 1);
        wheel.schedule_at(Tick(1_000), 2);
        let used = wheel.entries.used();
        for tick in 1..100 {
            let expired = wheel.pop_due(Tick(tick)).unwrap();
            assert_eq!((expired.id(), expired.deadline), (id, Tick(tick)));
            assert_eq!(wheel.rearm(expired, Tick(tick + 1)), Ok(()));
            assert_eq!(wheel.find_unmoved(id), wheel.find(id));
            assert_eq!(wheel.deadline(id), Some(Tick(tick + 1)));
            wheel.assert_consistent();
        }
        assert_eq!((wheel.cancel(id), wheel.entries.used()), (Some(1), used));
    }

    #[test]
    fn a_timer_that_gets_another_entry_keeps_its_id() {
        let (mut wheel, expired) = popped(100);
        let ids: Vec<_> = expired.iter().map(|e| (e.id(), e.payload)).collect();
        for round in 0..3 {
            let again = match round {
                0 => expired.clone(),
                _ => core::iter::from_fn(|| wheel.pop_due(Tick(9 + round))).collect(),
            };
            assert!(again.iter().all(|&e| !wheel.contains(e.id())));
            for expired in again {
                assert_eq!(wheel.rearm(expired, Tick(10 + round)), Ok(()));
            }
            wheel.assert_consistent();
            assert!(ids.iter().all(|(id, n)| wheel.get(*id) == Some(n)));
        }
        assert_eq!(pop_all(&mut wheel, Tick(12)), ids);
        assert_eq!(wheel.find(ids[0].0), None);
        wheel.assert_consistent();
    }

    #[test]
    fn a_re_armed_timer_fires_in_the_place_of_its_first_scheduling() {
        let (mut wheel, expired) = popped(3);
        for deadline in [12, 70, 5_000, u64::MAX / 2] {
            let young = (0..20).map(|n| (wheel.schedule_at(Tick(deadline), n), n));
            let expected: Vec<_> = expired.iter().map(|e| (e.id(), e.payload)).collect();
            let expected: Vec<_> = expected.into_iter().chain(young).collect();
            for &expired in expired.iter().rev() {
                assert_eq!(wheel.rearm(expired, Tick(deadline)), Ok(()));
            }
            wheel.assert_consistent();
            assert_eq!(pop_all(&mut wheel, Tick(deadline)), expected);
        }
    }

    #[test]
    fn a_timer_that_is_re_armed_for_the_past_is_overdue() {
        let (mut wheel, expired) = popped(2);
        wheel.schedule_at(Tick(10), 7);
        assert_eq!(wheel.rearm(expired[1], Tick(3)), Ok(()));
        assert_eq!(wheel.rearm(expired[0], Tick(9)), Ok(()));
        assert_eq!(wheel.deadline(expired[0].id()), Some(Tick(9)));
        let fired = pop_all(&mut wheel, Tick(10)).into_iter().map(|(_, n)| n);
        assert!(fired.eq([1, 0, 7]));
    }

    #[test]
    fn a_timer_in_the_wheel_and_one_of_another_wheel_are_returned() {
        let (mut wheel, expired) = popped(1);
        let [first] = expired[..] else { unreachable!() };
        assert_eq!(wheel.rearm(first, Tick(20)), Ok(()));
        assert_eq!(wheel.rearm(first, Tick(30)), Err(first));
        let mut other = popped(1).0;
        assert_eq!(other.rearm(first, Tick(30)), Err(first));
        assert_eq!((wheel.len(), other.len()), (1, 0));
        // Cancelled meanwhile, it can be put back once more.
        assert_eq!(wheel.cancel(first.id()), Some(0));
        assert_eq!(wheel.rearm(first, Tick(30)), Ok(()));
        assert_eq!(wheel.deadline(first.id()), Some(Tick(30)));
    }

    #[test]
    fn a_timer_whose_entry_was_cut_off_is_put_back() {
        let (mut wheel, expired) = popped(1_000);
        wheel.shrink();
        let used = wheel.entries.used();
        let last = expired[999];
        assert!(last.id().index() >= used);
        assert_eq!(wheel.rearm(last, Tick(20)), Ok(()));
        assert_eq!(wheel.get(last.id()), Some(&999));
        wheel.assert_consistent();
        wheel.shrink();
        assert_eq!(pop_all(&mut wheel, Tick(20)), [(last.id(), 999)]);
        wheel.clear();
        wheel.assert_consistent();
    }

    #[test]
    fn a_reserved_wheel_puts_large_payloads_back() {
        let mut wheel = Wheel::new(64);
        wheel.reserve(100);
        for n in 0..100 {
            wheel.schedule_at(Tick(9), [n; 99]);
        }
        let capacity = wheel.entries.capacity();
        let all: Vec<_> = core::iter::from_fn(|| wheel.pop_due(Tick(9))).collect();
        for &expired in &all {
            assert_eq!(wheel.rearm(expired, Tick(10)), Ok(()));
        }
        assert_eq!(wheel.entries.capacity(), capacity);
        assert_eq!(wheel.entries.cells(), 100);
        assert!(all.iter().all(|e| wheel.get(e.id()) == Some(&e.payload)));
    }
}
