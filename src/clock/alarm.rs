//! The instant for which the ticker is armed, and the protocol that changes it.
//!
//! Each side writes first and reads second, with a fence in between:
//!
//! * A thread that links a timer lowers its shard's `next`, and then reads `armed`.
//!   If the new deadline is earlier, the thread takes the arming lock, reads again, and
//!   re-arms the device itself, which is cheaper than waking the ticker.
//! * Before the ticker sleeps, it takes the arming lock, publishes the least `next` as
//!   `armed`, and then reads every `next` once more.
//!
//! No wake-up is lost, because one of the two fences comes first. If it is the
//! thread's, the ticker reads the lowered `next`. If it is the ticker's, the thread
//! reads the new `armed`. While the ticker is awake, `armed` keeps its last value,
//! which has expired, and no deadline is earlier.

use std::io;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::fd::{AsFd, BorrowedFd};

use crate::clock::{Clock, SystemTimer};
use crate::rounding::TickLength;
use crate::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering, fence, lock, wait, wait_for};
use crate::tick::Tick;

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
    /// For models: the tick at which a sleeper would wake, because time doesn't wake it there;
    /// and the tick at which the descriptor would become readable.
    asleep_until: Tick,
    readable_at: Tick,
}

/// The object that the ticker sleeps on.
pub(crate) enum Device {
    Timer(SystemTimer),
    /// For systems without such a timer.
    Condvar(Condvar),
    /// Nothing, because no thread sleeps: the owner of the clock calls the engine.
    Nobody,
}

impl Device {
    /// Creates the best device that the system offers.
    pub(crate) fn system(clock: &Clock, portable: bool) -> io::Result<Device> {
        let timer = match clock {
            Clock::System(clock) if !portable => SystemTimer::for_ticker(*clock)?,
            Clock::System(_) | Clock::Virtual(_) => None,
        };
        Ok(timer.map_or_else(|| Device::Condvar(Condvar::new()), Device::Timer))
    }

    /// Creates a device that a caller's own event loop can sleep on.
    pub(crate) fn for_caller(clock: &Clock) -> io::Result<Device> {
        let timer = match clock {
            Clock::System(clock) => SystemTimer::for_caller(*clock)?,
            Clock::Virtual(_) => None,
        };
        Ok(timer.map_or(Device::Nobody, Device::Timer))
    }
}

