//! A loop that has to run a task although no timer has come due. It is not behind,
//! however long the engine has run.

use super::*;
use crate::VirtualClock;
use crate::timeline::Time;
use crate::wheel::Advance;

const DAY: Duration = Duration::from_secs(86_400);

/// An engine whose clock stands still after three days.
fn three_days_old() -> (TaskEngine, VirtualClock<Task>) {
    let engine = TaskEngine::builder().start_at(Time::START + 3 * DAY);
    engine.start_driven_model().unwrap()
}

/// Returns how far the loop is behind, and how long it may sleep.
fn delays(timers: &TaskEngine, driver: &Driver<Task>) -> (Duration, Option<Duration>) {
    (timers.engine().snapshot().behind, driver.timeout())
}

const RUNS_AT_ONCE: (Duration, Option<Duration>) = (Duration::ZERO, Some(Duration::ZERO));

#[test]
fn a_cancelled_task_that_runs_at_its_end_puts_no_loop_behind() {
    let (timers, clock) = three_days_old();
    let driver = clock.driver();
    let id = timers.run(Timer::after(DAY, |_| ()).notified()).unwrap();
    timers.cancel(id).payload().unwrap();
    assert_eq!(delays(&timers, &driver), RUNS_AT_ONCE);
    assert_eq!(driver.run_due(9), Advance::Done);
    assert_eq!(delays(&timers, &driver), (Duration::ZERO, None));
}

#[test]
fn tasks_beyond_the_budget_put_no_loop_behind() {
    let (timers, clock) = three_days_old();
    let driver = clock.driver();
    for _ in 0..2 {
        timers.run_after(Duration::ZERO, || ()).unwrap();
    }
    assert_eq!(driver.run_due(1), Advance::More);
    assert_eq!(delays(&timers, &driver), RUNS_AT_ONCE);
    assert_eq!(driver.run_due(9), Advance::Done);
    assert_eq!(delays(&timers, &driver), (Duration::ZERO, None));
}
