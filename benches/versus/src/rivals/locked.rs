//! An engine without a library: collections with one owner, each behind a lock, and a thread
//! that wakes up every tick and fires what is due. A timer-queue can't be one of them: the id
//! of a timer that has just fired would cancel another.

use std::array;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{btreemap, tm_wheel};
use crate::rival::{Caller, Rival, Shared, Sleepers, TICK, Timers};
use crate::stopwatch::Stopwatch;

/// A collection and its time, in a cache line of their own.
#[repr(align(128))]
struct Shard<T>(Mutex<(T, u64)>);

impl<T: Timers> Shard<T> {
    fn lock(&self) -> MutexGuard<'_, (T, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules a timer, for the next tick if its own has passed.
    fn schedule(&self, deadline: u64, payload: u64) -> T::Id {
        let (timers, now) = &mut *self.lock();
        timers.schedule(deadline.max(*now + 1), payload)
    }

    fn advance(&self, to: u64, fired: &mut Vec<u64>) {
        let (timers, now) = &mut *self.lock();
        timers.advance(to, fired);
        *now = to;
    }
}

struct Shards<T> {
    all: [Shard<T>; 16],
    callers: AtomicUsize,
    start: Instant,
    is_over: AtomicBool,
}

impl<T> Shards<T> {
    /// Returns the ticks that have passed.
    fn now(&self) -> u64 {
        ticks(self.start.elapsed())
    }
}

fn ticks(time: Duration) -> u64 {
    (time.as_nanos() / TICK.as_nanos()) as u64
}

/// Each thread schedules into a shard that it has with few others in common.
pub struct Locked<T> {
    shards: Arc<Shards<T>>,
    /// Present until the drop.
    ticker: Option<JoinHandle<()>>,
}

impl Rival for Locked<btreemap::Map> {
    const NAME: &'static str = "Mutex<BTreeMap> per thread";
    const LESS: &'static str = "wakes up every millisecond";
}

impl Rival for Locked<tm_wheel::TmWheel> {
    const NAME: &'static str = "Mutex<tm-wheel> per thread";
    const LESS: &'static str = "wakes up every millisecond; no order among equal deadlines";
}

impl<T: Timers + Send> Locked<T> {
    fn start_with(mut deliver: impl FnMut(&mut Vec<u64>) + Send + 'static) -> Locked<T> {
        let shards = Arc::new(Shards {
            all: array::from_fn(|_| Shard(Mutex::new((T::new(), 0)))),
            callers: AtomicUsize::new(0),
            start: Instant::now(),
            is_over: AtomicBool::new(false),
        });
        let ticked = Arc::clone(&shards);
        let ticker = thread::spawn(move || {
            let mut fired = Vec::new();
            while !ticked.is_over.load(Ordering::Relaxed) {
                thread::sleep(TICK);
                let now = ticked.now();
                ticked.all.iter().for_each(|shard| shard.advance(now, &mut fired));
                deliver(&mut fired);
            }
        });
        Locked { shards, ticker: Some(ticker) }
    }
}

impl<T> Drop for Locked<T> {
    fn drop(&mut self) {
        self.shards.is_over.store(true, Ordering::Relaxed);
        let _ = self.ticker.take().map(JoinHandle::join);
    }
}

impl<T: Timers<Id: Send> + Send> Shared for Locked<T>
where
    Locked<T>: Rival,
{
    type Id = (usize, T::Id);
    type Caller<'a> = Thread<'a, T>;

    fn start() -> Locked<T> {
        Locked::start_with(Vec::clear)
    }

    fn caller(&self) -> Thread<'_, T> {
        let shards = &*self.shards;
        let own = shards.callers.fetch_add(1, Ordering::Relaxed) % shards.all.len();
        Thread { shards, own, now: shards.now(), calls: 0 }
    }

    fn shrink(&self) {
        self.shards.all.iter().for_each(|shard| shard.lock().0.shrink());
    }
}

pub struct Thread<'a, T> {
    shards: &'a Shards<T>,
    own: usize,
    now: u64,
    calls: u32,
}

impl<T: Timers> Thread<'_, T> {
    /// Reads the clock as seldom as for tickwheel.
    fn deadline(&mut self, delay_ticks: u64) -> u64 {
        self.calls += 1;
        if self.calls.is_multiple_of(1_024) {
            self.now = self.shards.now();
        }
        self.now + 1 + delay_ticks
    }

    fn file(&self, deadline: u64, payload: u64) -> (usize, T::Id) {
        (self.own, self.shards.all[self.own].schedule(deadline, payload))
    }
}

impl<T: Timers> Caller for Thread<'_, T> {
    type Id = (usize, T::Id);

    fn schedule(&mut self, delay_ticks: u64, payload: u64) -> Self::Id {
        let deadline = self.deadline(delay_ticks);
        self.file(deadline, payload)
    }

    fn schedule_after(&mut self, delay_ticks: u64, payload: u64) -> Self::Id {
        self.file(self.shards.now() + 1 + delay_ticks, payload)
    }

    fn cancel(&mut self, (shard, id): Self::Id) {
        self.shards.all[shard].lock().0.cancel(id);
    }

    fn postpone(&mut self, (shard, id): Self::Id, delay_ticks: u64, payload: u64) -> Self::Id {
        let deadline = self.deadline(delay_ticks);
        (shard, self.shards.all[shard].lock().0.postpone(id, deadline, payload))
    }
}

impl<T: Timers<Id: Send> + Send> Sleepers for Locked<T>
where
    Locked<T>: Rival,
{
    /// Sends the payloads of a tick together to a worker that adds them up.
    fn count(delays: &[Duration]) -> Duration {
        let (send, taken) = channel::<Vec<u64>>();
        let engine = Locked::<T>::start_with(move |fired| {
            let _ = send.send(mem::take(fired));
        });
        let count = delays.len() as u64;
        let worker = thread::spawn(move || {
            let mut sum = 0;
            while sum < count {
                sum += taken.recv().expect("the ticker runs").into_iter().sum::<u64>();
            }
        });
        let caller = engine.caller();
        let start = engine.shards.start.elapsed();
        let _ids: Vec<_> =
            delays.iter().map(|&delay| caller.file(ticks(start + delay) + 1, 1)).collect();
        let begun = Stopwatch::start_all();
        worker.join().expect("the worker only counts");
        begun.elapsed()
    }
}
