//! One thread's calls: pairs of a schedule and a cancel, of its own timers or of those
//! of the next thread.

use std::collections::VecDeque;
use std::sync::Mutex;

use fastrand::Rng;

use crate::lines::marks::{self, Kind};
use crate::rival::{Caller, Shared};
use crate::workloads::setup::SPAN;

/// The timers in flight of each thread.
const IN_FLIGHT: usize = 48;

/// The number of pairs of its own timers with which a thread begins.
const WARM_PAIRS: usize = 150;

/// The number of pairs of a lap in which the threads take turns seldom.
pub const MANY: usize = 16;

/// Added to every delay, in ticks. A traced process is slow, and no timer may be due.
const FAR: u64 = 3_600_000;

/// The kind of the calls that bring caches to their usual state.
const WARM: Kind = 1;

/// Whose timers the threads cancel, and how often they take turns.
#[derive(Clone, Copy)]
pub struct Phase {
    pub name: &'static str,
    number: usize,
    /// The number of pairs of a lap.
    pub pairs: usize,
    /// Every how-many-th cancel is one of the next thread's timer. Zero stands for none.
    pub remote: usize,
}

impl Phase {
    pub const OWN: Phase = Phase {
        name: "own timers",
        number: 0,
        pairs: 1,
        remote: 0,
    };
    pub const TENTH: Phase = Phase {
        name: "every tenth another's",
        number: 1,
        pairs: 1,
        remote: 10,
    };
    pub const IN_TURN: Phase = Phase {
        name: "another's, in turn",
        number: 2,
        pairs: 1,
        remote: 1,
    };
    pub const AT_ONCE: Phase = Phase {
        name: "another's, 16 at a time",
        number: 3,
        pairs: MANY,
        remote: 1,
    };

    /// Returns the phases in which an engine can take part.
    pub fn of<E: Shared>() -> impl Iterator<Item = Phase> {
        let all = [Phase::OWN, Phase::TENTH, Phase::IN_TURN, Phase::AT_ONCE];
        let can = |phase: &Phase| E::REMOTE || phase.remote == 0;
        all.into_iter().filter(can)
    }

    /// Returns the laps of all phases, of which the first ones do not count.
    pub fn laps_of<E: Shared>(threads: usize) -> Vec<Lap> {
        // Many threads make many pairs in few laps.
        let laps = if threads > 16 { 8 } else { 20 };
        let of = |phase: Phase| {
            let laps = laps / phase.pairs.min(4);
            (0..2 * laps).map(move |n| Lap {
                phase,
                counts: n >= laps,
            })
        };
        Phase::of::<E>().flat_map(of).collect()
    }

    /// Returns the kind of its schedules.
    pub fn schedule(self) -> Kind {
        WARM + 1 + 2 * self.number
    }

    /// Returns the kind of its cancels.
    pub fn cancel(self) -> Kind {
        self.schedule() + 1
    }
}

/// One turn of a thread.
#[derive(Clone, Copy)]
pub struct Lap {
    pub phase: Phase,
    pub counts: bool,
}

/// The ids of each thread's timers in flight, where the next thread finds them.
pub struct Shelves<E: Shared>(Vec<Mutex<VecDeque<E::Id>>>);

impl<E: Shared> Shelves<E> {
    pub fn new(threads: usize) -> Shelves<E> {
        Shelves((0..threads).map(|_| Mutex::default()).collect())
    }
}

/// A thread. In a traced process, it marks its calls.
pub struct Party<'e, E: Shared, const TRACED: bool> {
    caller: E::Caller<'e>,
    shelves: &'e Shelves<E>,
    me: usize,
    rng: Rng,
    cancels: usize,
}

impl<'e, E: Shared, const TRACED: bool> Party<'e, E, TRACED> {
    pub fn new(engine: &'e E, shelves: &'e Shelves<E>, me: usize) -> Self {
        let mut party = Party {
            caller: engine.caller(),
            shelves,
            me,
            rng: Rng::with_seed(me as u64),
            // Not all threads reach for another's timer in the same round.
            cancels: me,
        };
        (0..IN_FLIGHT).for_each(|_| party.schedule(WARM));
        // New timers are seldom the earliest of a shard that has been in use.
        for _ in 0..WARM_PAIRS {
            party.schedule(WARM);
            party.cancel(false, WARM);
        }
        party
    }

    /// Takes a turn: schedules as many timers as it cancels.
    pub fn lap(&mut self, Lap { phase, counts }: Lap) {
        let kind = |kind| if counts { kind } else { WARM };
        (0..phase.pairs).for_each(|_| self.schedule(kind(phase.schedule())));
        for _ in 0..phase.pairs {
            self.cancels += 1;
            let is_remote = self.cancels.is_multiple_of(phase.remote);
            self.cancel(is_remote, kind(phase.cancel()));
        }
    }

    fn schedule(&mut self, kind: Kind) {
        let delay = FAR + self.rng.u64(1..=SPAN);
        let id = mark::<TRACED, _>(kind, || self.caller.schedule(delay, 0));
        self.shelves.0[self.me].lock().unwrap().push_back(id);
    }

    fn cancel(&mut self, is_remote: bool, kind: Kind) {
        let whose = (self.me + usize::from(is_remote)) % self.shelves.0.len();
        let oldest = self.shelves.0[whose].lock().unwrap().pop_front();
        if let Some(oldest) = oldest {
            mark::<TRACED, _>(kind, || self.caller.cancel(oldest));
        }
    }
}

fn mark<const TRACED: bool, R>(kind: Kind, call: impl FnOnce() -> R) -> R {
    match TRACED {
        true => marks::call(kind, call),
        false => call(),
    }
}
