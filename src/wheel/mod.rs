//! The data structure alone: one owner, ticks from the caller, no clock, no
//! thread, no system calls.
//!
//! [`Wheel`] is what game loops, simulations, event loops and caches use by
//! themselves, and what an [`Engine`](crate::Engine) has one of per shard.

mod advance;
mod cascade;
mod entries;
mod fire;
mod geometry;
mod hosted;
mod inspect;
mod iter;
mod keyed;
mod levels;
mod link;
mod shrink;
mod work;

#[cfg(test)]
mod oracle;

use std::collections::BinaryHeap;

pub use advance::{Advance, Expired};
pub use entries::ReserveError;
pub use geometry::{Geometry, InvalidGeometry};
pub use inspect::{Slot, Slots};
pub use iter::{IntoIter, Iter};
pub use keyed::{DuplicateKey, KeyedExpired, KeyedWheel};

pub(crate) use advance::Step;
pub(crate) use entries::{EntryIndex, Stamp};
pub(crate) use iter::{Cursor, OverBudget};
pub(crate) use shrink::Hangs;

use crate::id::{TimerId, WheelNumber};
use crate::tick::Tick;
use entries::Entries;
use levels::Levels;
use work::{Fronts, HeapEntry, Work};

/// A hierarchical timing wheel with one owner.
///
/// Scheduling, cancelling and rescheduling cost a few nanoseconds each,
/// whatever the number of timers; a cancelled timer's storage is free for the
/// next one at once. An entry takes 24 bytes beside its payload.
///
/// # Order
///
/// Timers fire by deadline. Within a tick they fire in the order in which they
/// were first scheduled, whether they were rescheduled since or not. What is
/// scheduled, or moved, to a tick that has already been reached is due at once
/// and fires behind everything else that is due, in the order of those calls.
/// The same calls give the same order in every run.
///
/// Those that are due at once fire in turns. A turn takes all of them that there
/// are, and what is added during it comes with the next one. When sixteen have
/// fired the wheel first goes on, to the next tick at which a timer is due or to
/// the end of the advance, and then the next turn begins. So a timer that adds
/// itself anew with no delay holds up neither the clock nor another timer.
///
/// # Example
///
/// ```
/// use tickwheel::{Tick, Wheel};
///
/// let mut wheel = Wheel::starting_at(Tick(0), 64);
/// let a = wheel.schedule_at(Tick(350), "a");
/// let b = wheel.schedule_after(20, "b");
/// wheel.schedule_at(Tick(350), "c");
/// assert_eq!(wheel.cancel(b), Some("b"));
///
/// let mut fired = Vec::new();
/// while let Some(expired) = wheel.pop_due(Tick(400)) {
///     fired.push((expired.deadline, expired.payload));
/// }
/// assert_eq!(fired, [(Tick(350), "a"), (Tick(350), "c")]);
/// assert_eq!(wheel.now(), Tick(400));
/// assert_eq!(wheel.cancel(a), None); // fired already
/// ```
pub struct Wheel<T> {
    entries: Entries<T>,
    levels: Levels,
    now: u64,
    /// Nothing can come due, and no slot's turn can come, before this tick. If
    /// it lies ahead, it is the beginning of the slot whose turn is next (which
    /// may have become empty since), or the end of time.
    next_turn: u64,
    /// What [`Wheel::step`] was in the middle of.
    work: Work,
    /// Of the slot that is being fired.
    fronts: Fronts,
    /// Due now, behind everything else that is.
    overdue: EntryIndex,
    /// Those among them whose turn it is.
    round: EntryIndex,
    /// How many turns they have had.
    rounds: u64,
    /// How many of them have fired since one of a slot did.
    overdue_in_a_row: u32,
    /// Entries of an unsorted slot on their way through `heap`.
    sort_list: EntryIndex,
    heap: BinaryHeap<HeapEntry>,
    /// Of the youngest timer, without a tag.
    youngest: Stamp,
    number: WheelNumber,
}

impl<T> Wheel<T> {
    /// A wheel that starts at tick 0, with `size` slots per level and as many
    /// levels as its deadlines need.
    ///
    /// # Panics
    /// If `size` is not between 2 and 65,536; [`Geometry::new`] with
    /// [`Wheel::with_geometry`] says so with an error instead.
    ///
    /// ```
    /// let wheel = tickwheel::Wheel::<u32>::new(64);
    /// assert!(wheel.is_empty());
    /// ```
    #[must_use]
    pub fn new(size: usize) -> Wheel<T> {
        Wheel::starting_at(Tick(0), size)
    }

    /// As [`Wheel::new`], starting at a tick of your choice.
    ///
    /// # Panics
    /// If `size` is not between 2 and 65,536.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::starting_at(Tick(1_587_848_614), 256);
    /// wheel.schedule_after(3, "three later");
    /// assert_eq!(wheel.next_wakeup(), Some(Tick(1_587_848_617)));
    /// ```
    #[must_use]
    pub fn starting_at(now: Tick, size: usize) -> Wheel<T> {
        match Geometry::new(size) {
            Ok(geometry) => Wheel::with_geometry(now, geometry),
            Err(error) => panic!("{error}"),
        }
    }

