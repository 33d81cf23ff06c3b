//! The settings of an engine, their checks, and its start.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use std::io;
// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc as StdArc;

use crate::clock::{Alarm, Clock, ClockSource, Device};
use crate::drive::{Driver, ProcessFn, VirtualClock, spawn_ticker};
use crate::engine::{Core, Engine, SharedCore, Sink};
use crate::id::WheelNumber;
use crate::observe;
use crate::rounding::TickLength;
use crate::shard::Shard;
use crate::shard::credit::Pool;
use crate::sync::Arc;
use crate::wheel::{Geometry, InvalidGeometry};

/// Sets up an [`Engine`], a [`TaskEngine`](crate::TaskEngine), or
/// [`Timers`](crate::time::Timers); from the `builder` of each.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::Engine;
///
/// let engine = Engine::<String>::builder()
///     .tick(Duration::from_millis(1))
///     .wheel_size(64)
///     .queues(2)
///     .max_timers(1_000_000)
///     .start()?;
/// # drop(engine);
/// # Ok::<(), tickwheel::StartError>(())
/// ```
#[must_use = "a builder does nothing until `start` is called"]
pub struct Builder<E> {
    name: StdArc<str>,
    tick: Duration,
    wheel_size: usize,
    max_levels: Option<usize>,
    queues: usize,
    max_timers: Option<usize>,
    shards: Option<usize>,
    clock: ClockSource,
    portable_ticker: bool,
    measure_work: bool,
    pub(crate) workers: usize,
    engine: PhantomData<fn() -> E>,
}

/// What a [`Builder`] starts: an [`Engine`], a [`TaskEngine`](crate::TaskEngine), or
/// [`Timers`](crate::time::Timers). This trait is sealed.
pub trait Family: Sealed {}

/// Keeps other crates from implementing [`Family`].
pub trait Sealed: Sized {
    type Payload;

    /// What consumes the payloads of due plain timers, if it isn't workers.
    const SINK: Option<Sink<Self::Payload>> = None;

    /// How a [`Driver`] serves due timers.
    const PROCESS: ProcessFn<Self::Payload> = Driver::serve_once;

    fn of(engine: Engine<Self::Payload>) -> Self;

    /// Starts the engine's own workers, if it has any.
    fn start_workers(&self, _count: usize) -> Result<(), StartError> {
        Ok(())
    }
}

impl<T> Family for Engine<T> {}

impl<T> Sealed for Engine<T> {
    type Payload = T;

    fn of(engine: Engine<T>) -> Engine<T> {
        engine
    }
}

impl<T> Engine<T> {
    /// Returns a builder with the default settings.
    pub fn builder() -> Builder<Engine<T>> {
        Builder::new()
    }
}

impl<T> Builder<Engine<T>> {
    /// Sets the number of worker queues. Defaults to one. Queues times shards must not exceed
    /// 2<sup>20</sup>.
    pub fn queues(mut self, queues: usize) -> Builder<Engine<T>> {
        self.queues = queues;
        self
    }
}

impl<E: Family> Builder<E> {
    pub(crate) fn new() -> Builder<E> {
        Builder {
            name: "tickwheel".into(),
            tick: Duration::from_millis(1),
            wheel_size: 64,
            max_levels: None,
            queues: 1,
            max_timers: None,
            shards: None,
            clock: ClockSource::Monotonic,
            portable_ticker: false,
            measure_work: false,
            workers: 1,
            engine: PhantomData,
        }
    }

    /// Sets the engine's name. Defaults to `tickwheel`. Must not be empty and must not
    /// contain a NUL character.
    ///
    /// The name distinguishes the engines of a process in its events, in its published
    /// metrics, in `Debug` output, and in the names of its threads: `NAME-tick` for the
    /// ticker, `NAME-w0` and so on for the workers of a
    /// [`TaskEngine`](crate::TaskEngine). Linux keeps 15 bytes of a thread's name, so
    /// at most nine bytes of the engine's name are part of it. Names need not be unique:
    /// engines with the same name have the same label in published metrics.
    ///
    /// ```
    /// use tickwheel::Engine;
    ///
    /// let engine = Engine::<()>::builder().name("leases").start()?;
    /// assert_eq!(engine.name(), "leases");
    /// # Ok::<(), tickwheel::StartError>(())
    /// ```
    pub fn name(mut self, name: impl Into<StdArc<str>>) -> Builder<E> {
        self.name = name.into();
        self
    }

