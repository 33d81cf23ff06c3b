//! The most timers a second that one ticker can make ready: its own processor time for
//! each timer, and the lateness as the rate comes near that limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use tickwheel::time::Timers;
use tickwheel::{Engine, Queue, Snapshot, Time, Timer};

use super::shards::{in_each_shard, started};
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::processors;
use crate::rival::TICK;

const SHARDS: [usize; 2] = [1, 64];

/// Puts the first deadline after the last schedule, with time to spare.
const LEAD: Duration = Duration::from_millis(100);
const LEAD_PER_TIMER: Duration = Duration::from_nanos(700);

/// The rate at which the cost of a timer is measured first, in timers per tick. It is
/// measured again at the rate that would need the whole processor.
const FIRST_RATE: f64 = 2_000.0;

/// The shares of the greatest rate at which lateness is measured.
const SHARES: [(f64, &str); 3] = [(0.5, "50 %"), (0.8, "80 %"), (1.0, "100 %")];

/// What becomes of timers that are due.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    /// They wait to be taken.
    Ready,
    /// A worker takes them meanwhile.
    Taken,
    /// The ticker wakes their wakers itself.
    Woken,
}

pub fn cases(effort: Effort) -> Vec<Case> {
    let ticks = effort.either(100, 500);
    let of = |shards| {
        let name = "tickwheel engine";
        let case = |measure: fn(usize, u32) -> Vec<Reading>| {
            Case::new(name, true, shards, move || measure(shards, ticks))
        };
        [
            case(ready),
            case(|shards, ticks| costs("to a worker", Due::Taken, shards, ticks).0),
            case(|shards, ticks| costs("to a waker", Due::Woken, shards, ticks).0),
        ]
    };
    SHARDS.into_iter().flat_map(of).collect()
}

/// Measures the ticker alone, and how late it is near its limit.
fn ready(shards: usize, ticks: u32) -> Vec<Reading> {
    let (mut readings, most) = costs("ready", Due::Ready, shards, ticks);
    for (share, name) in SHARES {
        let fired = fire(Due::Ready, Load::spread(most * share, ticks), shards);
        let at = |q| fired.snapshot.lateness.quantile(q).unwrap_or_default();
        let micros = |time: Duration| time.as_nanos() as f64 / 1_000.0;
        let reading = |q, p: &str| Reading::new(format!("{p} at {name}"), "µs", micros(at(q)));
        readings.extend([reading(0.5, "p50"), reading(0.99, "p99")]);
    }
    readings
}

/// Returns the ticker's cost of a timer, with what it says of the greatest rate; and that
/// rate, in timers per tick.
fn costs(name: &str, due: Due, shards: usize, ticks: u32) -> (Vec<Reading>, f64) {
    let cost = |load: Load| fire(due, load, shards).ticker.as_nanos() as f64 / load.timers as f64;
    let per_tick = |cost: f64| TICK.as_nanos() as f64 / cost;
    let first = cost(Load::spread(FIRST_RATE, ticks));
    let spread = cost(Load::spread(per_tick(first), ticks));
    let timers = Load::spread(FIRST_RATE, ticks).timers;
    let at_once = cost(Load { timers, ticks: 1 });
    let most = per_tick(spread);
    let per_second = most / TICK.as_secs_f64();
    let readings = vec![
        Reading::new(format!("{name}, spread"), "ns", spread),
        Reading::new(format!("{name}, one tick"), "ns", at_once),
        Reading::new(format!("{name}, greatest rate"), "M/s", per_second / 1e6),
    ];
    (readings, most)
}

#[derive(Clone, Copy)]
struct Load {
    timers: usize,
    /// The ticks over which they are spread.
    ticks: u32,
}

impl Load {
    fn spread(timers_per_tick: f64, ticks: u32) -> Load {
        Load {
            timers: (timers_per_tick * f64::from(ticks)) as usize,
            ticks,
        }
    }

