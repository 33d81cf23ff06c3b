//! The closure that an engine stores, its return to the caller, and the firing that it
//! receives. These types name each other.
//!
//! A closure is of a type that the engine does not know, in five words. One of up to four words
//! stands in the task itself, and thus in the entry of its timer. A larger or over-aligned
//! closure has a box. The fifth word points to the functions for the closure's type.

use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;
use std::time::Duration;

use crate::engine::SharedCore;
use crate::id::TimerId;
use crate::shard;
use crate::sync::Arc;
use crate::tick::Tick;
use crate::timeline::{Time, When};
use crate::timer::{CloseReason, Refusal, Timer};

/// A closure that is waiting to be run.
///
/// A cancel, a shutdown or a replacement may return it, and it can be scheduled again. A
/// closure that runs at most once ends its timer with its run, even if that timer repeats.
pub struct Task {
    words: Words,
    methods: &'static Methods,
    /// A closure may not be shared by threads, and may break when it panics.
    _contains: PhantomData<Box<dyn Send>>,
}

/// The number of words for a closure. With the pointer and the links of an entry, they
/// make a cache line.
const WORDS: usize = 4;

/// A closure that stands here, or the pointer to its box.
type Words = MaybeUninit<[usize; WORDS]>;

/// Makes the firing of a run, for the closures that look at it.
type Make<'a> = &'a mut dyn FnMut() -> Firing;

/// The functions for one type of closure.
struct Methods {
    /// # Safety
    /// The words hold a closure of this type. If the call consumes it, they hold none
    /// afterwards.
    run: unsafe fn(&mut Words, Make<'_>),
    /// `None` if there is nothing to drop.
    ///
    /// # Safety
    /// The words hold a closure of this type. They hold none afterwards.
    drop: Option<unsafe fn(&mut Words)>,
    kind: Kind,
    type_id: fn() -> TypeId,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A run leaves the closure as it is.
    Lasting,
    /// A run consumes the closure.
    Consumed,
    /// There is no closure.
    Empty,
}

/// The functions for no closure.
const EMPTY: &Methods =
    &Methods { run: |_, _| (), drop: None, kind: Kind::Empty, type_id: TypeId::of::<()> };

/// The functions for the closures of type `F`.
struct Of<F>(F);

impl<F: Send + 'static> Of<F> {
    const IS_INLINE: bool =
        size_of::<F>() <= size_of::<Words>() && align_of::<F>() <= align_of::<Words>();

