//! One-shots from many threads to many workers.

#![cfg(shuttle)]

use shuttle::sync::mpsc;
use shuttle::thread;
use tickwheel::{Engine, Timer, TimerId};
use tickwheel_shuttle_tests::{
    End, Payload, Tally, builder, check, join, pass_time, shut_down, threads, tick, workers,
    workers_that,
};

const SUBMITTERS: u32 = 4;
const WORKERS: u32 = 3;

/// Schedules a one-shot. Returns `None` if it is refused.
fn submit(engine: &Engine<Payload>, tally: &Tally, at: u64) -> Option<TimerId> {
    match engine.schedule(Timer::at(tick(at), tally.payload())) {
        Ok(id) => Some(id),
        Err(refused) => {
            refused.into_payload().end(End::Refused);
            None
        }
    }
}

fn cancel(engine: &Engine<Payload>, id: TimerId) {
    if let Some(payload) = engine.cancel(id).into_payload() {
        payload.end(End::Cancelled);
    }
}

/// Threads schedule, reschedule, cancel and take while another shuts down: each timer
/// ends once.
#[test]
fn everything_at_once() {
    check(|| {
        let tally = Tally::default();
        let (engine, clock) = builder().start_model().unwrap();
        let (sender, ids) = mpsc::channel();
        let submitters = threads(SUBMITTERS, |n| {
            let (engine, tally, sender) = (engine.clone(), tally.clone(), sender.clone());
            move || {
                for at in [1 + u64::from(n) % 3, 2] {
                    let Some(id) = submit(&engine, &tally, at) else {
                        return;
                    };
                    sender.send(id).unwrap();
                    let _ = engine.reschedule(id, tick(4 - at));
                }
            }
        });
        drop(sender);
        let canceller = {
            let engine = engine.clone();
            thread::spawn(move || ids.iter().step_by(2).for_each(|id| cancel(&engine, id)))
        };
        let workers = workers(&engine, WORKERS);
        let time = pass_time(clock, 3);
        shut_down(&engine);
        join(submitters);
        join(workers);
        join([canceller, time]);
        tally.assert_agrees(engine.ledger());
    });
}

/// Time does not pass before all due timers are taken, so a lost wake-up, of the
/// ticker or of a worker, leaves all threads blocked.
#[test]
fn no_wakeup_is_lost() {
    check(|| {
        let tally = Tally::default();
        let (engine, clock) = builder().start_model().unwrap();
        let (sender, taken) = mpsc::channel();
        let workers = workers_that(&engine, WORKERS, move |expired| {
            sender.send(expired.tick().0).unwrap();
            expired.into_payload().end(End::Taken);
        });
        let submitters = threads(SUBMITTERS, |n| {
            let (engine, tally) = (engine.clone(), tally.clone());
            move || {
                submit(&engine, &tally, 4 - u64::from(n) % 3).unwrap();
                let far = submit(&engine, &tally, 90).unwrap();
                engine.reschedule(far, tick(3)).unwrap();
            }
        });
        clock.pass_to(tick(1));
        join(submitters);
        for (now, due) in [(2, 1), (3, 5), (4, 2)] {
            clock.pass_to(tick(now));
            (0..due).for_each(|_| assert_eq!(taken.recv(), Ok(now)));
        }
        shut_down(&engine);
        join(workers);
        tally.assert_agrees(engine.ledger());
    });
}
