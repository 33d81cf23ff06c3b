//! A first look, in four seconds: threads that schedule and cancel, a timer that repeats with
//! a count, reports of how timers ended, and the ledger that accounts for all of them.
//!
//! ```text
//! cargo run --release --example quickstart
//! ```

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::stats::Ledger;
use tickwheel::{Engine, Timer};

/// The threads, and the requests of each.
const THREADS: u64 = 4;
const REQUESTS: u64 = 25_000;

fn main() -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let say = move |text: String| println!("{:5.2} s  {text}", begun.elapsed().as_secs_f64());

    // A payload can be anything; here it is what to say.
    let engine = Engine::builder().start()?;

    // A worker takes due timers from a queue, until the engine is shut down.
    let queue = engine.queue(0);
    let worker = thread::spawn(move || {
        let mut unanswered = 0;
        for expired in queue {
            match *expired.payload() {
                "request" => unanswered += 1,
                what => say(format!(
                    "{what}: firing {}, {:.1?} late",
                    expired.number(),
                    expired.lateness()
                )),
            }
        }
        say(format!("{unanswered} requests had no answer in time"));
    });

    // Timers that ask for it report how they ended.
    let reports = engine.reports();
    let reporter = thread::spawn(move || {
        for closed in reports {
            let name = closed.name.as_deref().unwrap_or("a timer");
            let (reason, firings) = (closed.reason, closed.firings);
            say(format!("report: {name}: {reason:?}, firings: {firings}"));
        }
    });

    // Once, and four times in a rhythm. The names are for people, and for cancels.
    let once = Timer::after(Duration::from_millis(700), "once");
    engine.schedule(once.named("the one-shot").reported())?;
    let beat = Timer::every(Duration::from_millis(500), "beat").times(4);
    engine.schedule(beat.named("the beat").reported())?;
    let session = Timer::after(Duration::from_secs(30), "idle session");
    let session = engine.schedule(session.named("session 7").reported())?;
    let lease = Timer::after(Duration::from_secs(3_600), "lease");
    engine.schedule(lease.named("the lease").reported())?;

    // Any thread schedules and cancels. Most timers of real programs are cancelled, because
    // the answer came in time: here three in four.
    let busy = Instant::now();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| requests(&engine));
        }
    });
    let all = THREADS * REQUESTS;
    say(format!(
        "{THREADS} threads scheduled {all} timers and cancelled 3 in 4 in {:.0?}",
        busy.elapsed()
    ));

    // A message postpones a session's end; its last one cancels it. A cancel says what it
    // found, and to cancel twice does no harm.
    thread::sleep(Duration::from_millis(1_200));
    engine.reschedule(session, Duration::from_secs(30))?;
    say(format!("cancel session 7: {:?}", engine.cancel(session)));
    say(format!("and once more: {:?}", engine.cancel(session)));

    thread::sleep(Duration::from_millis(2_500));
    say(format!("shut down: {} timer still waited", engine.shutdown().len()));
    worker.join().expect("the worker does not panic");
    reporter.join().expect("the reporter does not panic");
    check(engine.ledger())
}

/// Starts a timer for each request, due after one to three seconds, and cancels it when the
/// answer comes, which one in four do not.
fn requests(engine: &Engine<&'static str>) {
    for number in 0..REQUESTS {
        let limit = Duration::from_millis(1_000 + number % 2_000);
        let timer = Timer::after(limit, "request");
        let request = engine.schedule(timer).expect("the engine runs, without a bound");
        if number % 4 > 0 {
            assert!(engine.cancel(request).is_cancelled());
        }
    }
}

/// Checks that every accepted timer has ended once, for one reason.
fn check(ledger: Ledger) -> Result<(), Box<dyn Error>> {
    println!(
        "ledger:  {} accepted = {} completed + {} cancelled + {} shut down + {} failed",
        ledger.accepted, ledger.completed, ledger.cancelled, ledger.shut_down, ledger.failed
    );
    if ledger.is_balanced() { Ok(()) } else { Err("the ledger is not balanced".into()) }
}
