//! Behaviour that users of seven well-known timers rely on: one module per
//! system, one test per behaviour, numbered within its system. A `better` test
//! shows a deliberate difference. Time is virtual unless real time is the
//! subject.

#![cfg(not(any(loom, shuttle)))]

#[path = "../support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
#[path = "../support/epoll.rs"]
mod epoll;

mod kafka;
mod libco;
mod muduo;
mod reactor;
mod skynet;
mod tanjp;
mod workflow;

/// The server of the example, as it is.
#[cfg(target_os = "linux")]
#[path = "../../examples/sockets/src/bin/delayed_reply/server.rs"]
mod server;

use std::time::{Duration, Instant};

use fastrand::Rng;
use support::{MS, PATIENCE, SECOND, take, virtual_engine, wait_until};
use tickwheel::wheel::{Advance, Expired};
use tickwheel::{Engine, Tick, Time, TimerId, VirtualClock, Wheel};

/// After which the example's server answers.
#[cfg(target_os = "linux")]
const DELAY: Duration = SECOND;

/// (deadline, payload) of everything in the wheel that is due by `to`.
fn fire<T>(wheel: &mut Wheel<T>, to: u64) -> Vec<(u64, T)> {
    std::iter::from_fn(|| wheel.pop_due(Tick(to)))
        .map(|expired| (expired.deadline.0, expired.payload))
        .collect()
}

/// Moves a wheel to `to` and returns how many entries that touched: those that
/// fired and those that were only re-filed.
fn entries_touched<T>(
    wheel: &mut Wheel<T>,
    to: u64,
    mut fire: impl FnMut(&mut Wheel<T>, Expired<T>),
) -> usize {
    let mut touched = 0;
    loop {
        touched += 1;
        if wheel.advance(Tick(to), 1, &mut fire) == Advance::Done {
            // The last call may have found nothing left to touch.
            return touched;
        }
    }
}

/// Asserts that cancelling takes no longer with two hundred times as many timers
/// in the slot. The order suits no search from either end of a list.
fn assert_cancels_in_constant_time(wheel: impl Fn() -> Wheel<u64>, deadline: u64) {
    let few = ten_cancels(wheel(), deadline, 1_000);
    let many = ten_cancels(wheel(), deadline, 200_000);
    // Memory that is out of reach of the nearest cache costs up to eight times as
    // much; a search, seventy times and more.
    assert!(many < 30 * few, "{few:?} became {many:?}");
}

/// How long it takes to cancel ten of `timers` in one slot, picked at random: long
/// enough for a coarse clock. Returns the median, so that no single interruption shows.
fn ten_cancels(mut wheel: Wheel<u64>, deadline: u64, timers: u64) -> Duration {
    let mut random = Rng::with_seed(timers);
    let mut ids: Vec<TimerId> = (0..timers)
        .map(|n| wheel.schedule_at(Tick(deadline), n))
        .collect();
    // Under a sanitizer, memory that has been moved costs more at the first touch.
    assert!(ids.iter().all(|&id| wheel.contains(id)));
    let mut taken: Vec<Duration> = (0..50)
        .map(|_| {
            let some = [(); 10].map(|()| ids.swap_remove(random.usize(..ids.len())));
            let begun = Instant::now();
            let cancelled = some.map(|id| wheel.cancel(id));
            let taken = begun.elapsed();
            assert!(cancelled.iter().all(Option::is_some));
            taken
        })
        .collect();
    assert_eq!(wheel.len(), ids.len());
    taken.sort_unstable();
    taken[taken.len() / 2]
}

/// The level (counted from 0), the index and the first tick of the slot in
/// which a timer hangs, read from the wheel's own lists.
fn slot_of<T>(wheel: &Wheel<T>, id: TimerId) -> (usize, usize, u64) {
    let slot = wheel.slots().find(|slot| slot.timers.contains(&id));
    let slot = slot.expect("the timer hangs in a slot");
    (slot.level, slot.index, slot.start.0)
}

/// The kernel's numbers of the clocks that this process's timer descriptors
/// follow: 0 is the system's date, 1 the monotonic clock, 7 the boot-time one.
#[cfg(target_os = "linux")]
fn clocks_of_timer_descriptors() -> Vec<u32> {
    let descriptors = std::fs::read_dir("/proc/self/fdinfo").unwrap();
    descriptors
        // Other tests open and close descriptors meanwhile.
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        .filter_map(|info| {
            let clock = info
                .lines()
                .find_map(|line| line.strip_prefix("clockid:"))?;
            clock.trim().parse().ok()
        })
        .collect()
}