    /// A wheel of the given [`Geometry`].
    ///
    /// ```
    /// use tickwheel::wheel::Geometry;
    /// use tickwheel::{Tick, Wheel};
    ///
    /// // One flat level of 60,000 slots.
    /// let geometry = Geometry::new(60_000)?.max_levels(1)?;
    /// let mut wheel = Wheel::with_geometry(Tick(0), geometry);
    /// wheel.schedule_at(Tick(1_000_000), "far beyond one turn");
    /// assert!(wheel.pop_due(Tick(999_999)).is_none());
    /// assert!(wheel.pop_due(Tick(1_000_000)).is_some());
    /// # Ok::<(), tickwheel::wheel::InvalidGeometry>(())
    /// ```
    #[must_use]
    pub fn with_geometry(now: Tick, geometry: Geometry) -> Wheel<T> {
        Wheel::numbered(now, geometry, WheelNumber::reserve(1))
    }

    pub(crate) fn numbered(now: Tick, geometry: Geometry, number: WheelNumber) -> Wheel<T> {
        let (mut entries, overdue) = Entries::new();
        let sort_list = entries.add_list();
        let round = entries.add_list();
        Wheel {
            entries,
            levels: Levels::new(geometry),
            now: now.0,
            next_turn: u64::MAX,
            work: Work::Nothing,
            fronts: Fronts::none(overdue),
            overdue,
            round,
            rounds: 0,
            overdue_in_a_row: 0,
            sort_list,
            heap: BinaryHeap::new(),
            youngest: Stamp::VACANT,
            number,
        }
    }

    /// The tick that the wheel has reached.
    #[must_use]
    pub fn now(&self) -> Tick {
        Tick(self.now)
    }

