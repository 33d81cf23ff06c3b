//! A wheel whose timers have keys chosen by the caller: a map whose entries expire.

#[cfg(test)]
mod tests;

use alloc::collections::{BinaryHeap, VecDeque};
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::iter::successors;

use super::Wheel;
use super::geometry::Geometry;
use crate::id::TimerId;
use crate::id::by_hash::ByHash;
use crate::tick::Tick;

#[cfg(feature = "std")]
use std::hash::RandomState as HashKey;
// Deprecated in favour of the hasher of `std`, which is the same.
#[cfg(not(feature = "std"))]
#[allow(deprecated)]
type HashKey = core::hash::BuildHasherDefault<core::hash::SipHasher>;

/// A [`Wheel`] in which every timer has a key chosen by the caller, such as a session
/// number, a name or an address.
///
/// It is used like a map whose entries expire: [`insert`](KeyedWheel::insert) schedules a
/// timer, and replaces the one that had its key; [`try_insert`](KeyedWheel::try_insert)
/// refuses instead. A key is free again when its timer has fired or was cancelled. To
/// repeat a timer, insert another one under its key; there is no `rearm`, because the key
/// is the timer's identity. The ticks and the order of firing are those of a [`Wheel`]. There is
/// no clone and no walk in order: a game that is rolled back or saved takes a `Wheel`, and a map
/// from keys to ids.
///
/// # Cost
///
/// Every call that takes a key hashes it once and looks it up in a hash map. All other
/// costs are those of a [`Wheel`]. Firing a timer does not hash its key. A key is stored
/// once, with its hash. Without the feature `std`, the map is a sorted one.
///
/// # Panics
///
/// If `Hash` or `Eq` of a key panics, the call panics and leaves the wheel unchanged.
/// [`KeyedWheel::pop_due`] and [`KeyedWheel::pop_first`] call neither. If dropping a key
/// panics, the call has already done its work.
///
/// # Example
///
/// ```
/// use tickwheel::Tick;
/// use tickwheel::wheel::KeyedWheel;
///
/// let mut sessions = KeyedWheel::new(64);
/// sessions.insert(7, Tick(30), "seven");
/// sessions.insert(8, Tick(30), "eight");
/// assert_eq!(sessions.get(&8), Some(&"eight"));
/// assert!(sessions.reschedule(&7, Tick(60)));
///
/// assert_eq!(sessions.pop_due(Tick(60)).unwrap().key, 8);
/// assert_eq!(sessions.pop_due(Tick(60)).unwrap().key, 7);
/// assert!(sessions.is_empty());
/// ```
pub struct KeyedWheel<K, T> {
    hasher: HashKey,
    /// The timers of all keys in use, which are exactly the timers in the wheel.
    by_hash: ByHash,
    wheel: Wheel<Keyed<K, T>>,
    /// The timers that a search has found to be the first ones, in order. Some of them may have
    /// ended or moved since. All others come after the last of them.
    found: VecDeque<(Tick, TimerId)>,
}

/// The payload that a [`KeyedWheel`] stores in its wheel.
struct Keyed<K, T> {
    /// The hash of the key when the timer was scheduled.
    hash: u64,
    key: K,
    payload: T,
}

/// A timer that was taken out of a [`KeyedWheel`], because it was due or the first.
///
/// ```
/// use tickwheel::Tick;
/// use tickwheel::wheel::KeyedWheel;
///
/// let mut wheel = KeyedWheel::new(64);
/// wheel.insert("lease", Tick(20), 1_000);
/// let expired = wheel.pop_due(Tick(25)).unwrap();
/// assert_eq!((expired.key, expired.payload), ("lease", 1_000));
/// assert_eq!(expired.deadline, Tick(20));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct KeyedExpired<K, T> {
    /// The timer's key, which is now free for another timer.
    pub key: K,
    /// The tick at which the timer was due.
    pub deadline: Tick,
    /// The timer's payload.
    pub payload: T,
}

/// A timer that was refused because its key is in use. The wheel is unchanged.
///
/// Returned by [`KeyedWheel::try_insert`]. Its fields can be borrowed, so it is [`Sync`] only if
/// key and payload are, as `?` needs for a `Box<dyn Error + Send + Sync>` or an `anyhow::Error`.
/// Otherwise `.map_err(|refused| refused.to_string())?` keeps the message for such a box.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DuplicateKey<K, T> {
    /// The key of the refused timer.
    pub key: K,
    /// The payload of the refused timer.
    pub payload: T,
}

