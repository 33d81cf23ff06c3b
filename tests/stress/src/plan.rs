//! The command line, and what a round is to be: everything follows from the seed and the round's
//! number.

use std::thread;
use std::time::{Duration, SystemTime};

use fastrand::Rng;

pub const USAGE: &str = "\
Runs random rounds against tickwheel until the time is over, and fails if a promise was broken.
  --seed N     what every plan follows from; from the clock if left out
  --seconds N  for how long new rounds are begun; 30 if left out
  --from N     the number of the first round
  --busy       how long do calls take among hostile callers?";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Tasks and workers panic.
    Panics,
    /// Workers sleep while they hold a firing.
    Sleepers,
    /// A virtual clock jumps by hours.
    Jumps,
    /// Signals interrupt the system calls of every thread.
    Signals,
    /// Threads come, submit a little and go.
    Visitors,
    /// The engine is shut down while all are at work.
    Shutdown,
    /// The ticker gets what processor time nobody else wants.
    Starved,
    /// The last handle is dropped wherever it happens to be, also in a task.
    Dropped,
}

use Fault::*;

const FAULTS: [Fault; 8] = [Panics, Sleepers, Jumps, Signals, Visitors, Shutdown, Starved, Dropped];

pub struct Args {
    pub seed: u64,
    pub seconds: u64,
    pub from: u64,
    /// How long do calls take? Only if asked for: a sanitizer slows down the engine and its
    /// control in different ways.
    pub busy: bool,
}

impl Args {
    /// Returns `None` unless every word is understood.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Option<Args> {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let mut args =
            Args { seed: since.subsec_nanos().into(), seconds: 30, from: 0, busy: false };
        while let Some(name) = words.next() {
            let number = match &*name {
                "--seed" => &mut args.seed,
                "--seconds" => &mut args.seconds,
                "--from" => &mut args.from,
                "--busy" => {
                    args.busy = true;
                    continue;
                }
                _ => return None,
            };
            *number = words.next()?.parse().ok()?;
        }
        Some(args)
    }
}

/// What moves time along: the engine's ticker, a thread with a virtual clock, or a loop of the
/// caller's that waits for the engine's descriptor or comes by every frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drive {
    TimerFd,
    Portable,
    Virtual,
    LevelTriggered,
    EdgeTriggered,
    Frames,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Everything that is due has fired, and then the engine is shut down.
    Settled,
    Drained,
    InTheMiddle,
    /// Nobody shuts it down: the last handle is dropped.
    Dropped,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub round: u64,
    /// Closures on the engine's own workers, or else typed payloads and queues.
    pub has_tasks: bool,
    pub drive: Drive,
    pub ending: Ending,
    faults: Vec<Fault>,
    pub tick: Duration,
    pub wheel_size: usize,
    pub max_levels: usize,
    pub shards: usize,
    pub queues: usize,
    pub max_timers: Option<usize>,
    pub submitters: usize,
    pub workers_per_queue: usize,
    pub steps: u64,
}

impl Plan {
    pub fn new(args: &Args, round: u64) -> Plan {
        use Drive::*;
        let mut random = Random::of(&[args.seed, round]);
        let drives = [TimerFd, TimerFd, Portable, Virtual, Virtual];
        let loops = [LevelTriggered, EdgeTriggered, Frames];
        let mut faults = FAULTS.to_vec();
        faults.retain(|_| random.once_in(2));
        Plan {
            seed: args.seed,
            round,
            has_tasks: random.once_in(3),
            drive: random.one_of(&[&drives[..], &loops].concat()),
            ending: match &faults {
                faults if faults.contains(&Shutdown) => Ending::InTheMiddle,
                faults if faults.contains(&Dropped) => Ending::Dropped,
                _ => random.one_of(&[Ending::Settled, Ending::Settled, Ending::Drained]),
            },
            tick: Duration::from_micros(random.one_of(&[100, 300, 1_000, 1_000, 4_000, 10_000])),
            wheel_size: random.one_of(&[64, 64, 64, 2, 3, 20, 100, 256]),
            max_levels: random.one_of(&[64, 64, 64, 64, 2, 3]),
            shards: random.one_of(&[1, 2, 8, 8]),
            queues: 1 + random.index(3),
            max_timers: random.one_of(&[None, None, Some(50), Some(2_000)]),
            submitters: 2 + random.index(5),
            workers_per_queue: 1 + random.index(3),
            steps: 500 + random.below(8_000),
            faults,
        }
    }

    /// Random numbers for one thread of the round, or for one step of it.
    pub fn random(&self, of: &[u64]) -> Random {
        Random::of(&[&[self.seed, self.round], of].concat())
    }

    pub fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }
}

pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Random numbers that follow from a few others, so that what one thread draws changes nothing
/// for another.
#[derive(Clone, Debug)]
pub struct Random(Rng);

impl Random {
    fn of(numbers: &[u64]) -> Random {
        let mix = |mut rng: Rng, number: &u64| Rng::with_seed(rng.u64(..) ^ number);
        Random(numbers.iter().fold(Rng::with_seed(0), mix))
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.0.usize(..len)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    pub fn micros(&mut self, below: u64) -> Duration {
        Duration::from_micros(self.below(below))
    }

    /// A delay that a round can wait for.
    pub fn near(&mut self) -> Duration {
        let below = self.one_of(&[1, 300, 150_000, 20_000, 20_000, 20_000, 20_000, 20_000]);
        self.micros(below)
    }
}
