//! The data structure alone: one owner, ticks from the caller, no clock, no
//! thread, no system calls.
//!
//! [`Wheel`] is what game loops, simulations, event loops and caches use by
//! themselves, and what an [`Engine`](crate::Engine) has one of per shard.

mod block;
mod cascade;
mod drain;
mod expire;
mod geometry;
mod iter;
mod keyed;
mod keys;
mod levels;
mod moved;
mod pass;
mod shrink;
mod stamp;
mod storage;
mod vacant;
mod view;
mod work;

#[cfg(test)]
mod oracle;

use std::collections::BinaryHeap;

pub use block::ReserveError;
pub use expire::{Advance, Expired};
pub use geometry::{Geometry, InvalidGeometry};
pub use iter::{IntoIter, Iter};
pub use keyed::{DuplicateKey, KeyedExpired, KeyedWheel};
pub use view::{Slot, Slots};

pub(crate) use block::At;
pub(crate) use expire::Step;
pub(crate) use iter::{Cursor, OverBudget};
pub(crate) use shrink::Hangs;
pub(crate) use stamp::Stamp;

use crate::id::{TimerId, WheelNumber};
use crate::tick::Tick;
use drain::{Fronts, InOrder};
use levels::Levels;
use storage::{NO_COORDINATE, Storage};
use work::Work;

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
    storage: Storage<T>,
    levels: Levels,
    now: u64,
    /// Nothing can come due, and no slot's turn can come, before this tick. If
    /// it lies ahead, it is the beginning of the slot whose turn is next (which
    /// may have become empty since), or the end of time.
    quiet_until: u64,
    /// What [`Wheel::step`] was in the middle of.
    work: Work,
    /// Of the slot that is being fired.
    fronts: Fronts,
    /// Due now, behind everything else that is.
    late: At,
    /// Those among them whose turn it is.
    turn: At,
    /// How many turns they have had.
    turns: u64,
    /// How many of them have fired since one of a slot did.
    late_here: u32,
    /// Entries of an unsorted slot on their way through `in_order`.
    sorting: At,
    in_order: BinaryHeap<InOrder>,
    /// Of the youngest timer, without a tag.
    youngest: Stamp,
    number: WheelNumber,
}

/// The tag bit of an entry that waits in `Wheel::in_order`. The next one is
/// [`moved::MOVED`]; the others belong to whoever owns the wheel.
const SORTING: u16 = 1;

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
        let (mut storage, late) = Storage::new();
        let sorting = storage.add_sentinels(1, |_| NO_COORDINATE);
        let turn = storage.add_sentinels(1, |_| NO_COORDINATE);
        Wheel {
            storage,
            levels: Levels::new(geometry),
            now: now.0,
            quiet_until: u64::MAX,
            work: Work::Nothing,
            fronts: Fronts::none(late),
            late,
            turn,
            turns: 0,
            late_here: 0,
            sorting,
            in_order: BinaryHeap::new(),
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
        self.storage.live()
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
        self.storage.try_reserve(timers, heads)
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
        let at = self.insert(deadline.0, 0, payload);
        self.file_new(at);
        self.id_of_youngest(at)
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
            Some(at) => {
                self.move_to(at, deadline.0);
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
        if let Some(at) = found {
            self.move_to(at, deadline.0);
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
            Some(at) => {
                self.unlink(at);
                Some(self.storage.remove(at))
            }
            None => self.cancel_moved(id),
        }
    }

    /// As [`Wheel::reschedule_moved`].
    #[cold]
    #[inline(never)]
    fn cancel_moved(&mut self, id: TimerId) -> Option<T> {
        let at = self.find(id)?;
        self.unlink(at);
        Some(self.storage.remove(at))
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
            Some(at) => Ok(core::mem::replace(self.storage.payload_mut(at), payload)),
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
        self.find(id).map(|at| self.storage.payload(at))
    }

    /// A timer's payload, to be changed in place.
    #[must_use]
    pub fn get_mut(&mut self, id: TimerId) -> Option<&mut T> {
        self.find(id).map(|at| self.storage.payload_mut(at))
    }

    /// When the timer is due. A timer that was scheduled for the past is due
    /// now.
    #[must_use]
    pub fn deadline(&self, id: TimerId) -> Option<Tick> {
        self.find(id).map(|at| self.due_at(at))
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
        let all: Vec<At> = self.storage.timers(0).collect();
        for at in all {
            self.unlink(at);
            drop(self.storage.remove(at));
        }
    }
}

