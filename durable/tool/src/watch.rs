//! The live view: the counts, drawn again and again.
//!
//! The store is open only during a look, so that a service can open it in between.

use std::io::IsTerminal;
use std::thread;
use std::time::Duration;

use serde_json::json;
use tickwheel_durable::{SystemClock, WallClock};

use crate::failure::Failure;
use crate::open::{Place, open};
use crate::output::Output;
use crate::stats::Stats;

/// Moves to the upper left corner, and clears the screen.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

pub(crate) fn watch(
    place: &Place,
    every: Duration,
    times: Option<u64>,
    output: &mut Output,
) -> Result<bool, Failure> {
    let clear = match std::io::stdout().is_terminal() {
        true => CLEAR,
        false => "",
    };
    // A URL may hold a password.
    let name = match place.is_shared() {
        true => "PostgreSQL",
        false => &place.store,
    };
    let mut looks = 0;
    loop {
        let now = SystemClock.now();
        match look(place) {
            Ok(stats) => {
                let text = format!("{clear}{name} at {now}\n\n{}", stats.text());
                output.line(&text, || stats.object())?;
            }
            Err(Failure::InUse(message)) => {
                let text = format!("{clear}{name} at {now}\n\n{message}");
                output.line(&text, || json!({"error": "in_use", "message": message}))?;
            }
            Err(failure) => return Err(failure),
        }
        output.flush()?;
        looks += 1;
        if times.is_some_and(|times| looks >= times) {
            return Ok(true);
        }
        thread::sleep(every);
    }
}

fn look(place: &Place) -> Result<Stats, Failure> {
    let jobs = open(place)?;
    Ok(Stats::of(&jobs)?)
}