    /// Sets the duration of a tick. Delays are rounded up to ticks.
    /// Defaults to one millisecond.
    pub fn tick(mut self, tick: Duration) -> Builder<E> {
        self.tick = tick;
        self
    }

    /// Sets the number of slots per level, 2 to 65,536. Defaults to 64, which is
    /// the fastest.
    pub fn wheel_size(mut self, size: usize) -> Builder<E> {
        self.wheel_size = size;
        self
    }

    /// Limits the number of levels; see [`Geometry::max_levels`]. Defaults to no
    /// limit, which is the fastest.
    pub fn max_levels(mut self, levels: usize) -> Builder<E> {
        self.max_levels = Some(levels);
        self
    }

    /// Limits the number of timers that are live at a time, including those
    /// whose report is unread. Defaults to no limit. An engine with a limit
    /// of zero does not start, nor do [`Timers`](crate::time::Timers) with any limit, because
    /// a wait cannot be refused.
    ///
    /// The limit is never exceeded. A timer may be refused up to a sixteenth below it,
    /// because shards borrow their shares in batches.
    pub fn max_timers(mut self, max: usize) -> Builder<E> {
        self.max_timers = Some(max);
        self
    }

    /// Sets the number of shards, up to 1,024, rounded up to a power of two.
    /// Defaults to twice the number of processors, but to no fewer than 4 and no more than
    /// 64. Each thread schedules into one shard, except timers with a name, whose shard
    /// depends on the name. With a single shard, all timers are totally ordered: one thread
    /// that repeats the same calls at the same times gets the same order in every run.
    pub fn shards(mut self, shards: usize) -> Builder<E> {
        self.shards = Some(shards);
        self
    }

    /// Sets the system clock that the engine follows. Defaults to
    /// [`ClockSource::Monotonic`].
    pub fn clock(mut self, clock: ClockSource) -> Builder<E> {
        self.clock = clock;
        self
    }

    /// Makes the ticker sleep on a condition variable even where the system has a better
    /// timer: timerfd on Linux and Android, a waitable timer on Windows. This is less
    /// precise, but runs the same code everywhere. An engine's `Debug` output names the
    /// device that its ticker sleeps on.
    pub fn portable_ticker(mut self) -> Builder<E> {
        self.portable_ticker = true;
        self
    }

