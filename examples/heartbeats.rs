//! Keep-alive timers: a gateway with 100,000 sessions, each with a timer that
//! every message postpones. A session that falls silent is reported thirty
//! seconds after its last message.
//!
//! The two minutes pass on a virtual clock, so the program can check its answer
//! exactly. The cost of a message is real, except that it includes no read of
//! the system's clock.
//!
//! ```text
//! cargo run --release --example heartbeats
//! ```

use std::error::Error;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tickwheel::{Engine, Queue, Time, Timer, TimerId};

const SESSIONS: usize = 100_000;
const SECONDS: u64 = 120;

/// The longest silence of a live session.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The seconds between two messages of a live session.
const EVERY: u64 = 10;

/// One session in this many falls silent.
const ONE_IN: u64 = 50;

/// The latest second of a last message: early enough for a report before the
/// end.
const SILENT_BEFORE: u64 = SECONDS - 30 - EVERY;

struct Session {
    keep_alive: TimerId,
    silent_from: Option<u64>,
    last_message: Time,
    reported: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let (engine, clock) = Engine::builder().start_virtual()?;
    let queue = engine.queue(0);
    let mut random = Rng::with_seed(7);
    let mut sessions = Vec::with_capacity(SESSIONS);
    for number in 0..SESSIONS {
        let keep_alive = engine.schedule(Timer::after(KEEP_ALIVE, number))?;
        let silent = random.u64(..ONE_IN) == 0;
        sessions.push(Session {
            keep_alive,
            silent_from: silent.then(|| random.u64(..SILENT_BEFORE)),
            last_message: engine.now(),
            reported: false,
        });
    }

    let (mut messages, mut spent) = (0, Duration::ZERO);
    for second in 1..=SECONDS {
        clock.advance_to(Time::from_secs(second));
        report(&queue, &mut sessions)?;
        let begun = Instant::now();
        messages += receive(&engine, &mut sessions, second)?;
        spent += begun.elapsed();
    }

    let cost = spent / messages;
    println!("{messages} messages from {SESSIONS} sessions, {cost:?} each");
    check(&engine, &sessions)
}

/// Receives the messages of one second. Each postpones the keep-alive of its
/// session. The engine only stores the new deadline, and moves the timer when
/// the old one passes.
fn receive(
    engine: &Engine<usize>,
    sessions: &mut [Session],
    second: u64,
) -> Result<u32, Box<dyn Error>> {
    let now = engine.now();
    let mut messages = 0;
    let first = (second % EVERY) as usize;
    for session in sessions.iter_mut().skip(first).step_by(EVERY as usize) {
        if session.silent_from.is_some_and(|from| second >= from) {
            continue;
        }
        engine.reschedule(session.keep_alive, KEEP_ALIVE)?;
        session.last_message = now;
        messages += 1;
    }
    Ok(messages)
}

/// Takes the expired keep-alives.
fn report(queue: &Queue<usize>, sessions: &mut [Session]) -> Result<(), Box<dyn Error>> {
    while let Ok(expired) = queue.try_recv() {
        let (deadline, number) = (expired.deadline(), expired.into_payload());
        let session = &mut sessions[number];
        if session.silent_from.is_none() || session.reported {
            return Err(format!("session {number} was reported and should not have been").into());
        }
        if deadline != session.last_message + KEEP_ALIVE {
            return Err(format!("session {number} was reported at {deadline}").into());
        }
        session.reported = true;
    }
    Ok(())
}

fn check(engine: &Engine<usize>, sessions: &[Session]) -> Result<(), Box<dyn Error>> {
    let silent = |session: &&Session| session.silent_from.is_some();
    let silent = sessions.iter().filter(silent).count();
    let reported = sessions.iter().filter(|session| session.reported).count();
    println!("{silent} fell silent, {reported} were reported");

    // Shutdown returns the timers of the live sessions.
    let live = engine.shutdown();
    let ledger = engine.ledger();
    println!(
        "ledger: {} accepted = {} completed + {} shut down + {} live",
        ledger.accepted, ledger.completed, ledger.shut_down, ledger.live
    );
    if reported != silent || live.len() != SESSIONS - silent || !ledger.is_balanced() {
        return Err("the reported sessions are not the silent ones".into());
    }
    Ok(())
}
