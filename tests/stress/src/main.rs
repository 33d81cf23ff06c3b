//! Engines under random load and faults, with an account of every single timer.
//!
//! Each round starts an engine with random settings. Threads make every call that a program may
//! make, and faults disturb them. Every timer must end exactly once, none may fire early, and no
//! payload may be lost or dropped twice. With `--busy`, rounds judge how long calls take
//! instead. The same seed gives the same plans; the machine decides how the threads interleave.

mod account;
mod busy;
mod drive;
#[path = "../../support/epoll.rs"]
mod epoll;
mod plan;
mod round;
mod subject;
mod tasks;
mod tokens;
mod watchdog;

use std::env;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use plan::{Args, Plan};
use tickwheel::{Engine, TaskEngine};
use tokens::Token;

fn main() -> ExitCode {
    let Some(args) = Args::parse(env::args().skip(1)) else {
        eprintln!("{}", plan::USAGE);
        return ExitCode::from(2);
    };
    drive::ignore_nudges();
    watchdog::start();
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let mut rounds = args.from..;
    while Instant::now() < end {
        let plan = Plan::new(&args, rounds.start);
        watchdog::next_round(&plan);
        match (args.busy, plan.has_tasks) {
            (true, _) => busy::run(plan.round),
            (_, true) => round::run::<TaskEngine>(plan.clone()),
            (_, false) => round::run::<Engine<Token>>(plan.clone()),
        }
        let broken = account::take_broken();
        if !broken.is_empty() {
            println!("FAILED: {plan:#?}");
            broken.iter().take(20).for_each(|what| println!("  {what}"));
            println!("{} findings", broken.len());
            return ExitCode::FAILURE;
        }
        rounds.next();
    }
    println!("passed: rounds {} to {}", args.from, rounds.start);
    println!("seed {}; {}", args.seed, account::tally());
    ExitCode::SUCCESS
}
