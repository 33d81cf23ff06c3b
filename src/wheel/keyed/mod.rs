//! A wheel whose timers have keys chosen by the caller.

mod answers;
mod by_hash;
mod ids;
mod payloads;

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};

pub use answers::{DuplicateKey, KeyedExpired};

use super::Wheel;
use super::geometry::Geometry;
use crate::id::TimerId;
use crate::tick::Tick;
use by_hash::HashKey;
use ids::Ids;

/// A [`Wheel`] in which every timer has a key chosen by the caller, such as a
/// session number, a name or an address.
///
/// A key is in use from the call that schedules its timer until that timer fires or
/// is cancelled. Meanwhile, another timer with the same key is refused; afterwards,
/// the key is free again. To repeat a timer, schedule another one under its key;
/// there is no `rearm`, because the key is the timer's identity. The ticks and the
/// order of firing are those of a [`Wheel`].
///
/// # Cost
///
/// Every call that takes a key hashes it once and looks it up in a hash map. All
/// other costs are those of a [`Wheel`]. Firing a timer does not hash its key. A
/// key is stored once, with its hash. Without the feature `std`, the map is a sorted one.
///
/// # Panics
///
/// If `Hash` or `Eq` of a key panics, the call panics and leaves the wheel
/// unchanged. [`KeyedWheel::pop_due`] calls neither. If dropping the key panics in
/// [`KeyedWheel::cancel`], the timer has already been cancelled.
///
/// # Example
///
/// ```
/// use tickwheel::Tick;
/// use tickwheel::wheel::KeyedWheel;
///
/// let mut sessions = KeyedWheel::new(64);
/// sessions.schedule_at(7, Tick(30), "seven")?;
/// sessions.schedule_at(8, Tick(30), "eight")?;
/// assert!(sessions.schedule_at(7, Tick(90), "seven again").is_err());
/// assert!(sessions.reschedule(&7, Tick(60)));
///
/// assert_eq!(sessions.pop_due(Tick(60)).unwrap().key, 8);
/// assert_eq!(sessions.pop_due(Tick(60)).unwrap().key, 7);
/// sessions.schedule_at(7, Tick(90), "seven again")?; // its key is free again
/// # Ok::<(), tickwheel::wheel::DuplicateKey<i32, &str>>(())
/// ```
pub struct KeyedWheel<K, T> {
    hasher: HashKey,
    /// The timers of all keys in use, which are exactly the timers in the wheel.
    ids: Ids,
    wheel: Wheel<Keyed<K, T>>,
}

