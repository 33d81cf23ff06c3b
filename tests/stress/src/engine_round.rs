//! A round of typed payloads: submitters, workers, readers of reports, and who
//! gets in their way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use tickwheel::{Builder, Closed, Engine, VirtualClock};

use crate::actor::{Actor, Scene};
use crate::board::Board;
use crate::book::Book;
use crate::disturb;
use crate::fault::Fault;
use crate::plan::{Drive, Ending, Plan};
use crate::progress::Tally;
use crate::record::Token;
use crate::reports::{self, Index, Report};
use crate::visitors;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// How long what is due may take to fire, and payloads to be dropped, before
/// they count as lost. Whoever is starved gets there in the end.
const PATIENCE: Duration = Duration::from_secs(20);

/// What an engine left behind.
struct Remains {
    closed: Vec<Closed<Token>>,
    reports: Vec<Report>,
}

pub fn run(plan: &Plan, book: &Book, tally: &Arc<Tally>, watchdog: &Watchdog) {
    let (engine, clock) = start(plan);
    if plan.ending != Ending::Dropped {
        // Who looks has a handle, and where the last one counts nobody may.
        let seen = engine.clone();
        watchdog.describe(move || format!("{:#?}", seen.snapshot()));
    }
    let board = Board::new();
    let scene = Scene {
        plan,
        book,
        board: &board,
        tally,
        epoch: Instant::now(),
        clock: clock.as_ref(),
    };
    let reports = engine.closed();
    let over = AtomicBool::new(false);
    let mut remains = thread::scope(|scope| {
        disturb::start(plan, &over, scope);
        if let Some(clock) = &clock {
            scope.spawn(|| move_clock(plan, clock, &over));
        }
        let remains = live(scene, engine, scope);
        over.store(true, Ordering::Relaxed);
        remains
    });
    reports::read_rest(&reports, &mut remains.reports);
    drop(reports);
    settle_accounts(scene, remains);
}

fn start(plan: &Plan) -> (Engine<Token>, Option<VirtualClock<Token>>) {
    let builder = builder(plan);
    match plan.drive {
        Drive::TimerFd => (builder.start().expect("in range"), None),
        Drive::Portable => (builder.portable_ticker().start().expect("in range"), None),
        Drive::Virtual => {
            let (engine, clock) = builder.start_virtual().expect("in range");
            (engine, Some(clock))
        }
    }
}

fn builder(plan: &Plan) -> Builder<Token> {
    let mut builder = Engine::builder()
        .tick(plan.tick)
        .wheel_size(plan.wheel_size)
        .queues(plan.queues);
    if let Some(levels) = plan.max_levels {
        builder = builder.max_levels(levels);
    }
    if let Some(shards) = plan.shards {
        builder = builder.shards(shards);
    }
    if let Some(bound) = plan.queue_bound {
        builder = builder.queue_bound(bound);
    }
    match plan.max_timers {
        Some(max) => builder.max_timers(max),
        None => builder,
    }
}

/// From the first submitter to the last worker.
fn live<'scope, 'env>(
    scene: Scene<'env>,
    engine: Engine<Token>,
    scope: &'scope Scope<'scope, 'env>,
) -> Remains {
    let plan = scene.plan;
    let workers: Vec<_> = (0..plan.queues * plan.workers_per_queue)
        .map(|n| {
            let queue = engine.queue(n % plan.queues);
            let worker = Worker::new(scene, queue, plan.random(500 + n as u64));
            scope.spawn(|| worker.work())
        })
        .collect();
    let closed = engine.closed();
    let reader = scope.spawn(|| reports::read_all(closed));
    let submitters = submit(scene, &engine, scope);
    let closed = end(scene, engine, submitters);
    join(workers);
    let reports = reader.join().expect("it only reads");
    Remains { closed, reports }
}

