//! Ends the program, with a dump of the state, if nothing moves any more.

use std::panic;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::book::lock;
use crate::progress::Tally;

const PATIENCE: Duration = Duration::from_secs(20);

/// What is being run.
static PLAN: Mutex<String> = Mutex::new(String::new());

type Describe = Box<dyn Fn() -> String + Send>;

/// Watches one round, until it is dropped.
pub struct Watchdog(Arc<Watch>);

struct Watch {
    describe: Mutex<Option<Describe>>,
    over: AtomicBool,
}

impl Watchdog {
    pub fn start(plan: String, tally: &Arc<Tally>) -> Watchdog {
        *lock(&PLAN) = plan;
        let watch = Arc::new(Watch {
            describe: Mutex::new(None),
            over: AtomicBool::new(false),
        });
        let (watched, tally) = (Arc::clone(&watch), Arc::clone(tally));
        thread::spawn(move || watched.watch(&tally));
        Watchdog(watch)
    }

    /// What to print beside the plan.
    pub fn describe(&self, state: impl Fn() -> String + Send + 'static) {
        *lock(&self.0.describe) = Some(Box::new(state));
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

impl Watch {
    fn watch(&self, tally: &Tally) {
        let (mut seen, mut moved) = (tally.moves(), Instant::now());
        while !self.over.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(100));
            let moves = tally.moves();
            if moves != seen {
                (seen, moved) = (moves, Instant::now());
            } else if moved.elapsed() > PATIENCE {
                self.give_up(tally);
            }
        }
    }

    fn give_up(&self, tally: &Tally) -> ! {
        println!("FAILED: nothing moves: {}", lock(&PLAN));
        println!("{tally}");
        // Last, because it takes locks that a stuck thread may hold.
        let describe = lock(&self.describe);
        println!(
            "{}",
            describe.as_ref().map_or(String::new(), |state| state())
        );
        process::exit(1);
    }
}

/// Panics that are part of the plan print nothing. Any other ends the program,
/// because a thread that waits for the panicked one would wait for ever.
pub fn quiet_planned_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let message = info.payload().downcast_ref::<&str>();
        if message != Some(&"as planned") {
            usual(info);
            println!("FAILED: a panic: {}", lock(&PLAN));
            process::exit(1);
        }
    }));
}
