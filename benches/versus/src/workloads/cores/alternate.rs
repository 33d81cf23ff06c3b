//! The check of the model: two threads take the same turns on two processors, and the
//! clock says how long a pair takes. The model predicts the time of a pair on one thread,
//! and the time of a transfer for each line that the pair takes from the other cache. A
//! processor has several transfers under way unless one has to wait for the result of
//! another. The prediction is therefore a range: from all transfers of a pair at once, to
//! one after another.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::party::{Lap, Party, Phase, Shelves};
use super::{counts, transfers};
use crate::case::{Case, Reading, median};
use crate::effort::Effort;
use crate::lines::Counts;
use crate::processors;
use crate::rival::{Caller, Shared};

const THREADS: usize = 2;

/// The turns of a thread that are timed together: so few that some are undisturbed.
const TURNS: usize = 32;

const PHASES: [Phase; 2] = [Phase::IN_TURN, Phase::AT_ONCE];

/// The number of times that everything is measured, in turn. The processors of a virtual
/// machine may be near each other at one moment and far apart at another.
const ROUNDS: usize = 15;

pub fn case<E: Shared>(effort: Effort) -> Case {
    let times = effort.either(20, 200);
    let case = Case::new(E::NAME, E::THREAD_SAFE, THREADS, move || {
        let counts = counts::<E>(THREADS);
        let rounds: Vec<_> = (0..ROUNDS).map(|_| round::<E>(&counts, times)).collect();
        let names = rounds[0].iter().map(|(name, _)| name);
        let of = |(place, name): (usize, &String)| {
            let values = rounds.iter().map(|round| round[place].1).collect();
            let middle = median(values).unwrap_or_default();
            Reading::new(format!("check: {name}"), "ns", middle)
        };
        names.enumerate().map(of).collect()
    });
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let alone = (processors < THREADS).then_some("there is one processor");
    case.on_threads(THREADS).unless(alone)
}

/// Measures everything once: names, and times in nanoseconds.
fn round<E: Shared>(counts: &Counts, times: usize) -> Vec<(String, f64)> {
    let lines = Lines::new();
    let (least, most) = (lines.at_once(times), lines.in_a_row(times));
    let own = net::<E>(1, Phase::OWN, times);
    let mut round = vec![
        ("a transfer, many at once".to_owned(), least),
        ("a transfer, one after another".to_owned(), most),
        ("own timers, measured".to_owned(), own),
    ];
    for phase in PHASES {
        let predicted = |transfer| own + transfers(counts, phase) * transfer;
        let measured = net::<E>(THREADS, phase, times);
        let name = |what| format!("{}, {what}", phase.name);
        round.extend([
            (name("predicted, at least"), predicted(least)),
            (name("measured"), measured),
            (name("predicted, at most"), predicted(most)),
        ]);
    }
    round
}

/// The number of lines that each turn takes from the other cache.
const LINES: usize = 32;

/// Reading a line and writing it are two transfers in the model.
const TRANSFERS_PER_LINE: usize = 2;

/// A line that both processors write, with the number of another one. (The neighbour of
/// a line may come along with it.)
#[derive(Default)]
#[repr(align(128))]
struct Line {
    next: AtomicUsize,
    writes: AtomicUsize,
}

impl Line {
    /// Reads and writes the line, and returns the number of the other one.
    fn touch(&self) -> usize {
        let writes = self.writes.load(Ordering::Relaxed);
        self.writes.store(writes + 1, Ordering::Relaxed);
        self.next.load(Ordering::Relaxed)
    }
}

/// Lines that move from one processor to the other, to measure a transfer.
struct Lines(Vec<Line>);

impl Lines {
    /// Returns lines in a circle, in random order.
    fn new() -> Lines {
        let mut order: Vec<usize> = (0..LINES).collect();
        Rng::with_seed(23).shuffle(&mut order);
        let lines: Vec<Line> = (0..LINES).map(|_| Line::default()).collect();
        for (place, &line) in order.iter().enumerate() {
            let next = order[(place + 1) % LINES];
            lines[line].next.store(next, Ordering::Relaxed);
        }
        Lines(lines)
    }

    /// Returns the time of a transfer if each has to wait for the one before it.
    fn in_a_row(&self, times: usize) -> f64 {
        self.per_transfer(times, |lines| {
            black_box((0..LINES).fold(0, |line, _| lines[line].touch()));
        })
    }

    /// Returns the time of a transfer if none has to wait for another.
    fn at_once(&self, times: usize) -> f64 {
        self.per_transfer(times, |lines| {
            black_box(lines.iter().map(Line::touch).sum::<usize>());
        })
    }

    fn per_transfer(&self, times: usize, touch: impl Fn(&[Line]) + Sync) -> f64 {
        let nothing = |_| ();
        let turns = fastest(THREADS, times, nothing, |()| ()).as_nanos() as f64;
        let gross = fastest(THREADS, times, nothing, |()| touch(&self.0)).as_nanos() as f64;
        (gross - turns) / (TURNS * THREADS * LINES * TRANSFERS_PER_LINE) as f64
    }
}

/// Returns the time of a pair in nanoseconds, without that of the turns and the ids.
fn net<E: Shared>(threads: usize, phase: Phase, times: usize) -> f64 {
    let pairs = (TURNS * threads * phase.pairs) as f64;
    let gross = turns::<E>(threads, phase, times).as_nanos() as f64;
    let turns = turns::<Nothing>(threads, phase, times).as_nanos() as f64;
    (gross - turns) / pairs
}

fn turns<E: Shared>(threads: usize, phase: Phase, times: usize) -> Duration {
    let engine = E::start_for(threads);
    let shelves = Shelves::<E>::new(threads);
    let make = |me| Party::<E, false>::new(&engine, &shelves, me);
    let lap = Lap {
        phase,
        counts: true,
    };
    fastest(threads, times, make, |party| party.lap(lap))
}

/// Runs a number of turns on each thread, `times` times, and returns the time of the
/// fastest.
fn fastest<S>(
    threads: usize,
    times: usize,
    make: impl Fn(usize) -> S + Sync,
    turn: impl Fn(&mut S) + Sync,
) -> Duration {
    let next = AtomicUsize::new(0);
    let run = |me: usize| {
        processors::keep_to_next();
        let mut state = None;
        let mut fastest = Duration::MAX;
        for _ in 0..times {
            let begun = Instant::now();
            for _ in 0..TURNS {
                while next.load(Ordering::Acquire) % threads != me {
                    spin_loop();
                }
                turn(state.get_or_insert_with(|| make(me)));
                next.fetch_add(1, Ordering::Release);
            }
            fastest = fastest.min(begun.elapsed());
        }
        fastest
    };
    thread::scope(|scope| {
        let run = &run;
        let running: Vec<_> = (0..threads)
            .map(|me| scope.spawn(move || run(me)))
            .collect();
        let times = running.into_iter().map(|thread| thread.join().unwrap());
        times.min().unwrap_or_default()
    })
}

/// An engine that does nothing, to measure the turns alone.
struct Nothing;

impl Shared for Nothing {
    const NAME: &'static str = "nothing";
    type Id = u64;
    type Caller<'a> = Nothing;

    fn start() -> Nothing {
        Nothing
    }

    fn caller(&self) -> Nothing {
        Nothing
    }
}

impl Caller for Nothing {
    type Id = u64;

    fn schedule(&mut self, delay_ticks: u64, _: u64) -> u64 {
        delay_ticks
    }

    fn cancel(&mut self, id: u64) {
        black_box(id);
    }
}
