//! The settings of an engine, their checks, and its start.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use std::io;
// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc as StdArc;

use crate::clock::{Alarm, Clock, ClockSource, Device};
use crate::drive::{self, Driver, VirtualClock};
use crate::engine::Engine;
use crate::engine::start_error::{MOST_LISTS, MOST_SHARDS, StartError};
use crate::engine_name::EngineName;
use crate::hub::{Core, Doorbell, SharedCore};
use crate::id::WheelNumber;
use crate::observe;
use crate::rounding::TickLength;
use crate::shard::Shard;
use crate::shard::credit::Pool;
use crate::sync::Arc;
use crate::timeline::Time;
use crate::wheel::Geometry;

/// Sets up an [`Engine`]; from [`Engine::builder`].
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
pub struct Builder<T> {
    name: EngineName,
    tick: Duration,
    wheel_size: usize,
    max_levels: Option<usize>,
    queues: usize,
    max_timers: Option<usize>,
    shards: Option<usize>,
    clock: ClockSource,
    portable_ticker: bool,
    measure_work: bool,
    start: Time,
    payload: PhantomData<fn(T)>,
}

impl<T> Engine<T> {
    /// Returns a builder with the default settings.
    pub fn builder() -> Builder<T> {
        Builder {
            name: EngineName::default(),
            tick: Duration::from_millis(1),
            wheel_size: 64,
            max_levels: None,
            queues: 1,
            max_timers: None,
            shards: None,
            clock: ClockSource::Monotonic,
            portable_ticker: false,
            measure_work: false,
            start: Time::START,
            payload: PhantomData,
        }
    }
}

impl<T> Builder<T> {
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
    pub fn name(mut self, name: impl Into<StdArc<str>>) -> Builder<T> {
        self.name = EngineName::new(name.into());
        self
    }

    pub(crate) fn engine_name(&self) -> &EngineName {
        &self.name
    }

    /// Sets the duration of a tick. Delays are rounded up to ticks.
    /// Defaults to one millisecond.
    pub fn tick(mut self, tick: Duration) -> Builder<T> {
        self.tick = tick;
        self
    }

    /// Sets the number of slots per level, 2 to 65,536. Defaults to 64, which is
    /// the fastest.
    pub fn wheel_size(mut self, size: usize) -> Builder<T> {
        self.wheel_size = size;
        self
    }

    /// Limits the number of levels; see [`Geometry::max_levels`]. Defaults to no
    /// limit.
    pub fn max_levels(mut self, levels: usize) -> Builder<T> {
        self.max_levels = Some(levels);
        self
    }

    /// Sets the number of worker queues. Defaults to one. The product of
    /// the numbers of queues and shards may reach a million.
    pub fn queues(mut self, queues: usize) -> Builder<T> {
        self.queues = queues;
        self
    }

    /// Limits the number of timers that are live at a time, including those
    /// whose report is unread. Defaults to no limit. An engine with a limit
    /// of zero does not start.
    ///
    /// The limit is never exceeded. A timer may be refused a little below it,
    /// because shards borrow their shares in batches.
    pub fn max_timers(mut self, max: usize) -> Builder<T> {
        self.max_timers = Some(max);
        self
    }

    /// Sets the number of shards, up to 1,024, rounded up to a power of two.
    /// Defaults to twice the number of processors. Each thread schedules
    /// into one shard; with a single shard, all timers are totally ordered. One
    /// thread that repeats the same calls at the same times then gets the same
    /// order in every run.
    pub fn shards(mut self, shards: usize) -> Builder<T> {
        self.shards = Some(shards);
        self
    }

    /// Sets the system clock that the engine follows. Defaults to
    /// [`ClockSource::Monotonic`].
    pub fn clock(mut self, clock: ClockSource) -> Builder<T> {
        self.clock = clock;
        self
    }

    /// Makes the ticker sleep on a condition variable even where the system has a better
    /// timer: timerfd on Linux and Android, a waitable timer on Windows. This is less
    /// precise, but runs the same code everywhere. An engine's `Debug` output names the
    /// device that its ticker sleeps on.
    pub fn portable_ticker(mut self) -> Builder<T> {
        self.portable_ticker = true;
        self
    }

