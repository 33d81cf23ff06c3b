//! The one instant for which the ticker is armed, and who may change it.
//!
//! The protocol, in which no wake-up can get lost:
//!
//! * Who files a timer lowers its shard's `next`, and then looks at `armed`. If
//!   the new deadline is earlier, it takes the arming lock, looks again, and
//!   re-arms the device itself: half a microsecond, where waking the ticker
//!   would cost seven.
//! * The ticker, before it sleeps, takes the arming lock, publishes the least
//!   `next` as `armed`, and then looks at every `next` once more.
//!
//! Both write first and look second, with a fence in between; so at least one
//! of them sees the other. While the ticker is awake `armed` keeps its last,
//! expired value, which no deadline is earlier than.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};

use crate::clock::Clock;
#[cfg(target_os = "linux")]
use crate::clock::timerfd::{Reading, TimerFd};
use crate::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering, fence, lock, wait, wait_for};
use crate::tick::Tick;
use crate::time::TickLength;

pub(crate) struct Alarm {
    armed: AtomicU64,
    arming: Mutex<Arming>,
    device: Device,
    clock: Clock,
    tick: TickLength,
}

struct Arming {
    stopping: bool,
    wakeups: u64,
    /// When a sleeper wakes by itself: a model has no time that sees to it.
    #[cfg(any(loom, shuttle))]
    asleep_until: Tick,
    /// Whether the descriptor would be readable although no time has come.
    #[cfg(any(loom, shuttle))]
    called: bool,
}

impl Arming {
    /// A model has no descriptor that remembers a call.
    fn note_call(&mut self) {
        #[cfg(any(loom, shuttle))]
        {
            self.called = true;
        }
    }

    fn forget_call(&mut self) {
        #[cfg(any(loom, shuttle))]
        {
            self.called = false;
        }
    }
}

/// What the ticker sleeps on.
pub(crate) enum Device {
    #[cfg(target_os = "linux")]
    TimerFd(TimerFd),
    /// Where there is no timerfd.
    Condvar(Condvar),
    /// No thread sleeps: whoever owns the clock calls.
    Nobody,
}

/// What the ticker is to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wake {
    /// Look for what is due.
    Expire,
    /// End.
    Stop,
}

impl Device {
    /// The best that the system has.
    pub(crate) fn system(clock: &Clock, portable: bool) -> io::Result<Device> {
        #[cfg(target_os = "linux")]
        if let (Clock::System(clock), false) = (clock, portable) {
            return Ok(Device::TimerFd(TimerFd::new(*clock, Reading::Waits)?));
        }
        let _ = (clock, portable);
        Ok(Device::Condvar(Condvar::new()))
    }

    /// What a caller's own event loop can sleep on.
    pub(crate) fn for_caller(clock: &Clock) -> io::Result<Device> {
        #[cfg(target_os = "linux")]
        if let Clock::System(clock) = clock {
            return Ok(Device::TimerFd(TimerFd::new(*clock, Reading::Returns)?));
        }
        let _ = clock;
        Ok(Device::Nobody)
    }
}

#[cfg(target_os = "linux")]
impl Alarm {
    /// The descriptor that becomes readable when something is due.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.device {
            Device::TimerFd(timer) => Some(timer.as_fd()),
            _ => None,
        }
    }
}

impl Alarm {
    pub(crate) fn new(device: Device, clock: Clock, tick: TickLength) -> Alarm {
        // With nobody asleep there is nobody to wake: nothing is earlier than
        // an alarm for tick zero.
        Alarm {
            armed: AtomicU64::new(0),
            arming: Mutex::new(Arming {
                stopping: false,
                wakeups: 0,
                #[cfg(any(loom, shuttle))]
                asleep_until: Tick(0),
                #[cfg(any(loom, shuttle))]
                called: false,
            }),
            device,
            clock,
            tick,
        }
    }

    /// Something was filed for `deadline`, and its shard's `next` lowered.
    #[inline]
    pub(crate) fn notify_earlier(&self, deadline: Tick) {
        fence(Ordering::SeqCst);
        if deadline.0 < self.armed.load(Ordering::Relaxed) {
            self.arm_earlier(deadline);
        }
    }

    #[cold]
    fn arm_earlier(&self, deadline: Tick) {
        let arming = lock(&self.arming);
        if deadline.0 < self.armed.load(Ordering::Relaxed) && !arming.stopping {
            self.armed.store(deadline.0, Ordering::Relaxed);
            self.set(deadline);
        }
    }

    /// Sleeps until the earliest tick that `next` finds; returns at once if
    /// that has come by `now`.
    pub(crate) fn sleep(&self, now: Tick, next: impl Fn() -> Tick) -> Wake {
        let arming = lock(&self.arming);
        if arming.stopping {
            return Wake::Stop;
        }
        if next() <= now {
            return Wake::Expire;
        }
        self.arm(next);
        self.wait(arming)
    }

    /// For a caller who sleeps elsewhere: arms the device for the earliest tick
    /// that `next` finds; for one that has come it goes off at once.
    pub(crate) fn arm_for_caller(&self, next: impl Fn() -> Tick) {
        let arming = lock(&self.arming);
        if !arming.stopping {
            self.arm(next);
        }
    }

