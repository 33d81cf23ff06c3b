//! The data structure alone: it has one owner, gets its ticks from the caller, and
//! needs no clock, no thread and no system calls.
//!
//! Game loops, simulations, event loops and caches use a [`Wheel`] by itself. An
//! [`Engine`](crate::Engine) has one per shard.
//!
//! # Without `std`
//! With `default-features = false`, the wheels need `core`, `alloc`, a global allocator,
//! and atomics of 32 bits. Three things then depend on the target:
//!
//! * **Keys.** A [`KeyedWheel`] finds a timer in logarithmic time, in a sorted map. Its
//!   hashes are not random.
//! * **Without a compare-and-swap of 64 bits** (thumbv7em), a program can make
//!   2<sup>32</sup> − 2 wheels. The next call panics.
//! * **Without any compare-and-swap** (thumbv6m), wheels must be made one at a time. If
//!   an interrupt or another core makes a wheel during such a call, both wheels may take
//!   each other's ids for their own. Memory stays safe.
//!
//! ```toml
//! tickwheel = { version = "0.1", default-features = false }
//! ```
//!
//! ```
//! // In firmware, `#![no_std]` and a `#[global_allocator]` precede this.
//! use tickwheel::{Tick, Wheel};
//!
//! let mut wheel = Wheel::new(16);
//! wheel.schedule_after(500, "blink");
//! let sleep_until = wheel.next_wakeup(); // for the compare register of a hardware timer
//! assert_eq!(sleep_until, Some(Tick(256)));
//! assert_eq!(wheel.pop_due(Tick(500)).unwrap().payload, "blink");
//! ```

mod advance;
mod entries;
mod geometry;
mod inspect;
mod keyed;
mod link;
mod slots;
mod walk;

// Compiled in here because it calls the crate's own methods, as a shard does.
#[cfg(test)]
#[path = "../../tests/oracle/wheel/mod.rs"]
mod oracle;

use alloc::collections::BinaryHeap;

pub use advance::{Advance, Expired};
pub use entries::ReserveError;
pub use geometry::{Geometry, InvalidGeometry};
pub use inspect::{Level, Slot};
pub use keyed::{DuplicateKey, KeyedExpired, KeyedWheel};

#[cfg(any(feature = "std", test))]
pub(crate) use advance::Step;
pub(crate) use entries::{EntryIndex, Stamp, Tag};
// For shards alone.
#[cfg(feature = "std")]
pub(crate) use walk::Cursor;

use crate::id::{TimerId, WheelNumber};
use crate::tick::Tick;
use entries::{Entries, IN_HEAP, OVERDUE, OWN_LISTS, Sorted};
use slots::Slots;

/// A hierarchical timing wheel with one owner.
///
/// Scheduling, cancelling and rescheduling cost a few nanoseconds each, whatever
/// the number of timers. A cancelled timer's storage is available to the next timer
/// at once. An entry takes 24 bytes in addition to its payload.
///
/// # Order
///
/// Timers fire by deadline. Within a tick they fire in the order in which they were
/// first scheduled, even if they have been rescheduled or re-armed since. The same calls
/// produce the same order in every run.
///
/// A timer that is scheduled, rescheduled or re-armed for a tick already reached is
/// *overdue*. Its tick is then now, wherever a tick is told, but overdue timers fire by the
/// deadlines that they were given. If [`pop_due`](Wheel::pop_due) or
/// [`advance`](Wheel::advance) is under way to a tick, it fires in the next call after that tick
/// is reached: a timer that re-arms itself for now therefore holds up neither the clock nor
/// other timers, and a loop around `pop_due` ends.
///
/// # Clones
///
/// A clone holds the same timers under the same ids. Timers that are scheduled afterwards may
/// have one id in both wheels: use an id, or an [`Expired`], with the wheel that it came from.
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
#[derive(Clone)]
pub struct Wheel<T> {
    pub(crate) entries: Entries<T>,
    slots: Slots,
    /// The number of the last pass that has begun, and the tick to which it goes.
    pass: (u64, u64),
    /// The number of the last pass that has ended, and its tick.
    ended: (u64, u64),
    /// The first list of an outer slot whose turn has come, and a bit for each of its lists
    /// that is left to cascade.
    cascading: (EntryIndex, u64),
    /// Whether timers whose tick has come go through the heap, because they are out of order.
    is_sorting: bool,
    /// How far [`Wheel::look_ahead`] has come.
    ahead: EntryIndex,
    heap: BinaryHeap<Sorted>,
    /// The stamp of the last timer that was scheduled.
    pub(crate) youngest: Stamp,
    number: WheelNumber,
}