    /// Returns the delay of the first timer.
    fn lead(self) -> Duration {
        LEAD + LEAD_PER_TIMER * self.timers as u32
    }

    /// Returns the deadlines of the timers of one of several threads.
    fn deadlines(self, first: Time, thread: usize, threads: usize) -> impl Iterator<Item = Time> {
        let mut rng = Rng::with_seed(thread as u64);
        let timers = self.timers / threads;
        (0..timers).map(move |_| first + TICK * rng.u32(0..self.ticks))
    }

    fn rounded(self, threads: usize) -> Load {
        Load {
            timers: self.timers / threads * threads,
            ..self
        }
    }
}

struct Fired {
    /// The processor time of the ticker.
    ticker: Duration,
    snapshot: Snapshot,
}

/// Schedules timers from a thread for each shard, and lets them fire.
fn fire(due: Due, load: Load, shards: usize) -> Fired {
    let load = load.rounded(shards);
    match due {
        Due::Ready | Due::Taken => in_engine(due, load, shards),
        Due::Woken => sleeps(load, shards),
    }
}

fn in_engine(due: Due, load: Load, shards: usize) -> Fired {
    let engine = started(shards);
    let first = engine.now() + load.lead();
    in_each_shard(shards, |thread| {
        schedule(&engine, load, first, thread, shards)
    });
    assert!(engine.now() < first, "scheduling has taken too long");
    thread::scope(|scope| {
        if due == Due::Taken {
            let queue = engine.queue(0);
            scope.spawn(move || take(&queue));
        }
        let before = ticker_time();
        let fired = |snapshot: &Snapshot| snapshot.lateness.count();
        let snapshot = watch(load, fired, || engine.snapshot());
        let ticker = ticker_time() - before;
        engine.shutdown();
        Fired { ticker, snapshot }
    })
}

fn schedule(engine: &Engine<u64>, load: Load, first: Time, thread: usize, threads: usize) {
    for deadline in load.deadlines(first, thread, threads) {
        let scheduled = engine.schedule(Timer::at(deadline, 0));
        scheduled.expect("there is no bound");
    }
}

fn take(queue: &Queue<u64>) {
    while queue.recv().is_ok() {}
}

/// Sleeps until all timers have fired, and returns the last snapshot.
fn watch(
    load: Load,
    fired: impl Fn(&Snapshot) -> u64,
    snapshot: impl Fn() -> Snapshot,
) -> Snapshot {
    thread::sleep(load.lead());
    loop {
        // Often enough for the run, and seldom enough for the ticker.
        thread::sleep(20 * TICK);
        let now = snapshot();
        if fired(&now) >= load.timers as u64 {
            return now;
        }
    }
}

fn ticker_time() -> Duration {
    processors::used_by("-tick")
}

/// A waker that counts.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Count>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Does the same with awaited timers, whose ticker calls the wakers.
fn sleeps(load: Load, shards: usize) -> Fired {
    let builder = Timers::builder().tick(TICK).shards(shards);
    let timers = builder.start().expect("a tick and shards").leak();
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let first = timers.now() + load.lead();
    let sleeps = in_each_shard(shards, |thread| {
        let deadlines = load.deadlines(first, thread, shards);
        let mut sleeps: Vec<_> = deadlines.map(|time| timers.sleep_until(time)).collect();
        for sleep in &mut sleeps {
            let mut context = Context::from_waker(&waker);
            let polled = std::pin::Pin::new(sleep).poll(&mut context);
            assert!(polled.is_pending());
        }
        sleeps
    });
    let before = ticker_time();
    let woken = |_: &Snapshot| count.0.load(Ordering::Relaxed) as u64;
    let snapshot = watch(load, woken, || timers.snapshot());
    let ticker = ticker_time() - before;
    timers.shutdown();
    drop(sleeps);
    Fired { ticker, snapshot }
}
