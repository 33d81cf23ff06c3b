//! Reading, changing and removing the payloads of a keyed wheel, as a map of the standard
//! library does.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use super::KeyedWheel;
use crate::id::TimerId;
use crate::tick::Tick;

impl<K: Eq + Hash, T> KeyedWheel<K, T> {
    fn find_key<Q>(&self, key: &Q) -> Option<TimerId>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.find(self.hasher.hash_one(key), key)
    }

    /// Returns whether a timer with this key is in the wheel, and thus whether the
    /// key is in use.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.schedule_at(7, Tick(30), ())?;
    /// assert!(wheel.contains_key(&7));
    /// wheel.cancel(&7);
    /// assert!(!wheel.contains_key(&7));
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<i32, ()>>(())
    /// ```
    #[must_use]
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.find_key(key).is_some()
    }

    /// Returns a reference to the payload of the timer with this key.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// // A cache: its entries are the payloads of their own timers.
    /// let mut cache = KeyedWheel::new(64);
    /// cache.schedule_at("host", Tick(30), "192.0.2.7")?;
    /// assert_eq!(cache.get("host"), Some(&"192.0.2.7"));
    /// assert!(cache.pop_due(Tick(30)).is_some());
    /// assert_eq!(cache.get("host"), None);
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<&str, &str>>(())
    /// ```
    #[must_use]
    pub fn get<Q>(&self, key: &Q) -> Option<&T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let keyed = self.wheel.get(self.find_key(key)?)?;
        Some(&keyed.payload)
    }

    /// Returns a mutable reference to the payload of the timer with this key. The
    /// deadline stays.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.schedule_at(7, Tick(30), 1)?;
    /// *wheel.get_mut(&7).unwrap() += 1;
    /// assert_eq!(wheel.cancel(&7), Some(2));
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<i32, i32>>(())
    /// ```
    #[must_use]
    pub fn get_mut<Q>(&mut self, key: &Q) -> Option<&mut T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let keyed = self.wheel.get_mut(self.find_key(key)?)?;
        Some(&mut keyed.payload)
    }

    /// Replaces the payload of the timer with this key and returns the old one. The
    /// deadline stays.
    ///
    /// # Errors
    /// Returns `payload` if there is no such timer.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.schedule_at(7, Tick(30), "old")?;
    /// assert_eq!(wheel.replace(&7, "new"), Ok("old"));
    /// assert_eq!(wheel.replace(&8, "late"), Err("late"));
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<i32, &str>>(())
    /// ```
    pub fn replace<Q>(&mut self, key: &Q, payload: T) -> Result<T, T>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        match self.get_mut(key) {
            Some(old) => Ok(core::mem::replace(old, payload)),
            None => Err(payload),
        }
    }
}

impl<K, T> KeyedWheel<K, T> {
    /// Returns an iterator over all timers: keys, deadlines and payloads, in no
    /// particular order. Hashes no key. The cost is that of
    /// [`Wheel::iter`](crate::Wheel::iter).
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.schedule_at("a", Tick(5), 1)?;
    /// wheel.schedule_at("b", Tick(9), 2)?;
    /// let due_soon = wheel.iter().filter(|&(_, deadline, _)| deadline < Tick(6));
    /// assert_eq!(due_soon.map(|(key, ..)| *key).collect::<Vec<_>>(), ["a"]);
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<&str, i32>>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (&K, Tick, &T)> {
        let timers = self.wheel.iter();
        timers.map(|(_, deadline, keyed)| (&keyed.key, deadline, &keyed.payload))
    }

    /// Removes all timers. The storage is kept for new timers. If dropping a key or
    /// a payload panics, all timers have been removed already.
    ///
    /// ```
    /// use tickwheel::Tick;
    /// use tickwheel::wheel::KeyedWheel;
    ///
    /// let mut wheel = KeyedWheel::new(64);
    /// wheel.schedule_at(7, Tick(5), "never fires")?;
    /// wheel.clear();
    /// assert!(wheel.is_empty());
    /// wheel.schedule_at(7, Tick(5), "fires")?; // its key is free again
    /// # Ok::<(), tickwheel::wheel::DuplicateKey<i32, &str>>(())
    /// ```
    pub fn clear(&mut self) {
        self.ids.clear();
        let all: Vec<TimerId> = self.wheel.iter().map(|(id, ..)| id).collect();
        let removed = all.into_iter().map(|id| self.wheel.cancel(id));
        let removed: Vec<_> = removed.collect();
        // The caller's code runs last.
        drop(removed);
    }
}
