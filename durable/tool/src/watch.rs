//! The counts again and again, as lines: for programs, and where there is no terminal.
//!
//! The store is open only during a look, so that a service can open it in between.

use std::thread;
use std::time::Duration;

use serde_json::json;
use tickwheel_durable::{SystemClock, WallClock};

use crate::failure::Failure;
use crate::open::{Place, open};
use crate::output::Output;
use crate::stats::Stats;

pub(crate) fn watch(
    place: &Place,
    every: Duration,
    times: Option<u64>,
    output: &mut Output,
) -> Result<bool, Failure> {
    let mut looks = 0;
    loop {
        let head = format!("{} at {}\n\n", place.name(), SystemClock.now());
        match look(place) {
            Ok(stats) => output.line(&(head + &stats.text()), || stats.object())?,
            Err(Failure::InUse(message)) => {
                let text = head + &message;
                output.line(&text, || json!({"error": "in_use", "message": message}))?;
            }
            Err(failure) => return Err(failure),
        }
        output.flush()?;
        looks += 1;
        if output.is_closed || times.is_some_and(|times| looks >= times) {
            return Ok(true);
        }
        thread::sleep(every);
    }
}

fn look(place: &Place) -> Result<Stats, Failure> {
    let jobs = open(place)?;
    Ok(Stats::of(&jobs)?)
}
