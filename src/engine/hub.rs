//! The meeting place of an engine's threads: the shards behind their locks, the alarm,
//! and the bells. Does not know handles of queues, tickers or tasks.

use std::hash::{BuildHasher, Hasher};
use std::ops::Deref;
// Not the `Arc` of `crate::sync`, because no thread waits for another through a name.
use std::sync::Arc as StdArc;

use crossbeam_utils::CachePadded;

use crate::clock::{Alarm, Clock};
use crate::engine::census::Census;
use crate::engine::doing::{self, Doing, InMiddle};
use crate::engine::step_aside::{A_FEW, UNTIL_AWAKE, step_aside};
use crate::engine::waiters::Waiters;
use crate::engine::workers::Workers;
use crate::id::{TimerId, WheelNumber};
use crate::observe::Subject;
use crate::rounding::TickLength;
use crate::shard::{Shard, Signals};
use crate::sync::{
    Arc, AtomicU64, AtomicUsize, Channel, IS_MODEL, Lock, LockGuard, Ordering, RandomKey,
    known_number, thread_number,
};
use crate::tick::Tick;
use crate::timeline::Time;
use crate::wheel::Tag;

pub(crate) struct Core<T> {
    pub(crate) name: StdArc<str>,
    /// Their number is a power of two, because a thread finds its own with a mask.
    pub(crate) shards: Box<[ShardCell<T>]>,
    /// The wheel number of shard 0. The other shards have the numbers that follow.
    pub(crate) first: WheelNumber,
    pub(crate) clock: Clock,
    pub(crate) tick: TickLength,
    pub(crate) alarm: Alarm,
    /// One doorbell per queue, and one for the reports.
    pub(super) doorbells: Box<[Doorbell]>,
    /// The threads that are waiting for a firing to return or for a drain to end.
    pub(super) waiters: Waiters,
    pub(crate) census: Census,
    /// The number of shards from which a report may still come; see `shard/report.rs`.
    reporting: AtomicUsize,
    pub(super) panics: AtomicU64,
    pub(crate) workers: Arc<Workers>,
    pub(crate) max_timers: Option<usize>,
    /// Whether takes read the clock, to record lateness and durations.
    pub(crate) measures_work: bool,
    /// Hashes names: see `shard/names.rs`.
    name_key: RandomKey,
    /// The number of queues, from the first on, that a plain timer's entry can name.
    pub(super) plain_queues: usize,
    /// Whether the caller's own loop drives this engine.
    pub(crate) is_driven: bool,
    /// Consumes the payloads of due plain timers, if workers don't.
    pub(crate) sink: Option<Sink<T>>,
    /// The shard whose due timers were served last.
    pub(super) visited: CachePadded<AtomicUsize>,
}

/// What consumes the payload of a due timer in place of a worker: foreign code.
pub(crate) type Sink<T> = fn(T);

/// The channel of one queue, which carries bells instead of timers. Whenever a shard has
/// something for the queue, exactly one bell is in the channel or with a worker, who rings it
/// again if anything is left behind. Therefore a worker will come for every timer. There is
/// room for one bell per shard: the channel is never full, the ticker never blocks on it, and a
/// burst of a million timers costs one message. A shutdown closes it.
pub(crate) type Doorbell = Channel<Bell>;

/// The token that a worker gets when it answers: something waits in the shard of this number.
/// The worker passes it to [`Core::take_from`], which rings it again if the shard has more
/// timers, and drops it otherwise.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a bell that is lost is never rung again"]
pub(crate) struct Bell(pub(crate) u32);

/// The number of timers that a worker takes in one hold of a shard's lock, at most. A
/// caller that schedules waits no longer for it than for the ticker.
pub(crate) const TAKES_PER_HOLD: usize = if IS_MODEL { 2 } else { 32 };

/// A bell that its worker has answered, and that is rung again if the shard has more, or if the
/// worker panics: nothing else would ever lead to the shard.
struct Answered<'a> {
    doorbell: &'a Doorbell,
    bell: Option<Bell>,
}

impl Drop for Answered<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(bell) = self.bell.take() {
            self.doorbell.send(bell);
        }
    }
}