    /// Records how late workers take firings, and how long they hold them, in
    /// [`Snapshot::lateness_at_start`](crate::Snapshot::lateness_at_start) and
    /// [`Snapshot::durations`](crate::Snapshot::durations). Each take then reads the
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
    pub fn measure_work(mut self, measure: bool) -> Builder<T> {
        self.measure_work = measure;
        self
    }

    /// Sets the time at which a virtual clock starts. Defaults to
    /// [`Time::START`]. Other clocks ignore it.
    pub fn start_at(mut self, start: Time) -> Builder<T> {
        self.start = start;
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
    pub fn start(self) -> Result<Engine<T>, StartError>
    where
        T: Send + 'static,
    {
        Ok(Engine::new(self.observe(self.with_ticker(drive::spawn))?))
    }

    /// Starts the engine and a ticker thread that takes the payloads of due plain timers
    /// itself and hands them to `sink`.
    pub(crate) fn start_sink(
        self,
        sink: impl FnMut(&Core<T>, T) + Send + 'static,
    ) -> Result<Engine<T>, StartError>
    where
        T: Send + 'static,
    {
        let core = self.with_ticker(|core| drive::spawn_sink(core, sink));
        Ok(Engine::new(self.observe(core)?))
    }

    /// Starts the engine without a ticker thread. The caller's own event or frame
    /// loop drives it through the [`Driver`].
    ///
    /// # Errors
    /// Returns [`StartError`] if a setting is out of range, or if the system has
    /// no descriptor left.
    pub fn start_driven(self) -> Result<(Engine<T>, Driver<T>), StartError> {
        let shared = self.observe(self.without_thread())?;
        let driver = Driver::new(Arc::clone(&shared));
        Ok((Engine::new(shared), driver))
    }

    /// Starts the engine on a clock that only the caller moves, without a ticker
    /// thread.
    ///
    /// # Errors
    /// Returns [`StartError`] if a setting is out of range.
    pub fn start_virtual(self) -> Result<(Engine<T>, VirtualClock<T>), StartError> {
        let shared = self.observe(self.on_virtual_clock())?;
        let clock = VirtualClock::new(Arc::clone(&shared));
        Ok((Engine::new(shared), clock))
    }

    /// Starts the engine with a ticker thread, in a model of a program. Time passes only
    /// in [`VirtualClock::pass_to`].
    ///
    /// Exists only with `--cfg loom` or `--cfg shuttle`; `docs/MODELS.md` says how to
    /// write a model. The ticker is a thread of the model.
    /// [`start_virtual`](Builder::start_virtual) needs no such thread and suffices unless
    /// the sleep of the ticker is the subject.
    ///
    /// # Errors
    /// Returns [`StartError`] if a setting is out of range.
    #[cfg(any(loom, shuttle))]
    pub fn start_model(self) -> Result<(Engine<T>, VirtualClock<T>), StartError>
    where
        T: Send + 'static,
    {
        let (engine, clock) = self.start_driven_model()?;
        drive::spawn(Arc::clone(&engine.core)).map_err(StartError::Thread)?;
        Ok((engine, clock))
    }

    /// Starts the engine without a ticker thread, in a model of a program with a loop of
    /// its own. Time passes only in [`VirtualClock::pass_to`]. The loop sleeps in
    /// [`Driver::wait`], with the driver that [`VirtualClock::driver`] returns.
    ///
    /// Exists only with `--cfg loom` or `--cfg shuttle`; `docs/MODELS.md` says how to
    /// write a model.
    ///
    /// # Errors
    /// Returns [`StartError`] if a setting is out of range.
    #[cfg(any(loom, shuttle, test))]
    pub fn start_driven_model(self) -> Result<(Engine<T>, VirtualClock<T>), StartError> {
        let shape = self.shape()?;
        let clock = Clock::virtual_at(self.start);
        let device = Device::system(&clock, true).map_err(StartError::Alarm)?;
        let core = Arc::new(self.build(shape, clock, device).driven());
        let shared = SharedCore::new(core);
        let clock = VirtualClock::new(Arc::clone(&shared));
        Ok((Engine::new(shared), clock))
    }

    fn with_ticker(
        &self,
        spawn: impl FnOnce(Arc<Core<T>>) -> io::Result<()>,
    ) -> Result<Arc<Core<T>>, StartError> {
        let shape = self.shape()?;
        let clock = Clock::system(self.clock);
        let device = Device::system(&clock, self.portable_ticker).map_err(StartError::Alarm)?;
        let core = Arc::new(self.build(shape, clock, device));
        spawn(Arc::clone(&core)).map_err(StartError::Thread)?;
        Ok(core)
    }

    fn without_thread(&self) -> Result<Arc<Core<T>>, StartError> {
        let shape = self.shape()?;
        let clock = Clock::system(self.clock);
        let device = Device::for_caller(&clock).map_err(StartError::Alarm)?;
        Ok(Arc::new(self.build(shape, clock, device).driven()))
    }

    fn on_virtual_clock(&self) -> Result<Arc<Core<T>>, StartError> {
        let shape = self.shape()?;
        let clock = Clock::virtual_at(self.start);
        Ok(Arc::new(self.build(shape, clock, Device::Nobody)))
    }

    /// Reports the result of a start to the operator, and returns it.
    fn observe(
        &self,
        started: Result<Arc<Core<T>>, StartError>,
    ) -> Result<Arc<SharedCore<T>>, StartError> {
        match &started {
            Ok(core) => observe::started(&self.observed(core)),
            Err(error) => observe::start_refused(&self.name, error),
        }
        started.map(SharedCore::new)
    }

    fn observed<'a>(&self, core: &'a Core<T>) -> observe::Started<'a> {
        observe::Started {
            subject: core.subject(),
            tick: self.tick,
            wheel_size: self.wheel_size,
            shards: core.shard_count(),
            queues: core.queues(),
            clock: core.clock.name(),
        }
    }

    /// Checks the settings before anything is allocated and before any of
    /// the process's wheel numbers is reserved.
    fn shape(&self) -> Result<Shape, StartError> {
        if !self.name.is_valid() {
            return Err(StartError::NAME);
        }
        let tick = TickLength::new(self.tick).ok_or(StartError::TICK)?;
        let mut geometry = Geometry::new(self.wheel_size)?;
        if let Some(levels) = self.max_levels {
            geometry = geometry.max_levels(levels)?;
        }
        if self.max_timers == Some(0) {
            return Err(StartError::MAX_TIMERS);
        }
        let shards = self.shard_count()?;
        self.check_queues(shards)?;
        Ok(Shape {
            tick,
            geometry,
            shards,
        })
    }

    fn shard_count(&self) -> Result<usize, StartError> {
        match self.shards {
            Some(shards @ 1..=MOST_SHARDS) => Ok(shards.next_power_of_two()),
            Some(_) => Err(StartError::SHARDS),
            None => Ok(default_shards()),
        }
    }

    fn check_queues(&self, shards: usize) -> Result<(), StartError> {
        // A product that overflows is above the limit.
        let lists = self.queues.saturating_add(1).saturating_mul(shards);
        if self.queues == 0 || lists > MOST_LISTS {
            Err(StartError::QUEUES)
        } else {
            Ok(())
        }
    }

    fn build(&self, shape: Shape, clock: Clock, device: Device) -> Core<T> {
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
        let doorbell = || Doorbell::new(shards);
        let mut doorbells: Vec<Doorbell> = (0..self.queues)
            .map(|_| match clock.is_virtual() {
                true => doorbell().threads_first(),
                false => doorbell(),
            })
            .collect();
        doorbells.push(doorbell());
        let name = self.name.clone();
        let core = Core::new(name, all, first, clock, tick, alarm, doorbells);
        core.bounded(self.max_timers)
            .measuring_work(self.measure_work)
    }
}

/// Settings that are in range.
struct Shape {
    tick: TickLength,
    geometry: Geometry,
    /// A power of two.
    shards: usize,
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("tick", &self.tick)
            .field("wheel_size", &self.wheel_size)
            .field("queues", &self.queues)
            .field("max_timers", &self.max_timers)
            .finish_non_exhaustive()
    }
}

/// Returns enough shards that threads seldom share one, but few enough to
/// visit them all fast.
fn default_shards() -> usize {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    (2 * processors).next_power_of_two().clamp(4, 64)
}
