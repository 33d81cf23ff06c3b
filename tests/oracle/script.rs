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
    /// Schedules so many timers alike.
    Schedule(Ask, usize),
    /// Creates a timer that is not started.
    Create(Ask),
    Start(usize),
    Dismiss(usize),
    /// Makes a call with one id.
    Call(Id, Call),
    /// Cancels some in one call, perhaps one of them twice.
    CancelMany(Vec<Id>),
    CancelByName(Name, Option<usize>),
    CancelAll,
    /// Takes a firing and holds on to it.
    Take(usize),
    /// Takes up to so many payloads in one call.
    TakeMany(usize, usize),
    LetGo(usize, How),
    /// Moves the clock.
    Move(Reach, Pace),
    ReadReport,
    Shrink,
}

#[derive(Clone, Copy, Debug)]
pub enum Id {
    Own(usize),
    Forged(Forge),
}

#[derive(Clone, Copy, Debug)]
pub enum Call {
    Cancel,
    CancelAndWait,
    Reschedule(First),
    /// Disarms a timer, and then arms it again.
    Reuse(First),
    Replace,
    Deadline,
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
    /// Ticks ahead, or ago.
    Ticks(i16),
    /// Nanoseconds ahead: of any magnitude, or within a tick, where that is long.
    Nanos(u64),
    /// The next multiple of `size^level` ticks, the tick before, or the one
    /// after.
    Boundary(u8, i8),
    /// When a timer's firing after so many more is due, or a nanosecond beside it.
    Beat(usize, u8, i8),
    /// The earliest deadline, the tick before, or the one after.
    Next(i8),
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
pub enum Pace {
    Leap,
    /// In calls that touch so many entries at most.
    Within(usize),
    /// From due tick to due tick.
    InSteps,
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
#[derive(Clone, Copy, Debug)]
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

impl Ask {
    pub fn plain(first: First) -> Ask {
        Ask {
            first,
            period: None,
            times: None,
            missed: None,
            misfit: false,
            queue: 0,
            name: None,
            tolerance: 0,
            reported: false,
            rearmable: false,
            elsewhere: false,
        }
    }

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
        10 => ask().prop_map(|ask| Op::Schedule(ask, 1)),
        2 => (plain(), 2..6usize).prop_map(|(ask, count)| Op::Schedule(ask, count)),
        2 => ask().prop_map(Op::Create),
        2 => which.clone().prop_map(Op::Start),
        1 => which.clone().prop_map(Op::Dismiss),
        25 => (id(), call()).prop_map(|(id, call)| Op::Call(id, call)),
        1 => vec(id(), 0..6).prop_map(Op::CancelMany),
        2 => (name(), option::of(0..4usize)).prop_map(|(name, max)| Op::CancelByName(name, max)),
        8 => queue.clone().prop_map(Op::Take),
        6 => (queue, 1..5usize).prop_map(|(queue, max)| Op::TakeMany(queue, max)),
        6 => (which, how()).prop_map(|(which, how)| Op::LetGo(which, how)),
        12 => (step(), pace()).prop_map(|(step, pace)| Op::Move(step, pace)),
        2 => Just(Op::ReadReport),
        // Seldom, because little is left to go on with.
        3 => prop_oneof![9 => Just(Op::Shrink), 1 => Just(Op::CancelAll)],
    ]
}

fn id() -> impl Strategy<Value = Id> {
    prop_oneof![8 => (0..64usize).prop_map(Id::Own), 1 => forge().prop_map(Id::Forged)]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => Just(Call::Cancel),
        1 => Just(Call::CancelAndWait),
        5 => first().prop_map(Call::Reschedule),
        3 => armed().prop_map(Call::Reuse),
        2 => Just(Call::Replace),
        1 => Just(Call::Deadline),
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

fn first() -> impl Strategy<Value = First> {
    prop_oneof![reach().prop_map(First::After), reach().prop_map(First::At)]
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![1 => plain(), 2 => with_extras()]
}

fn plain() -> impl Strategy<Value = Ask> {
    (first(), 0..QUEUES, any::<bool>()).prop_map(|(first, queue, elsewhere)| Ask {
        queue,
        elsewhere,
        ..Ask::plain(first)
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
    let flags = (weighted(0.4, name()), weighted(0.5, Just(())), any::<bool>());
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
        2 => (-8..=0i16).prop_map(Reach::Ticks),
        8 => (0..300i16).prop_map(Reach::Ticks),
        3 => (0..3_000_000u64).prop_map(Reach::Nanos),
        4 => (0..12u8, -1..=1i8).prop_map(|(level, off)| Reach::Boundary(level, off)),
        2 => beat(),
        1 => (-1..=1i8).prop_map(Reach::Next),
        1 => any::<u64>().prop_map(|far| Reach::Nanos(far >> (far % 61))),
        1 => (0..3u8).prop_map(Reach::End),
        1 => Just(Reach::Never),
    ]
}

fn pace() -> impl Strategy<Value = Pace> {
    prop_oneof![
        3 => Just(Pace::Leap),
        1 => (1..9usize).prop_map(Pace::Within),
        2 => Just(Pace::InSteps),
    ]
}

fn beat() -> impl Strategy<Value = Reach> {
    let beat = |(which, ahead, off)| Reach::Beat(which, ahead, off);
    (0..64usize, 0..4u8, -1..=1i8).prop_map(beat)
}

/// How far the clock is moved: seldom so far that nothing is left to test.
fn step() -> impl Strategy<Value = Reach> {
    prop_oneof![
        2 => (-8..=0i16).prop_map(Reach::Ticks),
        3 => Just(Reach::Ticks(1)),
        6 => (0..300i16).prop_map(Reach::Ticks),
        3 => (0..3_000_000u64).prop_map(Reach::Nanos),
        5 => (0..5u8, -1..=1i8).prop_map(|(level, off)| Reach::Boundary(level, off)),
        6 => (-1..=1i8).prop_map(Reach::Next),
        4 => beat(),
        1 => any::<u64>().prop_map(|far| Reach::Nanos(far >> (20 + far % 41))),
    ]
}
