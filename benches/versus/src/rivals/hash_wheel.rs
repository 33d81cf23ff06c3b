//! hierarchical_hash_wheel_timer: its cancellable wheel, and its timer thread. Neither can
//! move a timer.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hierarchical_hash_wheel_timer::thread_timer::{TimerRef, TimerWithThread};
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::{
    CancellableTimerEntry, QuadWheelWithOverflow,
};
use hierarchical_hash_wheel_timer::{OneshotState, PeriodicClosureState, Timer};

use crate::countdown::Countdown;
use crate::rival::{Caller, Rival, Shared, Sleepers, Timers};
use crate::stopwatch::Stopwatch;

#[derive(Debug)]
struct Entry {
    id: u64,
    payload: u64,
}

impl CancellableTimerEntry for Entry {
    type Id = u64;

    fn id(&self) -> &u64 {
        &self.id
    }
}

pub struct HashWheel {
    wheel: QuadWheelWithOverflow<Entry>,
    now: u64,
    number: u64,
}

impl Rival for HashWheel {
    const NAME: &'static str = "hash-wheel";
    const LESS: &'static str = "a cancel returns no payload; a cancelled timer keeps memory until \
        its deadline";
}

impl Timers for HashWheel {
    type Id = u64;

    fn new() -> HashWheel {
        HashWheel { wheel: QuadWheelWithOverflow::new(), now: 0, number: 0 }
    }

    fn schedule(&mut self, deadline: u64, payload: u64) -> u64 {
        self.number += 1;
        let id = self.number;
        let entry = Rc::new(Entry { id, payload });
        let delay = Duration::from_millis(deadline - self.now);
        let filed = self.wheel.insert_ref_with_delay(entry, delay);
        debug_assert!(filed.is_ok());
        id
    }

    fn cancel(&mut self, id: u64) {
        let _ = self.wheel.cancel(&id);
    }

    fn advance(&mut self, now: u64, fired: &mut Vec<u64>) {
        while self.now < now {
            let left = now - self.now;
            let skipped = match self.wheel.can_skip() {
                Skip::Empty => left.min(u32::MAX.into()),
                Skip::Millis(ticks) => left.min(ticks.into()),
                Skip::None => 0,
            };
            match skipped {
                0 => {
                    fired.extend(self.wheel.tick().iter().map(|entry| entry.payload));
                    self.now += 1;
                }
                ticks => {
                    self.wheel.skip(ticks as u32);
                    self.now += ticks;
                }
            }
        }
    }
}

/// An id and a payload of eight bytes.
#[derive(Debug)]
struct Shot {
    id: u64,
    counted: Option<Arc<Countdown>>,
}

impl OneshotState for Shot {
    type Id = u64;

    fn id(&self) -> &u64 {
        &self.id
    }

    fn trigger(self) {
        if let Some(countdown) = self.counted {
            countdown.count();
        }
    }
}

type Reference = TimerRef<u64, Shot, PeriodicClosureState<u64>>;

/// It queues every call, and seldom sleeps.
pub struct TimerThread {
    /// Present until the drop.
    timer: Option<TimerWithThread<u64, Shot, PeriodicClosureState<u64>>>,
    callers: AtomicU64,
}

impl TimerThread {
    fn reference(&self) -> Reference {
        let timer = self.timer.as_ref().expect("dropped only at the end");
        timer.timer_ref()
    }
}

impl Drop for TimerThread {
    fn drop(&mut self) {
        if let Some(timer) = self.timer.take() {
            let _ = timer.shutdown();
        }
    }
}

/// Callers choose the ids, so each thread numbers its own.
pub struct Numbered {
    timer: Reference,
    next: u64,
}

impl Numbered {
    fn submit(&mut self, delay: Duration, counted: Option<Arc<Countdown>>) -> u64 {
        self.next += 1;
        let id = self.next;
        self.timer.schedule_once(delay, Shot { id, counted });
        id
    }
}

impl Rival for TimerThread {
    const NAME: &'static str = "hash-wheel thread";
    const LESS: &'static str = "a cancel returns no payload; a cancelled timer keeps memory until \
        its deadline; fires before the deadline";
}

impl Shared for TimerThread {
    type Id = u64;
    type Caller<'a> = Numbered;

    fn start() -> TimerThread {
        TimerThread {
            timer: Some(TimerWithThread::new().expect("a thread")),
            callers: AtomicU64::new(1),
        }
    }

    fn caller(&self) -> Numbered {
        let number = self.callers.fetch_add(1, Ordering::Relaxed);
        Numbered { timer: self.reference(), next: number << 40 }
    }

    fn settle(&self) {
        let behind_all = Countdown::from(1);
        let mut caller = self.caller();
        caller.submit(Duration::ZERO, Some(Arc::clone(&behind_all)));
        behind_all.wait();
    }
}

impl Caller for Numbered {
    type Id = u64;

    fn schedule(&mut self, delay_ticks: u64, payload: u64) -> u64 {
        self.schedule_after(delay_ticks, payload)
    }

    fn schedule_after(&mut self, delay_ticks: u64, _: u64) -> u64 {
        self.submit(Duration::from_millis(delay_ticks), None)
    }

    fn cancel(&mut self, id: u64) {
        self.timer.cancel(&id);
    }
}

impl Sleepers for TimerThread {
    fn count(delays: &[Duration]) -> Duration {
        let timer = TimerThread::start();
        let mut caller = timer.caller();
        let countdown = Countdown::from(delays.len());
        let start = Instant::now();
        for &delay in delays {
            let counted = Some(Arc::clone(&countdown));
            caller.submit(delay.saturating_sub(start.elapsed()), counted);
        }
        timer.settle();
        let begun = Stopwatch::start_all();
        countdown.wait();
        begun.elapsed()
    }
}
