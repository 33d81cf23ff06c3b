//! A round: submitters make calls, step by step, while faults disturb them, and at its end every
//! timer is accounted for. What is submitted is a side of the crate: typed payloads, or tasks.

use std::collections::{HashMap, HashSet};
use std::iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tickwheel::{Cancel, CloseReason, Closed, Engine, Refusal, Reports, TimerId};

use crate::account::{self, Book, End, Known, Record, broke, wait_until};
use crate::drive::{self, Mover, TimeLine};
use crate::plan::{Ending, Fault, Plan, Random};

/// What all threads of a round share.
pub struct Round {
    pub plan: Plan,
    pub book: Book,
    /// Now, on the time line by which deliveries are judged.
    pub now: TimeLine,
}

impl Round {
    pub fn after(&self, delay: Duration) -> u64 {
        let delay = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        (self.now)().saturating_add(delay)
    }

    /// Notes that a timer was accepted, or refused, and why.
    pub fn note(&self, scheduled: Result<TimerId, Refusal>, record: Arc<Record>) {
        let expected = match scheduled {
            Ok(id) => {
                record.state().is_accepted = true;
                return self.book.enter(Known { id, record });
            }
            Err(Refusal::Full) => self.plan.max_timers.is_some(),
            Err(Refusal::ShutDown) => self.plan.ending != Ending::Settled,
            Err(_) => false,
        };
        let mut state = record.state();
        state.expect(expected, format_args!("{scheduled:?}"));
        state.ends(End::Refused);
    }
}

pub trait Side: Clone + Send + Sync + 'static {
    type Payload: Send + 'static;

    fn start(plan: &Plan) -> (Self, Mover<Self::Payload>);
    fn engine(&self) -> &Engine<Self::Payload>;
    /// Schedules a timer, or makes another call that only this side has.
    fn call(&self, round: &Round, random: &mut Random);

    /// Starts the threads that take what expires, if the engine has none.
    fn work(&self, _: &Arc<Round>) -> Vec<JoinHandle<()>> {
        Vec::new()
    }
}

/// How many steps a visitor does.
const VISIT: usize = 50;

/// A closed report without its payload.
type Told = (TimerId, u64, CloseReason);

pub fn run<S: Side>(plan: Plan) {
    let (side, mover) = S::start(&plan);
    let (book, now, over) = (Book::default(), mover.time_line(), Arc::default());
    let mut helpers = drive::disturb(&plan, &over);
    helpers.extend(mover.start(&plan, &over));
    let round = Arc::new(Round { plan, book, now });
    let workers = side.work(&round);
    let (reports, last) = (side.engine().reports(), Arc::clone(&over));
    let reader = thread::spawn(move || read(reports, &last));
    let submitters = submit(&side, &round);
    let closed = end(&round, side, submitters);
    workers.into_iter().for_each(join);
    let known = round.book.all();
    let index = known.iter().map(|known| (known.id, &*known.record));
    let index: HashMap<TimerId, &Record> = index.collect();
    let mut seen = HashSet::new();
    for Closed { id, payload, .. } in closed {
        match index.get(&id).filter(|_| seen.insert(id)) {
            None => broke(format!("shut down twice, or nobody's: {id:?}")),
            // What comes back with its payload was live: it has no other ending.
            Some(record) if payload.is_some() => record.state().ends(End::ShutDown),
            Some(_) => {}
        }
    }
    // The thread that moves time, or a task, may be the last to drop a handle.
    wait_until(|| known.iter().all(|known| known.record.state().tokens == 0));
    over.store(true, Ordering::Relaxed);
    helpers.into_iter().for_each(join);
    let reported = reader.join().expect("it only reads");
    let all_told = round.plan.ending != Ending::Dropped;
    for (id, firings, reason) in reported {
        match index.get(&id) {
            Some(record) => record.state().report(firings, reason, all_told),
            None => broke(format!("a report on nobody's timer {id:?}")),
        }
    }
    for known in &known {
        known.record.state().check(all_told);
    }
}

/// Reads reports, also those that come after the word of the shutdown.
fn read<T>(mut reports: Reports<T>, over: &AtomicBool) -> Vec<Told> {
    let told = |closed: Closed<T>| (closed.id, closed.firings, closed.reason);
    let mut all: Vec<Told> = reports.by_ref().map(told).collect();
    while !over.load(Ordering::Relaxed) {
        all.extend(iter::from_fn(|| reports.try_recv().ok()).map(told));
        thread::sleep(Duration::from_millis(1));
    }
    all
}

pub fn join(thread: JoinHandle<()>) {
    thread.join().expect("planned panics are caught");
}