/// A shard locked by a thread that may link or end timers.
pub(super) struct Held<'a, T> {
    pub(super) cell: &'a ShardCell<T>,
    pub(super) shard: LockGuard<'a, Shard<T>>,
}

impl<T> Core<T> {
    pub(crate) fn new(
        name: StdArc<str>,
        shards: Vec<Shard<T>>,
        first: WheelNumber,
        clock: Clock,
        tick: TickLength,
        alarm: Alarm,
        queues: usize,
    ) -> Core<T> {
        let shard_count = shards.len();
        assert!(shard_count.is_power_of_two());
        // A virtual clock waits for the workers of a queue.
        let is_counted = |queue| clock.is_virtual() && queue < queues;
        let doorbell = |queue| {
            let bells = Doorbell::new(shard_count);
            if is_counted(queue) { bells.threads_first() } else { bells }
        };
        let doorbells: Box<[Doorbell]> = (0..=queues).map(doorbell).collect();
        Core {
            name,
            shards: shards
                .into_iter()
                .enumerate()
                .map(|(index, shard)| ShardCell::new(index, shard))
                .collect(),
            first,
            tick,
            alarm,
            waiters: Waiters::new(()),
            census: Census::new(queues),
            reporting: AtomicUsize::new(shard_count),
            doorbells,
            clock,
            panics: AtomicU64::new(0),
            workers: Arc::new(Workers::default()),
            max_timers: None,
            measures_work: false,
            name_key: RandomKey::default(),
            plain_queues: queues.min(Tag::QUEUES),
            is_driven: false,
            sink: None,
            visited: CachePadded::new(AtomicUsize::new(usize::MAX)),
        }
    }

