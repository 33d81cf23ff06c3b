//! tokio's `time_panic.rs`. Without a pause of a runtime's time, two of its panics have no
//! counterpart; without a need for a runtime, two others do not happen.

use super::*;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use tickwheel::time::{interval, interval_at, timeout, timeout_at};

/// Returns the file that the panic of a call names.
fn file_of_panic(panics: impl FnOnce()) -> Option<String> {
    /// The hook is the process's.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    let _one = ONE_AT_A_TIME.lock().unwrap();
    let file = Arc::new(Mutex::new(None));
    let (hook, seen) = (std::panic::take_hook(), Arc::clone(&file));
    let this = std::thread::current().id();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == this {
            *seen.lock().unwrap() = info.location().map(|at| at.file().to_owned());
        }
    }));
    let caught = catch_unwind(AssertUnwindSafe(panics));
    std::panic::set_hook(hook);
    assert!(caught.is_err(), "no panic");
    let mut file = file.lock().unwrap();
    file.take()
}

/// `pause_panic_caller`. Differs: virtual timers are values, so there may be many.
#[test]
fn c01_differs_time_may_be_virtual_twice() {
    let ((one, clock), (other, _clock)) = (paused(), paused());
    clock.advance(ms(1));
    assert_eq!((one.now(), other.now()), (at(1), at(0)));
}

/// `interval_panic_caller`
#[test]
fn c03_a_period_of_no_time_panics_in_the_callers_file() {
    let file = file_of_panic(|| drop(interval(Duration::ZERO)));
    assert_eq!(file.as_deref(), Some(file!()));

    let (timers, _clock) = paused();
    let file = file_of_panic(|| drop(timers.interval(Duration::ZERO)));
    assert_eq!(file.as_deref(), Some(file!()));
}

/// `interval_at_panic_caller`
#[test]
fn c04_a_period_of_no_time_from_an_instant_panics_in_the_callers_file() {
    let file = file_of_panic(|| drop(interval_at(Instant::now(), Duration::ZERO)));
    assert_eq!(file.as_deref(), Some(file!()));

    let (timers, _clock) = paused();
    let file = file_of_panic(|| drop(timers.interval_at(timers.now(), Duration::ZERO)));
    assert_eq!(file.as_deref(), Some(file!()));
}

/// A runtime without tokio's own timers.
fn without_time() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// `timeout_panic_caller`. Differs: a limit needs no runtime with timers.
#[test]
fn c05_differs_a_limit_ends_in_a_runtime_without_timers() {
    let limited = without_time().block_on(async { timeout(ms(5), pending::<()>()).await });
    assert!(limited.is_err());
}

/// `timeout_at_panic_caller`. Differs as above.
#[test]
fn c06_differs_a_deadline_passes_in_a_runtime_without_timers() {
    let now = Instant::now();
    let limited = without_time().block_on(async { timeout_at(now, pending::<()>()).await });
    assert!(limited.is_err());
}
