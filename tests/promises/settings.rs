//! Promise 11, of what is set before an engine starts: every setting counts, and
//! one that cannot be granted is refused at once, with nothing left behind.

use super::*;
use std::error::Error;
use tickwheel::wheel::{Geometry, InvalidGeometry};

/// What a call answers that may never come to an end.
fn answer<A: Send + 'static>(call: impl FnOnce() -> A + Send + 'static) -> A {
    let (tell, told) = channel();
    thread::spawn(move || tell.send(call()));
    let answer = told.recv_timeout(PATIENCE);
    answer.expect("neither started nor refused")
}

/// After any refused settings an ordinary engine starts.
fn others_still_start() {
    let engine = Engine::builder().start().unwrap();
    let id = engine.after(SECOND, "ordinary");
    assert_eq!(engine.cancel(id).payload(), Some("ordinary"));
}

/// A timer that is due at once is fired.
fn works(engine: &Engine<u32>, clock: &VirtualClock<u32>) {
    engine.after(Duration::ZERO, 7);
    clock.advance(Duration::ZERO);
    assert_eq!(engine.next().into_payload(), 7);
}

/// Each setting that is out of range, by itself, however the engine is started.
#[test]
fn a_setting_out_of_range_is_refused_and_says_what_to_do() {
    type Case = (fn(Builder<u32>) -> Builder<u32>, &'static str, &'static str);
    let refused: [Case; 18] = [
        (|it| it.tick(Duration::ZERO), "ZeroTick", "longer than zero"),
        (
            |it| it.queue_bound(usize::MAX),
            "QueueBoundTooHigh",
            "leave it out",
        ),
        (
            |it| it.queues(1 << 12).queue_bound(1_025),
            "QueueBoundTooHigh",
            "leave it out",
        ),
        (|it| it.queue_bound(0), "ZeroQueueBound", "hand out nothing"),
        (
            |it| it.shards(usize::MAX),
            "TooManyShards",
            "1024 shards at most",
        ),
        (
            |it| it.shards(1 << (usize::BITS - 9)),
            "TooManyShards",
            "1024 shards at most",
        ),
        (
            |it| it.shards(1_025),
            "TooManyShards",
            "1024 shards at most",
        ),
        (|it| it.shards(0), "NoShards", "at least one shard"),
        (|it| it.queues(usize::MAX), "TooManyQueues", "ask for fewer"),
        (
            |it| it.shards(1).queues(1 << 20),
            "TooManyQueues",
            "ask for fewer",
        ),
        (|it| it.queues(0), "NoQueues", "at least one queue"),
        (|it| it.max_timers(0), "ZeroMaxTimers", "leave it out"),
        (|it| it.name("lea\0ses"), "InvalidName", "no NUL"),
        (|it| it.name(""), "InvalidName", "must have characters"),
        (|it| it.wheel_size(0), "Geometry(Size(0))", "2 to 65536"),
        (|it| it.wheel_size(1), "Geometry(Size(1))", "2 to 65536"),
        (
            |it| it.wheel_size(65_537),
            "Geometry(Size(65537))",
            "2 to 65536",
        ),
        (|it| it.max_levels(0), "Geometry(NoLevels)", "level"),
    ];
    let starts: [fn(Builder<u32>) -> Option<StartError>; 3] = [
        |builder| builder.start().err(),
        |builder| builder.start_driven().err(),
        |builder| builder.start_virtual().err(),
    ];
    for (setter, kind, advice) in refused {
        for start in starts {
            let error = answer(move || start(setter(Engine::builder())));
            let error = error.unwrap_or_else(|| panic!("{kind} was granted"));
            assert_eq!(format!("{error:?}"), kind);
            assert!(error.to_string().contains(advice), "{error}");
            // An error behind the error is to be had.
            let source = error.source().map(ToString::to_string);
            let is_geometry = matches!(error, StartError::Geometry(_));
            assert_eq!(source, is_geometry.then(|| error.to_string()));
        }
    }
    assert!(matches!(Geometry::new(1), Err(InvalidGeometry::Size(1))));
    others_still_start();
}

/// A task engine has the settings of an engine, and each reaches the engine.
#[test]
fn promise_11_every_setting_of_a_task_engine_counts() {
    let builder = || TaskEngine::builder().workers(1);
    let start = at(9_000);
    let set = builder()
        .shards(1)
        .start_at(start)
        .tick(7 * MS)
        .max_timers(1);
    let (tasks, _clock) = set.start_virtual().unwrap();
    assert_eq!(tasks.now(), start);
    assert!(format!("{tasks:?}").contains("shards: 1,"), "{tasks:?}");
    let id = tasks.run_after(SECOND, || ()).unwrap();
    assert_eq!(tasks.deadline(id).unwrap().as_nanos() % 7_000_000, 0);
    let refused = tasks.run_after(SECOND, || ()).unwrap_err();
    assert_eq!(refused.reason(), Refusal::Full);
    let refused = |builder: TaskBuilder| builder.start_virtual().map(|_| ()).unwrap_err();
    assert!(matches!(refused(builder().shards(0)), StartError::NoShards));
    for misfit in [builder().wheel_size(1), builder().max_levels(0)] {
        assert!(matches!(refused(misfit), StartError::Geometry(_)));
    }
    // Those of the clock, whichever way the engine is started.
    for (clock, measures) in [
        (ClockSource::Monotonic, true),
        (ClockSource::BootTime, false),
    ] {
        let builder = || builder().clock(clock).tick(7 * MS);
        let (driven, _driver) = builder().start_driven().unwrap();
        let portable = builder().portable_ticker().start().unwrap();
        assert!(format!("{:?}", portable.engine()).contains("condition variable"));
        for tasks in [driven, portable, builder().start().unwrap()] {
            let id = tasks.run_after(1_000 * SECOND, || ()).unwrap();
            assert_eq!(tasks.deadline(id).unwrap().as_nanos() % 7_000_000, 0);
            let time = tasks.engine().time_of(Instant::now());
            assert!(time.is_some() == measures || !cfg!(target_os = "linux"));
        }
    }
}