    const fn methods(run: unsafe fn(&mut Words, Make<'_>), kind: Kind) -> Methods {
        let is_plain = Self::IS_INLINE && !std::mem::needs_drop::<F>();
        let drop: Option<unsafe fn(&mut Words)> = if is_plain { None } else { Some(Self::drop) };
        Methods { run, drop, kind, type_id: TypeId::of::<F> }
    }

    fn store(closure: F) -> Words {
        let mut words = Words::uninit();
        if Self::IS_INLINE {
            // SAFETY: the closure fits into the words, by size and by alignment.
            unsafe { words.as_mut_ptr().cast::<F>().write(closure) }
        } else {
            let boxed = Box::into_raw(Box::new(closure));
            // SAFETY: a pointer fits into the words.
            unsafe { words.as_mut_ptr().cast::<*mut F>().write(boxed) }
        }
        words
    }

    /// # Safety
    /// The words hold a closure of this type.
    unsafe fn place(words: &mut Words) -> *mut F {
        if Self::IS_INLINE {
            return words.as_mut_ptr().cast();
        }
        // SAFETY: `store` wrote the pointer of a box.
        unsafe { *words.as_mut_ptr().cast::<*mut F>() }
    }

    /// # Safety
    /// The words hold a closure of this type. They hold none afterwards.
    unsafe fn take(words: &mut Words) -> F {
        // SAFETY: the caller promises it.
        let place = unsafe { Self::place(words) };
        if Self::IS_INLINE {
            // SAFETY: the closure is there, and the caller does not use it there again.
            return unsafe { place.read() };
        }
        // SAFETY: `store` made the box, and the caller does not use it again.
        *unsafe { Box::from_raw(place) }
    }

    /// # Safety
    /// The words hold a closure of this type. They hold none afterwards.
    unsafe fn drop(words: &mut Words) {
        // SAFETY: the caller promises it.
        let place = unsafe { Self::place(words) };
        if Self::IS_INLINE {
            // SAFETY: the closure is there, and the caller does not use it there again.
            unsafe { ptr::drop_in_place(place) }
        } else {
            // SAFETY: `store` made the box, and the caller does not use it again.
            drop(unsafe { Box::from_raw(place) });
        }
    }

    /// # Safety
    /// The words hold a closure of this type. They hold none afterwards.
    unsafe fn run_silent(words: &mut Words, _: Make<'_>)
    where
        F: FnOnce(),
    {
        // SAFETY: the caller promises it.
        let closure = unsafe { Self::take(words) };
        closure();
    }

    /// # Safety
    /// The words hold a closure of this type. They hold none afterwards.
    unsafe fn run_once(words: &mut Words, firing: Make<'_>)
    where
        F: FnOnce(Firing),
    {
        // SAFETY: the caller promises it.
        let closure = unsafe { Self::take(words) };
        closure(Firing { rearmable: false, ..firing() });
    }

    /// # Safety
    /// The words hold a closure of this type.
    unsafe fn run_each(words: &mut Words, firing: Make<'_>)
    where
        F: FnMut(Firing),
    {
        // SAFETY: the closure is there, and `words` is borrowed for the call.
        let closure = unsafe { &mut *Self::place(words) };
        closure(firing());
    }
}

impl Task {
    #[inline]
    fn new<F: Send + 'static>(closure: F, methods: &'static Methods) -> Task {
        Task { words: Of::store(closure), methods, _contains: PhantomData }
    }

    /// Makes a task of a closure that runs at most once, without its firing.
    #[inline]
    pub(super) fn silent<F: FnOnce() + Send + 'static>(closure: F) -> Task {
        Task::new(closure, const { &Of::<F>::methods(Of::<F>::run_silent, Kind::Consumed) })
    }

    /// Makes a task of a closure that runs at most once.
    #[inline]
    pub(super) fn once<F: FnOnce(Firing) + Send + 'static>(closure: F) -> Task {
        Task::new(closure, const { &Of::<F>::methods(Of::<F>::run_once, Kind::Consumed) })
    }

    /// Makes a task of a closure that runs at every firing.
    #[inline]
    pub(super) fn each<F: FnMut(Firing) + Send + 'static>(closure: F) -> Task {
        Task::new(closure, const { &Of::<F>::methods(Of::<F>::run_each, Kind::Lasting) })
    }

    /// Runs the closure, with the firing that `firing` makes. Does nothing if the closure
    /// runs at most once and has run.
    pub(super) fn run(&mut self, firing: Make<'_>) {
        let run = self.methods.run;
        if self.methods.kind == Kind::Consumed {
            // Empty before the call, which may panic.
            self.methods = EMPTY;
        }
        // SAFETY: the words hold a closure of the type of these methods, or none if the
        // methods are those of no closure. From now on, they hold none if it is consumed.
        unsafe { run(&mut self.words, firing) };
    }

    /// Whether the closure has run and cannot run again. There is nothing left to drop.
    pub(super) fn is_consumed(&self) -> bool {
        self.methods.kind == Kind::Empty
    }

    /// Returns the closure of type `F` that the task was made of, and that is not consumed.
    pub(super) fn into_closure<F: Send + 'static>(self) -> F {
        assert_eq!((self.methods.type_id)(), TypeId::of::<F>(), "it is what it was made of");
        let mut task = ManuallyDrop::new(self);
        // SAFETY: the type is the one that the words were made from, and `task` is not dropped.
        unsafe { Of::<F>::take(&mut task.words) }
    }
}

impl Drop for Task {
    #[inline]
    fn drop(&mut self) {
        if let Some(drop) = self.methods.drop {
            // SAFETY: the words hold a closure of the type of these methods, and are not
            // used again.
            unsafe { drop(&mut self.words) };
        }
    }
}

debug!(it: [] Task => "Task" { consumed: it.is_consumed() });

