//! A program that calls the functions of `time` is tested on a virtual clock, which its
//! runtime moves whenever it is idle. It is alone in its process.

use std::time::{Duration, Instant};

use tickwheel::time::{Global, Timers, interval_at, sleep, sleep_until, timeout};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

#[test]
fn hours_pass_at_once_and_an_instant_counts_from_its_call() {
    let (timers, clock) = Timers::builder().start_virtual().unwrap();
    Global::set(timers.clone());
    assert!(std::panic::catch_unwind(|| Global::set(timers.clone())).is_err(), "set twice");
    let idle = move || {
        if let Some(next) = timers.earliest_deadline() {
            clock.advance_to(next);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().on_thread_park(idle).build();
    runtime.unwrap().block_on(async {
        let begun = Global.now();
        let mut first = sleep(HOUR);
        (&mut first).await;
        let other = tokio::spawn(sleep(2 * HOUR));
        assert!(timeout(HOUR, std::future::pending::<()>()).await.is_err());
        other.await.unwrap();
        sleep_until(Instant::now() + HOUR).await;
        let mut beats = interval_at(Instant::now() + HOUR, SECOND);
        let left = sleep_until(beats.tick().await + SECOND).deadline() - Instant::now();
        // What passes between two readings of the system's clock may cost a tick.
        let took = Global.now().since(begun);
        assert!((SECOND - left).max(5 * HOUR - took) < SECOND / 2);
        let ended = Instant::now() - first.deadline();
        assert!(ended.abs_diff(took - HOUR) < SECOND / 2);
    });
}