#[test]
fn as_many_workers_as_nobody_has_are_refused() {
    let starts: [fn(TaskBuilder) -> Option<StartError>; 2] = [
        |builder| builder.start().err(),
        |builder| builder.start_virtual().err(),
    ];
    let none = (0, "NoWorkers", "at least one worker");
    let many = [4_097, usize::MAX].map(|n| (n, "TooManyWorkers", "4096 workers at most"));
    for (workers, kind, advice) in [none, many[0], many[1]] {
        for start in starts {
            let builder = TaskEngine::builder().workers(workers);
            let error = answer(move || start(builder)).expect("granted");
            assert_eq!(format!("{error:?}"), kind);
            assert!(error.to_string().contains(advice), "{error}");
        }
    }
    // As many as are allowed are not what this is refused for.
    let allowed = TaskEngine::builder().workers(4_096).tick(Duration::ZERO);
    assert!(matches!(allowed.start(), Err(StartError::ZeroTick)));
    // Where the caller's loop is the worker, their number is of no account.
    let driven = TaskEngine::builder().workers(usize::MAX).start_driven();
    assert!(driven.is_ok());
    others_still_start();
}

/// A bound that is granted in full can be used in full.
#[test]
fn the_highest_settings_are_granted() {
    let builder = Engine::builder().shards(1_024).queues(1_023);
    let (engine, clock) = builder.start_virtual().unwrap();
    works(&engine, &clock);
    assert!(format!("{engine:?}").contains("shards: 1024,"));
    assert!(engine.get_queue(1_022).is_some());
    let builder = Engine::builder().queue_bound(1 << 22);
    let (engine, clock) = builder.max_timers(usize::MAX).start_virtual().unwrap();
    works(&engine, &clock);
}

/// The deadline of a timer at 101 ms with a tolerance of 50: the boundary between slots
/// that lies in this window.
fn boundary(builder: Builder<u32>) -> Option<Time> {
    let (engine, _clock) = builder.start_virtual().unwrap();
    let window = Timer::at(at(101), 1).tolerance(50 * MS);
    engine.deadline(engine.put(window))
}

/// Each setter of the builder, seen in the engine that it makes.
#[test]
fn promise_11_every_setting_of_an_engine_counts() {
    let builder = Engine::<u32>::builder;
    let shown = |builder: Builder<u32>| format!("{:?}", builder.start_virtual().unwrap().0);
    let processors = thread::available_parallelism().map_or(2, usize::from);
    let usual = (2 * processors).next_power_of_two().clamp(4, 64);
    for (builder, shards) in [
        (builder(), usual),
        (builder().shards(1), 1),
        (builder().shards(2), 2),
        (builder().shards(3), 4),
    ] {
        let shown = shown(builder);
        assert!(shown.contains(&format!("shards: {shards},")), "{shown}");
    }
    for (builder, deadline) in [
        (builder(), 128), // 2 · 64
        (builder().wheel_size(10), 110),
        (builder().wheel_size(20), 120),
        // There is no boundary but that of a tick.
        (builder().wheel_size(10).max_levels(1), 101),
    ] {
        assert_eq!(boundary(builder), Some(at(deadline)));
    }
    let start = Time::from_secs(1_587_848_614);
    for (builder, name, now, tick, queues) in [
        (builder(), "tickwheel", Time::START, MS, 1),
        (
            builder().tick(7 * MS).start_at(start).queues(3),
            "tickwheel",
            start,
            7 * MS,
            3,
        ),
        (
            builder().name("leases of region 2"),
            "leases of region 2",
            Time::START,
            MS,
            1,
        ),
    ] {
        let (engine, clock) = builder.start_virtual().unwrap();
        assert_eq!((engine.name(), &*engine.snapshot().name), (name, name));
        assert!(format!("{engine:?}").contains(&format!("name: {name:?},")));
        assert_eq!(engine.now(), now);
        clock.advance(20 * MS);
        let ticks = engine.now().as_nanos() / tick.as_nanos() as u64;
        assert_eq!(engine.current_tick(), Tick(ticks));
        assert!(engine.get_queue(queues - 1).is_some() && engine.get_queue(queues).is_none());
    }
}

#[test]
fn promise_11_a_task_engine_has_as_many_workers_as_it_was_given() {
    let tasks = TaskEngine::builder().workers(3).start().unwrap();
    let meeting = Arc::new(Barrier::new(4));
    for _ in 0..3 {
        let meeting = Arc::clone(&meeting);
        tasks
            .run_after(Duration::ZERO, move || _ = meeting.wait())
            .unwrap();
    }
    answer(move || _ = meeting.wait());
}