impl<K: Eq + Hash, T> KeyedWheel<K, T> {
    /// Creates a wheel that starts at tick 0, with `size` slots per level.
    ///
    /// # Panics
    /// Panics if `size` is not between 2 and 65,536. [`Geometry::new`], for use
    /// with [`KeyedWheel::with_geometry`], returns an error instead.
    ///
    /// ```
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let wheel = KeyedWheel::<String, u32>::new(64);
    /// assert!(wheel.is_empty());
    /// ```
    #[must_use]
    pub fn new(size: usize) -> KeyedWheel<K, T> {
        KeyedWheel::around(Wheel::new(size))
    }

    /// Creates a wheel like [`KeyedWheel::new`], but starting at tick `now`.
    ///
    /// # Panics
    /// Panics if `size` is not between 2 and 65,536.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let wheel = KeyedWheel::<u64, ()>::starting_at(Tick(1_587_848_614), 256);
    /// assert_eq!(wheel.now(), Tick(1_587_848_614));
    /// ```
    #[must_use]
    pub fn starting_at(now: Tick, size: usize) -> KeyedWheel<K, T> {
        KeyedWheel::around(Wheel::starting_at(now, size))
    }

    /// Creates a wheel with the given [`Geometry`], starting at tick `now`.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::{Geometry, KeyedWheel};
    ///
    /// let flat = Geometry::new(60_000)?.max_levels(1)?;
    /// let wheel = KeyedWheel::<u64, ()>::with_geometry(Tick(0), flat);
    /// assert_eq!(wheel.now(), Tick(0));
    /// # Ok::<(), tickwheel::wheel::InvalidGeometry>(())
    /// ```
    #[must_use]
    pub fn with_geometry(now: Tick, geometry: Geometry) -> KeyedWheel<K, T> {
        KeyedWheel::around(Wheel::with_geometry(now, geometry))
    }

    fn around(wheel: Wheel<Keyed<K, T>>) -> KeyedWheel<K, T> {
        let (hasher, by_hash, found) = Default::default();
        KeyedWheel { hasher, by_hash, wheel, found }
    }

    /// Schedules a timer for an absolute tick. If another timer has the key, replaces its
    /// payload, moves it to `deadline` as [`KeyedWheel::reschedule`] does, and returns the
    /// old payload.
    ///
    /// If the tick has been reached, the timer is overdue and fires in the next pass, in the
    /// [order](Wheel#order) of a wheel. For a delay, give `wheel.now().after(delay)`. As in a
    /// map of the standard library, an equal key that is present already stays, and `key` is
    /// dropped.
    ///
    /// Takes constant time. Allocates only if the storage grows.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut cache = KeyedWheel::new(64);
    /// assert_eq!(cache.insert("host", Tick(30), "192.0.2.7"), None);
    /// assert_eq!(cache.insert("host", Tick(50), "192.0.2.9"), Some("192.0.2.7"));
    /// assert!(cache.pop_due(Tick(30)).is_none());
    /// assert_eq!(cache.pop_due(Tick(50)).unwrap().payload, "192.0.2.9");
    /// ```
    #[doc(alias = "schedule_at")]
    #[doc(alias = "replace")]
    pub fn insert(&mut self, key: K, deadline: Tick, payload: T) -> Option<T> {
        let hash = self.hasher.hash_one(&key);
        let Some(id) = self.find(hash, &key) else {
            self.add(hash, key, deadline, payload);
            return None;
        };
        self.move_to(id, deadline);
        let old = core::mem::replace(&mut self.wheel.get_mut(id)?.payload, payload);
        // The key is dropped before the answer is built, because nothing would drop the
        // payload if the key panicked afterwards.
        drop(key);
        Some(old)
    }

    /// Schedules a timer as [`KeyedWheel::insert`] does, unless its key is in use.
    ///
    /// # Errors
    /// Returns the key and the payload in the error if the key is in use. The timer
    /// that has the key is unchanged.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.try_insert("lock", Tick(9), 1)?;
    /// let refused = wheel.try_insert("lock", Tick(5), 2).unwrap_err();
    /// assert_eq!(refused.payload, 2);
    /// assert_eq!(wheel.deadline("lock"), Some(Tick(9)));
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<&str, i32>>(())
    /// ```
    pub fn try_insert(
        &mut self,
        key: K,
        deadline: Tick,
        payload: T,
    ) -> Result<(), DuplicateKey<K, T>> {
        let hash = self.hasher.hash_one(&key);
        if self.find(hash, &key).is_some() {
            return Err(DuplicateKey { key, payload });
        }
        self.add(hash, key, deadline, payload);
        Ok(())
    }