    /// Records how late workers take firings, and how long they hold them, in
    /// [`Snapshot::lateness_at_start`](crate::stats::Snapshot::lateness_at_start) and
    /// [`Snapshot::durations`](crate::stats::Snapshot::durations). Each take then reads the
    /// clock. Defaults to `false`, and to `true` in a
    /// [`TaskEngine`](crate::TaskEngine).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Engine, Timer};
    ///
    /// let builder = Engine::builder().measure_work(true);
    /// let (engine, clock) = builder.start_virtual()?;
    /// let second = Duration::from_secs(1);
    /// engine.schedule(Timer::after(second, "due"))?;
    /// clock.advance(second);
    /// clock.advance(second); // no worker comes
    /// drop(engine.queue(0).recv()?);
    /// let seen = engine.snapshot();
    /// assert!(seen.lateness.quantile(1.0).unwrap() < second);
    /// assert!(seen.lateness_at_start.quantile(1.0).unwrap() >= second);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn measure_work(mut self, measure: bool) -> Builder<E> {
        self.measure_work = measure;
        self
    }

    /// Starts the engine and its ticker thread.
    ///
    /// # Errors
    /// Returns [`StartError`] if a setting is out of range, or if the system
    /// has no descriptor or thread left. Settings are checked before anything
    /// is allocated; a setting that is refused leaves nothing behind.
    ///
    /// ```
    /// use tickwheel::{Engine, StartError};
    ///
    /// let builder = Engine::<()>::builder().max_timers(0);
    /// let error = builder.start().unwrap_err();
    /// assert!(matches!(error, StartError::Setting("max_timers", _)));
    /// assert!(error.to_string().contains("leave it out"));
    /// ```
    pub fn start(self) -> Result<E, StartError>
    where
        E::Payload: Send + 'static,
    {
        self.observe(|this, shape| {
            check_workers(this.workers)?;
            let clock = Clock::system(this.clock);
            let device = Device::system(&clock, this.portable_ticker).map_err(StartError::Alarm)?;
            let core = Arc::new(this.build(shape, clock, device));
            spawn_ticker(Arc::clone(&core)).map_err(StartError::Thread)?;
            this.staffed(core)
        })
    }

    /// Starts the engine without threads. The caller's own event or frame loop drives it
    /// through the [`Driver`], and runs its tasks or calls its wakers in there.
    ///
    /// Tasks must be `Send` even here. A loop whose timers concern its own data does
    /// without locks if it stores keys in an [`Engine`] and takes them after
    /// [`Driver::process_due`].
    ///
    /// # Errors
    /// Returns [`StartError`] if a setting is out of range, or if the system has
    /// no descriptor left.
    pub fn start_driven(self) -> Result<(E, Driver<E::Payload>), StartError> {
        self.observe(|this, shape| {
            let clock = Clock::system(this.clock);
            let device = Device::for_caller(&clock).map_err(StartError::Alarm)?;
            Ok(this.driven(shape, clock, device))
        })
    }

    /// Starts the engine on a clock that only the caller moves, without a ticker
    /// thread. The clock stands at [`Time::START`](crate::Time::START).
    ///
    /// # Errors
    /// Returns [`StartError`] if a setting is out of range.
    pub fn start_virtual(self) -> Result<(E, VirtualClock), StartError>
    where
        E::Payload: Send + 'static,
    {
        let clock = VirtualClock::new();
        Ok((self.start_on(&clock)?, clock))
    }

    /// Starts the engine on a given clock that only the caller moves, without a ticker
    /// thread; see [Several engines](VirtualClock#several-engines).
    ///
    /// # Errors
    /// Returns [`StartError`] if a setting is out of range.
    ///
    /// ```
    /// use tickwheel::{Engine, Time, VirtualClock};
    ///
    /// let clock = VirtualClock::starting_at(Time::from_secs(86_400));
    /// let engine = Engine::<()>::builder().start_on(&clock)?;
    /// assert_eq!(engine.now(), Time::from_secs(86_400));
    /// # Ok::<(), tickwheel::StartError>(())
    /// ```
    pub fn start_on(self, clock: &VirtualClock) -> Result<E, StartError>
    where
        E::Payload: Send + 'static,
    {
        self.observe(|this, shape| {
            check_workers(this.workers)?;
            let core = this.build(shape, clock.clock().clone(), Device::Nobody);
            let (shared, engine) = this.staffed(Arc::new(core))?;
            clock.attach(shared.core());
            Ok((shared, engine))
        })
    }

    /// Starts the engine with a ticker thread and its workers, in a model of a program.
    /// Time passes only in [`VirtualClock::pass_to`].
    ///
    /// Exists only with `--cfg loom` or `--cfg shuttle`; `docs/MODELS.md` says how to
    /// write a model. The ticker and each worker are threads of the model, of which loom
    /// allows five. [`start_virtual`](Builder::start_virtual) saves the ticker's, and
    /// suffices unless the sleep of the ticker is the subject.
    ///
    /// # Errors
    /// Returns [`StartError`] if a setting is out of range.
    #[cfg(any(loom, shuttle))]
    pub fn start_model(self) -> Result<(E, VirtualClock), StartError>
    where
        E::Payload: Send + 'static,
    {
        let (shape, clock) = (self.shape()?, VirtualClock::new());
        let device = Device::system(clock.clock(), true).map_err(StartError::Alarm)?;
        let core = Arc::new(self.build(shape, clock.clock().clone(), device));
        spawn_ticker(Arc::clone(&core)).map_err(StartError::Thread)?;
        let (shared, engine) = self.staffed(core)?;
        clock.attach(shared.core());
        Ok((engine, clock))
    }

    /// Starts the engine without threads, in a model of a program with a loop of
    /// its own. Time passes only in [`VirtualClock::pass_to`], and the loop sleeps in
    /// [`Driver::wait`].
    ///
    /// Exists only with `--cfg loom` or `--cfg shuttle`; `docs/MODELS.md` says how to
    /// write a model.
    ///
    /// # Errors
    /// Returns [`StartError`] if a setting is out of range.
    #[cfg(any(loom, shuttle, test))]
    pub fn start_driven_model(
        self,
        clock: &VirtualClock,
    ) -> Result<(E, Driver<E::Payload>), StartError>
    where
        E::Payload: Send + 'static,
    {
        let shape = self.shape()?;
        let device = Device::system(clock.clock(), true).map_err(StartError::Alarm)?;
        let (shared, driven) = self.driven(shape, clock.clock().clone(), device);
        clock.attach(shared.core());
        Ok(driven)
    }

    /// Starts an engine's workers. Returns its core and the handle.
    fn staffed(&self, core: Arc<Core<E::Payload>>) -> Result<Begun<E, E>, StartError> {
        let shared = SharedCore::new(core);
        let engine = E::of(Engine::new(Arc::clone(&shared)));
        engine.start_workers(self.workers)?;
        Ok((shared, engine))
    }

    /// Returns the core, the handle and the driver of an engine without threads.
    fn driven(
        &self,
        shape: Shape,
        clock: Clock,
        device: Device,
    ) -> Begun<E, (E, Driver<E::Payload>)> {
        let mut core = self.build(shape, clock, device);
        core.is_driven = true;
        core.shards.iter().for_each(|cell| cell.lock().is_driven = true);
        let shared = SharedCore::new(Arc::new(core));
        let driver = Driver::new(Arc::clone(&shared), E::PROCESS);
        let engine = E::of(Engine::new(Arc::clone(&shared)));
        (shared, (engine, driver))
    }

    /// Starts, and reports the result to the operator.
    fn observe<S>(
        self,
        start: impl FnOnce(&Builder<E>, Shape) -> Result<Begun<E, S>, StartError>,
    ) -> Result<S, StartError> {
        let started = self.shape().and_then(|shape| start(&self, shape));
        match &started {
            Ok((core, _)) => {
                let (shards, queues) = (core.shard_count(), core.queues());
                let (subject, clock) = (core.subject(), core.clock.name());
                observe::started(subject, self.tick, self.wheel_size, shards, queues, clock);
            }
            Err(error) => observe::start_refused(&self.name, error),
        }
        started.map(|(_, started)| started)
    }

    /// Checks the settings before anything is allocated and before any of
    /// the process's wheel numbers is reserved.
    fn shape(&self) -> Result<Shape, StartError> {
        if self.name.is_empty() || self.name.contains('\0') {
            return Err(StartError::NAME);
        }
        let tick = TickLength::new(self.tick).ok_or(StartError::TICK)?;
        let mut geometry = Geometry::new(self.wheel_size)?;
        if let Some(levels) = self.max_levels {
            geometry = geometry.max_levels(levels)?;
        }
        if self.max_timers == Some(0) || self.max_timers.is_some() && E::SINK.is_some() {
            return Err(StartError::MAX_TIMERS);
        }
        let shards = self.shard_count()?;
        // A product that overflows is above the limit.
        let lists = self.queues.saturating_add(1).saturating_mul(shards);
        if self.queues == 0 || lists > MOST_LISTS {
            return Err(StartError::QUEUES);
        }
        Ok(Shape { tick, geometry, shards })
    }

    fn shard_count(&self) -> Result<usize, StartError> {
        match self.shards {
            Some(shards @ 1..=MOST_SHARDS) => Ok(shards.next_power_of_two()),
            Some(_) => Err(StartError::SHARDS),
            // So many that threads seldom share one, but few enough to visit them all fast.
            None => {
                let processors = std::thread::available_parallelism().map_or(2, usize::from);
                Ok((2 * processors).next_power_of_two().clamp(4, 64))
            }
        }
    }

    fn build(&self, shape: Shape, clock: Clock, device: Device) -> Core<E::Payload> {
        let (tick, shards) = (shape.tick, shape.shards);
        let first = WheelNumber::reserve(shards);
        let mut credit = Pool::share(self.max_timers, shards);
        let now = tick.tick_at(clock.now());
        let new_shard = |n| {
            let (number, geometry) = (first.nth(n), shape.geometry.clone());
            Shard::new(number, now, geometry, self.queues, credit(), tick)
        };
        let all = (0..shards).map(new_shard).collect();
        let alarm = Alarm::new(device, clock.clone(), tick);
        let name = self.name.clone();
        let mut core = Core::new(name, all, first, clock, tick, alarm, self.queues);
        core.max_timers = self.max_timers;
        core.measures_work = self.measure_work;
        core.sink = E::SINK;
        core
    }
}

