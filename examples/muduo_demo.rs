//! Closures that run after a delay, closures that repeat, and cancels from
//! within: the demonstration program of muduo's timer queue. It runs on a virtual
//! clock, so its 24 seconds take no time and every printed time is exact.
//!
//! ```text
//! cargo run --release --example muduo_demo
//! ```

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tickwheel::{Refusal, TaskEngine, Time, TimerId};

/// The lines of the original and their seconds. At 6, two timers are due; the one
/// that was scheduled first runs first.
const EXPECTED: &str = "\
main 0
once1 1
once1.5 1.5
every2 2
once2.5 2.5
every3 3
once3.5 3.5
every2 4
every2 6
every3 6
every2 8
every3 9
every2 10
every2 12
every2 14
every2 16
every2 18
every2 20
every2 22
every2 24
";

/// The number of lines after which the program ends.
const LAST: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let (tasks, clock) = TaskEngine::builder().start_virtual()?;
    let demo = Demo {
        tasks,
        printed: Arc::default(),
    };

    demo.print("main");
    demo.once(1.0, "once1")?;
    demo.once(1.5, "once1.5")?;
    demo.once(2.5, "once2.5")?;
    demo.once(3.5, "once3.5")?;
    let once4_5 = demo.once(4.5, "once4.5")?;
    demo.cancel_after(4.2, once4_5)?;
    // The timer is gone by then, which does no harm.
    demo.cancel_after(4.8, once4_5)?;
    demo.every(2.0, "every2")?;
    let every3 = demo.every(3.0, "every3")?;
    demo.cancel_after(9.001, every3)?;

    // Steps from one due tick to the next, and waits for the worker at each.
    clock.run_until(Time::from_secs(100));

    if demo.lines() != EXPECTED {
        return Err(format!("this should have been\n{EXPECTED}").into());
    }
    match demo.tasks.ledger().is_balanced() {
        true => Ok(()),
        false => Err("the ledger is not balanced".into()),
    }
}

/// A handle to the engine and the printed lines. Every task has one.
#[derive(Clone)]
struct Demo {
    tasks: TaskEngine,
    printed: Arc<Mutex<Vec<String>>>,
}

impl Demo {
    fn once(&self, seconds: f64, what: &'static str) -> Result<TimerId, Refusal> {
        let demo = self.clone();
        let delay = Duration::from_secs_f64(seconds);
        Ok(self.tasks.run_after(delay, move || demo.print(what))?)
    }

    fn every(&self, seconds: f64, what: &'static str) -> Result<TimerId, Refusal> {
        let demo = self.clone();
        let period = Duration::from_secs_f64(seconds);
        Ok(self.tasks.run_every(period, move |_| demo.print(what))?)
    }

    fn cancel_after(&self, seconds: f64, id: TimerId) -> Result<TimerId, Refusal> {
        let tasks = self.tasks.clone();
        let delay = Duration::from_secs_f64(seconds);
        let cancel = move || {
            // The timer may have ended already.
            let _ = tasks.cancel(id);
        };
        Ok(self.tasks.run_after(delay, cancel)?)
    }

    /// Prints a line. The last line shuts the engine down, from within a task.
    fn print(&self, what: &str) {
        let now = self.tasks.now().since(Time::START).as_secs_f64();
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        println!("{what} {now}");
        printed.push(format!("{what} {now}\n"));
        let is_last = printed.len() == LAST;
        drop(printed);
        if is_last {
            self.tasks.shutdown();
        }
    }

    fn lines(&self) -> String {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.concat()
    }
}
