//! What a round is to be: everything follows from the seed and the round's
//! number.

use std::thread;
use std::time::Duration;

use clap::ValueEnum;

use crate::args::Args;
use crate::epoll::Trigger;
use crate::event_loop::Waits;
use crate::fault::{Fault, Faults};
use crate::random::Random;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kind {
    /// Typed payloads, queues and workers.
    Engine,
    /// Closures on the engine's own workers.
    Tasks,
    /// Sleepers on a machine that has nothing else to do: is one too late?
    Late,
    /// Hostile callers on more threads than there are processors: how long do
    /// calls take? Only if it is asked for: it judges by a plain mutex in the
    /// same place, and a sanitizer slows down the two in different ways.
    Busy,
}

const HOSTILE_PER_PROCESSOR: usize = 8;

/// What moves time along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drive {
    TimerFd,
    Portable,
    Virtual,
    /// A loop of the caller's.
    Loop(Waits),
}

const DRIVES: [Drive; 8] = [
    Drive::TimerFd,
    Drive::TimerFd,
    Drive::Portable,
    Drive::Virtual,
    Drive::Virtual,
    Drive::Loop(Waits::Descriptor(Trigger::Level)),
    Drive::Loop(Waits::Descriptor(Trigger::Edge)),
    Drive::Loop(Waits::Frames),
];

/// How a round's engine ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Everything that is due has fired, and then it is shut down.
    Settled,
    Drained,
    /// Shut down while all are at work.
    InTheMiddle,
    /// Nobody shuts it down: the last handle is dropped.
    Dropped,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub round: u64,
    pub kind: Kind,
    pub drive: Drive,
    pub ending: Ending,
    pub faults: Faults,
    pub tick: Duration,
    pub wheel_size: usize,
    pub max_levels: Option<usize>,
    pub shards: Option<usize>,
    pub queues: usize,
    pub queue_bound: Option<usize>,
    pub max_timers: Option<usize>,
    pub submitters: usize,
    pub workers_per_queue: usize,
    pub steps: u64,
    /// How many threads are hostile in a busy round.
    pub hostile: usize,
    /// Whether to print what was measured.
    pub figures: bool,
}

impl Plan {
    pub fn new(seed: u64, round: u64, args: &Args) -> Plan {
        let mut random = Random::of(&[seed, round]);
        let kinds = [
            Kind::Engine,
            Kind::Engine,
            Kind::Engine,
            Kind::Tasks,
            Kind::Late,
        ];
        let faults = args.faults.some(|| random.once_in(2));
        let bounded = faults.has(Fault::Full);
        Plan {
            seed,
            round,
            kind: args.kind.unwrap_or(random.one_of(&kinds)),
            drive: random.one_of(&DRIVES),
            ending: ending(&mut random, &faults),
            tick: Duration::from_micros(random.one_of(&[100, 300, 1_000, 1_000, 4_000, 10_000])),
            wheel_size: random.one_of(&[64, 64, 64, 2, 3, 20, 100, 256]),
            max_levels: random.once_in(6).then(|| 2 + random.index(3)),
            shards: random.one_of(&[None, None, Some(1), Some(2), Some(8)]),
            queues: 1 + random.index(3),
            queue_bound: bounded.then(|| 1 + random.index(20)),
            max_timers: random.one_of(&[None, None, Some(50), Some(2_000)]),
            submitters: args.threads.unwrap_or(2 + random.index(5)),
            workers_per_queue: 1 + random.index(3),
            steps: 500 + random.below(8_000),
            hostile: args.threads.unwrap_or(HOSTILE_PER_PROCESSOR * processors()),
            figures: args.figures,
            faults,
        }
    }

    /// Random numbers for one thread of the round.
    pub fn random(&self, thread: u64) -> Random {
        Random::of(&[self.seed, self.round, 1 + thread])
    }

    pub fn has(&self, fault: Fault) -> bool {
        self.faults.has(fault)
    }
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn ending(random: &mut Random, faults: &Faults) -> Ending {
    if faults.has(Fault::Shutdown) {
        Ending::InTheMiddle
    } else if faults.has(Fault::Dropped) {
        Ending::Dropped
    } else {
        random.one_of(&[Ending::Settled, Ending::Settled, Ending::Drained])
    }
}
