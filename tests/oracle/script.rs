//! Scripts: the operations that an engine runs, one after the other.
//!
//! A script names timers, queues and names by small numbers, modulo how many
//! there are, and times by their distance from now. Every part of a script is
//! therefore a script, and a failure shrinks to a few lines.

use core::fmt;

use proptest::collection::vec;
use proptest::option;
use proptest::option::weighted;
use proptest::prelude::*;
use tickwheel::MissedTicks;

use crate::forge::{Forge, forge};
use crate::setup::QUEUES;

/// Operations, which are shown one a line.
#[derive(Clone)]
pub struct Script(pub Vec<Op>);

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|op| write!(f, "\n    {op:?}"))
    }
}

#[derive(Clone, Debug)]
pub enum Op {
    Schedule(Ask),
    /// Creates a timer that is not started.
    Create(Ask),
    Start(usize),
    Dismiss(usize),
    Cancel(usize),
    /// Cancels some in one call, perhaps one of them twice.
    CancelMany(Vec<usize>),
    CancelByName(Name, Option<usize>),
    CancelAll,
    Reschedule(usize, First),
    /// Disarms a timer, and then arms it again.
    Reuse(usize, First),
    Replace(usize),
    Pause(usize),
    Resume(usize),
    SetPeriod(usize, u64),
    SetTimes(usize, u64),
    /// Takes a firing and holds on to it.
    Take(usize),
    /// Takes up to so many one by one, letting go of each; the first one's
    /// worker cancels a timer.
    TakeBatch(usize, usize, usize),
    /// Takes up to so many payloads in one call.
    TakeMany(usize, usize),
    LetGo(usize, How),
    Advance(Step),
    /// As `Advance`, from due tick to due tick.
    RunUntil(Step),
    ReadReport,
    Forge(Forge),
    Shrink,
}

/// How a worker lets go of a firing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    Back,
    Panicking,
    KeepingThePayload,
    /// Setting the next deadline, or back if that is refused.
    Rearming(First),
}

/// A point on the time line, as seen from now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Ticks ago.
    Past(u8),
    /// Ticks ahead.
    Near(u16),
    /// Nanoseconds ahead: within a tick, where that is long.
    Nanos(u32),
    /// The next multiple of `size^level` ticks, the tick before, or the one
    /// after.
    Boundary(u8, i8),
    /// Nanoseconds ahead.
    Far(u64),
    /// Nanoseconds before the end of time.
    End(u8),
    Never,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum First {
    After(Reach),
    At(Reach),
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    To(Reach),
    /// To the earliest deadline, the tick before, or the one after.
    ToNext(i8),
}

/// One of the few names that timers share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Name {
    A,
    B,
}

impl Name {
    pub fn as_str(self) -> &'static str {
        match self {
            Name::A => "a",
            Name::B => "b",
        }
    }
}

/// A requested timer. Some must be refused: for a queue that does not exist,
/// for a period of zero or too short, or for a setting that needs a period.
#[derive(Clone, Copy)]
pub struct Ask {
    pub first: First,
    /// In nanoseconds.
    pub period: Option<u64>,
    pub times: Option<u64>,
    pub missed: Option<MissedTicks>,
    /// Says when it starts where it has no period: it is to be refused.
    pub misfit: bool,
    pub queue: usize,
    pub name: Option<Name>,
    pub tolerance: u64,
    pub reported: bool,
    pub rearmable: bool,
    /// From another thread, and so, where there are several, usually in
    /// another shard.
    pub elsewhere: bool,
}

/// Only what is out of the ordinary.
impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.first)?;
        if let Some(period) = self.period {
            write!(f, ".every({period})")?;
        }
        if let Some(times) = self.times {
            write!(f, ".times({times})")?;
        }
        if let Some(missed) = self.missed {
            write!(f, ".missed({missed:?})")?;
        }
        if self.queue != 0 {
            write!(f, ".queue({})", self.queue)?;
        }
        if let Some(name) = self.name {
            write!(f, ".named({name:?})")?;
        }
        if self.tolerance != 0 {
            write!(f, ".tolerance({})", self.tolerance)?;
        }
        let flags = [
            (self.misfit, ".starting(…)"),
            (self.reported, ".reported()"),
            (self.rearmable, ".rearmable()"),
            (self.elsewhere, ".elsewhere()"),
        ];
        flags
            .iter()
            .filter(|flag| flag.0)
            .try_for_each(|flag| f.write_str(flag.1))
    }
}

impl Ask {
    /// Whether a worker borrows the payload.
    pub fn is_lent(&self) -> bool {
        self.period.is_some() || self.rearmable
    }
}

pub fn script(length: usize) -> impl Strategy<Value = Script> {
    vec(op(), 1..length).prop_map(Script)
}

