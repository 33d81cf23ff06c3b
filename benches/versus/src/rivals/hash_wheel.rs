//! hierarchical_hash_wheel_timer: its cancellable wheel, and its timer thread. Neither can
//! move a timer.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use hierarchical_hash_wheel_timer::thread_timer::{TimerRef, TimerWithThread};
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::{
    CancellableTimerEntry, QuadWheelWithOverflow,
};
use hierarchical_hash_wheel_timer::{OneshotState, PeriodicClosureState, Timer};

use crate::rival::{Caller, Rival, Shared, Sleepers, Timers};

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
        HashWheel {
            wheel: QuadWheelWithOverflow::new(),
            now: 0,
            number: 0,
        }
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

#[derive(Debug)]
struct Shot {
    id: u64,
    then: Then,
}

#[derive(Debug)]
enum Then {
    Nothing,
    /// Reports that all calls before it have taken effect.
    Settled(Sender<()>),
    Count(Arc<AtomicUsize>, Thread),
}

impl OneshotState for Shot {
    type Id = u64;

    fn id(&self) -> &u64 {
        &self.id
    }

    fn trigger(self) {
        match self.then {
            Then::Nothing => {}
            Then::Settled(sender) => sender.send(()).expect("the caller waits"),
            Then::Count(left, waiting) => {
                if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                    waiting.unpark();
                }
            }
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
    fn submit(&mut self, delay: Duration, then: Then) -> u64 {
        self.next += 1;
        let id = self.next;
        self.timer.schedule_once(delay, Shot { id, then });
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
        Numbered {
            timer: self.reference(),
            next: number << 40,
        }
    }

    fn settle(&self) {
        let (sender, settled) = channel();
        self.caller().submit(Duration::ZERO, Then::Settled(sender));
        settled.recv().expect("the timer thread runs");
    }
}

impl Caller for Numbered {
    type Id = u64;

    fn schedule(&mut self, delay_ticks: u64, payload: u64) -> u64 {
        self.schedule_after(delay_ticks, payload)
    }

    fn schedule_after(&mut self, delay_ticks: u64, _: u64) -> u64 {
        self.submit(Duration::from_millis(delay_ticks), Then::Nothing)
    }

    fn cancel(&mut self, id: u64) {
        self.timer.cancel(&id);
    }
}

impl Sleepers for TimerThread {
    fn count(delays: &[Duration]) {
        let timer = TimerThread::start();
        let mut caller = timer.caller();
        let left = Arc::new(AtomicUsize::new(delays.len()));
        let start = Instant::now();
        for &delay in delays {
            let then = Then::Count(Arc::clone(&left), thread::current());
            caller.submit(delay.saturating_sub(start.elapsed()), then);
        }
        while left.load(Ordering::Acquire) > 0 {
            thread::park();
        }
    }
}
