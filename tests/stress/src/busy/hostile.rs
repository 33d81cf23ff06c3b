//! Hostile callers. Each makes its most expensive call in a loop until the turn
//! is over.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{iter, thread};

use tickwheel::wheel::Advance;
use tickwheel::{Driver, Engine, Time, Timer, TimerId};

use super::limits::Bell;
use super::subject::{Name, Subject};
use crate::progress::Tally;

pub const FAR: Duration = Duration::from_secs(3_600);

/// One at a time is enough to say that something moves.
const STEPS_PER_COUNT: u64 = 64;

const BETWEEN_CALLS: Duration = Duration::from_millis(10);
const BUDGET: usize = 1_000;
const MOVES_PER_CANCEL: u64 = 64;
/// How many timers of the past are there at a time.
const PAST_MAX: usize = 1_000;

/// A turn's hostile callers know when it is over.
pub struct Turn<'a> {
    over: AtomicBool,
    tally: &'a Tally,
}

impl<'a> Turn<'a> {
    pub fn new(tally: &'a Tally) -> Turn<'a> {
        Turn {
            over: AtomicBool::new(false),
            tally,
        }
    }

    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub fn repeat(&self, mut step: impl FnMut()) {
        for done in 0.. {
            if self.is_over() {
                break;
            }
            step();
            if done % STEPS_PER_COUNT == 0 {
                self.tally.operations.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Schedules and cancels without a pause.
pub fn pairs<S: Subject>(subject: &S, turn: &Turn<'_>) {
    turn.repeat(|| {
        if let Some(id) = subject.schedule(FAR, None) {
            subject.cancel(id);
        }
    });
}

/// Moves timers about, and cancels one now and then.
pub fn moves(engine: &Engine<u64>, known: &[TimerId], turn: &Turn<'_>) {
    let mut known = known.iter().cycle().zip(0u64..);
    turn.repeat(|| {
        if let Some((&id, step)) = known.next() {
            match step % MOVES_PER_CANCEL {
                0 => Subject::cancel(engine, id),
                _ => Subject::reschedule(engine, id, FAR),
            }
        }
    });
}

/// Files one timer after the other for an instant that is long past, so that
/// the ticker always has something to do.
pub fn into_the_past(engine: &Engine<u64>, turn: &Turn<'_>) {
    let mut known = VecDeque::new();
    turn.repeat(|| {
        let timer = Timer::at(Time::START, 0);
        known.push_back(engine.schedule(timer).expect("there is no bound"));
        if known.len() > PAST_MAX {
            let oldest = known.pop_front().into_iter();
            oldest.for_each(|id| Subject::cancel(engine, id));
        }
    });
}

/// Cancels a single one of the timers that share a name, and makes another.
pub fn one_of_all<S: Subject>(subject: &S, name: &Name, turn: &Turn<'_>) {
    turn.repeat(|| {
        subject.cancel_one(name);
        subject.schedule(FAR, Some(name));
    });
}

/// Has very many timers for a moment, and then none.
pub fn peaks<S: Subject>(subject: &S, height: usize, turn: &Turn<'_>) {
    let mut peak = Vec::with_capacity(height);
    turn.repeat(|| {
        let schedule = || subject.schedule(FAR, None).filter(|_| !turn.is_over());
        peak.extend(iter::from_fn(schedule).take(height));
        for id in peak.drain(..) {
            subject.cancel(id);
        }
    });
}

/// Asks for everything that can be counted, again and again.
pub fn looks<S: Subject>(subject: &S, turn: &Turn<'_>) {
    turn.repeat(|| {
        subject.look();
        subject.look_closely();
    });
}

/// Makes a timer that is due, calls its receiver, and cancels it before the
/// receiver is there. Rings `bell` as often.
pub fn false_calls(engine: &Engine<u64>, driver: Driver<u64>, bell: &Bell, turn: &Turn<'_>) {
    turn.repeat(|| {
        let due = Timer::after(Duration::ZERO, 0);
        let id = engine.schedule(due).expect("there is no bound");
        while driver.process_due(BUDGET) == Advance::More {}
        Subject::cancel(engine, id);
        bell.ring();
        thread::sleep(BETWEEN_CALLS);
    });
}
