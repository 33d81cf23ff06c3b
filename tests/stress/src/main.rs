//! Engines under random load and faults, with an account of every single
//! timer.
//!
//! Each round starts an engine with random settings. Threads make every call
//! that a program may make, and faults disturb them. Every timer must end
//! exactly once, none may fire early, and no payload may be lost or dropped
//! twice. Rounds of the kind `busy` judge how long calls take instead. The same
//! seed gives the same plan; the machine decides how the threads interleave.

mod accounts;
mod actor;
mod args;
mod board;
mod book;
mod busy;
mod disturb;
mod engine_round;
#[path = "../../support/epoll.rs"]
mod epoll;
mod event_loop;
mod fault;
mod late_round;
mod mover;
mod plan;
mod progress;
mod random;
mod record;
mod reports;
mod stall;
mod task_round;
mod threads;
mod visitors;
mod watchdog;
mod worker;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use args::Args;
use book::Book;
use plan::{Kind, Plan};
use progress::Progress;
use watchdog::Watchdog;

fn main() -> ExitCode {
    let args = Args::parse();
    let seed = args.seed();
    threads::ignore_nudges();
    watchdog::quiet_planned_panics();
    let progress = Progress::start(seed);
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let mut number = args.from;
    while Instant::now() < end {
        let plan = Plan::new(seed, number, &args);
        progress.round(&plan);
        let broken = run(&plan, &progress);
        if !broken.is_empty() {
            progress.finish();
            report(&plan, &broken);
            return ExitCode::FAILURE;
        }
        number += 1;
    }
    progress.finish();
    println!(
        "passed: {} rounds of seed {seed}; {progress}",
        number - args.from
    );
    ExitCode::SUCCESS
}

/// Runs one round and returns what was broken.
fn run(plan: &Plan, progress: &Progress) -> Vec<String> {
    let book = Book::new();
    let watchdog = Watchdog::start(format!("{plan:#?}"), progress.tally());
    match plan.kind {
        Kind::Engine => engine_round::run(plan, &book, progress.tally(), &watchdog),
        Kind::Tasks => task_round::run(plan, &book, progress.tally(), &watchdog),
        Kind::Late => late_round::run(plan, &book, progress.tally(), progress),
        Kind::Busy => busy::run(plan, &book, progress.tally(), progress),
    }
    book.broken()
}

fn report(plan: &Plan, broken: &[String]) {
    println!("FAILED: {plan:#?}");
    for what in broken.iter().take(20) {
        println!("  {what}");
    }
    println!(
        "{} findings; again with: --seed {} --from {}",
        broken.len(),
        plan.seed,
        plan.round
    );
}
