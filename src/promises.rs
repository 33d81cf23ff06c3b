//! What the crate promises. A test fails for each sentence that is broken.
//!
//! 1. **Never early.** A delay counts from a fresh reading of the clock and is
//!    rounded up to a tick. A sleep that a shutdown ends early
//!    [says so](crate::time::Sleep::is_elapsed).
//! 2. **On time.** A timer is in its queue within a tick of its deadline, plus
//!    one wake-up, plus the time to move the timers due before it and to file anew those that
//!    share its slot. The task of an awaited timer is woken then, after those of the timers due
//!    before it.
//! 3. **Exactly one ending.** Every timer ends once: completed, cancelled, shut
//!    down, or failed. The [`Ledger`](crate::stats::Ledger) balances.
//! 4. **Cancel wins until the task is taken**, and returns the payload. Once it has
//!    answered, the timer does not fire again, even if a worker re-arms it.
//! 5. **A stale id is harmless**, however often its storage was reused, and so is a
//!    forged one.
//! 6. **Cancel frees the memory at once.**
//! 7. **Repeats keep their phase**, unless they are re-armed, moved, or told to
//!    delay what they [miss](crate::MissedTicks). Counts are exact, and firings of one timer never
//!    overlap.
//! 8. **A timer's ending is reported on request.**
//! 9. **Order.** Timers of one shard fire by tick, and within a tick in the
//!    order in which they were first scheduled or created. With one shard and one thread,
//!    the same calls at the same times give the same order in every run, in
//!    every kind of engine. No order is promised across shards or for a
//!    repeating timer that catches up beside other threads or overdue timers.
//! 10. **A slow or panicking task harms no other**, as long as a worker is free.
//!     It holds up neither the ticker, nor other queues, nor other workers. If
//!     slow tasks occupy all workers of a queue, its other timers wait, and
//!     [`Snapshot::lateness_at_start`](crate::stats::Snapshot::lateness_at_start) shows it. [`TaskEngine::set_workers`](crate::TaskEngine::set_workers) then
//!     adds workers.
//! 11. **Bounds, and nothing lost.** A refused timer is returned to its caller.
//! 12. **Shutdown accounts for every timer**, at once.
//! 13. **Idle is free.** The ticker wakes up for a deadline and never
//!     periodically. A timer that is cancelled or postponed while the ticker
//!     sleeps for it costs that wake-up, and at most one more, for a slot.
//!     Arming a timer and cancelling it repeatedly costs two per delay at most.
//! 14. **Any deadline**, from the past to the end of u64.
//! 15. **Time only moves forward.** The engine never reads the wall clock.
//!
//! # Policies
//! * **An id is a plain value.** Dropping it cancels nothing, and nobody has to keep it.
//! * **An exit waits for no engine.** When the process ends, live timers do not fire, and
//!   tasks are cut off; see [`Engine`](crate::Engine#the-end-of-the-process).
//! * **An unstarted timer is not live.** It has no deadline to read or move; see
//!   [`Unstarted`](crate::Unstarted).
//! * **No call runs a task inside a task** of the same engine. A nested
//!   [`Driver::process_due`](crate::Driver::process_due) does nothing.
//!   [`VirtualClock::advance`](crate::VirtualClock::advance) runs no task and may be called
//!   anywhere. [`VirtualClock::run_until`](crate::VirtualClock::run_until) panics in a
//!   worker, which it would wait for.
//! * **A closure that holds a handle keeps the engine alive**, unless the handle is
//!   [weak](crate::WeakEngine).
