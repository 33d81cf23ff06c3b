//! A first look, in eight seconds: closures that run later, one that repeats, a hundred
//! thousand of which half are cancelled, and the wheel that they wait in.
//!
//! ```text
//! cargo run --release --example quickstart
//! ```

mod screen;

use std::error::Error;
use std::time::{Duration, Instant};

use screen::{Log, Screen};
use tickwheel::{Firing, Ledger, TaskEngine, TimerId};

/// The number of requests, each with a time limit.
const REQUESTS: u64 = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    // Closures run on threads of the engine, called workers. A single shard makes a
    // single wheel to look at.
    let timers = TaskEngine::builder().workers(2).shards(1).start()?;
    let (mut screen, log) = Screen::new(tickwheel::Engine::clone(&timers));

    // Run once, after a delay.
    for delay in [600, 200, 400].map(Duration::from_millis) {
        let log = log.clone();
        timers.run_after(delay, move || {
            log.line(format!("ran once, after {delay:?}"))
        })?;
    }
    // Run again and again.
    let beating = log.clone();
    let beat = move |firing: Firing| beating.line(format!("beat {}", firing.number()));
    let beat = timers.run_every(Duration::from_secs(1), beat)?;
    screen.show(Duration::from_millis(2_200))?;

    // Most timers of real programs are cancelled, because the answer came in time.
    let requests = send_requests(&timers, &log)?;
    screen.show(Duration::from_secs(2))?;
    answer_every_other(&timers, &requests, &log);
    screen.show(Duration::from_secs(2))?;

    // A cancel says what it found. To cancel twice does no harm.
    log.line(format!("cancel the beat: {:?}", timers.cancel(beat)));
    log.line(format!("and once more:   {:?}", timers.cancel(beat)));
    timers.run_after(Duration::from_secs(3_600), || ())?;
    screen.show(Duration::from_secs(2))?;

    // Every timer has one ending, and the ledger shows it.
    let closed = timers.shutdown();
    println!("shut down; {} timer still waited", closed.len());
    check(timers.ledger())
}

/// Starts a timer for each request, due after 0.5 to 5.5 seconds.
fn send_requests(timers: &TaskEngine, log: &Log) -> Result<Vec<TimerId>, Box<dyn Error>> {
    let begun = Instant::now();
    let mut requests = Vec::new();
    for number in 0..REQUESTS {
        let limit = Duration::from_micros(500_000 + 50 * number);
        requests.push(timers.run_after(limit, || ())?);
    }
    log.line(format!("scheduled {REQUESTS} in {:.1?}", begun.elapsed()));
    Ok(requests)
}

/// Cancels the timers of half of the requests. Some have expired already.
fn answer_every_other(timers: &TaskEngine, requests: &[TimerId], log: &Log) {
    let begun = Instant::now();
    let answered = requests.iter().step_by(2);
    let in_time = answered.filter(|&&id| timers.cancel(id).is_cancelled());
    log.line(format!(
        "cancelled {} in {:.1?}",
        in_time.count(),
        begun.elapsed()
    ));
}

/// Checks that every accepted timer has ended once, for one reason.
fn check(ledger: Ledger) -> Result<(), Box<dyn Error>> {
    let Ledger {
        accepted,
        completed,
        cancelled,
        shut_down,
        failed,
        ..
    } = ledger;
    println!(
        "{accepted} accepted = {completed} completed + {cancelled} cancelled + {shut_down} shut down + {failed} failed"
    );
    match ledger.is_balanced() {
        true => Ok(()),
        false => Err("the ledger is not balanced".into()),
    }
}
