//! A round that judges time: hostile callers on more threads than there are processors, and the
//! longest that anybody had to wait for a call.
//!
//! What a busy machine does to a call depends on the machine. So each round has a control: the
//! same callers do the same to a wheel behind a plain mutex, in turns with the engine, and the
//! engine fails only on a ratio between the two. A finding counts if further attempts have it,
//! too: other work on the machine does not come back each time at the same turn. Calls by name,
//! drains and shutdowns have tests in tests/liveness, deadlines of the past in tests/promises.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Engine, TimerId, Wheel};

use crate::account::{OPERATIONS, broke, count};
use crate::plan::processors;
use crate::subject::{Call, Subject};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trouble {
    /// Everybody schedules and cancels in one shard.
    HotShard,
    /// Very many timers, now of one thread and now of another.
    Peaks,
    /// Everybody asks for everything that can be counted.
    Looks,
}

use Trouble::*;

/// Each comes in its turn, so that a short run makes all of them.
const TROUBLES: [Trouble; 3] = [HotShard, Peaks, Looks];

/// What is found this often in a row is a defect.
const ATTEMPTS: u64 = 3;
/// For how long each side has the machine in its turn.
const TURN: Duration = Duration::from_millis(250);
const PROBES: usize = 4;
/// How many threads are hostile, for each processor: more would only wait for one.
const HOSTILE: usize = 2;

/// How much longer than twice the control's a wait may be, of all but one call in a hundred and of
/// the longest: a moment, below which a ratio says nothing.
const FLOORS: Tail = [Duration::from_millis(5), Duration::from_millis(20)];

/// How many timers are live from the start, where that matters.
const MANY: usize = 1_000_000;
const PEAK: usize = 300_000;

/// How long each call of one kind took, in one turn.
type Stalls = Vec<Duration>;

/// What all but one call in a hundred took at most, and what the longest took.
type Tail = [Duration; 2];

pub fn run(round: u64) {
    let trouble = TROUBLES[round as usize % TROUBLES.len()];
    for attempt in 1..=ATTEMPTS {
        let turns = (0..5).map(|_| trouble.turn());
        let sides: (Vec<Tail>, Vec<Tail>) = turns.map(|(a, b)| (tail(a), tail(b))).unzip();
        let (engine, control) = (middle(sides.0), middle(sides.1));
        let is_too_long = (0..2).any(|of| engine[of] > 2 * control[of] + FLOORS[of]);
        let verdict = if is_too_long { "TOO LONG" } else { "in bounds" };
        let finding = format!("{engine:.1?}, control {control:.1?}: {verdict}");
        println!("{trouble:?}, attempt {attempt}: p99 and longest {finding}");
        if !is_too_long {
            return;
        }
        if attempt == ATTEMPTS {
            broke(format!("{trouble:?}: {finding}"));
        }
    }
}

/// Who was never called took no time.
fn tail(mut stalls: Stalls) -> Tail {
    stalls.sort_unstable();
    let last = stalls.len().saturating_sub(1);
    [last * 99 / 100, last].map(|index| stalls.get(index).copied().unwrap_or_default())
}

/// The middle one of several turns: other work on the machine spoils some, of either side.
fn middle(mut tails: Vec<Tail>) -> Tail {
    [0, 1].map(|of| {
        tails.sort_unstable_by_key(|tail| tail[of]);
        tails[tails.len() / 2][of]
    })
}

impl Trouble {
    /// One turn of the engine, and one of its control. The engine has one shard, as the control
    /// has one mutex: callers of several would all be runnable at a time when those of the control
    /// sleep, and wait for processors instead.
    fn turn(self) -> (Stalls, Stalls) {
        let engine = Engine::builder().shards(1).start().expect("in range");
        (self.calls(&engine), self.calls(&Mutex::new(Wheel::new(64))))
    }

    /// How long calls take while there is trouble.
    fn calls(self, subject: &dyn Subject) -> Stalls {
        let count = if self == Looks { MANY } else { 0 };
        (0..count).for_each(|_| _ = subject.call(Call::Schedule));
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..HOSTILE * processors() {
                scope.spawn(|| {
                    let mut peak = Vec::with_capacity(PEAK);
                    repeat(&over, || self.annoy(subject, &mut peak));
                });
            }
            let probes = [(); PROBES].map(|()| scope.spawn(|| probe(subject, &over)));
            thread::sleep(TURN);
            over.store(true, Ordering::Relaxed);
            let stalls = probes.map(|probe| probe.join().expect("it only calls"));
            stalls.concat()
        })
    }

    /// What each hostile caller does.
    fn annoy(self, subject: &dyn Subject, peak: &mut Vec<TimerId>) {
        match self {
            // Has very many timers for a moment, and then none.
            Peaks => {
                peak.extend((0..PEAK).filter_map(|_| subject.call(Call::Schedule)));
                let ids = peak.drain(..);
                ids.for_each(|id| _ = subject.call(Call::Cancel(id)));
            }
            Looks => {
                subject.call(Call::Look);
                subject.call(Call::LookClosely);
            }
            HotShard => {
                let id = subject.call(Call::Schedule);
                id.and_then(|id| subject.call(Call::Cancel(id)));
            }
        }
    }
}

/// Counts one operation of 64, which is enough to say that something moves.
fn repeat(over: &AtomicBool, mut step: impl FnMut()) {
    for done in (0_u64..).take_while(|_| !over.load(Ordering::Relaxed)) {
        step();
        if done % 64 == 0 {
            count(&OPERATIONS);
        }
    }
}

/// Makes few calls, and measures how long each takes. A pause stands before each: a thread that
/// has just got a lock has the processor, and gets the next locks, too.
fn probe(subject: &dyn Subject, over: &AtomicBool) -> Stalls {
    let mut stalls = Stalls::new();
    let mut timed = |call| {
        thread::sleep(Duration::from_micros(200));
        let begun = Instant::now();
        let id = subject.call(call);
        stalls.push(begun.elapsed());
        id
    };
    repeat(over, || {
        if let Some(id) = timed(Call::Schedule) {
            timed(Call::Move(id));
            timed(Call::Cancel(id));
        }
        timed(Call::Look);
    });
    stalls
}