/// What an engine needs beside the public calls: entries by their place, tags,
/// lists of its own.
impl<T> Wheel<T> {
    #[inline]
    pub(crate) fn id(&self, at: At) -> TimerId {
        let sequence = self.storage.entry(at).stamp().sequence();
        TimerId::new(self.number, sequence, self.storage.index_of(at))
    }

    /// As [`Wheel::id`], for the timer that was inserted last.
    #[inline]
    pub(crate) fn id_of_youngest(&self, at: At) -> TimerId {
        TimerId::new(self.number, self.youngest.sequence(), at.index())
    }

    #[inline]
    pub(crate) fn find(&self, id: TimerId) -> Option<At> {
        if !id.is_of(self.number) {
            return None;
        }
        self.find_own(id)
    }

    /// As [`Wheel::find`], but finds no timer that was moved to another entry.
    #[inline]
    pub(crate) fn find_at_home(&self, id: TimerId) -> Option<At> {
        if !id.is_of(self.number) {
            return None;
        }
        self.storage.find_at_home(id.index(), id.sequence())
    }

    /// As [`Wheel::find`], for an id that is known to be this wheel's.
    #[inline]
    pub(crate) fn find_own(&self, id: TimerId) -> Option<At> {
        debug_assert!(id.is_of(self.number));
        self.storage.find(id.index(), id.sequence())
    }

    /// Asks the processor for the timer's entry.
    #[inline]
    pub(crate) fn prefetch(&self, id: TimerId) {
        if let Some(at) = self.storage.at(id.index()) {
            self.storage.prefetch(at);
        }
    }

    #[inline]
    pub(crate) fn prefetch_entry(&self, at: At) {
        self.storage.prefetch(at);
    }

    /// Stores a timer that hangs on no list yet.
    #[inline]
    pub(crate) fn insert(&mut self, deadline: u64, tag: u16, payload: T) -> At {
        let following = self.youngest.following();
        self.youngest = following.expect("2^52 timers were scheduled");
        self.storage
            .insert(deadline, self.youngest.with(tag), payload)
    }

    /// How many entries the storage has, vacant ones included.
    #[cfg(test)]
    pub(crate) fn entries_in_use(&self) -> usize {
        self.storage.used() as usize
    }

    /// Notes that a timer hangs on no list, and will not for a while.
    pub(crate) fn set_aside(&mut self, at: At) {
        self.storage.set_aside(at);
    }

    /// Takes a timer's payload and frees its entry; it must be unlinked.
    #[inline]
    pub(crate) fn remove(&mut self, at: At) -> T {
        self.storage.remove(at)
    }

    /// As [`Wheel::remove`], without unlinking the entry first, in a wheel that
    /// will not be advanced any more: see [`Storage::take_for_good`].
    #[inline]
    pub(crate) fn take_for_good(&mut self, at: At) -> T {
        self.storage.take_for_good(at)
    }

    #[inline]
    pub(crate) fn unlink(&mut self, at: At) {
        if let Some(list) = self.storage.unlink(at) {
            let coordinate = self.storage.coordinate(list);
            self.levels.list_is_empty(coordinate);
        }
    }

    /// The deadline that was asked for, which may have passed long ago.
    #[inline]
    pub(crate) fn deadline_of(&self, at: At) -> Tick {
        Tick(self.storage.entry(at).deadline)
    }

    /// When it can fire: at its deadline, or now if that has passed.
    #[inline]
    pub(crate) fn due_at(&self, at: At) -> Tick {
        self.deadline_of(at).max(self.now())
    }

