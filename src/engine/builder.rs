//! Starting an engine.

use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use std::io;

use crate::clock::{Alarm, Clock, ClockSource, Device};
use crate::drive::{self, Driver, VirtualClock};
use crate::engine::Engine;
use crate::id::WheelNumber;
use crate::observe;
use crate::shard::Shard;
use crate::shard::credit::Pool;
use crate::shared::Doorbell;
use crate::shared::{Core, SharedCore};
use crate::sync::Arc;
use crate::time::{TickLength, Time};
use crate::wheel::{Geometry, InvalidGeometry};

/// Shards, each of which may be a whole wheel of many levels.
const MOST_SHARDS: usize = 1_024;

/// Ready lists: one for each queue, and one for the reports, in each shard.
const MOST_LISTS: usize = 1 << 20;

/// Firings that all queues together may hand out at a time: there is a permit
/// for each.
const MOST_PERMITS: usize = 1 << 22;

/// Worker threads of a task engine.
pub(crate) const MOST_WORKERS: usize = 4_096;

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
    tick: Duration,
    wheel_size: usize,
    max_levels: Option<usize>,
    queues: usize,
    queue_bound: Option<usize>,
    max_timers: Option<usize>,
    shards: Option<usize>,
    clock: ClockSource,
    portable_ticker: bool,
    start: Time,
    payload: PhantomData<fn(T)>,
}

impl<T> Engine<T> {
    /// Begins to set up an engine.
    pub fn builder() -> Builder<T> {
        Builder::new()
    }
}

impl<T> Builder<T> {
    pub(crate) fn new() -> Builder<T> {
        Builder {
            tick: Duration::from_millis(1),
            wheel_size: 64,
            max_levels: None,
            queues: 1,
            queue_bound: None,
            max_timers: None,
            shards: None,
            clock: ClockSource::Monotonic,
            portable_ticker: false,
            start: Time::START,
            payload: PhantomData,
        }
    }

    /// The duration of a tick: one millisecond unless told otherwise. Delays
    /// are rounded up to it.
    pub fn tick(mut self, tick: Duration) -> Builder<T> {
        self.tick = tick;
        self
    }

    /// Slots per level, 2 to 65,536: 64 unless told otherwise, which is the
    /// fastest.
    pub fn wheel_size(mut self, size: usize) -> Builder<T> {
        self.wheel_size = size;
        self
    }

    /// At most so many levels; see [`Geometry::max_levels`].
    pub fn max_levels(mut self, levels: usize) -> Builder<T> {
        self.max_levels = Some(levels);
        self
    }

    /// Sets how many worker queues there are. Defaults to one. Queues times
    /// shards may come to a million.
    pub fn queues(mut self, queues: usize) -> Builder<T> {
        self.queues = queues;
        self
    }

    /// Hands at most `bound` firings of a queue to its workers at a time: the
    /// next one is handed out when an [`Expired`](crate::Expired) has been
    /// dropped, or its payload taken out of it. The rest waits in the engine,
    /// live and cancellable. A worker that collects more than `bound` of them
    /// without dropping any waits for ever.
    ///
    /// The bound of all queues together may come to four million. Without one,
    /// any number of firings is handed out.
    pub fn queue_bound(mut self, bound: usize) -> Builder<T> {
        self.queue_bound = Some(bound);
        self
    }

    /// At most so many timers are live at a time, counting those whose closed
    /// report has not been read. The bound is never exceeded; because shards
    /// borrow their share of it in batches, a timer may be refused a little
    /// before it is reached. Zero is refused at the start, because such an
    /// engine would refuse every timer.
    pub fn max_timers(mut self, max: usize) -> Builder<T> {
        self.max_timers = Some(max);
        self
    }

    /// Sets how many shards the engine has, up to 1,024, rounded up to a power
    /// of two. Defaults to twice the processors. Each thread files into one of
    /// them; with one shard the order of all timers is total.
    pub fn shards(mut self, shards: usize) -> Builder<T> {
        self.shards = Some(shards);
        self
    }

    /// Which of the system's clocks the engine follows.
    pub fn clock(mut self, clock: ClockSource) -> Builder<T> {
        self.clock = clock;
        self
    }

    /// Lets the ticker sleep on a condition variable even where there is a
    /// timerfd: less precise, and the same code everywhere. What an engine's
    /// ticker sleeps on is in its `Debug` output.
    pub fn portable_ticker(mut self) -> Builder<T> {
        self.portable_ticker = true;
        self
    }