    /// How many timers are in the wheel.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.live()
    }

    /// Whether the wheel holds no timer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The wheel's shape.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.levels.geometry
    }

    /// Makes room for `timers` timers in all, so that scheduling that many
    /// does not allocate.
    ///
    /// # Panics
    /// If there is no room for so many; the wheel's timers are as they were.
    /// [`Wheel::try_reserve`] says so with an error instead.
    pub fn reserve(&mut self, timers: usize) {
        if let Err(error) = self.try_reserve(timers) {
            panic!("{error}");
        }
    }

    /// Makes room for `timers` timers in all, as [`Wheel::reserve`] does.
    ///
    /// # Errors
    /// Returns the reason if there is no room for so many; the wheel's timers
    /// are as they were.
    ///
    /// ```
    /// use tickwheel::Wheel;
    /// use tickwheel::wheel::ReserveError;
    ///
    /// let mut wheel = Wheel::<u64>::new(64);
    /// assert_eq!(wheel.try_reserve(1_000), Ok(()));
    /// assert_eq!(wheel.try_reserve(usize::MAX), Err(ReserveError::TooMany));
    /// ```
    pub fn try_reserve(&mut self, timers: usize) -> Result<(), ReserveError> {
        // They may need every level.
        let heads = self.levels.heads_to_come();
        self.entries.try_reserve(timers, heads)
    }

    /// Schedules a timer for an absolute tick. A deadline that has been
    /// reached already makes it due at once, behind whatever is due.
    ///
    /// Constant time; allocates only when the wheel holds more timers than
    /// ever before, or needs a level for the first time.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::starting_at(Tick(100), 64);
    /// wheel.schedule_at(Tick(90), "past");
    /// assert_eq!(wheel.pop_due(Tick(100)).unwrap().payload, "past");
    /// ```
    #[inline]
    pub fn schedule_at(&mut self, deadline: Tick, payload: T) -> TimerId {
        self.schedule_tagged(deadline, 0, payload).id
    }

    /// Schedules a timer `delay` ticks from [`Wheel::now`]; a delay of zero is
    /// due at once.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::starting_at(Tick(7), 64);
    /// let id = wheel.schedule_after(3, ());
    /// assert_eq!(wheel.deadline(id), Some(Tick(10)));
    /// ```
    #[inline]
    pub fn schedule_after(&mut self, delay: u64, payload: T) -> TimerId {
        self.schedule_at(self.now().after(delay), payload)
    }

    /// Moves a timer to another deadline and returns whether there was one to
    /// move. Later costs one store; earlier moves the timer to another slot.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut keep_alive = Wheel::new(64);
    /// let id = keep_alive.schedule_at(Tick(30), "session");
    /// assert!(keep_alive.reschedule(id, Tick(55)));
    /// assert!(keep_alive.pop_due(Tick(54)).is_none());
    /// assert!(keep_alive.pop_due(Tick(55)).is_some());
    /// assert!(!keep_alive.reschedule(id, Tick(90)));
    /// ```
    #[inline]
    #[must_use = "a timer that has fired or was cancelled cannot be moved"]
    pub fn reschedule(&mut self, id: TimerId, deadline: Tick) -> bool {
        match self.find_at_home(id) {
            Some(entry) => {
                self.move_to(entry, deadline.0);
                true
            }
            None => self.reschedule_moved(id, deadline),
        }
    }

    /// The same for a timer that was moved to another entry, or is gone. A call
    /// at the end, so that the way of all others saves no registers for it.
    #[cold]
    #[inline(never)]
    fn reschedule_moved(&mut self, id: TimerId, deadline: Tick) -> bool {
        let found = self.find(id);
        if let Some(entry) = found {
            self.move_to(entry, deadline.0);
        }
        found.is_some()
    }

    /// Cancels a timer and returns its payload, or `None` if there is no such
    /// timer (any more). Constant time; the storage is free at once.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// let id = wheel.schedule_at(Tick(u64::MAX), String::from("far"));
    /// assert_eq!(wheel.cancel(id).as_deref(), Some("far"));
    /// assert_eq!(wheel.cancel(id), None);
    /// ```
    #[inline]
    pub fn cancel(&mut self, id: TimerId) -> Option<T> {
        match self.find_at_home(id) {
            Some(entry) => {
                self.unlink(entry);
                Some(self.entries.remove(entry))
            }
            None => self.cancel_moved(id),
        }
    }

    /// As [`Wheel::reschedule_moved`].
    #[cold]
    #[inline(never)]
    fn cancel_moved(&mut self, id: TimerId) -> Option<T> {
        let entry = self.find(id)?;
        self.unlink(entry);
        Some(self.entries.remove(entry))
    }

    /// Puts another payload in a timer's place and returns the old one.
    ///
    /// # Errors
    /// Returns `payload` if there is no such timer.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// let id = wheel.schedule_at(Tick(5), "old");
    /// assert_eq!(wheel.replace(id, "new"), Ok("old"));
    /// wheel.cancel(id);
    /// assert_eq!(wheel.replace(id, "late"), Err("late"));
    /// ```
    pub fn replace(&mut self, id: TimerId, payload: T) -> Result<T, T> {
        match self.find(id) {
            Some(entry) => Ok(core::mem::replace(self.entries.payload_mut(entry), payload)),
            None => Err(payload),
        }
    }

    /// Whether the timer is in the wheel.
    #[must_use]
    pub fn contains(&self, id: TimerId) -> bool {
        self.find(id).is_some()
    }

    /// A timer's payload.
    #[must_use]
    pub fn get(&self, id: TimerId) -> Option<&T> {
        self.find(id).map(|entry| self.entries.payload(entry))
    }

    /// A timer's payload, to be changed in place.
    #[must_use]
    pub fn get_mut(&mut self, id: TimerId) -> Option<&mut T> {
        self.find(id).map(|entry| self.entries.payload_mut(entry))
    }

    /// When the timer is due. A timer that was scheduled for the past is due
    /// now.
    #[must_use]
    pub fn deadline(&self, id: TimerId) -> Option<Tick> {
        self.find(id).map(|entry| self.due_at(entry))
    }

    /// How many ticks from now the timer is due.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// let id = wheel.schedule_at(Tick(350), ());
    /// assert!(wheel.pop_due(Tick(340)).is_none());
    /// assert_eq!(wheel.remaining(id), Some(10));
    /// ```
    #[must_use]
    pub fn remaining(&self, id: TimerId) -> Option<u64> {
        Some(self.deadline(id)?.since(self.now()))
    }

    /// The tick at which the wheel next has something to do: never later than
    /// the earliest deadline, sometimes earlier (when a slot of an outer level
    /// must be re-filed). `None` means that nothing is due, ever.
    ///
    /// Costs a look at one bitmap per level. See [`Wheel::earliest_deadline`]
    /// for the exact answer.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// assert_eq!(wheel.next_wakeup(), None);
    /// wheel.schedule_at(Tick(70), ());
    /// assert_eq!(wheel.next_wakeup(), Some(Tick(64)));
    /// assert_eq!(wheel.earliest_deadline(), Some(Tick(70)));
    /// ```
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Tick> {
        if self.is_empty() {
            return None;
        }
        if self.has_unfinished_work() {
            return Some(self.now());
        }
        self.next_slot()
    }

    /// Removes every timer; the storage stays for new ones.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// wheel.schedule_at(Tick(5), "never fires");
    /// wheel.clear();
    /// assert!(wheel.is_empty());
    /// ```
    pub fn clear(&mut self) {
        let all: Vec<EntryIndex> = self.entries.timers(0).collect();
        for entry in all {
            self.unlink(entry);
            drop(self.entries.remove(entry));
        }
    }
}

impl<T: core::fmt::Debug> core::fmt::Debug for Wheel<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Wheel")
            .field("now", &self.now())
            .field("len", &self.len())
            .field("size", &self.geometry().size())
            .finish_non_exhaustive()
    }
}