    /// Files an entry that is younger than every other. Returns the tick at
    /// which it is due.
    #[inline]
    pub(crate) fn file_new(&mut self, at: At) -> Tick {
        let deadline = self.storage.entry(at).deadline;
        if deadline <= self.now {
            self.file_late(at);
            return self.now();
        }
        let place = self.levels.place(self.now, deadline);
        self.note_turn(place.start);
        self.levels.append(&mut self.storage, place, at);
        Tick(deadline)
    }

    /// Files an entry that may be older than others of its slot.
    pub(crate) fn file_again(&mut self, at: At) {
        let entry = self.storage.entry_mut(at);
        entry.unmark(SORTING);
        let deadline = entry.deadline;
        if deadline <= self.now {
            return self.file_late(at);
        }
        let place = self.levels.place(self.now, deadline);
        self.note_turn(place.start);
        self.levels.append_checked(&mut self.storage, place, at);
    }

    /// Something hangs in the slot that begins at `start` now.
    #[inline]
    fn note_turn(&mut self, start: u64) {
        self.quiet_until = self.quiet_until.min(start);
    }

    #[cold]
    fn file_late(&mut self, at: At) {
        self.storage.append(self.late, at);
        self.quiet_until = 0;
    }

    /// Gives a linked entry a later deadline, if storing it is all that takes:
    /// its slot comes up before, and files it again. What is due already may hang
    /// in none.
    #[inline]
    pub(crate) fn postpone(&mut self, at: At, deadline: u64) -> bool {
        let now = self.now;
        let entry = self.storage.entry_mut(at);
        let is_enough = deadline >= entry.deadline && entry.deadline > now;
        if is_enough {
            entry.deadline = deadline;
        }
        is_enough
    }

    /// Gives a linked entry another deadline.
    #[inline]
    pub(crate) fn move_to(&mut self, at: At, deadline: u64) {
        if self.postpone(at, deadline) {
            return;
        }
        self.set_deadline(at, Tick(deadline));
        self.unlink(at);
        self.file_again(at);
    }

    /// Files an entry that hangs on no list for a later deadline.
    pub(crate) fn file_for(&mut self, at: At, deadline: Tick) {
        self.set_deadline(at, deadline);
        self.file_again(at);
    }

    pub(crate) fn set_deadline(&mut self, at: At, deadline: Tick) {
        self.storage.entry_mut(at).deadline = deadline.0;
    }

    #[inline]
    pub(crate) fn tag(&self, at: At) -> u16 {
        self.storage.entry(at).stamp().tag()
    }

    pub(crate) fn set_tag(&mut self, at: At, tag: u16) {
        self.storage.entry_mut(at).set_tag(tag);
    }

    #[inline]
    pub(crate) fn payload(&self, at: At) -> &T {
        self.storage.payload(at)
    }

    pub(crate) fn payload_mut(&mut self, at: At) -> &mut T {
        self.storage.payload_mut(at)
    }

    /// A list for entries that are not in the wheel's care; [`Wheel::unlink`]
    /// takes them off it again.
    pub(crate) fn add_list(&mut self) -> At {
        self.storage.add_sentinels(1, |_| NO_COORDINATE)
    }

    pub(crate) fn append_to(&mut self, list: At, at: At) {
        // It may have been taken off a slot that is being sorted, which still
        // counts on it.
        let entry = self.storage.entry_mut(at);
        entry.unmark(SORTING);
        self.storage.append(list, at);
    }

    pub(crate) fn first_of(&self, list: At) -> Option<At> {
        let first = self.storage.next(list);
        (first != list).then_some(first)
    }

    #[inline]
    fn has_late(&self) -> bool {
        let is_filled = |list: At| self.storage.next(list) != list;
        is_filled(self.turn) || is_filled(self.late)
    }

    fn has_unfinished_work(&self) -> bool {
        self.has_late()
            || self.storage.next(self.sorting) != self.sorting
            || matches!(self.work, Work::Cascade(_))
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
