//! A modest caller: makes few calls and measures how long each takes.

use std::thread;
use std::time::{Duration, Instant};

use super::hostile::{FAR, Turn};
use super::stalls::Stalls;
use super::subject::{Name, Subject};

/// Before each call.
const PAUSE: Duration = Duration::from_micros(200);

/// Calls now and then until the turn is over, and returns how long each call
/// took.
///
/// A pause stands before each call: a thread that has just got a lock has the
/// processor, and gets the next locks, too.
pub fn run<S: Subject>(subject: &S, name: &Name, turn: &Turn<'_>) -> Stalls {
    let mut stalls = Stalls::default();
    turn.repeat(|| {
        for name in [None, Some(name)] {
            if let Some(id) = timed(&mut stalls, || subject.schedule(FAR, name)) {
                timed(&mut stalls, || subject.reschedule(id, FAR / 2));
                timed(&mut stalls, || subject.cancel(id));
            }
        }
        timed(&mut stalls, || subject.look());
    });
    stalls
}

fn timed<R>(stalls: &mut Stalls, call: impl FnOnce() -> R) -> R {
    thread::sleep(PAUSE);
    let begun = Instant::now();
    let answer = call();
    stalls.add(begun.elapsed());
    answer
}