    /// Cancels the timer with this key and returns its payload. Returns `None` if
    /// there is no such timer, for example because it has fired.
    ///
    /// Takes constant time. The key and the storage can be reused at once.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.insert(String::from("far"), Tick::MAX, 1);
    /// assert_eq!(wheel.cancel("far"), Some(1));
    /// assert_eq!(wheel.cancel("far"), None);
    /// ```
    #[doc(alias = "remove")]
    pub fn cancel<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
    {
        let id = self.id_of(key)?;
        let KeyedExpired { key, payload, .. } = self.remove(id)?;
        // First, as in `insert`.
        drop(key);
        Some(payload)
    }

    /// Changes the deadline of the timer with this key. Returns whether there is
    /// such a timer.
    ///
    /// A later deadline costs one store in addition to the look-up; an earlier one
    /// moves the timer to another slot.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.insert(7, Tick(30), "session");
    /// assert!(wheel.reschedule(&7, Tick(60)));
    /// assert!(wheel.pop_due(Tick(59)).is_none());
    /// assert!(wheel.pop_due(Tick(60)).is_some());
    /// assert!(!wheel.reschedule(&7, Tick(90)));
    /// ```
    #[must_use = "a timer that has fired or was cancelled cannot be moved"]
    pub fn reschedule<Q: Eq + Hash + ?Sized>(&mut self, key: &Q, deadline: Tick) -> bool
    where
        K: Borrow<Q>,
    {
        let id = self.id_of(key);
        id.inspect(|&id| self.move_to(id, deadline)).is_some()
    }

    /// Returns the tick at which the timer with this key is due. An overdue timer
    /// is due now.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.insert(7, Tick(30), ());
    /// assert_eq!(wheel.deadline(&7), Some(Tick(30)));
    /// assert_eq!(wheel.deadline(&8), None);
    /// ```
    #[must_use]
    pub fn deadline<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<Tick>
    where
        K: Borrow<Q>,
    {
        self.wheel.deadline(self.id_of(key)?)
    }

    /// Returns whether a timer with this key is in the wheel, and thus whether the
    /// key is in use.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.insert(7, Tick(30), ());
    /// assert!(wheel.contains_key(&7));
    /// wheel.cancel(&7);
    /// assert!(!wheel.contains_key(&7));
    /// ```
    #[must_use]
    pub fn contains_key<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.id_of(key).is_some()
    }

    /// Returns a reference to the payload of the timer with this key.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// // A cache: its entries are the payloads of their own timers.
    /// let mut cache = KeyedWheel::new(64);
    /// cache.insert("host", Tick(30), "192.0.2.7");
    /// assert_eq!(cache.get("host"), Some(&"192.0.2.7"));
    /// assert!(cache.pop_due(Tick(30)).is_some());
    /// assert_eq!(cache.get("host"), None);
    /// ```
    #[must_use]
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&T>
    where
        K: Borrow<Q>,
    {
        Some(&self.wheel.get(self.id_of(key)?)?.payload)
    }

    /// Returns a mutable reference to the payload of the timer with this key. The
    /// deadline stays.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.insert(7, Tick(30), 1);
    /// *wheel.get_mut(&7).unwrap() += 1;
    /// assert_eq!(wheel.cancel(&7), Some(2));
    /// ```
    #[must_use]
    pub fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut T>
    where
        K: Borrow<Q>,
    {
        let id = self.id_of(key)?;
        Some(&mut self.wheel.get_mut(id)?.payload)
    }

    fn add(&mut self, hash: u64, key: K, deadline: Tick, payload: T) {
        let keyed = Keyed { hash, key, payload };
        let id = self.wheel.schedule_at(deadline, keyed);
        self.by_hash.insert(hash, id);
        self.note((deadline, id));
    }

    fn move_to(&mut self, id: TimerId, deadline: Tick) {
        let _ = self.wheel.reschedule(id, deadline);
        self.note((deadline, id));
    }

    /// Puts a timer that is new or was moved among those that were found, unless it comes after
    /// the last of them.
    fn note(&mut self, timer: (Tick, TimerId)) {
        if self.found.back().is_some_and(|&last| timer < last) {
            let place = self.found.partition_point(|&other| other < timer);
            self.found.insert(place, timer);
            self.found.truncate((self.len() / 64).clamp(FOUND_AT_ONCE, 16 * FOUND_AT_ONCE));
        }
    }

    fn id_of<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<TimerId>
    where
        K: Borrow<Q>,
    {
        self.find(self.hasher.hash_one(key), key)
    }

    /// Returns the timer with this key, whose hash is `hash`.
    fn find<Q: Eq + ?Sized>(&self, hash: u64, key: &Q) -> Option<TimerId>
    where
        K: Borrow<Q>,
    {
        let has_key = |&id: &TimerId| {
            let keyed = self.wheel.get(id);
            keyed.is_some_and(|keyed| keyed.key.borrow() == key)
        };
        let after = |id: &TimerId| self.by_hash.oldest(hash, id.sequence() + 1..);
        successors(self.by_hash.oldest(hash, 0..), after).find(has_key)
    }
}