/// Starts the threads of callers. The first may be many, one after the other: shards lose their
/// threads.
fn submit<S: Side>(side: &S, round: &Arc<Round>) -> Vec<JoinHandle<()>> {
    let start = |number: usize| {
        let (side, round) = (side.clone(), Arc::clone(round));
        thread::spawn(move || {
            let steps = round.plan.steps;
            for first in (0..steps).step_by(VISIT) {
                let visit = || {
                    let visited = first..steps.min(first + VISIT as u64);
                    visited.for_each(|step| act(&side, &round, number as u64, step));
                };
                if number == 0 && round.plan.has(Fault::Visitors) {
                    thread::scope(|scope| _ = scope.spawn(visit))
                } else {
                    visit()
                }
            }
        })
    };
    (0..round.plan.submitters).map(start).collect()
}

/// Ends the engine as the plan has it, and returns what it says was live.
fn end<S: Side>(
    round: &Round,
    side: S,
    submitters: Vec<JoinHandle<()>>,
) -> Vec<Closed<S::Payload>> {
    let (plan, engine) = (&round.plan, side.engine());
    match plan.ending {
        Ending::InTheMiddle => {
            thread::sleep(plan.random(&[99]).micros(200_000));
            let closed = engine.shutdown();
            submitters.into_iter().for_each(join);
            return closed;
        }
        Ending::Dropped => {
            drop(side);
            submitters.into_iter().for_each(join);
            return Vec::new();
        }
        Ending::Settled | Ending::Drained => submitters.into_iter().for_each(join),
    }
    let known = round.book.all();
    let closed = if plan.ending == Ending::Settled {
        // With nothing scheduled any more no later wake-up covers for a lost one.
        let is_awaited = |known: &Known| known.record.state().is_awaited();
        if !wait_until(|| !known.iter().any(is_awaited)) {
            broke(format!("what is due does not fire: {:#?}", engine.snapshot()));
        }
        engine.shutdown()
    } else {
        engine.drain(Duration::from_millis(30))
    };
    let is_accepted = |known: &&Known| known.record.state().is_accepted;
    let accepted = known.iter().filter(is_accepted).count() as u64;
    let ledger = engine.ledger();
    if !ledger.is_balanced() || ledger.accepted != accepted {
        broke(format!("accepted {accepted}, but: {ledger:?}"));
    }
    closed
}

/// Does a step of a thread's plan.
fn act<S: Side>(side: &S, round: &Round, thread: u64, step: u64) {
    account::count(&account::OPERATIONS);
    let random = &mut round.plan.random(&[thread, step]);
    let engine = side.engine();
    let known = round.book.find(random);
    match (random.below(100), known) {
        (0..56, _) => side.call(round, random),
        (56..72, Some(known)) => cancelled(engine.cancel(known.id), &known.record),
        (72..76, _) => {
            // A few, or more than one hold of a shard's lock cancels; perhaps one of them twice.
            // Sorted by id, timers of one shard stand side by side.
            let count = random.one_of(&[4, 8, 8, 80]);
            let find = |_| round.book.find(random);
            let mut many: Vec<Known> = (0..count).filter_map(find).collect();
            if random.once_in(2) {
                many.sort_by_key(|known| known.id);
            }
            let ids: Vec<TimerId> = many.iter().map(|known| known.id).collect();
            let answers = engine.cancel_many(&ids).into_iter().zip(&many);
            answers.for_each(|((_, answer), known)| cancelled(answer, &known.record));
        }
        (76..86, Some(known)) => {
            let delay = random.near();
            let mut state = known.record.state();
            let due = round.after(delay);
            if engine.reschedule(known.id, delay).is_ok() {
                state.not_before = due;
            }
        }
        (86..89, Some(known)) => {
            let answer = engine.cancel_and_wait(known.id);
            let state = known.record.state();
            if matches!(answer, Cancel::Running) && state.in_hand > 0 {
                broke(format!("waited for, and still in hand: {state:?}"));
            }
            drop(state);
            cancelled(answer, &known.record);
        }
        // The ledger is read shard by shard, each under its lock. It always balances, but of
        // several shards it may count timers as live that never were so at once.
        (89..91, _) => {
            let (snapshot, _) = (engine.snapshot(), engine.live().count());
            let bound = snapshot.max_timers.filter(|_| round.plan.shards == 1);
            let is_too_much = bound.is_some_and(|bound| snapshot.ledger.live > bound as u64);
            if !snapshot.ledger.is_balanced() || is_too_much {
                broke(format!("unbalanced, or too many: {snapshot:?}"));
            }
        }
        _ => thread::sleep(random.micros(300)),
    }
}

pub fn cancelled<T>(answer: Cancel<T>, record: &Record) {
    let mut state = record.state();
    match answer {
        Cancel::Cancelled(_) | Cancel::Notified if state.asked.notified => {}
        Cancel::Cancelled(_) => state.ends(End::Cancelled),
        Cancel::Running => state.stop(1),
        Cancel::Notified | Cancel::Gone => {}
    }
    drop(state); // before the payload, which wants to note its end
    drop(answer);
}
