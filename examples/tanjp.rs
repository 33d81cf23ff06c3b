//! Repeat counts, several queues and reports of ended timers: the worked example
//! of tanjp's timing wheel, tick by tick, on a virtual clock.
//!
//! A tick is one second and the clock starts at a date, so every tick is a Unix
//! time. There are three timers with ids of the caller's own: 11 fires every 3
//! ticks, 4 times; 12 fires every tick, 5 times; 20 fires every 3 ticks for ever,
//! into another queue.
//!
//! ```text
//! cargo run --release --example tanjp
//! ```

use std::error::Error;
use std::time::Duration;

use tickwheel::{Engine, Tick, Time, Timer};

const START: u64 = 1_587_848_614;
const END: u64 = 1_587_848_629;

/// The lines of the article. Its order within a tick is last in, first out; here
/// queue 1 comes before queue 2, and within a queue timers come in the order in
/// which they were scheduled.
const EXPECTED: &str = "\
1587848615 expired: 12
1587848616 expired: 12
1587848617 expired: 11 12 20
1587848618 expired: 12
1587848619 expired: 12
1587848619 closed: 12
1587848620 expired: 11 20
1587848623 expired: 11 20
1587848626 expired: 11 20
1587848626 closed: 11
1587848629 expired: 20
";

fn main() -> Result<(), Box<dyn Error>> {
    let second = Duration::from_secs(1);
    // With one shard the order of all timers is total.
    let (engine, clock) = Engine::builder()
        .tick(second)
        .start_at(Time::from_secs(START))
        .shards(1)
        .queues(3)
        .start_virtual()?;

    // The payload is the caller's own id. As in the original, 0 times means for
    // ever.
    for (queue, tid, period, times) in [(1, 11, 3, 4), (1, 12, 1, 5), (2, 20, 3, 0)] {
        let timer = Timer::every(period * second, tid).times(times);
        engine.schedule(timer.queue(queue).reported())?;
    }

    let mut lines = String::new();
    while clock.now() < Time::from_secs(END) {
        clock.advance(second);

        let mut expired = Vec::new();
        for queue in [engine.queue(1), engine.queue(2)] {
            // Dropping a firing schedules the next one.
            while let Ok(firing) = queue.try_recv() {
                expired.push((firing.tick(), *firing.payload()));
            }
        }
        add_lines(&mut lines, "expired", &expired);

        let mut closed = Vec::new();
        while let Ok(report) = engine.reports().try_recv() {
            // The report of a completed timer carries its payload.
            closed.extend(report.payload.map(|tid| (report.tick, tid)));
        }
        add_lines(&mut lines, "closed", &closed);
    }

    print!("{lines}");
    if lines != EXPECTED {
        return Err(format!("this should have been\n{EXPECTED}").into());
    }
    Ok(())
}

/// Adds a line for each tick, with its ids. The tick is the timer's own, not the
/// current one.
fn add_lines(lines: &mut String, what: &str, ids: &[(Tick, u32)]) {
    for of_one_tick in ids.chunk_by(|a, b| a.0 == b.0) {
        *lines += &format!("{} {what}:", of_one_tick[0].0);
        for (_, tid) in of_one_tick {
            *lines += &format!(" {tid}");
        }
        lines.push('\n');
    }
}
