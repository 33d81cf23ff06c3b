//! Waits that have a limit: by how much it is overrun.

use std::hint::black_box;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use tickwheel::{Engine, Tick, Timer, Wheel};

use super::hostile::Turn;
use super::stalls::Stalls;
use crate::book::lock;
use crate::threads;

/// How much longer than its limit a drain may take.
const DRAIN_GRACE: Duration = Duration::from_secs(1);

/// After how long a timer counts as lost.
const PATIENCE: Duration = Duration::from_secs(2);

/// The control: a condition variable on which a thread waits for an event that
/// never comes, however often it is notified.
pub struct Bell {
    never: Mutex<()>,
    rung: Condvar,
}

impl Bell {
    pub fn new() -> Bell {
        Bell {
            never: Mutex::new(()),
            rung: Condvar::new(),
        }
    }

    pub fn ring(&self) {
        self.rung.notify_all();
    }

    /// By how much each wait of a turn overran its limit.
    pub fn wait_for_nothing(&self, limit: Duration, turn: &Turn<'_>) -> Stalls {
        threads::wake_politely();
        let mut overruns = Stalls::default();
        turn.repeat(|| overruns.add(self.wait(limit)));
        overruns
    }

    fn wait(&self, limit: Duration) -> Duration {
        let begun = Instant::now();
        let never = lock(&self.never);
        drop(self.rung.wait_timeout_while(never, limit, |()| true));
        begun.elapsed().saturating_sub(limit)
    }
}

/// Waits for timers, never longer than a limit, until the turn is over. Returns
/// the overruns of those waits in which none came.
///
/// Who calls it, and takes the timer away again, is given the time for both.
pub fn receive(engine: &Engine<u64>, limit: Duration, turn: &Turn<'_>) -> Stalls {
    threads::wake_politely();
    let mut overruns = Stalls::default();
    let queue = engine.queue(0);
    turn.repeat(|| {
        let begun = Instant::now();
        if queue.recv_timeout(limit).is_err() {
            overruns.add(begun.elapsed().saturating_sub(limit));
        }
    });
    overruns
}

/// How late timers of an engine's second queue are, each scheduled when the last
/// was taken.
pub fn lateness(engine: &Engine<u64>, delay: Duration, turn: &Turn<'_>) -> Stalls {
    let mut late = Stalls::default();
    let queue = engine.queue(1);
    turn.repeat(|| {
        let begun = Instant::now();
        let timer = Timer::after(delay, 0).queue(1);
        engine.schedule(timer).expect("there is no bound");
        drop(queue.recv_timeout(delay + PATIENCE));
        late.add(begun.elapsed().saturating_sub(delay));
    });
    late
}

/// Drains, although a timer that is due is taken by nobody.
pub fn drain(engine: &Engine<u64>, limit: Duration) -> Stalls {
    let untaken = Timer::after(Duration::ZERO, 0);
    engine.schedule(untaken).expect("there is no bound");
    let begun = Instant::now();
    drop(engine.drain(limit));
    Stalls::of(begun.elapsed().saturating_sub(limit + DRAIN_GRACE))
}

/// Waits as long as a drain may, and then takes as many timers out of a wheel
/// of its own.
pub fn wait_and_empty(limit: Duration, many: usize) -> Stalls {
    let mut wheel = Wheel::new(64);
    (0..many).for_each(|_| _ = wheel.schedule_at(Tick(3_600_000), 0_u64));
    let waited = Bell::new().wait(limit + DRAIN_GRACE);
    let begun = Instant::now();
    black_box(wheel.into_iter().collect::<Vec<_>>());
    Stalls::of(waited + begun.elapsed())
}