/// Checks a number of workers.
pub(crate) fn check_workers(workers: usize) -> Result<(), StartError> {
    match workers {
        1..=MOST_WORKERS => Ok(()),
        _ => Err(StartError::WORKERS),
    }
}

/// The core of an engine that has started, and what the caller gets.
type Begun<E, S> = (Arc<SharedCore<<E as Sealed>::Payload>>, S);

/// Settings that are in range.
struct Shape {
    tick: TickLength,
    geometry: Geometry,
    /// A power of two.
    shards: usize,
}

debug!(it: [E] Builder<E> => "Builder" {
    name: it.name, tick: it.tick, wheel_size: it.wheel_size, queues: it.queues,
    max_timers: it.max_timers
});

/// The maximum number of shards, each of which may have many levels.
const MOST_SHARDS: usize = 1_024;

/// The maximum number of ready lists: each shard has one for each queue,
/// and one for the reports.
const MOST_LISTS: usize = 1 << 20;

/// The maximum number of worker threads of a task engine.
const MOST_WORKERS: usize = 4_096;

/// The reason why an engine, or one of its workers, was not started.
///
/// ```
/// use tickwheel::{Engine, StartError};
///
/// let error = Engine::<()>::builder().queues(0).start().unwrap_err();
/// assert!(matches!(error, StartError::Setting("queues", _)));
/// assert!(error.to_string().starts_with("`queues`: an engine has at least one"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A setting is out of range: the builder's method that makes it, and what to do.
    Setting(&'static str, &'static str),
    /// A wheel size or number of levels that is out of range.
    Geometry(InvalidGeometry),
    /// A number of workers for an engine that was shut down.
    ShutDown,
    /// A number of workers for an engine whose tasks run in the caller's loop.
    Driven,
    /// The system has no timer descriptor left.
    Alarm(io::Error),
    /// The system has no thread left.
    Thread(io::Error),
}