    /// What a virtual clock says at the start; [`Time::START`] unless told
    /// otherwise. Other clocks ignore it.
    pub fn start_at(mut self, start: Time) -> Builder<T> {
        self.start = start;
        self
    }

    /// Starts the engine and its ticker thread.
    ///
    /// # Errors
    /// If a setting is out of range, or the system has no descriptor or no
    /// thread to give. Settings are looked at before anything is allocated: a
    /// refused start leaves nothing behind.
    ///
    /// ```
    /// use tickwheel::{Engine, StartError};
    ///
    /// let builder = Engine::<()>::builder().queue_bound(usize::MAX);
    /// let error = builder.start().unwrap_err();
    /// assert!(matches!(error, StartError::QueueBoundTooHigh));
    /// assert!(error.to_string().contains("leave it out"));
    /// ```
    pub fn start(self) -> Result<Engine<T>, StartError>
    where
        T: Send + 'static,
    {
        Ok(Engine::new(self.told(self.with_ticker())?))
    }

    /// Starts the engine without a ticker thread: the caller's own event loop,
    /// or frame loop, drives it through the [`Driver`].
    ///
    /// # Errors
    /// If a setting is out of range, or the system has no descriptor to give.
    pub fn start_driven(self) -> Result<(Engine<T>, Driver<T>), StartError> {
        let shared = self.told(self.without_thread())?;
        let driver = Driver::new(Arc::clone(&shared));
        Ok((Engine::new(shared), driver))
    }

    /// Starts the engine on a clock that stands still until it is told to
    /// move, without a ticker thread.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn start_virtual(self) -> Result<(Engine<T>, VirtualClock<T>), StartError> {
        let shared = self.told(self.on_virtual_clock())?;
        let clock = VirtualClock::new(Arc::clone(&shared));
        Ok((Engine::new(shared), clock))
    }

    /// For models: a ticker thread that sleeps until a virtual clock is moved.
    #[cfg(any(loom, shuttle))]
    #[doc(hidden)]
    pub fn start_model(self) -> Result<(Engine<T>, VirtualClock<T>), StartError>
    where
        T: Send + 'static,
    {
        let (engine, clock) = self.start_driven_model()?;
        drive::spawn(Arc::clone(&engine.core)).map_err(StartError::Thread)?;
        Ok((engine, clock))
    }

    /// For models: the same without a thread; the caller's loop sleeps in
    /// [`Driver::wait`].
    #[cfg(any(loom, shuttle))]
    #[doc(hidden)]
    pub fn start_driven_model(self) -> Result<(Engine<T>, VirtualClock<T>), StartError> {
        let shape = self.shape()?;
        let clock = Clock::virtual_at(self.start);
        let device = Device::system(&clock, true).map_err(StartError::Alarm)?;
        let core = Arc::new(self.build(shape, clock, device).driven());
        let shared = SharedCore::new(core);
        let clock = VirtualClock::new(Arc::clone(&shared));
        Ok((Engine::new(shared), clock))
    }

    fn with_ticker(&self) -> Result<Arc<Core<T>>, StartError>
    where
        T: Send + 'static,
    {
        let shape = self.shape()?;
        let clock = Clock::system(self.clock);
        let device = Device::system(&clock, self.portable_ticker).map_err(StartError::Alarm)?;
        let core = Arc::new(self.build(shape, clock, device));
        drive::spawn(Arc::clone(&core)).map_err(StartError::Thread)?;
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

    /// Tells the operator how a start went, and hands it on.
    fn told(
        &self,
        started: Result<Arc<Core<T>>, StartError>,
    ) -> Result<Arc<SharedCore<T>>, StartError> {
        match &started {
            Ok(core) => observe::started(&self.observed(core)),
            Err(error) => observe::start_refused(error),
        }
        started.map(SharedCore::new)
    }

    fn observed(&self, core: &Core<T>) -> observe::Started {
        observe::Started {
            number: core.first,
            tick: self.tick,
            wheel_size: self.wheel_size,
            shards: core.shard_count(),
            queues: core.queues(),
            clock: core.clock.name(),
        }
    }

    /// What the engine is to be made of. Nothing has been allocated, and no
    /// number of the process's has been used up, when a setting is refused.
    fn shape(&self) -> Result<Shape, StartError> {
        let tick = TickLength::new(self.tick).ok_or(StartError::ZeroTick)?;
        let mut geometry = Geometry::new(self.wheel_size)?;
        if let Some(levels) = self.max_levels {
            geometry = geometry.max_levels(levels)?;
        }
        if self.max_timers == Some(0) {
            return Err(StartError::ZeroMaxTimers);
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
            Some(0) => Err(StartError::NoShards),
            Some(shards) if shards > MOST_SHARDS => Err(StartError::TooManyShards),
            Some(shards) => Ok(shards.next_power_of_two()),
            None => Ok(default_shards()),
        }
    }

    fn check_queues(&self, shards: usize) -> Result<(), StartError> {
        // What overflows is too much.
        let lists = self.queues.saturating_add(1).saturating_mul(shards);
        let permits = self.queues.saturating_mul(self.queue_bound.unwrap_or(0));
        if self.queues == 0 {
            Err(StartError::NoQueues)
        } else if lists > MOST_LISTS {
            Err(StartError::TooManyQueues)
        } else if self.queue_bound == Some(0) {
            Err(StartError::ZeroQueueBound)
        } else if permits > MOST_PERMITS {
            Err(StartError::QueueBoundTooHigh)
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
        let mut doorbells: Vec<Doorbell> = (0..self.queues)
            .map(|_| Doorbell::new(shards, self.queue_bound))
            .collect();
        doorbells.push(Doorbell::new(shards, None));
        Core::new(all, first, clock, tick, alarm, doorbells)
    }
}

/// Settings that were found to be in range.
struct Shape {
    tick: TickLength,
    geometry: Geometry,
    /// A power of two.
    shards: usize,
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("tick", &self.tick)
            .field("wheel_size", &self.wheel_size)
            .field("queues", &self.queues)
            .field("max_timers", &self.max_timers)
            .finish_non_exhaustive()
    }
}