    /// Returns the engine as its events name it.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject { number: self.first, name: &self.name }
    }

    /// Notes that the calling thread serves the due timers of this engine. Returns `None` if
    /// it does already: it would run the next task inside the last one. No stack is thus
    /// deeper than the number of engines.
    pub(crate) fn enter_loop(&self) -> Option<InMiddle> {
        (!self.is_in_loop()).then(|| doing::begin(Doing::Loop(self.first)))
    }

    /// Whether the calling thread drives this engine.
    pub(crate) fn is_in_loop(&self) -> bool {
        doing::is_in_middle_of(|doing| doing == Doing::Loop(self.first))
    }

    pub(crate) fn queues(&self) -> usize {
        self.doorbells.len() - 1
    }

    pub(crate) fn doorbell(&self, queue: usize) -> &Doorbell {
        &self.doorbells[queue]
    }

    pub(crate) fn shard_count(&self) -> usize {
        self.shards.len()
    }

    pub(crate) fn tick_now(&self) -> Tick {
        self.tick.tick_at(self.clock.now())
    }

    #[inline]
    pub(super) fn cell_of(&self, id: TimerId) -> Option<&ShardCell<T>> {
        self.shards.get(id.wheels_after(self.first))
    }

    /// Hashes the bytes of a name. A `str` would end with one more byte, for names that are
    /// parts of longer keys.
    pub(super) fn hash(&self, name: &str) -> u64 {
        let mut hasher = self.name_key.build_hasher();
        hasher.write(name.as_bytes());
        hasher.finish()
    }

    /// Returns the shard of all timers whose name has this hash.
    pub(super) fn cell_of_name(&self, hash: u64) -> &ShardCell<T> {
        // Not by the lowest bits, because those order the timers within a shard.
        &self.shards[(hash >> 32) as usize & (self.shards.len() - 1)]
    }

    /// Takes the lock of the calling thread's own shard or, for a timer with a name, of the
    /// one for names with this hash.
    pub(super) fn hold_for(&self, name_hash: Option<u64>) -> Held<'_, T> {
        match name_hash {
            Some(hash) => self.hold(self.cell_of_name(hash)),
            None => self.hold_own(),
        }
    }

    /// Takes the lock of the calling thread's own shard.
    #[inline]
    pub(super) fn hold_own(&self) -> Held<'_, T> {
        // One comparison finds both a thread without a number and a number beyond the
        // last shard.
        let own = self.shards.get(known_number());
        self.hold(own.unwrap_or_else(|| self.shared_cell()))
    }

    /// Returns the shard of a thread that has no number yet, or shares its shard with
    /// threads of lower numbers.
    #[inline(never)]
    fn shared_cell(&self) -> &ShardCell<T> {
        &self.shards[thread_number() & (self.shards.len() - 1)]
    }

    #[inline]
    pub(super) fn hold<'a>(&self, cell: &'a ShardCell<T>) -> Held<'a, T> {
        let shard = cell.lock();
        Held { cell, shard }
    }

    /// Publishes the earliest tick for which the holder has linked a timer, releases the
    /// lock, and then wakes the threads concerned. A wake-up under the lock would keep
    /// other threads waiting for a system call.
    #[inline]
    pub(super) fn release(&self, mut held: Held<'_, T>) {
        if held.shard.has_signals() || held.shard.wheel.entries.is_worth_freeing() {
            return self.release_and_signal(held);
        }
        let earliest_new = held.shard.take_earliest_new();
        self.release_quiet(held, earliest_new);
    }

    /// Releases the lock for a holder that has linked no timer and raised no signal. Frees the
    /// memory of a shard that has become empty after that.
    #[inline]
    pub(super) fn let_go(mut held: Held<'_, T>) {
        if held.shard.wheel.entries.is_worth_freeing() {
            let retired = held.shard.give_back();
            drop(held);
            drop(retired);
        }
    }

    /// Releases the lock for a holder that has linked a timer for `earliest_new` and has not
    /// raised a signal.
    #[inline]
    pub(super) fn release_quiet(&self, held: Held<'_, T>, earliest_new: Tick) {
        let lowered = held.cell.lower_next(earliest_new);
        drop(held);
        if lowered {
            self.alarm.notify_earlier(earliest_new);
        }
    }

    /// Releases the lock for a holder that has raised signals. The alarm follows the bells,
    /// because the loop that it wakes looks for tasks.
    #[cold]
    fn release_and_signal(&self, mut held: Held<'_, T>) {
        let signals = held.shard.take_signals();
        let retired = held.shard.give_back();
        let mut earliest_new = held.shard.take_earliest_new();
        let wakes_driver = signals.wake_driver && self.is_driven;
        if wakes_driver {
            earliest_new = earliest_new.min(self.tick_now());
            held.shard.wake_driver = true;
        }
        let lowered = held.cell.lower_next(earliest_new);
        let shard = held.cell.index;
        drop(held);
        self.ring(shard, &signals);
        // If the shard is due anyway, the loop may have visited it before the bell rang.
        if lowered || wakes_driver {
            self.alarm.notify_earlier(earliest_new);
        }
        drop(retired);
    }

    fn ring(&self, shard: usize, signals: &Signals) {
        signals.bells().for_each(|queue| self.doorbells[queue].send(Bell(shard as u32)));
        if signals.all_reported && self.reporting.fetch_sub(1, Ordering::AcqRel) == 1 {
            let reports = self.doorbell(self.queues());
            reports.close();
            reports.wake_receivers();
        }
        if signals.drained {
            self.waiters.notify();
        }
    }

    /// Takes from one shard with `take`, which stores what it takes where that is to stay.
    /// Returns whether the shard has more. If so, rings the caller's bell again; otherwise,
    /// drops it.
    #[inline]
    pub(crate) fn take_from(
        &self,
        shard: usize,
        queue: usize,
        bell: Option<Bell>,
        take: impl FnOnce(&mut Shard<T>),
    ) -> bool {
        let cell = &self.shards[shard];
        let mut answered = Answered { doorbell: &self.doorbells[queue], bell };
        // The ticker does not interrupt a visit for a worker: see `expire.rs`.
        let shard = cell.shard.lock_low_priority();
        let mut held = Held { cell, shard };
        take(&mut held.shard);
        let ready = &mut held.shard.ready[queue];
        let more = ready.len() > 0;
        if !more && answered.bell.take().is_some() {
            ready.rung = false;
        }
        self.release(held);
        more
    }

    /// Reads the clock if takes are measured.
    #[inline]
    pub(crate) fn time_of_take(&self) -> Option<Time> {
        self.measures_work.then(|| self.clock.now())
    }

    /// Returns the number of expired timers of a queue that are waiting to be taken.
    pub(crate) fn ready_len(&self, queue: usize) -> usize {
        let len = |cell: &ShardCell<T>| cell.lock().ready[queue].len();
        self.shards.iter().map(len).sum()
    }

    pub(crate) fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets threads go on that may wait for what a worker did when it panicked.
    pub(crate) fn outlive_a_panic(&self) {
        self.count_panic();
        self.waiters.notify();
    }
}

