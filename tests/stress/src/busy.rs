//! A round that judges time: hostile callers on more threads than there are processors, and the
//! longest that anybody had to wait for a call.
//!
//! What a busy machine does to a call depends on the machine. So each round has a control: the
//! same callers do the same to a wheel behind a plain mutex, in turns with the engine, and the
//! engine fails only on a ratio between the two. A finding counts if further attempts have it,
//! too: other work on the machine does not come back each time at the same turn. Names, drains and
//! shutdowns have tests in tests/liveness.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Driver, Engine, Time, Timer, TimerId, Wheel};

use crate::account::{OPERATIONS, broke, count};
use crate::drive::{self, Mover};
use crate::plan::{Drive, Plan, processors};
use crate::round::join;
use crate::subject::{Call, Subject};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trouble {
    /// Everybody schedules and cancels in one shard.
    HotShard,
    /// Deadlines in the past, one after the other.
    Past,
    /// Very many timers, now of one thread and now of another.
    Peaks,
    /// Everybody asks for everything that can be counted.
    Looks,
    /// None: is anybody late when nothing else is at work?
    Calm,
}

use Trouble::*;

/// Each comes in its turn, so that a short run makes all of them.
const TROUBLES: [Trouble; 5] = [HotShard, Past, Peaks, Looks, Calm];

/// What is found this often in a row is a defect.
const ATTEMPTS: u64 = 3;
/// For how long each side has the machine in its turn.
const TURN: Duration = Duration::from_millis(250);
const PROBES: usize = 4;

/// How many timers are live from the start, where that matters.
const MANY: usize = 1_000_000;
const PEAK: usize = 300_000;

const TIMER_DELAY: Duration = Duration::from_millis(5);

/// How long each call of one kind took, in one turn.
type Stalls = Vec<Duration>;

/// What all but one call in a hundred took at most, and what the longest took.
type Tail = [Duration; 2];

