//! How threads get into the lock, and out of it: no value, no counts.
//!
//! A waiter polls, first soon, then once more after a while. Then it **asks**:
//! whoever lets go of the lock stands off for a moment, so that the waiter finds
//! it free. Asking is a hint. No ownership changes hands, so a waiter that the
//! system has put aside costs a holder that moment, and nobody else anything.
//! A waiter that asked in vain **parks**: it marks that somebody sleeps, looks
//! once more, and sleeps. Whoever lets go wakes one sleeper, if nobody who waits
//! is awake: one is enough, and where threads outnumber processors each further
//! one would only keep the others from running.
//!
//! # Why no sleeper is forgotten
//!
//! A sleeper marks first and looks second; whoever lets go frees the lock first
//! and looks for a mark second. With a fence between the two on both sides, one
//! of them sees the other. The same holds for a waiter that leaves `active`: an
//! unlock that wakes nobody because a waiter is awake leaves the mark, and that
//! waiter gets in, so that its own unlock sees the mark, or parks, and so looks.
//! A wake-up between the last look and the sleep is not lost either, because it
//! clears the mark, and the sleep begins only if the word is as it was. Who
//! slept and got in marks again for the others, under the lock.
//!
//! The fence of an unlock is one for the compiler only, because a real one costs
//! as much as the swap. So the processor may look for a mark before others see
//! the lock free, and miss one that is some nanoseconds old. A sleep therefore
//! ends by itself after a moment (`parker.rs`), which bounds what that costs. A
//! model has the real fence, and sleeps that never end by themselves: there a
//! forgotten sleeper is stuck.

use super::pace::pauses;
use super::parker::Parker;
use crate::sync::primitives::{AtomicBool, AtomicU32, IS_MODEL, Ordering, fence};

/// Nanoseconds before a waiter looks for the first time, and before it looks
/// again. Their sum is about how long a call waits beside a hot thread; shorter
/// ones take the lines away from their holder more often.
const POLLS: [u32; 2] = [400, 1_700];
/// Nanoseconds between the looks of a waiter that has asked.
const BETWEEN_LOOKS: u32 = 100;
/// How often it looks before it parks. In a model each look is the same.
const LOOKS: u32 = if IS_MODEL { 1 } else { 64 };
/// Nanoseconds for which an unlock waits for a waiter that asked.
const STAND_OFF: u32 = 1_700;

/// In `wanted`: a waiter asks to be let in.
const ASK: u32 = 1;
/// In `wanted`: a waiter sleeps, or is about to.
const PARKED: u32 = 2;

/// The lock without its value.
#[derive(Default)]
pub struct RawLock<P> {
    taken: AtomicBool,
    /// What waiters want: `ASK`, `PARKED`. The word on which they sleep.
    wanted: AtomicU32,
    /// How many wait and are awake.
    active: AtomicU32,
    /// How many have slept and are not in yet.
    sleepers: AtomicU32,
    parker: P,
}

impl<P: Parker> RawLock<P> {
    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        // A swap that fails writes what is there already. A model would let
        // whoever holds the lock read that back after having freed it.
        #[cfg(any(loom, shuttle))]
        let free = {
            let order = (Ordering::Acquire, Ordering::Relaxed);
            let taken = self.taken.compare_exchange(false, true, order.0, order.1);
            taken.is_ok()
        };
        #[cfg(not(any(loom, shuttle)))]
        let free = !self.taken.swap(true, Ordering::Acquire);
        free
    }

    /// Lets go of the lock. Only for who holds it.
    #[inline]
    pub fn unlock(&self) {
        self.taken.store(false, Ordering::Release);
        light_fence();
        if self.wanted.load(Ordering::Relaxed) != 0 {
            self.let_in();
        }
    }

    /// Takes the lock as soon as it is free. `pause` passes so many nanoseconds,
    /// or fewer.
    #[cold]
    pub fn wait(&self, pause: impl Fn(u32)) {
        self.active.fetch_add(1, Ordering::Relaxed);
        if !self.poll(&pause) && !self.ask(&pause) {
            self.sleep(&pause);
        }
        self.active.fetch_sub(1, Ordering::Relaxed);
    }

    /// As [`RawLock::try_lock`], and leaves the line where it is if the lock is
    /// taken.
    fn look(&self) -> bool {
        !self.taken.load(Ordering::Relaxed) && self.try_lock()
    }

    fn poll(&self, pause: &impl Fn(u32)) -> bool {
        POLLS.iter().any(|&nanos| {
            pause(nanos);
            self.look()
        })
    }

    fn ask(&self, pause: &impl Fn(u32)) -> bool {
        (0..LOOKS).any(|_| {
            if self.wanted.load(Ordering::Relaxed) & ASK == 0 {
                self.wanted.fetch_or(ASK, Ordering::Relaxed);
            }
            pause(BETWEEN_LOOKS);
            self.look()
        })
    }

    fn sleep(&self, pause: &impl Fn(u32)) {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        while !self.park() && !self.ask(pause) {}
        let others = self.sleepers.fetch_sub(1, Ordering::Relaxed) - 1;
        if others > 0 {
            self.wanted.fetch_or(PARKED, Ordering::Relaxed);
        }
    }

    /// Sleeps once, and looks before and after.
    fn park(&self) -> bool {
        self.active.fetch_sub(1, Ordering::Relaxed);
        let marked = self.wanted.fetch_or(PARKED, Ordering::AcqRel) | PARKED;
        fence(Ordering::SeqCst);
        let found = self.look();
        if !found {
            self.parker.park(&self.wanted, marked);
        }
        self.active.fetch_add(1, Ordering::Relaxed);
        found || self.look()
    }

    /// Lets a waiter that asks go first, and wakes one if all of them sleep.
    #[cold]
    fn let_in(&self) {
        // That somebody asked may be long ago: then nobody comes, and a sleeper
        // is to be woken all the same.
        if self.unset(ASK) && self.stand_off() {
            // This is for the new holder to do when it lets go.
            return;
        }
        let asleep = self.active.load(Ordering::Relaxed) == 0;
        if asleep && self.unset(PARKED) {
            self.parker.wake_one(&self.wanted);
        }
    }

    /// Whether the bit was set.
    fn unset(&self, bit: u32) -> bool {
        let is_set = |wanted: u32| wanted & bit != 0;
        is_set(self.wanted.load(Ordering::Relaxed))
            && is_set(self.wanted.fetch_and(!bit, Ordering::AcqRel))
    }

    /// Leaves the lock alone for a moment. Returns whether somebody took it.
    fn stand_off(&self) -> bool {
        (0..pauses(STAND_OFF)).any(|_| {
            std::hint::spin_loop();
            self.taken.load(Ordering::Relaxed)
        })
    }
}

/// Orders the freeing of the lock before the look for waiters: see the top of
/// this file for what it leaves to the sleepers.
#[inline]
fn light_fence() {
    #[cfg(any(loom, shuttle))]
    fence(Ordering::SeqCst);
    #[cfg(not(any(loom, shuttle)))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
