//! The end of an engine: draining it, and shutting it down.
//!
//! A shutdown refuses new timers at once, and then ends every live timer.
//! To end the timers, a walk visits each shard, a bounded number of entries at a time.
//! Between two holds of the lock, other threads find a closed shard: they cannot
//! schedule, but can still cancel, move and take timers that the walk has not reached. A
//! timer keeps its entry, so the walk meets it once, unless it has ended. A closed
//! shard's wheel is no longer advanced, and its lists are no longer walked, because they
//! may contain vacant entries.

use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::engine::hub::Doorbell;
use crate::engine::{Core, Engine, ShardCell};
use crate::observe;
use crate::tick::Tick;
use crate::timeline::Time;
use crate::timer::Closed;
use crate::wheel::Cursor;

impl<T> Engine<T> {
    /// Stops at once, and returns every live timer exactly once, whether it
    /// was waiting for its deadline or for a worker. A repeating timer
    /// whose payload a worker holds is returned without it. A timer whose
    /// last firing is running, or that was cancelled during a firing, ends
    /// by itself and is not returned. A running chain is returned only if its
    /// holder has [re-armed](crate::Firing::rearm) it by now; a later attempt
    /// is refused ([`Refusal::ShutDown`](crate::Refusal::ShutDown)).
    ///
    /// Does not wait for any thread. New timers are refused from the beginning
    /// of the call. The call then collects the live timers, a bounded part per
    /// hold of a shard's lock. Other threads may cancel and take timers
    /// meanwhile; each timer goes to one of them or is returned. At the end,
    /// the queues return [`RecvError::ShutDown`](crate::RecvError::ShutDown).
    /// After that, the descriptor of a [`Driver`](crate::Driver) becomes
    /// readable and stays readable.
    pub fn shutdown(&self) -> Vec<Closed<T>> {
        self.core.shut_down()
    }

    /// Returns whether the engine was shut down: by
    /// [`shutdown`](Engine::shutdown), at the end of a
    /// [`drain`](Engine::drain), or because its last handle was dropped.
    /// Such an engine refuses timers, and its timers no longer expire.
    ///
    /// Returns `false` during a shutdown and during a drain, although the engine
    /// then refuses timers.
    ///
    /// ```
    /// use tickwheel::Engine;
    ///
    /// let engine = Engine::<()>::builder().start()?;
    /// assert!(!engine.is_shut_down());
    /// engine.shutdown();
    /// assert!(engine.is_shut_down());
    /// # Ok::<(), tickwheel::StartError>(())
    /// ```
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.core.is_shut_down()
    }

    /// Refuses new timers, blocks until workers have taken the one-shots due
    /// within `limit`, and then shuts down as [`shutdown`](Engine::shutdown) does.
    /// Repeating timers and re-armed ones fire meanwhile, but are not waited for:
    /// a chain of short delays would otherwise hold the call to its limit.
    ///
    /// Returns as soon as no such one-shot is left and the shutdown is
    /// complete. Returns at the latest one second after `limit`, provided
    /// that a second suffices to collect the live timers. Other threads may
    /// cancel and move timers meanwhile. Does not wait for reports to be
    /// read. Moves a virtual clock forward by `limit`, rounded up to a tick.
    /// A thread that serves this engine, as a worker or as its loop, serves nothing meanwhile. If
    /// no other does, nothing fires, and the call lasts to its end.
    pub fn drain(&self, limit: Duration) -> Vec<Closed<T>> {
        observe::drain_begun(self.core.subject(), limit);
        let complete = self.core.drain(limit);
        observe::drain_ended(self.core.subject(), complete);
        self.core.shut_down()
    }
}

impl<T> Core<T> {
    /// Ends every live timer, and then the workers and the ticker or the caller's loop.
    pub(crate) fn shut_down(&self) -> Vec<Closed<T>> {
        let now = self.tick_now();
        let live: Vec<usize> = self.shards.iter().map(|cell| self.close(cell)).collect();
        // Allocated here, because a vector should not grow under a lock.
        let mut closed = Vec::with_capacity(live.iter().sum());
        for (cell, live) in self.shards.iter().zip(live) {
            if live > 0 {
                let mut cursor = Cursor::START;
                self.walk(cell, |shard| shard.close_some(&mut cursor, now, &mut closed));
            }
        }
        let is_first = self.stop(closed.len());
        self.waiters.notify();
        self.census.notify();
        if is_first {
            // Last, because it is foreign code.
            observe::shut_down(self.subject(), closed.len());
        }
        closed
    }