impl<T> Wheel<T> {
    /// Creates a wheel that starts at tick 0, with `size` slots per level and as
    /// many levels as its deadlines need.
    ///
    /// # Panics
    /// Panics if `size` is not between 2 and 65,536. [`Geometry::new`], for use
    /// with [`Wheel::with_geometry`], returns an error instead.
    ///
    /// ```
    /// let wheel = tickwheel::Wheel::<u32>::new(64);
    /// assert!(wheel.is_empty());
    /// ```
    #[must_use]
    pub fn new(size: usize) -> Wheel<T> {
        Wheel::starting_at(Tick(0), size)
    }

    /// Creates a wheel like [`Wheel::new`], but starting at tick `now`.
    ///
    /// # Panics
    /// Panics if `size` is not between 2 and 65,536.
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
        let geometry = Geometry::new(size).unwrap_or_else(|error| panic!("{error}"));
        Wheel::with_geometry(now, geometry)
    }

    /// Creates a wheel with the given [`Geometry`], starting at tick `now`.
    ///
    /// ```
    /// use tickwheel::wheel::Geometry;
    /// use tickwheel::{Tick, Wheel};
    ///
    /// // One flat level of 60,000 slots.
    /// let geometry = Geometry::new(60_000)?.max_levels(1)?;
    /// let mut wheel = Wheel::with_geometry(Tick(0), geometry);
    /// wheel.schedule_at(Tick(1_000_000), "far beyond one rotation");
    /// assert!(wheel.pop_due(Tick(999_999)).is_none());
    /// assert!(wheel.pop_due(Tick(1_000_000)).is_some());
    /// # Ok::<(), tickwheel::wheel::InvalidGeometry>(())
    /// ```
    #[must_use]
    pub fn with_geometry(now: Tick, geometry: Geometry) -> Wheel<T> {
        Wheel::numbered(now, geometry, WheelNumber::reserve(1), 0)
    }

    /// Creates a wheel with a number of lists for its owner.
    pub(crate) fn numbered(
        now: Tick,
        geometry: Geometry,
        number: WheelNumber,
        lists: u32,
    ) -> Wheel<T> {
        let slots = Slots::new(now.0, geometry, OWN_LISTS);
        let end = slots.end();
        Wheel {
            entries: Entries::new(end + lists),
            slots,
            pass: (0, 0),
            ended: (0, 0),
            cascading: (EntryIndex::new(0), 0),
            is_sorting: false,
            ahead: EntryIndex::new(0),
            heap: BinaryHeap::new(),
            youngest: Stamp::NONE,
            number,
        }
    }

    /// Returns the tick that the wheel has reached.
    #[must_use]
    pub fn now(&self) -> Tick {
        Tick(self.slots.now)
    }

    /// Returns the number of timers in the wheel.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.live
    }

    /// Returns whether the wheel holds no timers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the wheel's shape.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.slots.geometry
    }

    /// Reserves room for `timers` timers in total. Scheduling up to that many does not
    /// allocate, until the wheel has become empty or was shrunk.
    ///
    /// # Panics
    /// Panics if there is not enough room; the wheel's timers are unchanged.
    /// [`Wheel::try_reserve`] returns an error instead.
    pub fn reserve(&mut self, timers: usize) {
        self.try_reserve(timers).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Reserves room for `timers` timers in total, as [`Wheel::reserve`] does.
    ///
    /// # Errors
    /// Returns the reason if there is not enough room; the wheel's timers are
    /// unchanged.
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
        self.entries.try_reserve(timers)
    }

    /// Schedules a timer for an absolute tick. If that tick has been reached, the
    /// timer is overdue, and fires in the next pass.
    ///
    /// Takes constant time. Allocates only if the storage grows, and ends the process if there
    /// is no memory for that; [`Wheel::try_reserve`] returns an error instead.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::starting_at(Tick(100), 64);
    /// wheel.schedule_at(Tick(90), "past");
    /// assert_eq!(wheel.pop_due(Tick(100)).unwrap().payload, "past");
    /// ```
    pub fn schedule_at(&mut self, deadline: Tick, payload: T) -> TimerId {
        self.schedule_tagged(deadline, Tag(0), payload).0
    }

    /// Schedules a timer for `delay` ticks after [`Wheel::now`]. A timer with a
    /// delay of zero is due at once.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::starting_at(Tick(7), 64);
    /// let id = wheel.schedule_after(3, ());
    /// assert_eq!(wheel.deadline(id), Some(Tick(10)));
    /// ```
    pub fn schedule_after(&mut self, delay: u64, payload: T) -> TimerId {
        self.schedule_at(self.now().after(delay), payload)
    }

    /// Changes a timer's deadline. Returns whether the timer is in the wheel.
    ///
    /// A later deadline costs one store; an earlier one moves the timer to
    /// another slot.
    ///
    /// A timer at [`Tick::MAX`] never fires, even if the clock goes there: it is disarmed, and
    /// keeps its id and its payload. Disarming costs one store, too. So does arming the timer
    /// again, if the tick is not before its last deadline and that deadline's slot has not had
    /// its turn. One timer can therefore serve all requests of a connection.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// let request = wheel.schedule_at(Tick::MAX, "connection 7");
    /// for began in [0, 20, 40] {
    ///     assert!(wheel.reschedule(request, Tick(began + 30))); // arm
    ///     assert!(wheel.pop_due(Tick(began + 20)).is_none());
    ///     assert!(wheel.reschedule(request, Tick::MAX)); // disarm
    /// }
    /// assert!(wheel.pop_due(Tick(5_000)).is_none());
    /// assert_eq!(wheel.cancel(request), Some("connection 7"));
    /// ```
    ///
    /// A wheel needs no pause of its own: to pause a timer, read its
    /// [`remaining`](Wheel::remaining) ticks and move it to `Tick::MAX`. To resume it,
    /// move it that many ticks after [`now`](Wheel::now).
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut buffs = Wheel::new(64);
    /// let shield = buffs.schedule_at(Tick(30), "shield");
    /// assert!(buffs.pop_due(Tick(10)).is_none());
    /// let left = buffs.remaining(shield).unwrap();
    /// assert!(buffs.reschedule(shield, Tick::MAX)); // paused
    /// assert!(buffs.pop_due(Tick(5_000)).is_none());
    /// assert!(buffs.reschedule(shield, buffs.now().after(left))); // resumed
    /// assert_eq!(buffs.pop_due(Tick(9_000)).unwrap().deadline, Tick(5_020));
    /// ```
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
    #[doc(alias = "arm")]
    #[doc(alias = "disarm")]
    #[doc(alias = "reset")]
    #[must_use = "a timer that has fired or was cancelled cannot be moved"]
    pub fn reschedule(&mut self, id: TimerId, deadline: Tick) -> bool {
        self.find(id).map(|entry| self.move_to(entry, deadline)).is_some()
    }

    /// Cancels a timer and returns its payload. Returns `None` if the timer is not
    /// in the wheel, for example because it has fired.
    ///
    /// Takes constant time. The timer's storage can be reused at once.
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
        // What is seldom needed is in another call, so that nothing is saved for it.
        let found = self.entries.find(id.words_in(self.number));
        let plain = found.filter(|&entry| self.len() > 1 && !self.entries.is_moved(entry));
        let Some(entry) = plain else { return self.cancel_slowly(id) };
        // The stamp, which was just compared, is cleared first: after a store to another entry,
        // the compiler would load it again.
        let payload = self.entries.take(entry);
        self.unlink(entry);
        self.entries.vacate(entry);
        Some(payload)
    }

    #[cold]
    #[inline(never)]
    fn cancel_slowly(&mut self, id: TimerId) -> Option<T> {
        let entry = self.find(id)?;
        self.entries.forget_if_moved(entry);
        let payload = self.remove_linked(entry);
        drop(self.give_back());
        Some(payload)
    }

    /// Replaces a timer's payload and returns the old one.
    ///
    /// # Errors
    /// Returns `payload` if the timer is not in the wheel.
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

    /// Returns whether the timer is in the wheel.
    #[must_use]
    pub fn contains(&self, id: TimerId) -> bool {
        self.find(id).is_some()
    }

    /// Returns a reference to a timer's payload.
    #[must_use]
    pub fn get(&self, id: TimerId) -> Option<&T> {
        self.find(id).map(|entry| self.entries.payload(entry))
    }

    /// Returns a mutable reference to a timer's payload.
    #[must_use]
    pub fn get_mut(&mut self, id: TimerId) -> Option<&mut T> {
        self.find(id).map(|entry| self.entries.payload_mut(entry))
    }

    /// Returns the tick at which the timer is due. An overdue timer is due now.
    #[must_use]
    pub fn deadline(&self, id: TimerId) -> Option<Tick> {
        self.find(id).map(|entry| self.due_at(entry))
    }

    /// Returns the number of ticks from now until the timer is due.
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

    /// Returns the tick at which the wheel next has work to do, or `None` if it is
    /// empty. The tick is never later than the earliest deadline; it is earlier if
    /// a slot of an outer level must be re-filed first.
    ///
    /// Reads a few words, whatever the number of timers. [`Wheel::earliest_deadline`]
    /// returns the exact answer.
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
        let has_due = self.slots.next == 0 && (self.is_firing() || !self.entries.is_empty(OVERDUE));
        if has_due { Some(self.now()) } else { self.next_slot() }
    }

    /// Gives back the memory behind the last timer. The ids and the order of the timers do
    /// not change.
    ///
    /// A wheel that becomes empty gives its memory back by itself, unless that is little.
    ///
    /// # Cost
    /// Grows with the number of entries that are given back.
    ///
    /// ```
    /// use tickwheel::{Tick, Wheel};
    ///
    /// let mut wheel = Wheel::new(64);
    /// let ids: Vec<_> = (0..1_000).map(|n| wheel.schedule_at(Tick(n + 1), n)).collect();
    /// for &id in &ids[1..] {
    ///     wheel.cancel(id);
    /// }
    /// wheel.shrink();
    /// assert_eq!(wheel.cancel(ids[0]), Some(0));
    /// ```
    pub fn shrink(&mut self) {
        self.entries.trim_some(&mut { usize::MAX });
        drop(self.take_idle_heap());
    }

    // For a shard, too.

    pub(crate) fn id(&self, entry: EntryIndex) -> TimerId {
        let index = self.entries.index_in_id(entry);
        TimerId::new(self.number, self.entries.get(entry).stamp.sequence(), index)
    }

    pub(crate) fn find(&self, id: TimerId) -> Option<EntryIndex> {
        let words = id.words_in(self.number);
        match self.entries.find(words) {
            Some(entry) => Some(entry),
            None => self.entries.find_moved(words),
        }
    }

    /// Finds a timer by an id that is known to belong to this wheel.
    pub(crate) fn find_own(&self, id: TimerId) -> Option<EntryIndex> {
        debug_assert!(id.is_of(self.number));
        // No owner of a shared wheel re-arms timers, so all are where their ids say.
        self.entries.find(id.words_in(id.wheel()))
    }

    pub(crate) fn set_tag(&mut self, entry: EntryIndex, tag: Tag) {
        let header = self.entries.get_mut(entry);
        header.stamp = header.stamp.with(tag);
    }

    /// Takes a timer's payload and frees its entry, which is not on any list.
    pub(crate) fn remove(&mut self, entry: EntryIndex) -> T {
        let payload = self.entries.take(entry);
        self.entries.vacate(entry);
        payload
    }

    /// Takes a timer's payload, unlinks its entry and frees it.
    #[inline(always)]
    pub(crate) fn remove_linked(&mut self, entry: EntryIndex) -> T {
        self.unlink(entry);
        self.remove(entry)
    }

    /// Returns the memory of a wheel that is empty, if that is worth it, to be dropped after a
    /// lock is released.
    pub(crate) fn give_back(&mut self) -> Option<impl Sized + use<T>> {
        self.entries.is_worth_freeing().then(|| (self.entries.give_back(), self.take_idle_heap()))
    }

    /// Takes the memory in which lists were sorted, unless timers wait there.
    pub(crate) fn take_idle_heap(&mut self) -> Option<BinaryHeap<Sorted>> {
        self.entries.is_empty(IN_HEAP).then(|| core::mem::take(&mut self.heap))
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
