//! Promise 11, of what is set before an engine starts: every setting counts, and
//! one that cannot be granted is refused at once, with nothing left behind.

use super::*;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use std::error::Error;
use std::sync::mpsc;
use std::thread;
use tickwheel::{
    Builder, ClockSource, Refusal, StartError, TaskBuilder, TaskEngine, Tick, Time, Timer, Wheel,
};

/// Numbers that a caller might pass to a setter.
const EXTREMES: [usize; 12] = [
    0,
    1,
    2,
    7,
    1_000,
    1_025,
    65_537,
    (1 << 22) + 1,
    1 << (usize::BITS / 2),
    1 << (usize::BITS - 9),
    usize::MAX / 2 + 2,
    usize::MAX,
];

/// What may be set, each to anything.
#[derive(Clone, Debug)]
struct Settings {
    queues: Option<usize>,
    queue_bound: Option<usize>,
    shards: Option<usize>,
    max_timers: Option<usize>,
    wheel_size: Option<usize>,
    max_levels: Option<usize>,
    tick: Duration,
    start_at: u64,
}

fn settings() -> impl Strategy<Value = Settings> {
    let one = || weighted(0.4, select(EXTREMES.to_vec()));
    let ticks = [Duration::ZERO, Duration::from_nanos(1), MS, Duration::MAX];
    let starts = select(vec![0, 1, u64::MAX - 1, u64::MAX]);
    let sizes = (one(), one(), one(), one(), one(), one());
    (sizes, select(ticks.to_vec()), starts).prop_map(|(sizes, tick, start_at)| Settings {
        queues: sizes.0,
        queue_bound: sizes.1,
        shards: sizes.2,
        max_timers: sizes.3,
        wheel_size: sizes.4,
        max_levels: sizes.5,
        tick,
        start_at,
    })
}

impl Settings {
    fn builder(&self) -> Builder<u32> {
        let builder = Engine::builder()
            .tick(self.tick)
            .start_at(Time::from_nanos(self.start_at));
        let builder = set(builder, self.queues, Builder::queues);
        let builder = set(builder, self.queue_bound, Builder::queue_bound);
        let builder = set(builder, self.shards, Builder::shards);
        let builder = set(builder, self.max_timers, Builder::max_timers);
        let builder = set(builder, self.wheel_size, Builder::wheel_size);
        set(builder, self.max_levels, Builder::max_levels)
    }
}

fn set<B>(builder: B, to: Option<usize>, setter: fn(B, usize) -> B) -> B {
    match to {
        Some(to) => setter(builder, to),
        None => builder,
    }
}

/// What a call answers that may never come to an end.
fn answer<A: Send + 'static>(call: impl FnOnce() -> A + Send + 'static) -> A {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(call()));
    told.recv_timeout(PATIENCE)
        .expect("neither started nor refused")
}

/// After any refused settings an ordinary engine starts, and so does a wheel.
fn others_still_start() {
    let engine = Engine::builder().start().unwrap();
    let id = engine.schedule(Timer::after(SECOND, "ordinary")).unwrap();
    assert_eq!(engine.cancel(id).payload(), Some("ordinary"));
    let mut wheel = Wheel::new(64);
    wheel.schedule_at(Tick(1), "alone");
    assert_eq!(
        wheel.pop_due(Tick(1)).map(|expired| expired.payload),
        Some("alone")
    );
}

