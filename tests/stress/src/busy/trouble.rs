//! Which kind of trouble a round makes, and what is measured meanwhile.

use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use tickwheel::{Builder, Engine, Timer, TimerId};

use super::control::Control;
use super::hostile::{self, FAR, Turn};
use super::limits::{self, Bell};
use super::probe;
use super::stalls::{Allowance, Comparison, Stalls, Tails};
use super::subject::{Name, Subject};
use crate::plan::Plan;
use crate::progress::Tally;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// Everybody schedules and cancels in one shard.
    HotShard,
    /// The same, of a few threads: less is the scheduler's, and more the lock's.
    FewHot,
    /// Deadlines in the past, one after the other.
    Past,
    /// All timers go by one name, and are cancelled one by one.
    OneName,
    /// Very many timers, now of one thread and now of another.
    Peaks,
    /// Everybody asks for everything that can be counted.
    Looks,
    /// The engine is shut down while all are at work.
    Shutdown,
    /// The engine is drained while timers are moved and cancelled.
    Drain,
    /// A reader with a short limit, whose timers are cancelled.
    Reader,
}

const TROUBLES: [Trouble; 9] = [
    Trouble::HotShard,
    Trouble::FewHot,
    Trouble::Past,
    Trouble::OneName,
    Trouble::Peaks,
    Trouble::Looks,
    Trouble::Shutdown,
    Trouble::Drain,
    Trouble::Reader,
];

/// Of calls, and of what has one thread to wait for.
const CALLS: Allowance = Allowance {
    ratio: 2,
    p99_floor: Duration::from_millis(5),
    longest_floor: Duration::from_millis(20),
};
/// Of calls among so many runnable threads that one who loses the processor has
/// it back only after a turn of all the others, a few milliseconds each. Whether
/// the control's callers sleep or run is decided anew in each turn: its own tail
/// lies anywhere between that of few threads and that of all.
const CROWD: Allowance = Allowance {
    ratio: 2,
    p99_floor: Duration::from_millis(40),
    longest_floor: Duration::from_millis(80),
};
/// Of what waits for a processor more often than the control does: the caller's
/// own thread, the ticker, the worker.
const JOURNEYS: Allowance = Allowance {
    ratio: 2,
    p99_floor: Duration::from_millis(80),
    longest_floor: Duration::from_millis(120),
};

const PROBES: usize = 4;
const TURNS: usize = 5;
/// For how long each side has the machine in its turn.
const TURN: Duration = Duration::from_millis(250);

/// How many timers are live from the start, where that matters.
const MANY: usize = 1_000_000;
const OF_ONE_NAME: usize = 200_000;
const PEAK: usize = 300_000;

const TIMER_DELAY: Duration = Duration::from_millis(5);
const READER_LIMIT: Duration = Duration::from_millis(50);
const DRAIN_LIMIT: Duration = Duration::from_millis(20);

impl Trouble {
    /// Each comes in its turn, so that a short run makes all of them.
    pub fn of(plan: &Plan) -> Trouble {
        TROUBLES[plan.round as usize % TROUBLES.len()]
    }

    /// Makes it, engine and control in turns, and returns what took how long.
    pub fn make(self, plan: &Plan, tally: &Tally) -> Comparison {
        let (mut engine, mut control) = (Tails::default(), Tails::default());
        for _ in 0..self.turns() {
            let (of_engine, of_control) = self.turn(plan, tally);
            engine.add(of_engine);
            control.add(of_control);
        }
        Comparison {
            engine,
            control,
            allowance: self.allowance(),
        }
    }

    fn allowance(self) -> Allowance {
        match self {
            Trouble::Past | Trouble::Drain => JOURNEYS,
            Trouble::HotShard => CROWD,
            _ => CALLS,
        }
    }

    /// A drain takes a second.
    fn turns(self) -> usize {
        match self {
            Trouble::Drain => 1,
            _ => TURNS,
        }
    }

    fn turn(self, plan: &Plan, tally: &Tally) -> (Stalls, Stalls) {
        match self {
            Trouble::Past => past(plan, tally),
            Trouble::Drain => drain(plan, tally),
            Trouble::Reader => reader(plan, tally),
            _ => (
                self.probe(&self.start(plan), plan, tally),
                self.probe(&Control::new(), plan, tally),
            ),
        }
    }

    /// Where callers are to meet there is one shard.
    fn start(self, plan: &Plan) -> Engine<u64> {
        let builder: Builder<u64> = Engine::builder();
        let builder = match self {
            Trouble::OneName | Trouble::Peaks if plan.random(0).once_in(2) => builder,
            _ => builder.shards(1),
        };
        builder.start().expect("in range")
    }

