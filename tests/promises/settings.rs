//! Promise 11, of what is set before an engine starts: every setting counts, and
//! one that cannot be granted is refused at once, with nothing left behind.

use super::*;
use std::error::Error;

/// What a call answers that may never come to an end.
fn answer<A: Send + 'static>(call: impl FnOnce() -> A + Send + 'static) -> A {
    let (tell, told) = channel();
    thread::spawn(move || tell.send(call()));
    let answer = told.recv_timeout(PATIENCE);
    answer.expect("neither started nor refused")
}

type Settings = Builder<Engine<u32>>;
type Setter = fn(Settings) -> Settings;

/// Asserts that it is refused however the engine is started, and says what to do.
fn refuses(setter: Setter, name: &str, advice: &str) {
    let starts: [fn(Settings) -> Option<StartError>; 3] = [
        |builder| builder.start().err(),
        |builder| builder.start_driven().err(),
        |builder| builder.start_virtual().err(),
    ];
    for start in starts {
        let error = answer(move || start(setter(Engine::builder())));
        let error = error.unwrap_or_else(|| panic!("{name} was granted"));
        let refused = match error {
            StartError::Setting(name, _) => name.to_owned(),
            ref other => format!("{other:?}"),
        };
        assert_eq!(refused, name);
        assert!(error.to_string().contains(advice), "{error}");
        // A source would say the same once more.
        assert!(error.source().is_none());
    }
}

#[test]
fn a_setting_out_of_range_is_refused_and_says_what_to_do() {
    const MOST: usize = usize::MAX;
    refuses(|it| it.tick(Duration::ZERO), "tick", "longer than zero");
    refuses(|it| it.shards(MOST), "shards", "1024 shards at most");
    refuses(|it| it.shards(1_025), "shards", "1024 shards at");
    refuses(|it| it.shards(0), "shards", "at least one shard");
    refuses(|it| it.queues(MOST), "queues", "ask for fewer");
    refuses(|it| it.shards(1).queues(1 << 20), "queues", "fewer");
    refuses(|it| it.shards(4).queues(1 << 62), "queues", "fewer");
    refuses(|it| it.queues(0), "queues", "at least one queue");
    refuses(|it| it.max_timers(0), "max_timers", "leave it out");
    refuses(|it| it.name("lea\0ses"), "name", "no NUL");
    refuses(|it| it.name(""), "name", "must have characters");
    refuses(|it| it.wheel_size(1), "Geometry(Size(1))", "2 to 65536");
    refuses(|it| it.wheel_size(65_537), "Geometry(Size(65537))", "65536");
    refuses(|it| it.max_levels(0), "Geometry(NoLevels)", "level");
}

#[test]
fn promise_11_settings_count_whichever_way_the_engine_is_started() {
    for (clock, measures) in [(ClockSource::Monotonic, true), (ClockSource::BootTime, false)] {
        let builder = || TaskEngine::builder().tick(7 * MS).clock(clock);
        let (driven, _driver) = builder().start_driven().unwrap();
        let portable = builder().portable_ticker().start().unwrap();
        assert!(format!("{:?}", &portable).contains("condition variable"));
        for tasks in [driven, portable, builder().start().unwrap()] {
            let id = tasks.run_after(1_000 * SECOND, || ()).unwrap();
            assert_eq!(tasks.deadline(id).unwrap().as_nanos() % 7_000_000, 0);
            let time = tasks.time_of(Instant::now());
            assert!(time.is_some() == measures || !cfg!(target_os = "linux"));
        }
    }
}

#[test]
fn as_many_workers_as_nobody_has_are_refused() {
    let builder = |workers| TaskEngine::builder().workers(workers);
    for workers in [4_097, usize::MAX] {
        for error in [
            answer(move || builder(workers).start().err()),
            answer(move || builder(workers).start_virtual().err()),
        ] {
            let said = error.expect("granted").to_string();
            assert!(said.contains("4096 workers at most"), "{said}");
        }
    }
    let none = builder(0).start();
    assert!(matches!(none, Err(StartError::Setting("workers", _))));
    let errors: [fn(std::io::Error) -> StartError; 2] = [StartError::Alarm, StartError::Thread];
    for error in errors.map(|error| error(std::io::ErrorKind::Other.into())) {
        let source = error.source().expect("the system's error").to_string();
        assert!(!error.to_string().contains(&source), "{error}");
    }
    // As many as are allowed are not what this is refused for.
    let allowed = builder(4_096).tick(Duration::ZERO).start();
    assert!(matches!(allowed, Err(StartError::Setting("tick", _))));
    // Where the caller's loop is the worker, their number is of no account.
    assert!(builder(usize::MAX).start_driven().is_ok());
}

#[test]
fn the_highest_settings_are_granted() {
    for builder in [
        Engine::builder().shards(1_024).queues(1_023),
        Engine::builder().shards(2).queues(2_000),
        Engine::builder().max_timers(usize::MAX),
    ] {
        let (engine, clock) = builder.start_virtual().unwrap();
        engine.after(Duration::ZERO, 7);
        clock.advance(Duration::ZERO);
        assert_eq!(payloads(&engine), [7]);
    }
}

/// The deadline of a timer at 101 ms with a tolerance of 50: the boundary between slots
/// that lies in this window.
fn boundary(builder: Settings) -> Option<Time> {
    let (engine, _clock) = builder.start_virtual().unwrap();
    let window = Timer::at(at(101), 1).tolerance(50 * MS);
    engine.deadline(engine.put(window))
}

#[test]
fn promise_11_every_setting_of_an_engine_counts() {
    let builder = Engine::<u32>::builder;
    let start = |builder: Settings| builder.start_virtual().unwrap();
    let shows = |builder, what: &str| {
        let shown = format!("{:?}", start(builder).0);
        assert!(shown.contains(what), "{shown}");
    };
    let processors = thread::available_parallelism().map_or(2, usize::from);
    let usual = (2 * processors).next_power_of_two().clamp(4, 64);
    shows(builder(), &format!("shards: {usual},"));
    shows(builder().shards(1), "shards: 1,");
    shows(builder().shards(513), "shards: 1024,");
    shows(builder().name("leases of region 2"), r#"name: "leases of region 2","#);
    let named = |builder| start(builder).0.snapshot().name;
    assert_eq!(&*named(builder()), "tickwheel");
    assert_eq!(&*named(builder().name("leases")), "leases");

    assert_eq!(boundary(builder()), Some(at(128))); // 2 · 64
    assert_eq!(boundary(builder().wheel_size(20)), Some(at(120)));
    // There is no boundary but that of a tick.
    let flat = builder().wheel_size(10).max_levels(1);
    assert_eq!(boundary(flat), Some(at(101)));

    let (engine, _clock) = start(builder());
    assert_eq!(engine.now(), Time::START);
    assert_eq!(engine.snapshot().queued.len(), 1);
    let clock = VirtualClock::starting_at(at(10));
    let builder = builder().tick(7 * MS).queues(3);
    let engine = builder.start_on(&clock).unwrap();
    assert_eq!(engine.snapshot().queued.len(), 3);
    assert_eq!((engine.now(), engine.inspect(0).shards[0].reached), (at(10), Tick(1)));
    clock.advance(20 * MS);
    assert_eq!(engine.current_tick(), Tick(4));
}