/// The firing for which a task runs, passed to its closure.
///
/// A firing is a value that the closure may keep, clone or send to another
/// thread. After the task has returned, a firing changes nothing. It keeps the
/// memory of its engine, but does not keep the engine running.
#[derive(Clone)]
pub struct Firing {
    pub(super) firing: shard::Delivery,
    pub(super) core: Arc<SharedCore<Task>>,
    /// Whether the closure can run again.
    pub(super) rearmable: bool,
}

impl Firing {
    pub(super) fn of(firing: &shard::Delivery, core: &Arc<SharedCore<Task>>) -> Firing {
        Firing { firing: firing.clone(), core: Arc::clone(core), rearmable: true }
    }
}

impl Firing {
    /// Returns the timer's id, for instance to cancel it from within the task.
    #[must_use]
    pub fn id(&self) -> TimerId {
        self.firing.id
    }

    /// Returns the timer's name, if it has one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Firing, TaskEngine, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let second = Duration::from_secs(1);
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let beat = Timer::every(second, move |firing: Firing| {
    ///     tell.send(firing.name().map(str::to_owned)).unwrap();
    /// });
    /// timers.run(beat.named("beat"))?;
    /// clock.run_until(timers.now() + second);
    /// assert_eq!(told.recv()?.as_deref(), Some("beat"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.firing.name.as_deref().map(|name| &**name)
    }

    /// Returns the number of this due tick in the timer's series, counted from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.firing.number
    }

