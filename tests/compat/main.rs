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
/// in the slot. The order suits no search from either end of a list, and the
/// fastest of several rounds counts, so that a busy machine shows in none.
fn assert_cancels_in_constant_time(wheel: impl Fn() -> Wheel<u64>, deadline: u64) {
    let fastest = |timers: u64| {
        let rounds = (1..=9).map(|seed| cancels(wheel(), deadline, timers, Rng::with_seed(seed)));
        rounds.min().unwrap()
    };
    let (few, many) = (fastest(1_000), fastest(200_000));
    // Memory that is out of reach of the nearest cache costs a few times as much,
    // and under a sanitizer, which has as much again, eighty times; a search,
    // more than six hundred times.
    assert!(many < 200 * few, "{few:?} became {many:?}");
}

/// How long it takes to cancel some of `timers` in one slot, picked at random.
fn cancels(mut wheel: Wheel<u64>, deadline: u64, timers: u64, mut random: Rng) -> Duration {
    let mut ids: Vec<TimerId> = (0..timers)
        .map(|n| wheel.schedule_at(Tick(deadline), n))
        .collect();
    let begun = Instant::now();
    for _ in 0..500 {
        let id = ids.swap_remove(random.usize(..ids.len()));
        assert!(wheel.cancel(id).is_some());
    }
    let taken = begun.elapsed();
    assert_eq!(wheel.len(), ids.len());
    taken
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