fn op() -> impl Strategy<Value = Op> {
    let which = 0..64usize;
    let queue = 0..QUEUES;
    prop_oneof![
        12 => ask().prop_map(Op::Schedule),
        2 => ask().prop_map(Op::Create),
        2 => which.clone().prop_map(Op::Start),
        1 => which.clone().prop_map(Op::Dismiss),
        4 => which.clone().prop_map(Op::Cancel),
        1 => vec(which.clone(), 0..6).prop_map(Op::CancelMany),
        2 => (name(), option::of(0..4usize)).prop_map(|(name, max)| Op::CancelByName(name, max)),
        5 => (which.clone(), first()).prop_map(|(which, first)| Op::Reschedule(which, first)),
        3 => (which.clone(), armed()).prop_map(|(which, first)| Op::Reuse(which, first)),
        2 => which.clone().prop_map(Op::Replace),
        3 => which.clone().prop_map(Op::Pause),
        3 => which.clone().prop_map(Op::Resume),
        1 => (which.clone(), period()).prop_map(|(which, period)| Op::SetPeriod(which, period)),
        1 => (which.clone(), 0..4u64).prop_map(|(which, times)| Op::SetTimes(which, times)),
        8 => queue.clone().prop_map(Op::Take),
        2 => (queue.clone(), 1..4usize, which.clone())
            .prop_map(|(queue, max, victim)| Op::TakeBatch(queue, max, victim)),
        3 => (queue, 1..5usize).prop_map(|(queue, max)| Op::TakeMany(queue, max)),
        6 => (which, how()).prop_map(|(which, how)| Op::LetGo(which, how)),
        9 => step().prop_map(Op::Advance),
        2 => step().prop_map(Op::RunUntil),
        2 => Just(Op::ReadReport),
        3 => forge().prop_map(Op::Forge),
        // Seldom, because little is left to go on with.
        3 => prop_oneof![9 => Just(Op::Shrink), 1 => Just(Op::CancelAll)],
    ]
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        8 => Just(How::Back),
        1 => Just(How::Panicking),
        1 => Just(How::KeepingThePayload),
        4 => first().prop_map(How::Rearming),
    ]
}

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![Just(Name::A), Just(Name::B)]
}

/// The deadline of a timer that was disarmed, and may stay so.
fn armed() -> impl Strategy<Value = First> {
    prop_oneof![2 => first(), 1 => Just(First::At(Reach::Never))]
}

pub fn first() -> impl Strategy<Value = First> {
    prop_oneof![reach().prop_map(First::After), reach().prop_map(First::At)]
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![1 => plain(), 2 => with_extras()]
}

fn plain() -> impl Strategy<Value = Ask> {
    (first(), 0..QUEUES, any::<bool>()).prop_map(|(first, queue, elsewhere)| Ask {
        first,
        period: None,
        times: None,
        missed: None,
        misfit: false,
        queue,
        name: None,
        tolerance: 0,
        reported: false,
        rearmable: false,
        elsewhere,
    })
}

fn with_extras() -> impl Strategy<Value = Ask> {
    let missed = prop_oneof![
        Just(None),
        Just(Some(MissedTicks::CatchUp)),
        Just(Some(MissedTicks::Skip)),
        Just(Some(MissedTicks::Delay)),
    ];
    let repeat = weighted(0.6, (period(), weighted(0.7, 0..4u64)));
    let tolerance = prop_oneof![3 => Just(0), 1 => length()];
    let flags = (
        weighted(0.4, name()),
        weighted(0.5, Just(())),
        any::<bool>(),
    );
    let fault = prop_oneof![30 => Just(0), 1 => 1..5usize];
    (plain(), repeat, missed, tolerance, flags, fault).prop_map(
        |(plain, repeat, missed, tolerance, (name, reported, rearmable), fault)| Ask {
            period: repeat.map(|(period, _)| period),
            times: match fault {
                1 => Some(2),
                _ => repeat.and_then(|(_, times)| times),
            },
            missed: missed.filter(|_| fault == 3 || repeat.is_some()),
            misfit: fault == 4 && repeat.is_none(),
            queue: if fault == 2 { QUEUES } else { plain.queue },
            name,
            tolerance,
            reported: reported.is_some(),
            rearmable,
            ..plain
        },
    )
}

/// A period: mostly short, so that firings are missed; seldom zero, which is
/// refused.
fn period() -> impl Strategy<Value = u64> {
    prop_oneof![40 => length(), 1 => Just(0)]
}

/// A length of time in nanoseconds, of any magnitude.
fn length() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 1..300u64,
        3 => 1..9_000_000u64,
        1 => any::<u64>().prop_map(|far| (far >> (far % 61)).max(1)),
    ]
}

fn reach() -> impl Strategy<Value = Reach> {
    prop_oneof![
        2 => (0..9u8).prop_map(Reach::Past),
        8 => (0..300u16).prop_map(Reach::Near),
        3 => (0..3_000_000u32).prop_map(Reach::Nanos),
        4 => (0..12u8, -1..=1i8).prop_map(|(level, off)| Reach::Boundary(level, off)),
        1 => any::<u64>().prop_map(|far| Reach::Far(far >> (far % 61))),
        1 => (0..3u8).prop_map(Reach::End),
        1 => Just(Reach::Never),
    ]
}

/// How far the clock is moved: seldom so far that nothing is left to test.
fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..9u8).prop_map(|ticks| Step::To(Reach::Past(ticks))),
        2 => Just(Step::To(Reach::Near(0))),
        3 => Just(Step::To(Reach::Near(1))),
        6 => (0..300u16).prop_map(|by| Step::To(Reach::Near(by))),
        3 => (0..3_000_000u32).prop_map(|by| Step::To(Reach::Nanos(by))),
        5 => (0..5u8, -1..=1i8).prop_map(|(level, off)| Step::To(Reach::Boundary(level, off))),
        6 => (-1..=1i8).prop_map(Step::ToNext),
        1 => any::<u64>().prop_map(|far| Step::To(Reach::Far(far >> (20 + far % 41)))),
    ]
}