    /// Returns the number of firings still to come, or `None` if the timer fires
    /// for ever; see [`Expired::remaining`](crate::Expired::remaining).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Firing, TaskEngine, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let count = move |firing: Firing| tell.send(firing.remaining()).unwrap();
    /// let second = Duration::from_secs(1);
    /// timers.run(Timer::every(second, count).times(3))?;
    /// clock.run_until(timers.now() + 9 * second);
    /// assert_eq!(told.try_iter().collect::<Vec<_>>(), [Some(2), Some(1), Some(0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.core.remaining(self.firing.id)
    }

    /// Returns the tick at which this firing was due.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.firing.tick
    }

    /// Returns the time at which this firing was due.
    #[must_use]
    pub fn deadline(&self) -> Time {
        self.firing.deadline
    }

    /// Returns the time that has passed since the deadline; see
    /// [`Expired::lateness`](crate::Expired::lateness). Returns zero if the task runs
    /// because its timer was cancelled or shut down.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::TaskEngine;
    ///
    /// let timers = TaskEngine::builder().start()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let beat = timers.run_every(Duration::from_millis(5), move |firing| {
    ///     // Too late for this one to be of use? Then wait for the next.
    ///     if firing.lateness() < Duration::from_secs(60) {
    ///         let _ = tell.send(firing.number());
    ///     }
    /// })?;
    /// assert_eq!(told.recv()?, 1);
    /// # timers.cancel(beat);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn lateness(&self) -> Duration {
        match self.firing.outcome {
            CloseReason::Completed => self.core.clock.now() - self.firing.requested,
            _ => Duration::ZERO,
        }
    }

    /// Runs the task again at `when` after it has returned: a [`Duration`] from
    /// now, a [`Time`], or an `Instant`. The timer keeps its id, name and settings,
    /// and the next firing has the next [`number`](Firing::number).
    ///
    /// A task that calls this before its work goes on after a panic of the work, and is
    /// in the list of a [shutdown](crate::Engine::shutdown) meanwhile. A task that calls
    /// this at the end decides by the result of the work.
    ///
    /// A second call overrides the first. A repeating timer continues from
    /// `when`, as after [`Engine::reschedule`](crate::Engine::reschedule). If
    /// the task panics after this call, the panic is counted and the timer
    /// goes on. A cancel after this call answers
    /// [`Cancel::Running`](crate::Cancel::Running), and the task does not run again,
    /// except to be told of that if it is [`notified`](Timer::notified).
    ///
    /// # Errors
    /// Returns [`Refusal::Cancelled`] or [`Refusal::ShutDown`] if that happened
    /// meanwhile, [`Refusal::UsedUp`] if the timer has fired as often as
    /// [`times`](Timer::times) says, [`Refusal::NotRearmable`] in a closure of
    /// [`TaskEngine::run_once`](crate::TaskEngine::run_once), and [`Refusal::Gone`] if
    /// the task of this firing has returned. A timer that was cancelled or shut down then
    /// ends for that reason, and not as completed, unless it is used up. The refusal tells a
    /// [`notified`](Timer::notified) task of this end, and the task does not run again.
    ///
    /// Returns [`Refusal::InstantOnOtherClock`] as
    /// [`Engine::reschedule`](crate::Engine::reschedule) does.
    ///
    /// # Cost
    /// Takes the lock of the timer's shard, and reads the clock for a delay.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Firing, TaskEngine, Time, Timer};
    ///
    /// // A retry whose delay doubles. `attempt` succeeds the fourth time.
    /// let mut delay = Duration::from_millis(100);
    /// let attempt = |n: u64| n == 4;
    /// let retry = move |firing: Firing| {
    ///     if !attempt(firing.number()) && firing.rearm(delay).is_ok() {
    ///         delay *= 2;
    ///     }
    /// };
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// timers.run(Timer::after(Duration::ZERO, retry).named("upload"))?;
    /// clock.run_until(Time::from_millis(699));
    /// assert_eq!(timers.ledger().live, 1);
    /// clock.run_until(Time::from_millis(700)); // 0, 100, 300, 700
    /// assert_eq!(timers.ledger().completed, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rearm(&self, when: impl Into<When>) -> Result<(), Refusal> {
        let (id, number) = (self.firing.id, self.firing.number);
        match self.firing.outcome {
            CloseReason::Completed if !self.rearmable => Err(Refusal::NotRearmable),
            CloseReason::Completed => self.core.rearm_lent(id, number, when.into()),
            ended => Err(Refusal::by(ended)),
        }
    }

    /// Returns whether the timer was cancelled or shut down since this firing
    /// began, so that the task will not run again. A long task can stop
    /// early then, without a flag beside the timer.
    ///
    /// Returns `false` once the task of this firing has returned, unless it ran to be told of
    /// that end.
    ///
    /// # Cost
    /// Takes the lock of the timer's shard.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Cancel, Firing, TaskEngine, Time, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let inner = timers.clone();
    /// let copy = move |firing: Firing| {
    ///     for block in 0..9 {
    ///         if firing.is_cancelled() {
    ///             return tell.send(block).unwrap();
    ///         }
    ///         if block == 2 {
    ///             assert_eq!(inner.cancel(firing.id()), Cancel::Running);
    ///         }
    ///     }
    /// };
    /// timers.run(Timer::after(Duration::ZERO, copy))?;
    /// clock.run_until(Time::START);
    /// assert_eq!(told.recv()?, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        let (id, number) = (self.firing.id, self.firing.number);
        self.firing.outcome != CloseReason::Completed || self.core.is_cancelled(id, number)
    }

    /// Returns the reason for the run: [`CloseReason::Completed`] at the
    /// deadline. A [`notified`](Timer::notified) task also runs when its
    /// timer is cancelled or shut down.
    #[must_use]
    pub fn outcome(&self) -> CloseReason {
        self.firing.outcome
    }
}

debug!(it: [] Firing => "Firing" {
    id: it.id(), number: it.number(), tick: it.tick(), outcome: it.outcome()
});

impl<F: FnOnce(Firing) + Send + 'static> Timer<F> {
    /// Makes a worker run the closure also when the timer is cancelled or
    /// shut down; [`Firing::outcome`] then says which. A one-shot's closure thus
    /// runs exactly once. It never runs inline in `cancel`. If a run of the closure has
    /// learned of the end because [`Firing::rearm`] was refused, no further run tells it
    /// again. Meant for
    /// [`TaskEngine::run`](crate::TaskEngine::run) and
    /// [`run_once`](crate::TaskEngine::run_once).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{CloseReason, Firing, TaskEngine, Timer};
    ///
    /// let (timers, clock) = TaskEngine::builder().start_virtual()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let task = move |firing: Firing| tell.send(firing.outcome()).unwrap();
    /// let id = timers.run(Timer::after(Duration::from_secs(9), task).notified())?;
    /// timers.cancel(id).into_payload().unwrap();
    /// assert_eq!(told.recv()?, CloseReason::Cancelled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn notified(mut self) -> Timer<F> {
        self.notified = true;
        self
    }
}
