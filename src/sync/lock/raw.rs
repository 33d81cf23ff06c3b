//! The protocol for taking and releasing a lock, without the lock's value.
//!
//! A waiter polls twice: early, in case the holder's work is short, and again after
//! a while. Then it **requests** the lock: the next thread to release the lock
//! stands off for a moment, so that the waiter finds it free. A request is a hint
//! and hands nothing over. A waiter that the system has preempted therefore costs
//! the holder that moment and costs other threads nothing. A waiter whose requests
//! have failed **parks**: it sets a mark for sleepers, tries once more, and sleeps.
//! An unlock wakes one sleeper, and only if no waiter is awake. One is enough: if
//! threads outnumber processors, further ones would only keep the others from
//! running. A waiter that has slept in vain for a tenth of a second **claims** the lock: it sleeps
//! again, until an unlock takes the lock once more and hands it over. Otherwise, threads that come
//! back at once could keep it out for ever (DESIGN.md, "A lock whose waiters ask, and then sleep").
//!
//! # Why no sleeper is forgotten
//!
//! A sleeper sets a mark, fences, then tries the lock. An unlock frees the lock,
//! fences, then checks for a mark. If the sleeper's fence comes first, the unlock
//! sees the mark. If the unlock's fence comes first, the sleeper takes the lock.
//!
//! - *An unlock that wakes nobody because a waiter is awake* leaves the mark. If
//!   that waiter takes the lock, its own unlock sees the mark. Otherwise it leaves
//!   `active` and parks, and the argument above holds for it.
//! - *A wake-up between the last attempt and the sleep* clears the mark. The sleep
//!   begins only if the word has not changed.
//! - *A sleeper that takes the lock* sets the mark again for the other sleepers.
//! - *A claim* is a mark that only its waiter takes back, when it holds the lock. An unlock that
//!   finds the lock taken again leaves the claim to the next one.
//!
//! The fence of an unlock restrains only the compiler, because a real one costs as
//! much as the swap. The processor may therefore check for a mark before other
//! threads see the lock free, and miss a mark that is a few nanoseconds old. Each
//! sleep ends by itself after a moment, which bounds the cost of a missed mark
//! (DESIGN.md, "A lock whose waiters ask, and then sleep"). The more sleep, the longer each
//! does, or hundreds would use up all processors. In a model, the fence is real and no sleep
//! ends by itself, so a forgotten sleeper is a deadlock.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU32 as StdAtomicU32;
use std::time::{Duration, Instant};

use super::parker::Parker;
use crate::sync::primitives::{AtomicBool, AtomicU32, IS_MODEL, Ordering, fence};

/// Nanoseconds before a waiter's first attempt and before its second. Their sum is
/// roughly the time that a call waits beside a busy thread. Shorter pauses take the
/// cache lines away from the holder more often.
const POLLS: [u32; 2] = [400, 1_700];
/// Nanoseconds between the attempts of a waiter that has requested the lock.
const BETWEEN_ATTEMPTS: u32 = 100;
/// The number of its attempts before it parks. In a model all attempts are alike.
const ATTEMPTS: u32 = if IS_MODEL { 1 } else { 64 };
/// Nanoseconds for which an unlock leaves the lock to a waiter that requested it.
const STAND_OFF: u32 = 1_700;

/// The length of a lone waiter's sleep that no wake-up ends. The nth of several sleeps n times as
/// long.
const LONGEST: Duration = Duration::from_millis(1);
/// The most times. It bounds what a missed mark costs the last of a crowd, and how long a waiter
/// sleeps in vain before it claims the lock.
const MOST_TIMES: u32 = if IS_MODEL { 1 } else { 100 };

/// A bit of `wanted`: a waiter has requested the lock.
const REQUESTED: u32 = 1;
/// A bit of `wanted`: a waiter sleeps or is about to.
const PARKED: u32 = 2;
/// One claim in `wanted`, which counts them above its two bits.
const CLAIM: u32 = 4;