    /// One turn: how long calls take while there is trouble.
    fn probe<S: Subject>(self, subject: &S, plan: &Plan, tally: &Tally) -> Stalls {
        let turn = Turn::new(tally);
        let all: Name = Arc::from("all");
        self.prepare(subject, &all);
        thread::scope(|scope| {
            for _ in 0..self.threads(plan) {
                scope.spawn(|| self.annoy(subject, &all, &turn));
            }
            let probes = [(); PROBES].map(|()| scope.spawn(|| probe::run(subject, &all, &turn)));
            thread::sleep(TURN);
            if self == Trouble::Shutdown {
                subject.shut_down();
            }
            turn.end();
            probes
                .map(joined)
                .into_iter()
                .fold(Stalls::default(), Stalls::merge)
        })
    }

    /// How many callers are hostile: a few, where more would only wait for
    /// processors.
    fn threads(self, plan: &Plan) -> usize {
        match self {
            Trouble::HotShard => plan.hostile,
            _ => plan.hostile.div_ceil(4),
        }
    }

    /// What is there before anybody comes.
    fn prepare<S: Subject>(self, subject: &S, all: &Name) {
        let (count, name) = match self {
            Trouble::OneName => (OF_ONE_NAME, Some(all)),
            Trouble::Looks | Trouble::Shutdown => (MANY, None),
            _ => (0, None),
        };
        for _ in 0..count {
            subject.schedule(FAR, name);
        }
    }

    /// What each hostile caller does.
    fn annoy<S: Subject>(self, subject: &S, all: &Name, turn: &Turn<'_>) {
        match self {
            Trouble::OneName => hostile::one_of_all(subject, all, turn),
            Trouble::Peaks => hostile::peaks(subject, PEAK, turn),
            Trouble::Looks => hostile::looks(subject, turn),
            _ => hostile::pairs(subject, turn),
        }
    }
}

/// Some threads file into the past: are another's timers later than beside
/// threads that are as busy with the hour to come?
fn past(plan: &Plan, tally: &Tally) -> (Stalls, Stalls) {
    let late = |file| late_beside(file, plan, tally);
    (late(hostile::into_the_past), late(hostile::pairs))
}

/// One turn of a caller whose timers come soon.
fn late_beside(file: fn(&Engine<u64>, &Turn<'_>), plan: &Plan, tally: &Tally) -> Stalls {
    let engine = Engine::builder().queues(2).start().expect("in range");
    let turn = Turn::new(tally);
    thread::scope(|scope| {
        for _ in 0..Trouble::Past.threads(plan) {
            scope.spawn(|| file(&engine, &turn));
        }
        let late = scope.spawn(|| limits::lateness(&engine, TIMER_DELAY, &turn));
        thread::sleep(2 * TURN);
        turn.end();
        joined(late)
    })
}

/// Timers are moved and cancelled by all while the engine is drained.
fn drain(plan: &Plan, tally: &Tally) -> (Stalls, Stalls) {
    let engine = Engine::builder().start().expect("in range");
    let schedule = |_| {
        engine
            .schedule(Timer::after(FAR, 0))
            .expect("there is no bound")
    };
    let known: Vec<TimerId> = (0..MANY).map(schedule).collect();
    let turn = Turn::new(tally);
    thread::scope(|scope| {
        for of_one in known.chunks(MANY.div_ceil(Trouble::Drain.threads(plan))) {
            scope.spawn(|| hostile::moves(&engine, of_one, &turn));
        }
        let overslept = scope.spawn(|| limits::wait_and_empty(DRAIN_LIMIT, MANY));
        let overrun = limits::drain(&engine, DRAIN_LIMIT);
        turn.end();
        (overrun, joined(overslept))
    })
}

/// Somebody waits for timers that are taken away again and again.
fn reader(plan: &Plan, tally: &Tally) -> (Stalls, Stalls) {
    let builder = match plan.random(0).once_in(2) {
        true => Engine::builder().queue_bound(4),
        false => Engine::builder(),
    };
    let (engine, driver) = builder.start_driven().expect("in range");
    let (turn, bell) = (Turn::new(tally), Bell::new());
    thread::scope(|scope| {
        scope.spawn(|| hostile::false_calls(&engine, driver, &bell, &turn));
        for _ in 1..plan.hostile {
            scope.spawn(|| hostile::pairs(&engine, &turn));
        }
        let overruns = scope.spawn(|| limits::receive(&engine, READER_LIMIT, &turn));
        let overslept = scope.spawn(|| bell.wait_for_nothing(READER_LIMIT, &turn));
        thread::sleep(2 * TURN);
        turn.end();
        (joined(overruns), joined(overslept))
    })
}

fn joined<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    thread.join().expect("it only calls")
}