/// Calls that neither hash nor compare a key.
impl<K, T> KeyedWheel<K, T> {
    /// Takes the next timer with a deadline of at most `to` out of the wheel, and
    /// advances the clock to that timer's tick. Returns `None` if no such timer is
    /// left; the clock then stands at `to`. The timer's key is free when the call
    /// returns.
    ///
    /// Between calls, timers may be scheduled, rescheduled and cancelled. A `to`
    /// earlier than [`KeyedWheel::now`] counts as now, because time never goes
    /// back. Ticks without timers cost nothing.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.insert('b', Tick(3), ());
    /// wheel.insert('a', Tick(1), ());
    /// let mut fired = Vec::new();
    /// while let Some(expired) = wheel.pop_due(Tick(10)) {
    ///     fired.push((expired.key, expired.deadline));
    /// }
    /// assert_eq!(fired, [('a', Tick(1)), ('b', Tick(3))]);
    /// assert_eq!(wheel.now(), Tick(10));
    /// ```
    pub fn pop_due(&mut self, to: Tick) -> Option<KeyedExpired<K, T>> {
        let expired = self.wheel.pop_due(to)?;
        Some(self.free_key(expired.id(), expired.deadline, expired.payload))
    }

    /// Takes the timer with the earliest deadline out of the wheel, whether it is due or
    /// not. The clock stays. Of several timers with that deadline, takes the one that was
    /// scheduled first; [overdue](Wheel#order) ones count by the deadlines that they were given.
    /// Returns `None` if the wheel is empty.
    ///
    /// A full cache makes room in this way for a key that it does not have.
    ///
    /// # Cost
    /// Searches a slot, and remembers the first timers, a 64th of all (between a thousand and
    /// 16 thousand), so that the next calls need no search. If many timers were postponed, it goes on
    /// to later slots until it has found so many. Until these have left, a timer that comes before
    /// the last of them is put among them, which takes some microseconds at most.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut cache = KeyedWheel::new(64);
    /// for (key, deadline) in [("a", 900), ("b", 800), ("c", 800)] {
    ///     if cache.len() == 2 && !cache.contains_key(key) {
    ///         assert_eq!(cache.pop_first().unwrap().key, "b");
    ///     }
    ///     cache.insert(key, Tick(deadline), ());
    /// }
    /// assert_eq!(cache.now(), Tick(0));
    /// assert_eq!(cache.pop_due(Tick(1_000)).unwrap().key, "c");
    /// ```
    pub fn pop_first(&mut self) -> Option<KeyedExpired<K, T>> {
        loop {
            if self.found.is_empty() {
                self.found = self.wheel.first_ones();
            }
            let (deadline, id) = self.found.pop_front()?;
            if self.wheel.find(id).map(|at| self.wheel.deadline_of(at)) == Some(deadline) {
                return self.remove(id);
            }
        }
    }

    fn remove(&mut self, id: TimerId) -> Option<KeyedExpired<K, T>> {
        let deadline = self.wheel.deadline(id)?;
        let keyed = self.wheel.cancel(id)?;
        Some(self.free_key(id, deadline, keyed))
    }

    /// Frees the key of a timer that has left the wheel.
    fn free_key(&mut self, id: TimerId, deadline: Tick, of: Keyed<K, T>) -> KeyedExpired<K, T> {
        self.by_hash.remove(of.hash, id);
        if self.wheel.is_empty() {
            // A little stays, as in the wheel.
            self.by_hash.shrink_to(2_048);
            self.found.clear();
            self.found.shrink_to(FOUND_AT_ONCE);
        }
        KeyedExpired { key: of.key, deadline, payload: of.payload }
    }

    /// Removes all timers, and keeps the clock. If dropping a key or a payload panics, all
    /// timers have been removed already.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.insert(7, Tick(5), "never fires");
    /// wheel.clear();
    /// assert!(wheel.is_empty());
    /// assert_eq!(wheel.insert(7, Tick(5), "fires"), None); // its key is free again
    /// ```
    pub fn clear(&mut self) {
        (self.by_hash, self.found) = Default::default();
        self.wheel.clear();
    }