pub fn run(plan: &Plan) {
    let trouble = TROUBLES[plan.round as usize % TROUBLES.len()];
    for attempt in 1..=ATTEMPTS {
        let turns = (0..5).map(|_| trouble.turn(plan));
        let sides: (Vec<Tail>, Vec<Tail>) = turns.map(|(a, b)| (tail(a), tail(b))).unzip();
        let (engine, control) = (middle(sides.0), middle(sides.1));
        let floors = trouble.floors_ms().map(Duration::from_millis);
        let is_too_long = (0..2).any(|of| engine[of] > 2 * control[of] + floors[of]);
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
    /// How much longer than twice the control's a wait may be: a moment, below which a ratio says
    /// nothing.
    fn floors_ms(self) -> [u64; 2] {
        match self {
            // What waits for a processor more often than the control does: the caller's own
            // thread, the ticker, the worker.
            Past => [80, 120],
            // A tick is up to ten milliseconds long.
            Calm => [20, 50],
            _ => [5, 20],
        }
    }

    /// One turn of the engine, and one of its control.
    fn turn(self, plan: &Plan) -> (Stalls, Stalls) {
        match self {
            // Are another's timers later than beside threads that are as busy with the hour to
            // come?
            Past => (
                late(plan, Drive::TimerFd, Some(into_the_past)),
                late(plan, Drive::TimerFd, Some(pairs)),
            ),
            // The control sleeps. A virtual clock is never late.
            Calm => thread::scope(|scope| {
                let naps = || (0..50).map(|_| overslept(TIMER_DELAY)).collect();
                let naps = scope.spawn(naps);
                let drive = match plan.drive {
                    Drive::Virtual => Drive::Portable,
                    drive => drive,
                };
                let late = late(plan, drive, None);
                (late, naps.join().expect("it only sleeps"))
            }),
            // One shard, as there is one mutex: callers of several would all be runnable at a
            // time when those of the control sleep, and wait for processors instead.
            _ => {
                let engine = Engine::builder().shards(1).start().expect("in range");
                (self.calls(&engine), self.calls(&Mutex::new(Wheel::new(64))))
            }
        }
    }

    /// How long calls take while there is trouble.
    fn calls(self, subject: &dyn Subject) -> Stalls {
        let count = if self == Looks { MANY } else { 0 };
        (0..count).for_each(|_| _ = subject.call(Call::Schedule));
        let turn = Turn::default();
        thread::scope(|scope| {
            for _ in 0..hostile() {
                scope.spawn(|| {
                    let mut peak = Vec::with_capacity(PEAK);
                    turn.repeat(|| self.annoy(subject, &turn, &mut peak));
                });
            }
            let probes = [(); PROBES].map(|()| scope.spawn(|| probe(subject, &turn)));
            thread::sleep(TURN);
            turn.end();
            let stalls = probes.map(|probe| probe.join().expect("it only calls"));
            stalls.concat()
        })
    }

    /// What each hostile caller does.
    fn annoy(self, subject: &dyn Subject, turn: &Turn, peak: &mut Vec<TimerId>) {
        match self {
            // Has very many timers for a moment, and then none.
            Peaks => {
                let schedule = |_| subject.call(Call::Schedule).filter(|_| !turn.is_over());
                peak.extend((0..PEAK).map_while(schedule));
                let ids = peak.drain(..);
                ids.for_each(|id| _ = subject.call(Call::Cancel(id)));
            }
            Looks => {
                subject.call(Call::Look);
                subject.call(Call::LookClosely);
            }
            _ => pair(subject),
        }
    }
}

/// How many threads are hostile: more would only wait for processors.
fn hostile() -> usize {
    2 * processors()
}

/// A turn's callers know when it is over.
#[derive(Default)]
struct Turn(AtomicBool);

impl Turn {
    fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one operation of 64, which is enough to say that something moves.
    fn repeat(&self, mut step: impl FnMut()) {
        for done in (0_u64..).take_while(|_| !self.is_over()) {
            step();
            if done % 64 == 0 {
                count(&OPERATIONS);
            }
        }
    }
}

/// Makes few calls, and measures how long each takes. A pause stands before each: a thread that
/// has just got a lock has the processor, and gets the next locks, too.
fn probe(subject: &dyn Subject, turn: &Turn) -> Stalls {
    let mut stalls = Stalls::new();
    let mut timed = |call| {
        thread::sleep(Duration::from_micros(200));
        let begun = Instant::now();
        let id = subject.call(call);
        stalls.push(begun.elapsed());
        id
    };
    turn.repeat(|| {
        if let Some(id) = timed(Call::Schedule) {
            timed(Call::Move(id));
            timed(Call::Cancel(id));
        }
        timed(Call::Look);
    });
    stalls
}

fn pair(subject: &dyn Subject) {
    if let Some(id) = subject.call(Call::Schedule) {
        subject.call(Call::Cancel(id));
    }
}

fn pairs(engine: &Engine<u64>, turn: &Turn) {
    turn.repeat(|| pair(engine));
}

/// Files one timer after the other for an instant that is long past, so that the ticker always
/// has something to do.
fn into_the_past(engine: &Engine<u64>, turn: &Turn) {
    let mut known = VecDeque::new();
    turn.repeat(|| {
        let timer = Timer::at(Time::START, 0);
        known.push_back(engine.schedule(timer).expect("no bound"));
        if known.len() > 1_000 {
            let _ = known.pop_front().map(|id| engine.cancel(id));
        }
    });
}

/// How late timers are, perhaps beside threads that are busy with theirs, each scheduled when the
/// last was taken: a wake-up that got lost is not made up for.
fn late(plan: &Plan, drive: Drive, busy: Option<fn(&Engine<u64>, &Turn)>) -> Stalls {
    let builder = Engine::builder().tick(plan.tick).queues(2);
    let (engine, mover) = drive::start!(builder, drive, Driver::process_due);
    let (turn, over) = (Turn::default(), Arc::default());
    let mover = mover.start(plan, &over);
    let mut stalls = Stalls::new();
    thread::scope(|scope| {
        for busy in busy.into_iter().flat_map(|busy| vec![busy; hostile()]) {
            let (engine, turn) = (&engine, &turn);
            scope.spawn(move || busy(engine, turn));
        }
        let (end, queue) = (Instant::now() + 2 * TURN, engine.queue(1));
        while Instant::now() < end {
            let begun = Instant::now();
            let timer = Timer::after(TIMER_DELAY, 0).queue(1);
            engine.schedule(timer).expect("no bound");
            drop(queue.recv_timeout(TIMER_DELAY + Duration::from_secs(2)));
            stalls.push(begun.elapsed().saturating_sub(TIMER_DELAY));
        }
        turn.end();
    });
    over.store(true, Ordering::Relaxed);
    mover.into_iter().for_each(join);
    stalls
}

fn overslept(limit: Duration) -> Duration {
    let begun = Instant::now();
    thread::sleep(limit);
    begun.elapsed().saturating_sub(limit)
}
