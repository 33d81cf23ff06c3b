//! A first look, in about two seconds: closures that run later, timers that
//! carry a payload, a cancel that returns the payload, a counted repeat with the
//! report of its end, and a shutdown that returns all remaining timers.
//!
//! ```text
//! cargo run --release --example quickstart
//! ```

use std::error::Error;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Engine, Firing, Ledger, TaskEngine, Time, Timer};

fn main() -> Result<(), Box<dyn Error>> {
    closures()?;
    println!();
    payloads()
}

/// Closures, on workers that the engine starts.
fn closures() -> Result<(), Box<dyn Error>> {
    println!("closures:");
    let tasks = TaskEngine::builder().workers(2).start()?;
    let (done, all_done) = mpsc::channel();

    let mut ids = Vec::new();
    for delay in [150, 50, 100].map(Duration::from_millis) {
        let done = done.clone();
        let start = Instant::now();
        let id = tasks.run_after(delay, move || {
            println!("  asked for {delay:?}, ran after {:.2?}", start.elapsed());
            // The receiver is gone only if `closures` has failed already.
            let _ = done.send(());
        })?;
        ids.push(id);
    }
    let beat = |firing: Firing| println!("  beat {}", firing.number());
    let beat = tasks.run(Timer::every(Duration::from_millis(60), beat).times(10))?;

    // Each of the three sends once.
    drop(done);
    all_done.iter().for_each(drop);
    // All tasks have sent. Each has ended when it has returned, too.
    for id in ids {
        let _ = tasks.cancel_and_wait(id);
    }
    println!("  cancel the beat: {:?}", tasks.cancel_and_wait(beat));
    let left = tasks.shutdown();
    println!("  shut down with {} left", left.len());
    check(tasks.ledger())
}

/// Payloads of any type, which the caller's own workers take from a queue.
fn payloads() -> Result<(), Box<dyn Error>> {
    println!("payloads:");
    let engine = Engine::builder().tick(Duration::from_millis(1)).start()?;

    // A queue is an iterator that ends when the engine is shut down.
    let queue = engine.queue(0);
    let worker = thread::spawn(move || {
        for expired in queue {
            let late = expired.lateness();
            let due = millis(expired.deadline());
            let (payload, number) = (expired.payload(), expired.number());
            println!("  due at {due:>7}: {payload}, firing {number}, {late:.0?} late");
        }
    });

    let ms = Duration::from_millis;
    engine.schedule(Timer::after(ms(250), "one-shot"))?;
    engine.schedule(Timer::at(engine.now() + ms(500), "at a time"))?;
    let lease = engine.schedule(Timer::every(ms(300), "lease").times(3).reported())?;
    engine.schedule(Timer::every(ms(700), "for ever"))?;
    engine.schedule(Timer::after(ms(60_000), "session of Ada"))?;
    let request = engine.schedule(Timer::after(ms(400), "request 17"))?;

    // The answer came in time, as it does for most timers: the cancel returns the
    // payload, and no worker sees it.
    println!("  cancelled: {:?}", engine.cancel(request));
    println!("  cancelled again: {:?}", engine.cancel(request));

    // Only the lease is `reported`. The report carries the payload, because the
    // firings of a repeating timer only borrow it.
    let closed = engine.reports().recv_timeout(ms(10_000))?;
    if closed.id != lease {
        return Err("a report on another timer".into());
    }
    println!(
        "  closed: {:?} after {} firings, at tick {}: {:?}",
        closed.payload, closed.firings, closed.tick, closed.reason
    );

    thread::sleep(ms(700));
    for closed in engine.shutdown() {
        println!(
            "  still live at shutdown: {:?}, {} firings",
            closed.payload, closed.firings
        );
    }
    worker.join().map_err(|_| "the worker panicked")?;
    check(engine.ledger())
}

fn millis(time: Time) -> String {
    format!("{} ms", time.since(Time::START).as_millis())
}

/// Checks that every accepted timer has ended once, for one reason.
fn check(ledger: Ledger) -> Result<(), Box<dyn Error>> {
    println!(
        "  ledger: {} accepted = {} live + {} completed + {} cancelled + {} shut down + {} failed",
        ledger.accepted,
        ledger.live,
        ledger.completed,
        ledger.cancelled,
        ledger.shut_down,
        ledger.failed
    );
    match ledger.is_balanced() {
        true => Ok(()),
        false => Err("the ledger is not balanced".into()),
    }
}