    /// Returns whether the engine was shut down.
    pub(crate) fn is_shut_down(&self) -> bool {
        self.alarm.is_stopped()
    }

    /// Returns whether the engine was shut down and all its queues are empty.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_shut_down() && (0..self.queues()).all(|queue| self.ready_len(queue) == 0)
    }

    /// Tells the workers and the ticker or the loop to end. (`Core::ring` tells the
    /// readers of reports.) Dropping the last handle shuts the engine down again. The
    /// queues are closed first, because a caller's loop that the alarm wakes checks them once.
    /// Workers are woken outside the alarm's lock, because the waker of a task is foreign
    /// code. Returns whether this is the first shutdown.
    fn stop(&self, closed: usize) -> bool {
        let queues = &self.doorbells[..self.queues()];
        let close_queues = || queues.iter().for_each(Doorbell::close);
        let is_first = self.alarm.stop(close_queues);
        if is_first {
            queues.iter().for_each(|queue| queue.wake_receivers());
        } else if self.is_driven && closed > 0 {
            // An earlier shutdown woke the loop, before this one ended timers.
            self.alarm.call_again();
        }
        is_first
    }

    /// Makes a shard refuse new timers. Returns how many live timers it has.
    pub(crate) fn close(&self, cell: &ShardCell<T>) -> usize {
        let mut held = self.hold(cell);
        let live = held.shard.close();
        cell.set_next(Tick::MAX);
        self.release(held);
        live
    }
}

/// The maximum time by which a drain, including its shutdown, can exceed its limit.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// The part of the grace that the shutdown needs for each live timer.
const SHUTDOWN_PER_TIMER_NANOS: u64 = 100;

impl<T> Core<T> {
    /// Refuses new timers, and blocks until the one-shots that are due within `limit`
    /// have been taken. Gives up when the rest of the grace is needed for the shutdown.
    /// Returns whether all of these one-shots have been taken.
    fn drain(&self, limit: Duration) -> bool {
        let until = self.clock.now() + limit;
        // A drain does not wait for timers that are never due.
        let last = self.tick.tick_after(until);
        let last = last.min(self.tick.tick_at(Time::MAX));
        for cell in &self.shards {
            cell.lock().begin_drain(last);
        }
        if let Clock::Virtual(_) = self.clock {
            // Other engines on this clock are served when it moves next.
            self.clock.set(until.max(self.tick.start_of(last)));
            self.run_due_at_moved_clock(&mut { usize::MAX });
        }
        let begun = Instant::now();
        let patience = self.patience(limit);
        let left = || patience.saturating_sub(begun.elapsed());
        loop {
            let moved = self.moved();
            let mut cells = self.shards.iter();
            if !cells.all(|cell| self.wait_until_drained(cell, last, left)) {
                return false;
            }
            if self.moved() == moved {
                return true;
            }
        }
    }

    fn moved(&self) -> u64 {
        self.shards.iter().map(|cell| cell.lock().moved).sum()
    }

    /// Blocks until the one-shots of a shard that are due by `last` have been taken. Returns
    /// `false` if the time is over before.
    fn wait_until_drained(
        &self,
        cell: &ShardCell<T>,
        last: Tick,
        left: impl Fn() -> Duration,
    ) -> bool {
        let mut cursor = Cursor::START;
        let is_drained = || {
            let mut stopped = false;
            self.walk(cell, |shard| {
                shard.pass_drained(&mut cursor, last, &mut stopped) || left().is_zero()
            });
            !stopped && !left().is_zero()
        };
        self.waiters.wait_until(is_drained, || Some(left()))
    }

    /// Returns the maximum wait of a drain that begins now.
    pub(crate) fn patience(&self, limit: Duration) -> Duration {
        let grace = grace(self.ledger().live);
        match self.clock {
            Clock::System(_) => grace.saturating_add(limit),
            // The drain has advanced the clock by the limit.
            Clock::Virtual(_) => grace,
        }
    }
}

/// Returns how long a drain may wait beyond its limit if it then has to shut down
/// `live` timers.
pub(crate) fn grace(live: u64) -> Duration {
    let shutdown = live.saturating_mul(SHUTDOWN_PER_TIMER_NANOS);
    GRACE.saturating_sub(Duration::from_nanos(shutdown))
}
