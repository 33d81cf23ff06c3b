//! Which events an operator sees, and that they are few.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Engine, StartError, TaskEngine, Timer};
use tracing::subscriber::{set_global_default, with_default};

use crate::events::{Bomb, Panics, Told};
use crate::support::MS;

/// A number that differs from run to run.
const HIDDEN: &str = "engine";

/// The events of the calling thread while `act` runs. The crate opens no spans.
fn told_here(act: impl FnOnce()) -> Vec<String> {
    let told = Told::new(&["tickwheel"], HIDDEN);
    let lines = told.clone().here(act);
    assert_eq!(told.spans(), 0);
    lines
}

#[test]
fn a_start_and_a_shutdown_are_told_once() {
    let told = told_here(|| {
        let builder = Engine::builder().name("leases").tick(5 * MS).wheel_size(20);
        let (engine, _clock) = builder.shards(3).queues(2).start_virtual().unwrap();
        engine.schedule(Timer::after(MS, ())).unwrap();
        engine.schedule(Timer::every(MS, ())).unwrap();
        engine.shutdown();
        engine.shutdown();
        drop(engine);
    });
    assert_eq!(
        told,
        [
            "INFO engine started name=\"leases\" tick=5ms wheel_size=20 shards=4 queues=2 clock=\"virtual\"",
            "INFO engine shut down name=\"leases\" live=2",
        ]
    );
}

#[test]
fn dropping_the_last_handle_is_told_as_a_shutdown() {
    let told = told_here(|| {
        let (engine, driver) = Engine::builder().start_driven().unwrap();
        engine.schedule(Timer::after(MS, ())).unwrap();
        drop((engine, driver));
    });
    assert!(told[0].ends_with(" clock=\"monotonic\""), "{told:?}");
    let ended = "INFO engine shut down name=\"tickwheel\" live=1";
    assert_eq!(told[1..], [ended]);
}

#[test]
fn a_drain_is_told_with_its_outcome() {
    for (queued_for, complete) in [(MS, false), (2_000 * MS, true)] {
        let (engine, _clock) = Engine::builder().name("leases").start_virtual().unwrap();
        engine.schedule(Timer::after(queued_for, ())).unwrap();
        let told = told_here(|| drop(engine.drain(MS)));
        let expected = [
            "INFO drain begun name=\"leases\" limit=1ms".to_owned(),
            format!("INFO drain ended name=\"leases\" complete={complete}"),
            "INFO engine shut down name=\"leases\" live=1".to_owned(),
        ];
        assert_eq!(told, expected);
    }
}

#[test]
fn a_refused_start_is_told_with_its_reason() {
    let refused = |start: fn() -> Result<(), StartError>| {
        let mut reason = String::new();
        let told = told_here(|| reason = start().unwrap_err().to_string());
        let line = format!("WARN engine not started name=\"tickwheel\" error={reason}");
        assert_eq!(told, [line]);
    };
    refused(|| Engine::<()>::builder().wheel_size(1).start().map(drop));
    refused(|| Engine::<()>::builder().queues(0).start_driven().map(drop));
    refused(|| Engine::<()>::builder().shards(0).start_virtual().map(drop));
    refused(|| TaskEngine::builder().workers(0).start().map(drop));
}

#[test]
fn a_task_that_panics_is_told_with_its_message() {
    let builder = TaskEngine::builder().name("jobs");
    let (tasks, driver) = builder.start_driven().unwrap();
    let panics: [(fn(), &str); 3] = [
        (|| panic!("on purpose"), " panic=\"on purpose\""),
        // A text that only the run puts together is thrown as a `String`.
        (|| panic!("number {}", black_box(7)), " panic=\"number 7\""),
        (|| panic_any(7), ""),
    ];
    for (task, message) in panics {
        let timer = Timer::after(Duration::ZERO, move |_| task()).named("nightly");
        let id = tasks.run(timer).unwrap();
        let told = told_here(|| _ = driver.process_due(1));
        let line = format!("ERROR task panicked name=\"jobs\" id={id:?} timer=\"nightly\"");
        assert_eq!(told, [line + message]);
    }
}

#[test]
fn a_worker_that_panics_with_a_firing_is_told() {
    let (engine, clock) = Engine::builder().start_virtual().unwrap();
    let id = engine.schedule(Timer::every(MS, ()).named("beat")).unwrap();
    clock.advance(MS);
    let queue = engine.queue(0);
    let panics = || {
        let _firing = queue.recv().unwrap();
        panic!("on purpose");
    };
    let told = told_here(|| assert!(catch_unwind(AssertUnwindSafe(panics)).is_err()));
    let line = "ERROR worker panicked with a firing name=\"tickwheel\"";
    assert_eq!(told, [format!("{line} id={id:?} timer=\"beat\"")]);
}

#[test]
fn the_ticker_tells_that_it_ends_and_nothing_else() {
    let told = Told::new(&["tickwheel"], HIDDEN).only("heard-tick");
    set_global_default(told.clone()).unwrap();
    let engine = Engine::builder().name("heard").start().unwrap();
    for _ in 0..10 {
        engine.schedule(Timer::after(MS, ())).unwrap();
        drop(engine.queue(0).recv().unwrap());
    }
    assert!(engine.snapshot().wakeups > 0);
    assert!(told.take().is_empty());
    drop(engine);
    let mut lines = Vec::new();
    let begun = Instant::now();
    while lines.is_empty() && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(MS);
        lines = told.take();
    }
    assert_eq!(lines, ["INFO ticker ended name=\"heard\""]);
}

#[test]
fn an_operator_that_panics_ends_no_worker() {
    let (timers, driver) = TaskEngine::builder().start_driven().unwrap();
    for _ in 0..2 {
        let throw = || panic_any(Bomb);
        timers.run_after(Duration::ZERO, throw).unwrap();
    }
    with_default(Panics, || {
        let _ = driver.process_due(2);
    });
    assert_eq!(timers.snapshot().panics, 2);
    assert_eq!(timers.ledger().failed, 2);
}

/// Otherwise a shutdown would lose payloads, and a firing in an unwinding thread end the process.
#[test]
fn an_operator_that_panics_fails_no_call() {
    with_default(Panics, || {
        assert!(Engine::<()>::builder().queues(0).start_driven().is_err());
        let (engine, clock) = Engine::builder().start_virtual().unwrap();
        engine.schedule(Timer::every(MS, "beat")).unwrap();
        clock.advance(MS);
        let panics = || {
            let _firing = engine.queue(0).recv().unwrap();
            panic!("on purpose");
        };
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        engine.schedule(Timer::after(9 * MS, "pending")).unwrap();
        let closed = engine.drain(MS).into_iter().map(|one| one.payload);
        assert!(closed.eq([Some("beat"), Some("pending")]));
    });
}
