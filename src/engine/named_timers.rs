//! Finding timers by name while other threads use the engine.

use std::collections::VecDeque;
use std::fmt;

use crate::engine::Engine;
use crate::hub::Core;
use crate::hub::names::Namesakes;
use crate::id::TimerId;

/// Iterator over the ids of timers with a name, oldest first, from
/// [`Engine::find_by_name`](crate::Engine::find_by_name).
///
/// Holds a lock of the name for a few dozen timers at a time. Returns a timer that
/// has the name during the whole walk exactly once, and no timer that is created
/// meanwhile. A returned timer may have ended since.
#[must_use = "an iterator does nothing until it is advanced"]
pub struct NamedTimers<'a, T> {
    core: &'a Core<T>,
    namesakes: Namesakes<'a>,
    found: VecDeque<TimerId>,
    is_complete: bool,
}

impl<T> fmt::Debug for NamedTimers<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedTimers").finish_non_exhaustive()
    }
}

impl<T> Engine<T> {
    /// Returns an iterator over the ids of the timers that have this name, oldest first:
    /// live and [unstarted](Engine::create) ones; see [`NamedTimers`].
    ///
    /// A timer is no longer found by its name when it has ended, or when it was cancelled
    /// during a firing. For the names of all live timers, read
    /// [`LiveTimer::name`](crate::LiveTimer::name) from [`live`](Engine::live).
    ///
    /// # Cost
    /// Grows with the number of timers that the iterator returns, not with the number of
    /// timers in the engine.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let engine = Engine::builder().start()?;
    /// let schedule = |n: u32, name: &str| {
    ///     engine.schedule(Timer::after(Duration::from_secs(30), n).named(name))
    /// };
    /// let sessions = [schedule(1, "session")?, schedule(2, "session")?];
    /// schedule(3, "backup")?;
    /// assert!(engine.find_by_name("session").eq(sessions));
    ///
    /// for id in engine.find_by_name("session") {
    ///     // Answers `Gone` if the timer has ended meanwhile.
    ///     let _ = engine.reschedule(id, Duration::from_secs(60));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find_by_name<'a>(&'a self, name: &'a str) -> NamedTimers<'a, T> {
        NamedTimers {
            core: &self.core,
            namesakes: self.core.names.namesakes(name),
            found: VecDeque::new(),
            is_complete: false,
        }
    }
}

impl<T> NamedTimers<'_, T> {
    /// Finds the next few timers. Leaves out those that have ended since, and those of
    /// another name with the same hash.
    fn refill(&mut self) {
        let names = &self.core.names;
        self.is_complete = !names.find_some(&mut self.namesakes, &mut self.found);
        if !self.is_complete {
            names.step_aside(&self.namesakes);
        }
        let name = self.namesakes.name;
        self.found.retain(|&id| self.core.has_name(id, name));
    }
}

impl<T> Iterator for NamedTimers<'_, T> {
    type Item = TimerId;

    fn next(&mut self) -> Option<TimerId> {
        while self.found.is_empty() && !self.is_complete {
            self.refill();
        }
        self.found.pop_front()
    }
}

impl<T> std::iter::FusedIterator for NamedTimers<'_, T> {}