    /// For a caller who has left something undone: the device goes off at once.
    /// After the stop, too, because tasks are still to be told of that.
    pub(crate) fn call_again(&self) {
        let mut arming = lock(&self.arming);
        self.arm(|| Tick(0));
        arming.note_call();
    }

    /// The device went off, or may have: takes note of it. After the stop it is
    /// left as it is, so that nobody who looks can miss the end.
    pub(crate) fn acknowledge(&self) {
        let mut arming = lock(&self.arming);
        if arming.stopping {
            return;
        }
        arming.forget_call();
        #[cfg(target_os = "linux")]
        if let Device::TimerFd(timer) = &self.device {
            timer.wait();
        }
    }

    /// Sleeps as `poll` does for a caller: until the descriptor is readable,
    /// whatever made it so.
    #[cfg(any(loom, shuttle))]
    pub(crate) fn sleep_for_caller(&self) {
        let mut arming = lock(&self.arming);
        let Device::Condvar(changed) = &self.device else {
            return;
        };
        loop {
            let armed = Tick(self.armed.load(Ordering::Relaxed));
            if arming.called || armed <= self.tick.tick_at(self.clock.now()) {
                return;
            }
            arming.asleep_until = armed;
            arming = wait(changed, arming);
        }
    }

    /// Publishes the earliest tick, and looks once more: see the top of this
    /// file. The caller holds the arming lock.
    fn arm(&self, next: impl Fn() -> Tick) {
        let mut earliest = next();
        loop {
            self.armed.store(earliest.0, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let again = next();
            if again >= earliest {
                break;
            }
            earliest = again;
        }
        self.set(earliest);
    }

    fn wait(&self, arming: MutexGuard<'_, Arming>) -> Wake {
        let mut arming = match &self.device {
            #[cfg(target_os = "linux")]
            Device::TimerFd(timer) => {
                drop(arming);
                timer.wait();
                lock(&self.arming)
            }
            Device::Condvar(changed) => self.wait_on(changed, arming),
            Device::Nobody => arming,
        };
        arming.wakeups += 1;
        match arming.stopping {
            true => Wake::Stop,
            false => Wake::Expire,
        }
    }

    /// Waits for `armed` to come, which others may bring forward meanwhile.
    fn wait_on<'a>(
        &self,
        changed: &Condvar,
        mut arming: MutexGuard<'a, Arming>,
    ) -> MutexGuard<'a, Arming> {
        while !arming.stopping {
            let armed = Tick(self.armed.load(Ordering::Relaxed));
            let now = self.clock.now();
            if armed <= self.tick.tick_at(now) {
                break;
            }
            #[cfg(any(loom, shuttle))]
            {
                arming.asleep_until = armed;
            }
            arming = match armed {
                Tick::MAX => wait(changed, arming),
                armed => wait_for(changed, arming, self.tick.start_of(armed) - now),
            };
        }
        arming
    }

    fn set(&self, deadline: Tick) {
        match &self.device {
            #[cfg(target_os = "linux")]
            Device::TimerFd(timer) => {
                let never = deadline == Tick::MAX;
                timer.set((!never).then(|| self.tick.start_of(deadline)));
            }
            // It looks for itself what it is to wait for.
            Device::Condvar(changed) => changed.notify_all(),
            Device::Nobody => {}
        }
        let _ = deadline;
    }

    /// Ends the ticker, whether it sleeps or not, or calls the caller's loop.
    /// The first time it does `before` first: whoever finds the device gone off,
    /// finds that done. Returns whether this is the first time.
    pub(crate) fn stop(&self, before: impl FnOnce()) -> bool {
        let mut arming = lock(&self.arming);
        let first = !std::mem::replace(&mut arming.stopping, true);
        if first {
            before();
            self.set(Tick(0));
            arming.note_call();
        }
        first
    }

    /// Whether it was stopped, and what comes before that was done.
    pub(crate) fn is_stopped(&self) -> bool {
        lock(&self.arming).stopping
    }

    /// What is slept on, for whoever looks at an engine.
    pub(crate) fn device(&self) -> &'static str {
        match self.device {
            #[cfg(target_os = "linux")]
            Device::TimerFd(_) => "timerfd",
            Device::Condvar(_) => "condition variable",
            Device::Nobody => "nothing",
        }
    }

    /// How often the ticker was woken.
    pub(crate) fn wakeups(&self) -> u64 {
        lock(&self.arming).wakeups
    }

    /// Lets whoever sleeps look at the clock again, after a virtual one moved.
    pub(crate) fn clock_moved(&self) {
        let _arming = lock(&self.arming);
        if let Device::Condvar(changed) = &self.device {
            changed.notify_all();
        }
    }

    /// Wakes whoever sleeps if its time has come; others sleep on, even where
    /// `armed` was brought forward and they were not told.
    #[cfg(any(loom, shuttle))]
    pub(crate) fn time_passed(&self) {
        let arming = lock(&self.arming);
        let now = self.tick.tick_at(self.clock.now());
        if let (Device::Condvar(changed), true) = (&self.device, arming.asleep_until <= now) {
            changed.notify_all();
        }
    }
}
