//! A round of typed payloads: submitters, workers, readers of reports, and the
//! faults that disturb them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use tickwheel::{Builder, Closed, Engine};

use crate::accounts;
use crate::actor::{Actor, Scene};
use crate::board::Board;
use crate::book::Book;
use crate::disturb;
use crate::fault::Fault;
use crate::mover;
use crate::plan::{Ending, Plan};
use crate::progress::Tally;
use crate::record::Token;
use crate::reports::{self, Index, Report};
use crate::visitors;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// What an engine left behind.
struct Remains {
    closed: Vec<Closed<Token>>,
    reports: Vec<Report>,
}

pub fn run(plan: &Plan, book: &Book, tally: &Arc<Tally>, watchdog: &Watchdog) {
    let (engine, mover) = mover::start(builder(plan), plan.drive);
    if plan.ending != Ending::Dropped {
        // A check needs a handle, and a round that ends by dropping the last
        // one allows no other.
        let seen = engine.clone();
        watchdog.describe(move || format!("{:#?}", seen.snapshot()));
    }
    let (board, time_line) = (Board::new(), mover.time_line());
    let scene = Scene {
        plan,
        book,
        board: &board,
        tally,
        time_line: &time_line,
    };
    let reports = engine.reports();
    let over = AtomicBool::new(false);
    let mut remains = thread::scope(|scope| {
        disturb::start(plan, &over, scope);
        mover.start(plan, &over, scope);
        let remains = live(scene, engine, scope);
        over.store(true, Ordering::Relaxed);
        remains
    });
    reports::read_rest(&reports, &mut remains.reports);
    drop(reports);
    settle_accounts(scene, remains);
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
    let closed = engine.reports();
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
            accounts::wait_until_fired(scene.book, || engine.snapshot());
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

fn check_ledger(scene: Scene<'_>, engine: &Engine<Token>) {
    let ledger = engine.ledger();
    accounts::check_balance(scene.book, &ledger);
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

/// Compares what the engine said with what the threads saw.
fn settle_accounts(scene: Scene<'_>, remains: Remains) {
    let known = scene.book.known();
    let index = Index::of(&known);
    index.enter_shut_down(&remains.closed, scene.book);
    let all_told = scene.plan.ending != Ending::Dropped;
    index.enter_reports(&remains.reports, all_told, scene.book);
    drop(remains);
    accounts::wait_until_dropped(scene.book);
    accounts::check_records(scene.book, all_told);
}