fn submit<'scope, 'env>(
    scene: Scene<'env>,
    engine: &Engine<Token>,
    scope: &'scope Scope<'scope, 'env>,
) -> Vec<ScopedJoinHandle<'scope, ()>> {
    let plan = scene.plan;
    let mut threads: Vec<_> = (0..plan.submitters as u64)
        .map(|n| {
            let actor = Actor::new(scene, engine.clone(), n);
            scope.spawn(move || actor.act(plan.steps))
        })
        .collect();
    if plan.has(Fault::Visitors) {
        let engine = engine.clone();
        threads.push(scope.spawn(move || visitors::come_and_go(scene, &engine)));
    }
    threads
}

fn join(threads: Vec<ScopedJoinHandle<'_, ()>>) {
    for thread in threads {
        thread.join().expect("planned panics are caught");
    }
}

/// Ends the engine as the plan has it, and returns what it says was live.
fn end(
    scene: Scene<'_>,
    engine: Engine<Token>,
    submitters: Vec<ScopedJoinHandle<'_, ()>>,
) -> Vec<Closed<Token>> {
    match scene.plan.ending {
        Ending::Settled => {
            join(submitters);
            wait_until_fired(scene, &engine);
            let closed = engine.shutdown();
            check_ledger(scene, &engine);
            closed
        }
        Ending::Drained => {
            join(submitters);
            let closed = engine.drain(Duration::from_millis(30));
            check_ledger(scene, &engine);
            closed
        }
        Ending::InTheMiddle => {
            thread::sleep(scene.plan.random(99).micros(200_000));
            let closed = engine.shutdown();
            join(submitters);
            closed
        }
        Ending::Dropped => {
            drop(engine);
            join(submitters);
            Vec::new()
        }
    }
}

/// With nothing scheduled any more no later wake-up covers for a lost one.
fn wait_until_fired(scene: Scene<'_>, engine: &Engine<Token>) {
    let known = scene.book.known();
    let awaited = || known.iter().filter(|known| known.record.is_awaited());
    let end = Instant::now() + PATIENCE;
    while awaited().next().is_some() {
        if Instant::now() > end {
            let (lost, snapshot) = (awaited().count(), engine.snapshot());
            let broken = format!("{lost} are due and do not fire: {snapshot:#?}");
            return scene.book.broke(broken);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn check_ledger(scene: Scene<'_>, engine: &Engine<Token>) {
    let ledger = engine.ledger();
    if !ledger.is_balanced() {
        scene
            .book
            .broke(format!("unbalanced at the end: {ledger:?}"));
    }
    let known = scene.book.known();
    let accepted = known
        .iter()
        .filter(|known| known.record.is_accepted())
        .count() as u64;
    if scene.plan.ending == Ending::Settled && ledger.accepted != accepted {
        scene
            .book
            .broke(format!("accepted {accepted}, but: {ledger:?}"));
    }
}

fn move_clock(plan: &Plan, clock: &VirtualClock<Token>, over: &AtomicBool) {
    let mut random = plan.random(98);
    while !over.load(Ordering::Relaxed) {
        let jumps = plan.has(Fault::Jumps) && random.once_in(400);
        let by = match jumps {
            true => Duration::from_secs(random.below(10_000)),
            false => random.micros(2_000),
        };
        clock.advance(by);
        thread::sleep(Duration::from_micros(300));
    }
}

/// Compares what the engine said with what the threads saw.
fn settle_accounts(scene: Scene<'_>, remains: Remains) {
    let known = scene.book.known();
    let index = Index::of(&known);
    index.enter_shut_down(&remains.closed, scene.book);
    let all_told = scene.plan.ending != Ending::Dropped;
    index.enter_reports(&remains.reports, all_told, scene.book);
    drop(remains);
    let end = Instant::now() + PATIENCE;
    // The ticker may be the last to let go.
    while Instant::now() < end && !known.iter().all(|known| known.record.are_tokens_dropped()) {
        thread::sleep(Duration::from_millis(1));
    }
    for known in &known {
        known.record.check(all_told, scene.book);
    }
}
