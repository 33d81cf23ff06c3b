//! Ends the program, and says what was being run, if nothing moves any more or a thread panics.

use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{panic, process, thread};

use crate::account::{lock, tally};
use crate::plan::Plan;

const PATIENCE: Duration = Duration::from_secs(20);

type Describe = Box<dyn Fn() -> String + Send>;

static PLAN: Mutex<String> = Mutex::new(String::new());
static DESCRIBE: Mutex<Option<Describe>> = Mutex::new(None);

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
    *lock(&DESCRIBE) = None;
}

/// Says what to print beside the plan.
pub fn describe(state: impl Fn() -> String + Send + 'static) {
    *lock(&DESCRIBE) = Some(Box::new(state));
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
    // Not here, because it takes locks that a stuck thread, or this one, may hold.
    thread::spawn(|| {
        if let Some(state) = &*lock(&DESCRIBE) {
            println!("{}", state());
        }
    });
    thread::sleep(Duration::from_secs(2));
    process::exit(1)
}