/// The lock without its value.
#[derive(Default, Debug)]
pub struct RawLock<P> {
    taken: AtomicBool,
    /// `{ claims, PARKED, REQUESTED }`. Waiters sleep on this word.
    wanted: AtomicU32,
    /// The number of waiters that are awake.
    active: AtomicU32,
    /// The number of waiters that have slept and do not hold the lock yet.
    sleepers: AtomicU32,
    parker: P,
    /// Whether the lock, which is taken, belongs to a claimant. Claimants sleep on this word.
    handed: AtomicU32,
    claimants: P,
}

impl<P: Parker> RawLock<P> {
    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        // A failed swap writes the value that is already there. In a model the
        // holder could read that value back after it has freed the lock.
        if IS_MODEL {
            let (order, failed) = (Ordering::Acquire, Ordering::Relaxed);
            let taken = self.taken.compare_exchange(false, true, order, failed);
            return taken.is_ok();
        }
        !self.taken.swap(true, Ordering::Acquire)
    }

    /// Releases the lock. The caller holds it.
    #[inline]
    pub fn unlock(&self) {
        self.taken.store(false, Ordering::Release);
        light_fence();
        if self.wanted.load(Ordering::Relaxed) != 0 {
            self.serve_waiters();
        }
    }

    /// Blocks until the lock is free, and takes it. `pause` waits for at most the
    /// given number of nanoseconds.
    #[cold]
    pub fn wait(&self, pause: impl Fn(u32)) {
        self.active.fetch_add(1, Ordering::Relaxed);
        if !self.poll(&pause) && !self.request(&pause) {
            self.sleep(&pause);
        }
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes the lock if it is free. Otherwise leaves the cache line with the
    /// holder.
    fn attempt(&self) -> bool {
        !self.taken.load(Ordering::Relaxed) && self.try_lock()
    }

    fn poll(&self, pause: &impl Fn(u32)) -> bool {
        POLLS.iter().any(|&nanos| {
            pause(nanos);
            self.attempt()
        })
    }

    fn request(&self, pause: &impl Fn(u32)) -> bool {
        (0..ATTEMPTS).any(|_| {
            if self.wanted.load(Ordering::Relaxed) & REQUESTED == 0 {
                self.wanted.fetch_or(REQUESTED, Ordering::Relaxed);
            }
            pause(BETWEEN_ATTEMPTS);
            self.attempt()
        })
    }

    fn sleep(&self, pause: &impl Fn(u32)) {
        let sleepers = self.sleepers.fetch_add(1, Ordering::Relaxed) + 1;
        let times = sleepers.min(MOST_TIMES);
        let limit = LONGEST * times;
        if !(0..MOST_TIMES.div_ceil(times)).any(|_| self.park(limit) || self.request(pause)) {
            self.claim(limit);
        }
        let others = self.sleepers.fetch_sub(1, Ordering::Relaxed) - 1;
        if others > 0 {
            self.wanted.fetch_or(PARKED, Ordering::Relaxed);
        }
    }

    /// Sleeps once, and tries the lock before and after.
    fn park(&self, limit: Duration) -> bool {
        self.active.fetch_sub(1, Ordering::Relaxed);
        let marked = self.wanted.fetch_or(PARKED, Ordering::AcqRel) | PARKED;
        fence(Ordering::SeqCst);
        let found = self.attempt();
        if !found {
            self.parker.park(&self.wanted, marked, limit);
        }
        self.active.fetch_add(1, Ordering::Relaxed);
        found || self.attempt()
    }

    /// Blocks until the lock is handed over or free, and takes it. Looks again after each `limit`.
    #[cold]
    pub fn claim(&self, limit: Duration) {
        self.wanted.fetch_add(CLAIM, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        while !self.attempt() && self.handed.swap(0, Ordering::Acquire) == 0 {
            self.claimants.park(&self.handed, 0, limit);
        }
        self.wanted.fetch_sub(CLAIM, Ordering::Relaxed);
    }

    /// Hands the lock to a claimant, or stands off for a waiter that has requested it. Wakes one
    /// if all waiters sleep.
    #[cold]
    fn serve_waiters(&self) {
        let is_claimed = || self.wanted.load(Ordering::Relaxed) >= CLAIM;
        if is_claimed() && self.try_lock() {
            // Nobody withdraws a claim without holding the lock.
            if !is_claimed() {
                return self.unlock();
            }
            // An exchange, because a model doesn't order a store among those of claimants.
            self.handed.swap(1, Ordering::Release);
            return self.claimants.wake_one(&self.handed);
        }
        // If the request is old, no waiter takes the lock, and a sleeper must be
        // woken all the same.
        if self.unset(REQUESTED) && self.stand_off() {
            // The unlock of the new holder does the rest.
            return;
        }
        let asleep = self.active.load(Ordering::Relaxed) == 0;
        if asleep && self.unset(PARKED) {
            self.parker.wake_one(&self.wanted);
        }
    }

    /// Clears a bit. Returns whether it was set.
    fn unset(&self, bit: u32) -> bool {
        let is_set = |wanted: u32| wanted & bit != 0;
        is_set(self.wanted.load(Ordering::Relaxed))
            && is_set(self.wanted.fetch_and(!bit, Ordering::AcqRel))
    }

    /// Leaves the lock alone for a moment. Returns whether a waiter took it.
    fn stand_off(&self) -> bool {
        (0..pauses(STAND_OFF)).any(|_| {
            spin_loop();
            self.taken.load(Ordering::Relaxed)
        })
    }
}

/// Orders the freeing of the lock before the check for waiters, within the limits
/// that the head of this file describes.
#[inline]
fn light_fence() {
    #[cfg(any(loom, shuttle))]
    fence(Ordering::SeqCst);
    #[cfg(not(any(loom, shuttle)))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

// Converts nanoseconds into a number of pause instructions.
//
// A pause takes between one nanosecond and a few dozen, depending on the
// processor. Waits are given as times and not as numbers of pauses, because the
// time for which a waiter polls is about the time that a call waits beside a busy
// thread. Waiters do not read the clock, because a reading costs as much as the
// shorter waits. The length of a pause is measured once instead.

/// The number of pauses in a sample. A sample outlasts a step of a coarse clock.
const SAMPLE: u32 = 128;
const SAMPLES: u32 = 8;
/// Limits beyond the range of real processors. They keep a wait from being endless
/// or empty if the clock stands still or the thread is preempted in every sample.
const LEAST_PER_MICRO: u32 = 8;
const MOST_PER_MICRO: u32 = 1_000;

/// Returns the number of pauses in `nanos`, at least one. In a model, returns one.
pub(super) fn pauses(nanos: u32) -> u32 {
    if IS_MODEL {
        return 1;
    }
    (nanos * pauses_per_micro() / 1_000).max(1)
}

/// Returns the number of pauses in a microsecond. The first call measures it, in a
/// few microseconds. Concurrent first calls all measure it, without harm.
pub(super) fn pauses_per_micro() -> u32 {
    static MEASURED: StdAtomicU32 = StdAtomicU32::new(0);
    match MEASURED.load(Ordering::Relaxed) {
        0 => {
            let measured = measure();
            MEASURED.store(measured, Ordering::Relaxed);
            measured
        }
        measured => measured,
    }
}

/// Uses the fastest sample, because the thread may be interrupted in the others.
fn measure() -> u32 {
    let sample = |_| {
        let begun = Instant::now();
        (0..SAMPLE).for_each(|_| spin_loop());
        begun.elapsed().as_nanos().max(1)
    };
    let fastest = (0..SAMPLES).map(sample).min().unwrap_or(1);
    let per_micro = u128::from(SAMPLE) * 1_000 / fastest;
    (per_micro as u32).clamp(LEAST_PER_MICRO, MOST_PER_MICRO)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