/// What is wrong with each setting, in the words of its limits above.
impl StartError {
    const NAME: StartError =
        StartError::Setting("name", "an engine's name must have characters, and no NUL among them");
    const TICK: StartError = StartError::Setting("tick", "a tick must be longer than zero");
    const MAX_TIMERS: StartError = StartError::Setting(
        "max_timers",
        "zero would refuse all timers, and `Timers` refuses none: raise it, or with `Timers` leave \
         it out",
    );
    const SHARDS: StartError = StartError::Setting(
        "shards",
        "an engine has at least one shard, and 1024 shards at most: ask for as many as threads \
         schedule at a time",
    );
    const QUEUES: StartError = StartError::Setting(
        "queues",
        "an engine has at least one queue, and queues and reports times shards may come to \
         1048576: ask for fewer of either",
    );
    const WORKERS: StartError = StartError::Setting(
        "workers",
        "a task engine has at least one worker, and 4096 workers at most: ask for as many as \
         tasks run at a time",
    );
}

impl From<InvalidGeometry> for StartError {
    fn from(error: InvalidGeometry) -> StartError {
        StartError::Geometry(error)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Setting(name, advice) => write!(f, "`{name}`: {advice}"),
            StartError::Geometry(error) => fmt::Display::fmt(error, f),
            StartError::ShutDown => f.write_str("the engine was shut down: start another one"),
            StartError::Driven => f.write_str(
                "the caller's loop runs the tasks of this engine: call `process_due` in more threads",
            ),
            StartError::Alarm(_) => f.write_str(
                "the system gave no timer descriptor: close others or raise their limit",
            ),
            StartError::Thread(_) => {
                f.write_str("the system gave no thread: end others or raise their limit")
            }
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Alarm(error) | StartError::Thread(error) => Some(error),
            _ => None,
        }
    }
}
