//! A notified task whose `rearm` is refused, because its timer was cancelled or shut down
//! while it runs. The refusal tells it of the end, and no further run does.

use super::*;
use crate::{CloseReason, Refusal};

/// Runs a notified task that ends its timer with `end` and tries to re-arm it. Returns
/// what it learned, run by run.
fn learned(timer: Timer<()>, end: fn(&TaskEngine, TimerId)) -> Vec<(CloseReason, bool)> {
    let Here { timers, driver } = Here::new(8);
    let (log, inner) = (Arc::new(Mutex::new(Vec::new())), timers.clone());
    let written = Arc::clone(&log);
    let task = move |firing: Firing| {
        end(&inner, firing.id());
        let refused = matches!(firing.rearm(LATER), Err(Refusal::Cancelled | Refusal::ShutDown));
        written.lock().unwrap().push((firing.outcome(), refused));
    };
    timers.run(timer.map(|()| task).notified()).unwrap();
    for _ in 0..4 {
        let _ = driver.process_due(1);
    }
    assert_eq!(timers.ledger().live, 0);
    assert!(timers.ledger().is_balanced());
    std::mem::take(&mut *log.lock().unwrap())
}

#[test]
fn a_task_is_told_of_its_end_once() {
    let ends: [fn(&TaskEngine, TimerId); 2] = [
        |timers, id| assert_eq!(timers.cancel(id), Cancel::Running),
        |timers, _| drop(timers.shutdown()),
    ];
    for end in ends {
        let once = Timer::at(Time::START, ());
        let beat = Timer::every(LATER, ()).starting(NOW);
        for timer in [once, beat] {
            assert_eq!(learned(timer, end), [(CloseReason::Completed, true)]);
        }
    }
}

#[test]
fn the_run_that_tells_a_task_of_its_end_can_re_arm_nothing() {
    let ends: [fn(&TaskEngine); 2] =
        [|timers| drop(timers.cancel_all()), |timers| drop(timers.shutdown())];
    for (end, reason) in ends.into_iter().zip([Refusal::Cancelled, Refusal::ShutDown]) {
        let Here { timers, driver } = Here::new(8);
        let answers = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&answers);
        let task = move |firing: Firing| written.lock().unwrap().push(firing.rearm(NOW));
        timers.run(Timer::after(LATER, task).notified()).unwrap();
        end(&timers);
        let _ = driver.process_due(9);
        assert_eq!(*answers.lock().unwrap(), [Err(reason)]);
    }
}
