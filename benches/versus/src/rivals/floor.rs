//! Floors: the least cost that an engine could reach. No ratio counts them.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tickwheel::{Tick, TimerId, Wheel};

use crate::rival::{Caller, Shared, Sleepers, TICK};

/// A wheel per thread without any synchronisation.
pub struct WheelPerThread;

pub struct Owned(Wheel<u64>);

impl Shared for WheelPerThread {
    const NAME: &'static str = "floor wheel per thread";
    const THREAD_SAFE: bool = false;
    const REMOTE: bool = false;
    const FIRES: bool = false;
    type Id = TimerId;
    type Caller<'a> = Owned;

    fn start() -> WheelPerThread {
        WheelPerThread
    }

    fn caller(&self) -> Owned {
        Owned(Wheel::new(64))
    }
}

impl Caller for Owned {
    type Id = TimerId;

    fn schedule(&mut self, delay_ticks: u64, payload: u64) -> TimerId {
        self.0.schedule_at(Tick(delay_ticks), payload)
    }

    fn cancel(&mut self, id: TimerId) {
        self.0.cancel(id);
    }

    fn postpone(&mut self, id: TimerId, delay_ticks: u64, _: u64) -> TimerId {
        let moved = self.0.reschedule(id, Tick(delay_ticks));
        debug_assert!(moved);
        id
    }
}

/// A thread that sleeps on a timerfd, and one hop to a worker.
pub struct TimerFd;

impl Sleepers for TimerFd {
    const NAME: &'static str = "floor timerfd";

    fn lateness(tick: Duration, delays: &[Duration]) -> Vec<i64> {
        let fd = timerfd().expect("a descriptor");
        let tick = tick.as_nanos() as u64;
        let mut deadlines: Vec<u64> = delays
            .iter()
            .map(|delay| monotonic() + delay.as_nanos() as u64)
            .collect();
        deadlines.sort_unstable();
        let (sender, due) = channel();
        thread::scope(|scope| {
            let worker = scope.spawn(move || work(&due, delays.len()));
            for deadline in deadlines {
                let rounded = deadline.next_multiple_of(tick);
                if rounded > monotonic() {
                    sleep_until(&fd, rounded).expect("the descriptor is ours");
                }
                sender.send(deadline).expect("the worker waits for all");
            }
            drop(sender);
            worker.join().expect("the worker only counts")
        })
    }

    /// One message per tick.
    fn count(delays: &[Duration]) {
        let fd = timerfd().expect("a descriptor");
        let start = monotonic();
        let tick = TICK.as_nanos() as u64;
        let rounded = |delay: &Duration| (start + delay.as_nanos() as u64).next_multiple_of(tick);
        let mut deadlines: Vec<u64> = delays.iter().map(rounded).collect();
        deadlines.sort_unstable();
        let (sender, due) = channel();
        thread::scope(|scope| {
            scope.spawn(move || std::hint::black_box(due.iter().sum::<usize>()));
            scope.spawn(move || {
                for together in deadlines.chunk_by(|a, b| a == b) {
                    sleep_until(&fd, together[0]).expect("the descriptor is ours");
                    sender
                        .send(together.len())
                        .expect("the worker waits for all");
                }
            });
        });
    }

    fn beat(period: Duration, watch: impl FnOnce()) {
        let fd = timerfd().expect("a descriptor");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let next = monotonic() + period.as_nanos() as u64;
                    sleep_until(&fd, next).expect("the descriptor is ours");
                }
            });
            watch();
            is_over.store(true, Ordering::Relaxed);
        });
    }

    fn idle(delay: Option<Duration>, watch: impl FnOnce()) {
        let fd = timerfd().expect("a descriptor");
        if let Some(delay) = delay {
            let deadline = monotonic() + delay.as_nanos() as u64;
            arm(&fd, deadline).expect("the descriptor is ours");
        }
        // A thread that sleeps on the descriptor would cost nothing meanwhile.
        watch();
    }
}

fn work(due: &Receiver<u64>, count: usize) -> Vec<i64> {
    let one = |deadline| monotonic() as i64 - deadline as i64;
    let mut late = Vec::with_capacity(count);
    late.extend(due.iter().map(one));
    late
}

fn timerfd() -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers.
    let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn arm(fd: &OwnedFd, deadline: u64) -> io::Result<()> {
    let at = libc::itimerspec {
        it_interval: timespec(0),
        it_value: timespec(deadline),
    };
    let fd = fd.as_raw_fd();
    // SAFETY: `at` is valid for reads, and the old value is not requested.
    let result =
        unsafe { libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &at, std::ptr::null_mut()) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn sleep_until(fd: &OwnedFd, deadline: u64) -> io::Result<()> {
    arm(fd, deadline)?;
    let mut expirations = [0_u8; 8];
    // SAFETY: the buffer is valid for writes of its length.
    let read = unsafe {
        libc::read(
            fd.as_raw_fd(),
            expirations.as_mut_ptr().cast(),
            expirations.len(),
        )
    };
    match read {
        8 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn timespec(nanos: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (nanos / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
    }
}

fn monotonic() -> u64 {
    let mut now = timespec(0);
    // SAFETY: `now` is valid for writes, and every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
