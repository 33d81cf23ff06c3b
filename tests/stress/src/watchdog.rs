//! Ends the program, and says what was being run, if nothing moves any more or a thread panics.

use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{panic, process, thread};

use crate::account::{lock, tally};
use crate::plan::Plan;

const PATIENCE: Duration = Duration::from_secs(20);

static PLAN: Mutex<String> = Mutex::new(String::new());

/// What the panics of a plan say.
pub const PLANNED: &str = "as planned";

/// A planned panic prints nothing. Any other ends the program, because a thread that waits for
/// the one that panicked would wait for ever.
pub fn start() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<&str>() != Some(&PLANNED) {
            usual(info);
            give_up("a panic");
        }
    }));
    thread::spawn(watch);
}

pub fn next_round(plan: &Plan) {
    *lock(&PLAN) = format!("{plan:#?}");
}

fn watch() {
    let (mut seen, mut moved) = (tally(), Instant::now());
    loop {
        thread::sleep(Duration::from_millis(100));
        if tally() != seen {
            (seen, moved) = (tally(), Instant::now());
        } else if moved.elapsed() > PATIENCE {
            give_up("nothing moves");
        }
    }
}

fn give_up(why: &str) -> ! {
    println!("FAILED: {why}: {}\n{}", lock(&PLAN), tally());
    process::exit(1)
}