pub(crate) struct ShardCell<T> {
    pub(crate) index: usize,
    /// The tick at which the ticker has to visit the shard. The ticker reads it without
    /// the lock, but only a holder of the lock writes it.
    next: CachePadded<AtomicU64>,
    pub(super) shard: Lock<Shard<T>>,
}

impl<T> ShardCell<T> {
    pub(super) fn new(index: usize, shard: Shard<T>) -> ShardCell<T> {
        ShardCell {
            index,
            next: CachePadded::new(AtomicU64::new(Tick::MAX.0)),
            shard: Lock::new(shard),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> LockGuard<'_, Shard<T>> {
        self.shard.lock()
    }

    /// Notes, under the lock, that a timer was linked for `tick`. Returns whether `tick`
    /// is earlier than the `next` that the ticker knows.
    #[inline]
    pub(super) fn lower_next(&self, tick: Tick) -> bool {
        let lowered = tick < self.next();
        if lowered {
            self.set_next(tick);
        }
        lowered
    }

    #[inline]
    pub(crate) fn next(&self) -> Tick {
        Tick(self.next.load(Ordering::Relaxed))
    }

    /// Sets `next`. The caller holds the lock.
    #[inline]
    pub(super) fn set_next(&self, tick: Tick) {
        self.next.store(tick.0, Ordering::Relaxed);
    }

    /// Lets waiting threads take the lock, between two holds of it.
    pub(crate) fn step_aside(&self) {
        step_aside(&self.shard, A_FEW);
    }

    /// Lets waiting threads take the lock after a hold for many timers.
    pub(crate) fn let_sleepers_in(&self) {
        step_aside(&self.shard, UNTIL_AWAKE);
    }
}

// The share in the core that every owner holds, other than the ticker and virtual clocks.
//
// The ticker outlives the other owners by the time that it takes to wake up, and a clock may
// live much longer. As the last owner of the core, they would drop the payloads of unread
// reports. So the other owners are counted, and the last of them drops the remaining
// payloads. No payload comes later, because only a counted owner can end a timer.

pub(crate) struct SharedCore<T> {
    core: Arc<Core<T>>,
}

impl<T> SharedCore<T> {
    pub(crate) fn new(core: Arc<Core<T>>) -> Arc<SharedCore<T>> {
        Arc::new(SharedCore { core })
    }

    /// Returns the core itself, saving a step for a holder that also keeps its share.
    pub(crate) fn core(&self) -> &Arc<Core<T>> {
        &self.core
    }
}

impl<T> Deref for SharedCore<T> {
    type Target = Core<T>;

    #[inline]
    fn deref(&self) -> &Core<T> {
        &self.core
    }
}

impl<T> Drop for SharedCore<T> {
    fn drop(&mut self) {
        // If the drop of a payload panics, this one drops the others.
        let _rest = Leftovers(&self.core);
        drop(Leftovers(&self.core));
    }
}

/// The remaining payloads. They are dropped one by one, because each must be dropped outside
/// every lock.
struct Leftovers<'a, T>(&'a Core<T>);

impl<T> Drop for Leftovers<'_, T> {
    fn drop(&mut self) {
        for cell in &self.0.shards {
            // Nobody is left to whom a signal could matter.
            let mut queue = 0;
            std::iter::from_fn(|| cell.lock().take_leftover(&mut queue)).for_each(drop);
        }
    }
}