/// A timer that is due at once is fired, if there is room for it.
fn works(engine: &Engine<u32>, clock: &VirtualClock<u32>) {
    engine.schedule(Timer::after(Duration::ZERO, 7)).unwrap();
    clock.advance(Duration::ZERO);
    assert_eq!(engine.queue(0).try_recv().unwrap().into_payload(), 7);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn any_settings_start_an_engine_or_are_refused_at_once(settings in settings()) {
        let builder = settings.builder();
        match answer(move || builder.start_virtual()) {
            Ok((engine, clock)) => works(&engine, &clock),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        others_still_start();
    }
}

/// Each number that is out of range, by itself, however the engine is started.
#[test]
fn a_setting_out_of_range_is_refused_and_says_what_to_do() {
    type Case = (
        fn(Builder<u32>) -> Builder<u32>,
        fn(&StartError) -> bool,
        &'static str,
    );
    let refused: [Case; 10] = [
        (
            |builder| builder.queue_bound(usize::MAX),
            |error| matches!(error, StartError::QueueBoundTooHigh),
            "leave it out",
        ),
        (
            |builder| builder.queues(1 << 12).queue_bound((1 << 10) + 1),
            |error| matches!(error, StartError::QueueBoundTooHigh),
            "leave it out",
        ),
        (
            |builder| builder.shards(usize::MAX),
            |error| matches!(error, StartError::TooManyShards),
            "1024 shards at most",
        ),
        (
            |builder| builder.shards(1 << (usize::BITS - 9)),
            |error| matches!(error, StartError::TooManyShards),
            "1024 shards at most",
        ),
        (
            |builder| builder.shards(1_025),
            |error| matches!(error, StartError::TooManyShards),
            "1024 shards at most",
        ),
        (
            |builder| builder.queues(usize::MAX),
            |error| matches!(error, StartError::TooManyQueues),
            "ask for fewer",
        ),
        (
            |builder| builder.shards(1).queues(1 << 20),
            |error| matches!(error, StartError::TooManyQueues),
            "ask for fewer",
        ),
        (
            |builder| builder.max_timers(0),
            |error| matches!(error, StartError::ZeroMaxTimers),
            "leave it out",
        ),
        (
            |builder| builder.name("lea\0ses"),
            |error| matches!(error, StartError::InvalidName),
            "no NUL",
        ),
        (
            |builder| builder.name(""),
            |error| matches!(error, StartError::InvalidName),
            "must have characters",
        ),
    ];
    for (n, (setter, is_expected, advice)) in refused.into_iter().enumerate() {
        let starts: [fn(Builder<u32>) -> Option<StartError>; 3] = [
            |builder| builder.start().err(),
            |builder| builder.start_driven().err(),
            |builder| builder.start_virtual().err(),
        ];
        for start in starts {
            let error = answer(move || start(setter(Engine::builder())));
            let error = error.unwrap_or_else(|| panic!("{n} was granted"));
            assert!(is_expected(&error), "{n}: {error:?}");
            assert!(error.to_string().contains(advice), "{n}: {error}");
        }
    }
    others_still_start();
}

/// A task engine has the settings of an engine, and each reaches the engine.
#[test]
fn promise_11_every_setting_of_a_task_engine_counts() {
    let start = Time::from_secs(9);
    let builder = || TaskEngine::builder().workers(1);
    let builder_of_one = builder().shards(1).start_at(start);
    let (tasks, _clock) = builder_of_one.start_virtual().unwrap();
    assert_eq!(tasks.now(), start);
    assert!(format!("{tasks:?}").contains("shards: 1,"), "{tasks:?}");
    let refused = |builder: TaskBuilder| builder.start_virtual().map(|_| ()).unwrap_err();
    assert!(matches!(refused(builder().shards(0)), StartError::NoShards));
    for misfit in [builder().wheel_size(1), builder().max_levels(0)] {
        assert!(matches!(refused(misfit), StartError::Geometry(_)));
    }
    let [portable, usual] = [builder().portable_ticker(), builder()].map(|builder| {
        let tasks = builder.start().unwrap();
        format!("{:?}", tasks.engine())
    });
    let sleeps_on = |shown: &str| shown.split("sleeps_on: ").nth(1).unwrap().to_string();
    let is_other = sleeps_on(&portable) != sleeps_on(&usual);
    let has_timer = cfg!(any(target_os = "linux", windows));
    assert_eq!(is_other, has_timer, "{portable} {usual}");
}

#[test]
fn as_many_workers_as_nobody_has_are_refused() {
    for workers in [4_097, usize::MAX] {
        let starts: [fn(TaskBuilder) -> Option<StartError>; 2] = [
            |builder| builder.start().err(),
            |builder| builder.start_virtual().err(),
        ];
        for start in starts {
            let builder = TaskEngine::builder().workers(workers);
            let error = answer(move || start(builder)).expect("granted");
            assert!(matches!(error, StartError::TooManyWorkers), "{error:?}");
            assert!(
                error.to_string().contains("4096 workers at most"),
                "{error}"
            );
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

/// What is not a number out of range says what to do, too, and an error behind
/// the error is to be had.
#[test]
fn every_refused_start_says_why() {
    type Setter = fn(Builder<u32>) -> Builder<u32>;
    let says: [(Setter, &str); 6] = [
        (|builder| builder.tick(Duration::ZERO), "longer than zero"),
        (|builder| builder.queues(0), "at least one queue"),
        (|builder| builder.queue_bound(0), "hand out nothing"),
        (|builder| builder.shards(0), "at least one shard"),
        (|builder| builder.wheel_size(1), "2 to 65536"),
        (|builder| builder.max_levels(0), "level"),
    ];
    for (setter, why) in says {
        let error = setter(Engine::builder()).start().unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        let source = error.source().map(ToString::to_string);
        let is_geometry = matches!(error, StartError::Geometry(_));
        assert_eq!(source, is_geometry.then(|| error.to_string()));
    }
    let error = TaskEngine::builder().workers(0).start().unwrap_err();
    assert!(error.to_string().contains("at least one worker"), "{error}");
    assert!(error.source().is_none());
}

/// A bound that is granted in full can be used in full.
#[test]
fn the_highest_settings_are_granted() {
    let builder = Engine::<u32>::builder().shards(1_024).queues(1_023);
    let (engine, clock) = builder.start_virtual().unwrap();
    works(&engine, &clock);
    assert!(format!("{engine:?}").contains("shards: 1024,"));
    assert!(engine.get_queue(1_022).is_some());

    let builder = Engine::builder()
        .queue_bound(1 << 22)
        .max_timers(usize::MAX);
    let (engine, clock) = builder.start_virtual().unwrap();
    works(&engine, &clock);
}

/// Each setter of the builder, seen in the engine that it makes.
mod setters_of_the_builder {
    use super::*;

    fn virtual_of(builder: Builder<u32>) -> (Engine<u32>, VirtualClock<u32>) {
        builder.start_virtual().unwrap()
    }

    /// What is not set.
    #[test]
    fn none() {
        let (engine, clock) = virtual_of(Engine::builder());
        assert_eq!(engine.now(), Time::START);
        clock.advance(7 * MS);
        assert_eq!(engine.current_tick(), Tick(7));
        assert!(engine.get_queue(0).is_some() && engine.get_queue(1).is_none());
        let window = Timer::at(Time::from_millis(101), 1).tolerance(50 * MS);
        let deadline = engine.deadline(engine.schedule(window).unwrap());
        assert_eq!(deadline, Some(Time::from_millis(128))); // 2 · 64
        let processors = thread::available_parallelism().map_or(2, usize::from);
        let shards = (2 * processors).next_power_of_two().clamp(4, 64);
        let printed = format!("{engine:?}");
        assert!(printed.contains(&format!("shards: {shards},")), "{printed}");
    }

    #[test]
    fn name() {
        let (usual, _clock) = virtual_of(Engine::builder());
        let (leases, _clock) = virtual_of(Engine::builder().name("leases of region 2"));
        let named = [(usual, "tickwheel"), (leases, "leases of region 2")];
        for (engine, name) in named {
            assert_eq!(engine.name(), name);
            assert_eq!(&*engine.snapshot().name, name);
            let printed = format!("{engine:?}");
            assert!(printed.contains(&format!("name: {name:?},")), "{printed}");
        }
    }

    #[test]
    fn tick() {
        let (engine, clock) = virtual_of(Engine::builder().tick(7 * MS));
        clock.advance(20 * MS);
        assert_eq!(engine.current_tick(), Tick(2));
        let id = engine.schedule(Timer::after(MS, 1)).unwrap();
        assert_eq!(engine.deadline(id), Some(Time::from_millis(21)));
    }

    /// With a tolerance, a deadline is a boundary between slots.
    #[test]
    fn wheel_size() {
        for size in [10, 20] {
            let (engine, _clock) = virtual_of(Engine::builder().wheel_size(size));
            let timer = Timer::at(Time::from_millis(101), 1).tolerance(50 * MS);
            let deadline = engine.deadline(engine.schedule(timer).unwrap());
            let boundary = if size == 10 { 110 } else { 120 };
            assert_eq!(deadline, Some(Time::from_millis(boundary)));
        }
    }

    #[test]
    fn max_levels() {
        let (engine, _clock) = virtual_of(Engine::builder().wheel_size(10).max_levels(1));
        let timer = Timer::at(Time::from_millis(101), 1).tolerance(50 * MS);
        let deadline = engine.deadline(engine.schedule(timer).unwrap());
        // There is no boundary but that of a tick.
        assert_eq!(deadline, Some(Time::from_millis(101)));
    }

    #[test]
    fn queues() {
        let (engine, _clock) = virtual_of(Engine::builder().queues(3));
        assert!(engine.get_queue(2).is_some());
        assert!(engine.get_queue(3).is_none());
    }

    #[test]
    fn queue_bound() {
        let (engine, clock) = virtual_of(Engine::builder().queue_bound(2));
        for n in 0..3 {
            engine.schedule(Timer::after(MS, n)).unwrap();
        }
        clock.advance(MS);
        let queue = engine.queue(0);
        let handed: Vec<_> = queue.try_iter().collect();
        assert_eq!((handed.len(), queue.len()), (2, 1));
    }

    #[test]
    fn max_timers() {
        let (engine, _clock) = virtual_of(Engine::builder().shards(1).max_timers(2));
        let schedule = || engine.schedule(Timer::after(SECOND, 1));
        assert!(schedule().is_ok() && schedule().is_ok());
        assert_eq!(schedule().unwrap_err().reason(), Refusal::Full);
    }

    #[test]
    fn shards() {
        for (asked, given) in [(1, 1), (2, 2), (3, 4)] {
            let (engine, _clock) = virtual_of(Engine::builder().shards(asked));
            let printed = format!("{engine:?}");
            assert!(printed.contains(&format!("shards: {given},")), "{printed}");
        }
    }

    #[test]
    fn clock() {
        let on = |clock| Engine::<u32>::builder().clock(clock).start().unwrap();
        let instant = std::time::Instant::now();
        assert!(on(ClockSource::Monotonic).time_of(instant).is_some());
        #[cfg(target_os = "linux")]
        assert!(on(ClockSource::BootTime).time_of(instant).is_none());
    }

    // `portable_ticker` is seen in `tests/resources`: its engine has no
    // descriptor.

    #[test]
    fn start_at() {
        let start = Time::from_secs(1_587_848_614);
        let (engine, _clock) = virtual_of(Engine::builder().start_at(start));
        assert_eq!(engine.now(), start);
    }
}

/// Each setter of the task builder, whichever way the engine is started.
mod setters_of_the_task_builder {
    use super::*;
    use std::sync::{Arc, Barrier};

    #[test]
    fn workers() {
        let tasks = TaskEngine::builder().workers(3).start().unwrap();
        let meeting = Arc::new(Barrier::new(4));
        for _ in 0..3 {
            let meeting = Arc::clone(&meeting);
            let meet = move || _ = meeting.wait();
            tasks.run_after(Duration::ZERO, meet).unwrap();
        }
        answer(move || _ = meeting.wait());
    }

    /// The system shows every thread by its whole name, whatever the number.
    #[test]
    #[cfg(target_os = "linux")]
    fn name() {
        const WORKERS: usize = 12;
        let builder = TaskEngine::builder().name("a long name").workers(WORKERS);
        let tasks = builder.start().unwrap();
        let meeting = Arc::new(Barrier::new(WORKERS + 1));
        for _ in 0..WORKERS {
            let meeting = Arc::clone(&meeting);
            // Until the names are read, no worker ends.
            let meet = move || [(); 2].iter().for_each(|()| _ = meeting.wait());
            tasks.run_after(Duration::ZERO, meet).unwrap();
        }
        answer(move || {
            meeting.wait();
            let named = threads_named("a long na-");
            meeting.wait();
            let workers = (0..WORKERS).map(|n| format!("a long na-w{n}"));
            let mut expected: Vec<_> = workers.chain(["a long na-tick".into()]).collect();
            expected.sort();
            assert_eq!(named, expected);
        });
    }

    #[cfg(target_os = "linux")]
    fn threads_named(prefix: &str) -> Vec<String> {
        let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = threads.filter_map(|it| std::fs::read_to_string(it.path().join("comm")).ok());
        let names = names.map(|name| name.trim_end().to_owned());
        let mut names: Vec<_> = names.filter(|name| name.starts_with(prefix)).collect();
        names.sort();
        names
    }

    #[test]
    fn tick() {
        let builder = || TaskEngine::builder().tick(7 * MS);
        let (on_virtual, clock) = builder().start_virtual().unwrap();
        clock.advance(MS);
        let (driven, _driver) = builder().start_driven().unwrap();
        for tasks in [on_virtual, driven, builder().start().unwrap()] {
            let id = tasks.run_after(1_000 * SECOND, || ()).unwrap();
            let deadline = tasks.engine().deadline(id).unwrap();
            assert_eq!(deadline.as_nanos() % 7_000_000, 0, "{deadline}");
        }
    }

    #[test]
    fn max_timers() {
        let builder = TaskEngine::builder().max_timers(1);
        let (tasks, _clock) = builder.start_virtual().unwrap();
        tasks.run_after(SECOND, || ()).unwrap();
        let refused = tasks.run_after(SECOND, || ()).unwrap_err();
        assert_eq!(refused.reason(), Refusal::Full);
    }

    #[test]
    fn clock() {
        let instant = std::time::Instant::now();
        let follows = |clock| {
            let tasks = TaskEngine::builder().clock(clock).start().unwrap();
            let driven = TaskEngine::builder().clock(clock).start_driven();
            let (driven, _driver) = driven.unwrap();
            [tasks, driven].map(|tasks| tasks.engine().time_of(instant).is_some())
        };
        assert_eq!(follows(ClockSource::Monotonic), [true, true]);
        #[cfg(target_os = "linux")]
        assert_eq!(follows(ClockSource::BootTime), [false, false]);
    }
}