impl Alarm {
    /// Returns the descriptor, which becomes readable when a timer is due.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.device {
            Device::Timer(timer) => Some(timer.as_fd()),
            _ => None,
        }
    }

    pub(crate) fn new(device: Device, clock: Clock, tick: TickLength) -> Alarm {
        // No deadline is earlier than tick zero, so no thread wakes the ticker
        // before it sleeps.
        Alarm {
            armed: AtomicU64::new(0),
            arming: Mutex::new(Arming {
                stopping: false,
                wakeups: 0,
                asleep_until: Tick(0),
                readable_at: Tick::MAX,
            }),
            device,
            clock,
            tick,
        }
    }

    /// Re-arms the device if it is armed for a later tick than `deadline`. The caller
    /// has lowered its shard's `next` to `deadline`.
    #[inline]
    pub(crate) fn notify_earlier(&self, deadline: Tick) {
        fence(Ordering::SeqCst);
        if deadline.0 < self.armed.load(Ordering::Relaxed) {
            self.arm_earlier(deadline);
        }
    }

    #[cold]
    fn arm_earlier(&self, deadline: Tick) {
        let mut arming = lock(&self.arming);
        if deadline.0 < self.armed.load(Ordering::Relaxed) && !arming.stopping {
            self.armed.store(deadline.0, Ordering::Relaxed);
            self.set(&mut arming, deadline);
        }
    }

    /// Blocks until the earliest tick that `next` finds. Returns at once if that
    /// tick is not after `now`. Returns whether the ticker goes on.
    pub(crate) fn sleep(&self, now: Tick, next: impl Fn() -> Tick) -> bool {
        let mut arming = lock(&self.arming);
        if arming.stopping {
            return false;
        }
        if next() <= now {
            return true;
        }
        self.arm(&mut arming, next);
        self.wait(arming)
    }

    /// Arms the device for the earliest tick that `next` finds, for a caller that
    /// sleeps elsewhere. If that tick has come, the device goes off at once; otherwise, it
    /// is no longer readable, if it has gone off before. After the stop, leaves the device as
    /// it is, because every caller must see the end.
    pub(crate) fn arm_for_caller(&self, next: impl Fn() -> Tick) {
        let mut arming = lock(&self.arming);
        if !arming.stopping {
            self.arm(&mut arming, next);
        }
    }

    /// Makes the device go off at once, for a caller that has left work undone. Also
    /// works after the stop, because tasks may still have to run.
    pub(crate) fn call_again(&self) {
        self.arm(&mut lock(&self.arming), || Tick(0));
    }

    /// Blocks until the descriptor is readable, as `poll` does for a caller.
    #[cfg(any(loom, shuttle))]
    pub(crate) fn sleep_for_caller(&self) {
        let mut arming = lock(&self.arming);
        let Device::Condvar(changed) = &self.device else {
            return;
        };
        loop {
            if arming.readable_at <= self.tick.tick_at(self.clock.now()) {
                return;
            }
            arming.asleep_until = arming.readable_at;
            arming = wait(changed, arming);
        }
    }

    /// Publishes the earliest tick, and reads every `next` once more, as described at
    /// the top of this file.
    fn arm(&self, arming: &mut Arming, next: impl Fn() -> Tick) {
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
        self.set(arming, earliest);
    }

    fn wait(&self, arming: MutexGuard<'_, Arming>) -> bool {
        let mut arming = match &self.device {
            Device::Timer(timer) => {
                drop(arming);
                timer.wait();
                lock(&self.arming)
            }
            Device::Condvar(changed) => self.wait_on(changed, arming),
            Device::Nobody => arming,
        };
        arming.wakeups += 1;
        !arming.stopping
    }

    /// Waits until `armed`, which other threads may bring forward meanwhile.
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
            arming.asleep_until = armed;
            arming = match armed {
                Tick::MAX => wait(changed, arming),
                armed => wait_for(changed, arming, self.tick.start_of(armed) - now),
            };
        }
        arming
    }

    fn set(&self, arming: &mut Arming, deadline: Tick) {
        arming.readable_at = deadline;
        match &self.device {
            Device::Timer(timer) => timer.set(self.tick.start_of(deadline)),
            // The sleeper reads `armed` itself.
            Device::Condvar(changed) => changed.notify_all(),
            Device::Nobody => {}
        }
    }

    /// Ends the ticker, even if it is asleep, or wakes the caller's loop. The first
    /// call begins with `before`, so that a thread that the device has woken finds it
    /// done. Returns whether this is the first call.
    pub(crate) fn stop(&self, before: impl FnOnce()) -> bool {
        let mut arming = lock(&self.arming);
        let first = !std::mem::replace(&mut arming.stopping, true);
        if first {
            before();
            self.set(&mut arming, Tick(0));
        }
        first
    }

    /// Returns whether the alarm was stopped. If so, the first stop's `before` is done.
    pub(crate) fn is_stopped(&self) -> bool {
        lock(&self.arming).stopping
    }

    /// Returns the name of the device for an operator.
    pub(crate) fn device(&self) -> &'static str {
        match self.device {
            Device::Timer(_) => SystemTimer::NAME,
            Device::Condvar(_) => "condition variable",
            Device::Nobody => "nothing",
        }
    }

    /// Returns the number of times that the ticker was woken.
    pub(crate) fn wakeups(&self) -> u64 {
        lock(&self.arming).wakeups
    }

    /// Wakes the sleeper if the tick until which it sleeps has come. If `armed` was
    /// brought forward without waking the sleeper, it sleeps on.
    #[cfg(any(loom, shuttle))]
    pub(crate) fn time_passed(&self) {
        let Device::Condvar(changed) = &self.device else { return };
        let now = self.tick.tick_at(self.clock.now());
        if lock(&self.arming).asleep_until <= now {
            changed.notify_all();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::clock::ClockSource;
    use crate::timeline::Time;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::thread;
    use std::time::Duration;

    const MS: Duration = Duration::from_millis(1);
    const LIMIT: Duration = Duration::from_secs(20);

    /// An alarm for each device that a ticker of this system can have.
    fn alarms() -> [Alarm; 2] {
        [false, true].map(|portable| {
            let clock = Clock::system(ClockSource::Monotonic);
            let device = Device::system(&clock, portable).unwrap();
            Alarm::new(device, clock, TickLength::new(MS).unwrap())
        })
    }

    fn now(alarm: &Alarm) -> Tick {
        alarm.tick.tick_at(alarm.clock.now())
    }

    /// Sleeps until the tick in `next`, while `call` acts on the sleeper once it is
    /// armed. Returns how the sleep ended, and when.
    fn sleep(alarm: &Alarm, next: &AtomicU64, call: impl FnOnce()) -> (bool, Time) {
        let wanted = next.load(Ordering::SeqCst);
        let (ended, end) = channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                let goes_on = alarm.sleep(Tick(0), || Tick(next.load(Ordering::SeqCst)));
                ended.send((goes_on, alarm.clock.now())).unwrap();
            });
            while alarm.armed.load(Ordering::SeqCst) != wanted {
                thread::yield_now();
            }
            call();
            let end = end.recv_timeout(LIMIT);
            if end == Err(RecvTimeoutError::Timeout) {
                // Lets the thread go, so that the test can fail.
                alarm.stop(|| ());
            }
            end.unwrap_or_else(|_| panic!("asleep on the {}", alarm.device()))
        })
    }

    #[test]
    fn a_sleep_ends_at_its_deadline_and_not_before() {
        for alarm in alarms() {
            for ticks in 1..10 {
                let next = Tick(now(&alarm).0 + ticks);
                let (goes_on, end) = sleep(&alarm, &AtomicU64::new(next.0), || ());
                assert!(goes_on);
                assert!(end >= alarm.tick.start_of(next), "{}", alarm.device());
            }
        }
    }

    #[test]
    fn a_call_ends_a_sleep_that_has_begun() {
        for alarm in alarms() {
            let next = AtomicU64::new(now(&alarm).0 + 3_600_000);
            let earlier = Tick(now(&alarm).0 + 3);
            let (goes_on, end) = sleep(&alarm, &next, || {
                next.store(earlier.0, Ordering::SeqCst);
                alarm.notify_earlier(earlier);
            });
            assert!(goes_on);
            assert!(end >= alarm.tick.start_of(earlier), "{}", alarm.device());
        }
    }

    #[test]
    fn no_sleep_begins_at_its_deadline_or_after_a_stop() {
        for alarm in alarms() {
            assert!(alarm.sleep(Tick(3), || Tick(3)));
            alarm.stop(|| ());
            assert!(!alarm.sleep(Tick(0), || Tick(now(&alarm).0 + 3)));
            assert_eq!(alarm.wakeups(), 0, "{}", alarm.device());
        }
    }

    #[test]
    fn a_stop_ends_a_sleep_without_end() {
        for alarm in alarms() {
            let never = AtomicU64::new(Tick::MAX.0);
            let (goes_on, _) = sleep(&alarm, &never, || _ = alarm.stop(|| ()));
            assert!(!goes_on);
        }
    }
}