/// The payload that a [`KeyedWheel`] stores in its wheel.
struct Keyed<K, T> {
    /// The hash of the key when the timer was scheduled.
    hash: u64,
    key: K,
    payload: T,
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
    /// let mut wheel = KeyedWheel::starting_at(Tick(1_587_848_614), 256);
    /// wheel.schedule_after(11, 3, ())?;
    /// assert_eq!(wheel.deadline(&11), Some(Tick(1_587_848_617)));
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<i32, ()>>(())
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
        KeyedWheel {
            hasher: HashKey::default(),
            ids: Ids::default(),
            wheel,
        }
    }

    /// Gives back the memory that the wheel does not need for its timers: see
    /// [`Wheel::shrink`].
    pub fn shrink(&mut self) {
        self.ids.shrink();
        self.wheel.shrink();
    }

    /// Returns the timer with this key, whose hash is `hash`.
    fn find<Q>(&self, hash: u64, key: &Q) -> Option<TimerId>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let has_key = |&id: &TimerId| {
            let keyed = self.wheel.get(id);
            keyed.is_some_and(|keyed| keyed.key.borrow() == key)
        };
        self.ids.of(hash).iter().copied().find(has_key)
    }

    /// Schedules a timer for an absolute tick. If that tick has been reached, the
    /// timer is due at once and fires after all other due timers.
    ///
    /// Takes constant time. Allocates only if the wheel holds more timers than
    /// ever before, or needs a level for the first time.
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
    /// wheel.schedule_at("lock", Tick(9), 1)?;
    /// let refused = wheel.schedule_at("lock", Tick(5), 2).unwrap_err();
    /// assert_eq!(refused.payload, 2);
    /// assert_eq!(wheel.deadline("lock"), Some(Tick(9)));
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<&str, i32>>(())
    /// ```
    pub fn schedule_at(
        &mut self,
        key: K,
        deadline: Tick,
        payload: T,
    ) -> Result<(), DuplicateKey<K, T>> {
        let hash = self.hasher.hash_one(&key);
        if self.find(hash, &key).is_some() {
            return Err(DuplicateKey { key, payload });
        }
        let keyed = Keyed { hash, key, payload };
        self.ids
            .insert(hash, self.wheel.schedule_at(deadline, keyed));
        Ok(())
    }

    /// Schedules a timer for `delay` ticks after [`KeyedWheel::now`]. A timer with
    /// a delay of zero is due at once.
    ///
    /// # Errors
    /// Returns the key and the payload in the error if the key is in use.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::starting_at(Tick(7), 64);
    /// wheel.schedule_after('a', 3, ())?;
    /// assert_eq!(wheel.deadline(&'a'), Some(Tick(10)));
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<char, ()>>(())
    /// ```
    pub fn schedule_after(
        &mut self,
        key: K,
        delay: u64,
        payload: T,
    ) -> Result<(), DuplicateKey<K, T>> {
        self.schedule_at(key, self.now().after(delay), payload)
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
    /// wheel.schedule_at(String::from("far"), Tick::MAX, 1)?;
    /// assert_eq!(wheel.cancel("far"), Some(1));
    /// assert_eq!(wheel.cancel("far"), None);
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<String, i32>>(())
    /// ```
    pub fn cancel<Q>(&mut self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        let id = self.find(hash, key)?;
        self.ids.remove(hash, id);
        let Keyed { key, payload, .. } = self.wheel.cancel(id)?;
        // The key is dropped before the answer is built, because nothing would drop
        // the payload if the key panicked afterwards.
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
    /// wheel.schedule_at(7, Tick(30), "session")?;
    /// assert!(wheel.reschedule(&7, Tick(60)));
    /// assert!(wheel.pop_due(Tick(59)).is_none());
    /// assert!(wheel.pop_due(Tick(60)).is_some());
    /// assert!(!wheel.reschedule(&7, Tick(90)));
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<i32, &str>>(())
    /// ```
    #[must_use = "a timer that has fired or was cancelled cannot be moved"]
    pub fn reschedule<Q>(&mut self, key: &Q, deadline: Tick) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        match self.find(self.hasher.hash_one(key), key) {
            Some(id) => self.wheel.reschedule(id, deadline),
            None => false,
        }
    }

    /// Returns the tick at which the timer with this key is due. An overdue timer
    /// is due now.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.schedule_at(7, Tick(30), ())?;
    /// assert_eq!(wheel.deadline(&7), Some(Tick(30)));
    /// assert_eq!(wheel.deadline(&8), None);
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<i32, ()>>(())
    /// ```
    #[must_use]
    pub fn deadline<Q>(&self, key: &Q) -> Option<Tick>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let id = self.find(self.hasher.hash_one(key), key)?;
        self.wheel.deadline(id)
    }

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
    /// wheel.schedule_at('b', Tick(3), ())?;
    /// wheel.schedule_at('a', Tick(1), ())?;
    /// let mut fired = Vec::new();
    /// while let Some(expired) = wheel.pop_due(Tick(10)) {
    ///     fired.push((expired.key, expired.deadline));
    /// }
    /// assert_eq!(fired, [('a', Tick(1)), ('b', Tick(3))]);
    /// assert_eq!(wheel.now(), Tick(10));
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<char, ()>>(())
    /// ```
    pub fn pop_due(&mut self, to: Tick) -> Option<KeyedExpired<K, T>> {
        let expired = self.wheel.pop_due(to)?;
        let id = expired.id();
        let Keyed { hash, key, payload } = expired.payload;
        self.ids.remove(hash, id);
        Some(KeyedExpired {
            key,
            deadline: expired.deadline,
            payload,
        })
    }
}

impl<K, T> KeyedWheel<K, T> {
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
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.schedule_after(7, 5, ())?;
    /// wheel.schedule_after(8, 5, ())?;
    /// assert_eq!(wheel.len(), 2);
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<i32, ()>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.wheel.len()
    }

    /// Returns whether the wheel holds no timers.
    ///
    /// ```
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.schedule_after(7, 5, ())?;
    /// assert!(!wheel.is_empty());
    /// wheel.cancel(&7);
    /// assert!(wheel.is_empty());
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<i32, ()>>(())
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
    /// wheel.schedule_at(7, Tick(30), ())?;
    /// assert_eq!(wheel.next_wakeup(), Some(Tick(30)));
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<i32, ()>>(())
    /// ```
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Tick> {
        self.wheel.next_wakeup()
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

#[cfg(test)]
mod tests;
