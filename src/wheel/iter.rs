//! Walking over what is live.

use super::{At, Wheel};
use crate::id::TimerId;
use crate::tick::Tick;

/// Iterator over a wheel's timers, from [`Wheel::iter`].
pub struct Iter<'a, T> {
    wheel: &'a Wheel<T>,
    at: Box<dyn Iterator<Item = At> + 'a>,
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = (TimerId, Tick, &'a T);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at.next()?;
        let payload = self.wheel.storage.payload(at);
        Some((self.wheel.id(at), self.wheel.due_at(at), payload))
    }
}

impl<T> Wheel<T> {
    /// Every timer in the wheel, with its deadline, in no particular order.
    ///
    /// Walks the storage: the cost follows the largest number of timers that
    /// the wheel ever held at once.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// wheel.schedule_at(Tick(5), 'a');
    /// wheel.schedule_at(Tick(9), 'b');
    /// let due_soon = wheel.iter().filter(|&(_, deadline, _)| deadline < Tick(6));
    /// assert_eq!(due_soon.count(), 1);
    /// ```
    pub fn iter(&self) -> Iter<'_, T> {
        Iter {
            wheel: self,
            at: Box::new(self.storage.timers(0)),
        }
    }

    /// The exact earliest deadline. Unlike [`Wheel::next_wakeup`], which is
    /// only a lower bound, it may have to search a whole slot.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// wheel.schedule_at(Tick(900), ());
    /// assert_eq!(wheel.earliest_deadline(), Some(Tick(900)));
    /// ```
    #[must_use]
    pub fn earliest_deadline(&self) -> Option<Tick> {
        Some(self.earliest_asked()?.max(self.now()))
    }

    /// The same, of a timer for the past the deadline that was asked for.
    pub(crate) fn earliest_asked(&self) -> Option<Tick> {
        let waiting = [self.late, self.turn, self.sorting];
        let unslotted = waiting.into_iter().flat_map(|list| self.on_list(list));
        let mut earliest = unslotted.map(|at| self.deadline_of(at)).min();
        let levels = 0..self.geometry().levels();
        for place in levels.flat_map(|level| self.levels.occupied_in_level(level, self.now)) {
            // Postponed timers may be due later than the slots after theirs,
            // and a paused cascade's slot comes before the levels below it.
            if earliest.is_some_and(|earliest| earliest.0 < place.start) {
                continue;
            }
            let slot = self.in_slot(place.level, place.slot);
            earliest = slot.map(|at| self.deadline_of(at)).chain(earliest).min();
        }
        earliest
    }

    pub(super) fn in_slot(&self, level: usize, slot: usize) -> impl Iterator<Item = At> + '_ {
        (0..self.levels.lanes())
            .filter_map(move |lane| self.levels.head(&self.storage, level, slot, lane))
            .flat_map(|head| self.on_list(head))
    }

    pub(super) fn on_list(&self, list: At) -> impl Iterator<Item = At> + '_ {
        let first = self.storage.next(list);
        core::iter::successors(Some(first), |&at| Some(self.storage.next(at)))
            .take_while(move |&at| at != list)
    }
}

impl<'a, T> IntoIterator for &'a Wheel<T> {
    type Item = (TimerId, Tick, &'a T);
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// Iterator that takes a wheel's timers out of it, from
/// [`Wheel::into_iter`](IntoIterator::into_iter).
pub struct IntoIter<T> {
    wheel: Wheel<T>,
    at: std::vec::IntoIter<At>,
}

impl<T> Iterator for IntoIter<T> {
    type Item = (TimerId, Tick, T);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at.next()?;
        let (id, deadline) = (self.wheel.id(at), self.wheel.due_at(at));
        self.wheel.unlink(at);
        Some((id, deadline, self.wheel.remove(at)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.at.size_hint()
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}

/// Every timer, exactly once, in no particular order.
impl<T> IntoIterator for Wheel<T> {
    type Item = (TimerId, Tick, T);
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        let all: Vec<At> = self.storage.timers(0).collect();
        IntoIter {
            wheel: self,
            at: all.into_iter(),
        }
    }
}