    /// Gives back the memory that the wheel does not need for its timers: see
    /// [`Wheel::shrink`].
    pub fn shrink(&mut self) {
        self.by_hash.shrink_to(0);
        self.found = VecDeque::new();
        self.wheel.shrink();
    }

    /// Returns an iterator over all timers: keys, deadlines and payloads, in no
    /// particular order. The cost is that of [`Wheel::iter`].
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.insert("a", Tick(5), 1);
    /// wheel.insert("b", Tick(9), 2);
    /// let due_soon = wheel.iter().filter(|&(_, deadline, _)| deadline < Tick(6));
    /// assert_eq!(due_soon.map(|(key, ..)| *key).collect::<Vec<_>>(), ["a"]);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&K, Tick, &T)> {
        let timers = self.wheel.iter();
        timers.map(|(_, deadline, keyed)| (&keyed.key, deadline, &keyed.payload))
    }

    /// Returns the tick that the wheel has reached.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::<u32, ()>::new(64);
    /// assert!(wheel.pop_due(Tick(40)).is_none());
    /// assert_eq!(wheel.now(), Tick(40));
    /// ```
    #[must_use]
    pub fn now(&self) -> Tick {
        self.wheel.now()
    }

    /// Returns the number of timers in the wheel, which is the number of keys in
    /// use.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.insert(7, Tick(5), ());
    /// wheel.insert(8, Tick(5), ());
    /// assert_eq!(wheel.len(), 2);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.wheel.len()
    }

    /// Returns whether the wheel holds no timers.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.insert(7, Tick(5), ());
    /// assert!(!wheel.is_empty());
    /// wheel.cancel(&7);
    /// assert!(wheel.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.wheel.is_empty()
    }

    /// Returns the tick at which the wheel next has work to do, or `None` if it is
    /// empty. The tick is never later than the earliest deadline, but may be
    /// earlier: see [`Wheel::next_wakeup`].
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// assert_eq!(wheel.next_wakeup(), None);
    /// wheel.insert(7, Tick(70), ());
    /// assert_eq!(wheel.next_wakeup(), Some(Tick(64)));
    /// assert_eq!(wheel.earliest_deadline(), Some(Tick(70)));
    /// ```
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Tick> {
        self.wheel.next_wakeup()
    }

    /// Returns the earliest deadline of all timers, or `None` if the wheel is empty. May search
    /// a whole slot, or several, as [`Wheel::earliest_deadline`] does.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.insert("later", Tick(900), ());
    /// wheel.insert("sooner", Tick(800), ());
    /// assert_eq!(wheel.earliest_deadline(), Some(Tick(800)));
    /// ```
    #[must_use]
    pub fn earliest_deadline(&self) -> Option<Tick> {
        self.wheel.earliest_deadline()
    }
}

/// The least number of timers that a search remembers, so that the next calls need none. It
/// remembers a 64th of all, if that is more, but at most 16 times as many: an insert among them
/// moves half of them.
const FOUND_AT_ONCE: usize = 1_024;

impl<T> Wheel<T> {
    /// Returns the first timers in their order, with their deadlines: those of the first lists
    /// that have any, but not more than are remembered.
    fn first_ones(&self) -> VecDeque<(Tick, TimerId)> {
        let mut first = BinaryHeap::new();
        for (list, start) in self.lists() {
            // Those that were postponed must come before this list, too: if they were left out, the
            // next call would visit them again.
            if first.peek().is_some_and(|&(last, _)| last < Tick(start)) {
                break;
            }
            for entry in self.entries.on_list(list) {
                let timer = (self.deadline_of(entry), self.id(entry));
                if first.len() < (self.len() / 64).clamp(FOUND_AT_ONCE, 16 * FOUND_AT_ONCE) {
                    first.push(timer);
                } else if let Some(mut last) = first.peek_mut().filter(|last| timer < **last) {
                    *last = timer;
                }
            }
        }
        first.into_sorted_vec().into()
    }
}

impl<K, T> fmt::Debug for KeyedWheel<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedWheel")
            .field("now", &self.now())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<K: fmt::Debug, T> fmt::Debug for DuplicateKey<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DuplicateKey").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<K: fmt::Debug, T> fmt::Display for DuplicateKey<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        write!(f, "a timer with the key {key:?} has not ended: cancel it, or choose another key")
    }
}

impl<K: fmt::Debug, T> core::error::Error for DuplicateKey<K, T> {}