/// Enough that threads seldom share one, few enough to be looked over fast.
fn default_shards() -> usize {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    (2 * processors).next_power_of_two().clamp(4, 64)
}

/// Why an engine was not started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A tick of zero.
    ZeroTick,
    /// A wheel size or number of levels that is out of range.
    Geometry(InvalidGeometry),
    /// An engine without a queue.
    NoQueues,
    /// More queues than [`Builder::queues`] allows.
    TooManyQueues,
    /// A queue that hands out nothing.
    ZeroQueueBound,
    /// A queue bound above what [`Builder::queue_bound`] allows.
    QueueBoundTooHigh,
    /// An engine that accepts no timer.
    ZeroMaxTimers,
    /// An engine without a shard.
    NoShards,
    /// More shards than [`Builder::shards`] allows.
    TooManyShards,
    /// A task engine without a worker.
    NoWorkers,
    /// More workers than [`TaskBuilder::workers`](crate::TaskBuilder::workers)
    /// allows.
    TooManyWorkers,
    /// The system gave no timer descriptor.
    Alarm(io::Error),
    /// The system gave no thread.
    Thread(io::Error),
}

impl From<InvalidGeometry> for StartError {
    fn from(error: InvalidGeometry) -> StartError {
        StartError::Geometry(error)
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::ZeroTick => f.write_str("a tick must be longer than zero"),
            StartError::Geometry(error) => fmt::Display::fmt(error, f),
            StartError::NoQueues => f.write_str("an engine needs at least one queue"),
            StartError::TooManyQueues => write!(
                f,
                "queues and reports times shards may come to {MOST_LISTS}: ask for fewer of either"
            ),
            StartError::ZeroQueueBound => f.write_str(
                "a queue bound of zero would hand out nothing: raise it or leave it out",
            ),
            StartError::QueueBoundTooHigh => write!(
                f,
                "queues times their bound may come to {MOST_PERMITS}: lower it, or leave it out \
                 to hand out any number"
            ),
            StartError::ZeroMaxTimers => f.write_str(
                "an engine bounded to zero timers would refuse all: raise `max_timers` or leave it out",
            ),
            StartError::NoShards => f.write_str("an engine needs at least one shard"),
            StartError::TooManyShards => write!(
                f,
                "an engine has {MOST_SHARDS} shards at most: ask for as many as threads schedule at a time"
            ),
            StartError::NoWorkers => f.write_str("a task engine needs at least one worker"),
            StartError::TooManyWorkers => write!(
                f,
                "a task engine has {MOST_WORKERS} workers at most: ask for as many as tasks run at a time"
            ),
            StartError::Alarm(error) => write!(f, "no timer descriptor for the ticker: {error}"),
            StartError::Thread(error) => write!(f, "no thread for the engine: {error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Geometry(error) => Some(error),
            StartError::Alarm(error) | StartError::Thread(error) => Some(error),
            _ => None,
        }
    }
}
