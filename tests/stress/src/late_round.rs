//! A round of sleepers: nothing else is at work, so none may be late, unless
//! the machine stood still or had no processor to give.
//!
//! After the last one is scheduled nobody calls the engine any more: a wake-up
//! that got lost is not made up for by another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tickwheel::{Engine, Queue, Timer};

use crate::book::Book;
use crate::mover::{self, Mover};
use crate::plan::{Drive, Plan};
use crate::progress::{Progress, Tally};
use crate::stall::Watchers;
use crate::threads;

const SLEEPERS: usize = 1_000;
const LONGEST_MICROS: u64 = 300_000;
/// How old the engine is when it begins.
const AGE: Duration = Duration::from_millis(200);
/// What is later than this, and cannot be laid to the machine, is a defect.
const LATENESS_MAX: Duration = Duration::from_millis(50);

/// What a thread of the engine had from the machine.
#[derive(Debug)]
struct Share {
    ran: Duration,
    waited: Duration,
}

pub fn run(plan: &Plan, book: &Book, tally: &Arc<Tally>, progress: &Progress) {
    let before = threads::tickers();
    let (engine, mover) = start(plan);
    // A sleep that took a time for a duration would be late by this.
    thread::sleep(AGE);
    let (watchers, over) = (Watchers::new(), AtomicBool::new(false));
    let (late, ticker) = thread::scope(|scope| {
        watchers.start(scope);
        mover.start(plan, &over, scope);
        let queue = engine.queue(0);
        let worker = scope.spawn(|| take_all(queue));
        submit(plan, &engine);
        let late = worker.join().expect("it only counts");
        let tickers = threads::tickers().into_iter();
        let ticker = tickers
            .filter(|thread| !before.contains(thread))
            .find_map(share);
        watchers.stop();
        over.store(true, Ordering::Relaxed);
        (late, ticker)
    });
    tally.fired.fetch_add(SLEEPERS as u64, Ordering::Relaxed);
    judge(
        &engine,
        late,
        ticker,
        watchers.overslept(),
        book,
        tally,
        progress,
    );
}

/// A virtual clock is never late: those rounds have the portable ticker.
fn start(plan: &Plan) -> (Engine<Duration>, Mover<Duration>) {
    let drive = match plan.drive {
        Drive::Virtual => Drive::Portable,
        drive => drive,
    };
    mover::start(Engine::builder().tick(plan.tick), drive)
}

fn submit(plan: &Plan, engine: &Engine<Duration>) {
    let mut random = plan.random(0);
    for _ in 0..SLEEPERS {
        let delay = random.micros(LONGEST_MICROS);
        let timer = Timer::after(delay, engine.now() - tickwheel::Time::START + delay);
        engine.schedule(timer).expect("there is no bound");
    }
}

/// How late the latest was, and what the worker had from the machine.
fn take_all(queue: Queue<Duration>) -> (Duration, Option<Share>) {
    let mut late = Duration::ZERO;
    for expired in queue.take(SLEEPERS) {
        late = late.max(expired.lateness());
    }
    (late, share(threads::this()))
}

fn share(thread: i32) -> Option<Share> {
    let (ran, waited) = threads::ran_and_waited(thread)?;
    Some(Share {
        ran: Duration::from_nanos(ran),
        waited: Duration::from_nanos(waited),
    })
}

fn judge(
    engine: &Engine<Duration>,
    (late, worker): (Duration, Option<Share>),
    ticker: Option<Share>,
    overslept: Duration,
    book: &Book,
    tally: &Tally,
    progress: &Progress,
) {
    if late < LATENESS_MAX {
        return;
    }
    let lost = |share: &Option<Share>| {
        let lost = share.as_ref().map(|share| share.ran + share.waited);
        lost.unwrap_or_default()
    };
    let excused = overslept + lost(&ticker) + lost(&worker);
    let wakeups = engine.snapshot().wakeups;
    let what = format!(
        "late by {late:?}; the machine stood still for {overslept:?}; \
         {wakeups} wake-ups; ticker {ticker:?}, worker {worker:?}"
    );
    if late > LATENESS_MAX + excused {
        book.broke(what);
    } else {
        tally.stalls.fetch_add(1, Ordering::Relaxed);
        progress.note(&what);
    }
}
