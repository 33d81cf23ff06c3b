//! hierarchical_hash_wheel_timer: its cancellable wheel, and its timer thread.
//!
//! Neither can move a timer: to postpone is to cancel and schedule anew.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use hierarchical_hash_wheel_timer::thread_timer::{TimerRef, TimerWithThread};
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::{
    CancellableTimerEntry, QuadWheelWithOverflow,
};
use hierarchical_hash_wheel_timer::{OneshotState, PeriodicClosureState, Timer, TimerReturn};

use crate::countdown::Countdown;
use crate::rival::{Caller, Shared, Sleepers, TICK, Timers};

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

impl Timers for HashWheel {
    const NAME: &'static str = "hash-wheel";
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
    /// Reports its lateness.
    Late(Instant, Sender<i64>),
    Count(Arc<Countdown>),
}

impl OneshotState for Shot {
    type Id = u64;

    fn id(&self) -> &u64 {
        &self.id
    }

    fn trigger(self) {
        match self.then {
            Then::Nothing => {}
            Then::Settled(sender) => {
                let _ = sender.send(());
            }
            Then::Count(countdown) => countdown.count(),
            Then::Late(deadline, sender) => {
                // The timer may be early, which an unsigned difference would hide.
                let now = Instant::now();
                let late = now.saturating_duration_since(deadline).as_nanos() as i64;
                let early = deadline.saturating_duration_since(now).as_nanos() as i64;
                // The receiver is gone if a run was aborted.
                let _ = sender.send(late - early);
            }
        }
    }
}

type Reference = TimerRef<u64, Shot, PeriodicClosureState<u64>>;

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
pub struct Thread {
    timer: Reference,
    next: u64,
}

const IDS_PER_CALLER_LOG2: u32 = 40;

impl Shared for TimerThread {
    const NAME: &'static str = "hash-wheel thread";
    type Id = u64;
    type Caller<'a> = Thread;

    fn start() -> TimerThread {
        TimerThread {
            timer: Some(TimerWithThread::new().expect("a thread")),
            callers: AtomicU64::new(1),
        }
    }

    fn caller(&self) -> Thread {
        let number = self.callers.fetch_add(1, Ordering::Relaxed);
        Thread {
            timer: self.reference(),
            next: number << IDS_PER_CALLER_LOG2,
        }
    }

    fn settle(&self) {
        let (sender, settled) = channel();
        let then = Then::Settled(sender);
        let last = Shot { id: 0, then };
        self.reference().schedule_once(Duration::ZERO, last);
        let _ = settled.recv();
    }
}

impl Thread {
    fn submit(&mut self, delay: Duration, then: Then) -> u64 {
        self.next += 1;
        let id = self.next;
        self.timer.schedule_once(delay, Shot { id, then });
        id
    }
}

impl Caller for Thread {
    type Id = u64;

    fn schedule(&mut self, delay_ticks: u64, _: u64) -> u64 {
        self.submit(Duration::from_millis(delay_ticks), Then::Nothing)
    }

    fn cancel(&mut self, id: u64) {
        self.timer.cancel(&id);
    }
}

impl Sleepers for TimerThread {
    const NAME: &'static str = "hash-wheel thread";
    const FINEST_TICK: Duration = TICK;

    /// Ignores the tick, which is always a millisecond.
    fn lateness(_: Duration, delays: &[Duration]) -> Vec<i64> {
        let timer = TimerThread::start();
        let mut caller = timer.caller();
        let (sender, ended) = channel();
        for &delay in delays {
            let deadline = Instant::now() + delay;
            caller.submit(delay, Then::Late(deadline, sender.clone()));
        }
        let mut late = Vec::with_capacity(delays.len());
        late.extend(ended.iter().take(delays.len()));
        late
    }

    fn count(delays: &[Duration]) {
        let timer = TimerThread::start();
        let mut caller = timer.caller();
        let countdown = Arc::new(Countdown::new(delays.len()));
        let start = Instant::now();
        for &delay in delays {
            let left = delay.saturating_sub(start.elapsed());
            caller.submit(left, Then::Count(Arc::clone(&countdown)));
        }
        countdown.wait();
    }

    fn beat(period: Duration, watch: impl FnOnce()) {
        let timer = TimerThread::start();
        let again = PeriodicClosureState::new(0, |_| TimerReturn::Reschedule(()));
        timer.reference().schedule_periodic(period, period, again);
        watch();
    }

    fn idle(delay: Option<Duration>, watch: impl FnOnce()) {
        let timer = TimerThread::start();
        if let Some(delay) = delay {
            timer.caller().submit(delay, Then::Nothing);
        }
        watch();
    }
}
