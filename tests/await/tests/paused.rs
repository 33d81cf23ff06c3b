//! A program that calls the functions of `time` is tested on a virtual clock, which its
//! runtime moves whenever it is idle. The tests share the clock, and the process has no
//! others.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tickwheel::VirtualClock;
use tickwheel::time::{Global, Timers, interval_at, sleep, sleep_until, timeout};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

static PAUSED: LazyLock<(Timers, VirtualClock)> = LazyLock::new(|| {
    let (timers, clock) = Timers::builder().start_virtual().unwrap();
    Global::set(timers.clone());
    (timers, clock)
});

/// Runs a program, and returns its output and the time that it took on the clock.
fn paused<F: Future>(program: F) -> (F::Output, Duration) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (timers, clock) = &*PAUSED;
    let idle = || {
        if let Some(next) = timers.earliest_deadline() {
            clock.advance_to(next);
        }
    };
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.on_thread_park(idle).build().unwrap();
    let begun = clock.now();
    let output = runtime.block_on(program);
    (output, clock.now().since(begun))
}

#[test]
fn an_hour_of_sleep_takes_no_time() {
    let real = Instant::now();
    let program = async {
        sleep(HOUR).await;
        let other = tokio::spawn(sleep(2 * HOUR));
        let first = timeout(HOUR, std::future::pending::<()>()).await;
        other.await.unwrap();
        first.is_err()
    };
    assert_eq!(paused(program), (true, 3 * HOUR));
    assert!(real.elapsed() < HOUR);
}

#[test]
fn an_instant_counts_from_its_call() {
    let program = async {
        for _ in 0..3 {
            sleep_until(Instant::now() + HOUR).await;
        }
        let mut beats = interval_at(Instant::now() + HOUR, SECOND);
        let left = sleep_until(beats.tick().await + SECOND).deadline() - Instant::now();
        assert!(left <= SECOND && left > SECOND / 2, "{left:?}");
    };
    let ((), took) = paused(program);
    // What passes between the two readings of the system's clock may cost a tick each.
    assert!(took <= 4 * HOUR && took > 4 * HOUR - SECOND, "{took:?}");
}

#[test]
#[should_panic = "set them once"]
fn the_clock_is_set_once() {
    Global::set(PAUSED.0.clone());
}
