//! Counts the instructions of the hot calls, to keep any call from getting slower
//! by accident. Unlike times, counts are the same on a busy machine.
//!
//! Needs valgrind. Each call runs a number of times and then twice as often, both
//! under callgrind, and the difference is the count. The bench fails if a call
//! exceeds the recorded count by more than a tenth.

#[allow(dead_code, reason = "the other benches use all of it")]
mod common;

use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use std::vec;

use common::{IN_FLIGHT, SPAN, delay};
use fastrand::Rng;
use tickwheel::time::{Timers, sleep, sleep_until, timeout};
use tickwheel::{
    Driver, Engine, Queue, Task, TaskEngine, Tick, Time, Timer, TimerId, VirtualClock, Wheel,
};

/// A call, its recorded count, and a function that makes the call repeatedly.
struct Call {
    name: &'static str,
    instructions: u64,
    run: fn(u64),
}

/// The calls, counted with Rust 1.95 on x86-64. A change that makes a call cheaper
/// lowers the call's count here.
const CALLS: [Call; 24] = [
    Call { name: "wheel: cancel and schedule", instructions: 127, run: wheel_pair },
    Call { name: "wheel: postpone", instructions: 47, run: wheel_postpone },
    Call { name: "wheel: disarm and arm", instructions: 78, run: wheel_reuse },
    Call { name: "wheel: bring forward", instructions: 101, run: wheel_bring_forward },
    Call { name: "wheel: schedule, cascade and expire", instructions: 309, run: wheel_expire },
    Call { name: "wheel: alone on a tick", instructions: 385, run: wheel_alone },
    Call { name: "wheel: alone, two cascades away", instructions: 385, run: wheel_alone_far },
    Call { name: "wheel: all on a tick", instructions: 110, run: wheel_burst },
    Call {
        name: "wheel: advance over nothing",
        // Six instructions find the answer, and the rest copy it.
        instructions: 18,
        run: wheel_idle,
    },
    Call { name: "engine: cancel and schedule", instructions: 199, run: engine_pair },
    Call { name: "engine: postpone", instructions: 97, run: engine_postpone },
    Call { name: "engine: disarm and arm", instructions: 166, run: engine_reuse },
    Call {
        name: "engine: schedule, expire and take",
        // There are four timers per tick, and an advance visits every shard.
        instructions: 1_076,
        run: engine_take,
    },
    Call { name: "engine: the same, many at a time", instructions: 873, run: engine_take_many },
    Call { name: "engine: all on a tick, many at a time", instructions: 350, run: engine_burst },
    Call { name: "task: cancel and schedule", instructions: 248, run: task_pair },
    Call {
        name: "task: schedule, expire and run",
        // A thousand tasks are due at each tick.
        instructions: 854,
        run: task_run,
    },
    Call { name: "named task: cancel and schedule", instructions: 1_425, run: named_task_pair },
    Call {
        name: "named task: the same, by name",
        instructions: 2_520,
        run: named_task_pair_by_name,
    },
    Call { name: "sleep: create, poll and drop", instructions: 347, run: sleep_pair },
    Call { name: "sleep: the same, instant given", instructions: 327, run: sleep_pair_at },
    Call {
        name: "sleep: create, poll and wake",
        // There are four sleeps per tick, and an advance visits every shard.
        instructions: 709,
        run: sleep_wake,
    },
    Call { name: "sleep: the same, all on a tick", instructions: 377, run: sleep_burst },
    Call { name: "timeout: ready at once", instructions: 15, run: timeout_ready },
];

/// The slack for differences between compilers and libraries.
const SLACK_PERCENT: u64 = 10;
/// The loop around a call of a few instructions may take one more or less.
const LEAST_SLACK: u64 = 1;
const TIMES: u64 = 20_000;
const MOST_TIMES: u64 = 2 * TIMES;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run", index, times] => run(index, times),
        // Without valgrind, checks only that the calls work.
        [.., "--test"] => CALLS.iter().for_each(|call| (call.run)(100)),
        _ => return check_all(),
    }
    ExitCode::SUCCESS
}

fn run(index: &str, times: &str) {
    let index: usize = index.parse().expect("the number of a call");
    (CALLS[index].run)(times.parse().expect("how often"));
}

fn check_all() -> ExitCode {
    let mut within = true;
    for (index, call) in CALLS.iter().enumerate() {
        let Some((once, twice)) = count(index, TIMES).zip(count(index, MOST_TIMES)) else {
            eprintln!("valgrind cannot be run: install it, or leave this bench out");
            return ExitCode::FAILURE;
        };
        let instructions = (twice - once) / TIMES;
        let limit = call.instructions + (call.instructions * SLACK_PERCENT / 100).max(LEAST_SLACK);
        let verdict = if instructions <= limit { "" } else { "  TOO MANY" };
        within &= instructions <= limit;
        println!("{:<38} {instructions:>5}  (at most {limit}){verdict}", call.name);
    }
    if within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the number of all instructions of a process that makes a call a number of
/// times, or `None` if valgrind does not run.
fn count(index: usize, times: u64) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .args(["run", &index.to_string(), &times.to_string()])
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split("Collected :").nth(1))?;
    collected.trim().parse().ok()
}

/// Returns random numbers for every call. Both runs of a call make the same number
/// of them, however often they call, so the difference excludes their cost.
fn numbers(number: impl Fn(&mut Rng) -> u64) -> Vec<u64> {
    let mut rng = Rng::with_seed(1);
    (0..MOST_TIMES).map(|_| number(&mut rng)).collect()
}

/// Timers in flight, and the delays of later timers.
struct Flight {
    ids: Vec<TimerId>,
    oldest: usize,
    delays: vec::IntoIter<u64>,
}

impl Flight {
    fn new(schedule: impl FnMut(u64) -> TimerId) -> Flight {
        let delays = numbers(delay);
        let ids = delays[..IN_FLIGHT].iter().copied().map(schedule).collect();
        Flight { ids, oldest: 0, delays: delays.into_iter() }
    }

    /// Returns the place of the oldest timer, and the delay of its successor.
    fn next(&mut self) -> (&mut TimerId, u64) {
        self.oldest = (self.oldest + 1) % IN_FLIGHT;
        let delay = self.delays.next().expect("a delay for every call");
        (&mut self.ids[self.oldest], delay)
    }
}

fn wheel_pair(times: u64) {
    let mut wheel = Wheel::new(64);
    let mut flight = Flight::new(|delay| wheel.schedule_at(Tick(delay), 0u64));
    for _ in 0..times {
        let (id, delay) = flight.next();
        black_box(wheel.cancel(*id));
        *id = wheel.schedule_at(Tick(delay), 0);
    }
}

fn wheel_postpone(times: u64) {
    let mut wheel = Wheel::new(64);
    let mut flight = Flight::new(|delay| wheel.schedule_at(Tick(delay), 0u64));
    for n in 0..times {
        let (id, _) = flight.next();
        let _ = black_box(wheel.reschedule(*id, Tick(SPAN + n)));
    }
}

fn wheel_reuse(times: u64) {
    let mut wheel = Wheel::new(64);
    let mut flight = Flight::new(|delay| wheel.schedule_at(Tick(delay), 0u64));
    for n in 0..times {
        let (id, _) = flight.next();
        let _ = black_box(wheel.reschedule(*id, Tick::MAX));
        let _ = black_box(wheel.reschedule(*id, Tick(SPAN + n)));
    }
}

fn wheel_bring_forward(times: u64) {
    let mut wheel = Wheel::new(64);
    let far = u64::from(u32::MAX);
    let mut flight = Flight::new(|_| wheel.schedule_at(Tick(far), 0u64));
    for n in 0..times {
        let (id, _) = flight.next();
        let _ = black_box(wheel.reschedule(*id, Tick(far - n)));
    }
}

/// Returns the ticks of `times` timers, with an average of four timers per tick.
fn ticks(times: u64) -> impl Iterator<Item = u64> {
    let ticks = numbers(|rng| rng.u64(..times / 4));
    ticks.into_iter().take(times as usize)
}

fn wheel_expire(times: u64) {
    let mut wheel = Wheel::new(64);
    for tick in ticks(times) {
        wheel.schedule_at(Tick(tick), tick);
    }
    for tick in 0..=times / 4 {
        while let Some(expired) = wheel.pop_due(Tick(tick)) {
            black_box(expired.payload);
        }
    }
}

/// Schedules timers one after the other, each `delay` ticks ahead, and asks for each
/// twice: once more than it fires, as a loop does.
fn alone(times: u64, delay: u64) {
    let mut wheel = Wheel::new(64);
    for n in 1..=times {
        wheel.schedule_at(Tick(n * delay), n);
        while let Some(expired) = wheel.pop_due(Tick(n * delay)) {
            black_box(expired.payload);
        }
    }
}

fn wheel_alone(times: u64) {
    alone(times, 1);
}

fn wheel_alone_far(times: u64) {
    // A prime, so that the timers are at no slot's start.
    alone(times, 4_999);
}

fn wheel_burst(times: u64) {
    let mut wheel = Wheel::new(64);
    for n in 0..times {
        wheel.schedule_at(Tick(1), n);
    }
    while let Some(expired) = wheel.pop_due(Tick(1)) {
        black_box(expired.payload);
    }
}

fn wheel_idle(times: u64) {
    let mut wheel = Wheel::new(64);
    wheel.schedule_at(Tick(u64::MAX), 0u64);
    for tick in 0..times {
        black_box(wheel.pop_due(black_box(Tick(tick))));
    }
}

fn far_engine() -> (Engine<u64>, impl Fn(u64) -> Time) {
    let engine = Engine::builder().start().expect("the defaults start");
    let far = engine.now() + Duration::from_secs(100_000);
    (engine, move |tick| Time::from_nanos(far.as_nanos() + tick * 1_000_000))
}

fn schedule(engine: &Engine<u64>, time: Time) -> TimerId {
    engine.schedule(Timer::at(time, 0)).expect("there is no bound")
}

fn engine_pair(times: u64) {
    let (engine, at) = far_engine();
    let mut flight = Flight::new(|delay| schedule(&engine, at(delay)));
    for _ in 0..times {
        let (id, delay) = flight.next();
        black_box(engine.cancel(*id));
        *id = schedule(&engine, at(delay));
    }
}

fn engine_postpone(times: u64) {
    let (engine, at) = far_engine();
    let mut flight = Flight::new(|delay| schedule(&engine, at(delay)));
    for n in 0..times {
        let (id, _) = flight.next();
        let _ = black_box(engine.reschedule(*id, at(SPAN + n)));
    }
}

fn engine_reuse(times: u64) {
    let (engine, at) = far_engine();
    let mut flight = Flight::new(|delay| schedule(&engine, at(delay)));
    for n in 0..times {
        let (id, _) = flight.next();
        let _ = black_box(engine.reschedule(*id, Time::MAX));
        let _ = black_box(engine.reschedule(*id, at(SPAN + n)));
    }
}

fn engine_take(times: u64) {
    take_each_tick(times, |queue| {
        while let Ok(expired) = queue.try_recv() {
            black_box(expired.into_payload());
        }
    });
}

fn engine_take_many(times: u64) {
    let mut payloads = Vec::new();
    take_each_tick(times, |queue| take_all(queue, &mut payloads));
}

fn take_all(queue: &Queue<u64>, payloads: &mut Vec<u64>) {
    while queue.try_recv_many(payloads, 1_000).is_ok() {
        payloads.drain(..).for_each(|payload| _ = black_box(payload));
    }
}

/// The tick of a burst. Its timers pass through a slot of an outer level.
const BURST: Duration = Duration::from_millis(100);

fn engine_burst(times: u64) {
    let (engine, clock) = Engine::builder().start_virtual().expect("the defaults start");
    for _ in 0..times {
        schedule(&engine, Time::START + BURST);
    }
    clock.advance(BURST);
    take_all(&engine.queue(0), &mut Vec::new());
}

fn take_each_tick(times: u64, mut take: impl FnMut(&Queue<u64>)) {
    let (engine, clock) = Engine::builder().start_virtual().expect("the defaults start");
    for tick in ticks(times) {
        schedule(&engine, Time::START + Duration::from_millis(tick));
    }
    let queue = engine.queue(0);
    for _ in 0..=times / 4 {
        clock.advance(Duration::from_millis(1));
        take(&queue);
    }
}

/// Returns a task engine without threads, and a time that is far away.
fn far_tasks() -> (TaskEngine, Driver<Task>, Time) {
    let (timers, driver) = TaskEngine::builder().start_driven().expect("the defaults start");
    let far = timers.now() + DELAY;
    (timers, driver, far)
}

/// Returns a time in the tick `tick` after another time.
fn later(time: Time, tick: u64) -> Time {
    time + Duration::from_millis(tick)
}

fn task_pair(times: u64) {
    let (timers, _driver, far) = far_tasks();
    let run_at = |tick| {
        let task = move || {
            black_box(tick);
        };
        let id = timers.run_at(later(far, tick), task);
        id.expect("there is no bound")
    };
    let mut flight = Flight::new(run_at);
    for _ in 0..times {
        let (id, delay) = flight.next();
        black_box(timers.cancel(*id));
        *id = run_at(delay);
    }
}

fn task_run(times: u64) {
    let (timers, driver, _) = far_tasks();
    for _ in 0..times / 1_000 {
        for n in 0..1_000 {
            let task = move || {
                black_box(n);
            };
            timers.run_at(Time::START, task).expect("there is no bound");
        }
        while timers.ledger().live > 0 {
            let _ = driver.process_due(1_000);
        }
    }
}

/// Returns a name for each timer in flight.
fn names() -> Vec<String> {
    (0..IN_FLIGHT).map(|n| format!("request {n}")).collect()
}

fn run_named(timers: &TaskEngine, time: Time, name: &str) -> TimerId {
    let task = move |_| {
        black_box(time);
    };
    let timer = Timer::at(time, task).named(name);
    timers.run_once(timer).expect("there is no bound")
}

fn named_task_pair(times: u64) {
    let (timers, _driver, far) = far_tasks();
    let names = names();
    let mut names = names.iter().cycle();
    let mut run_next = |delay| {
        let name = names.next().expect("they come again and again");
        run_named(&timers, later(far, delay), name)
    };
    let mut flight = Flight::new(&mut run_next);
    for _ in 0..times {
        let (id, delay) = flight.next();
        black_box(timers.cancel(*id));
        *id = run_next(delay);
    }
}

fn named_task_pair_by_name(times: u64) {
    let (timers, _driver, far) = far_tasks();
    let names = names();
    let mut each = names.iter();
    let mut flight = Flight::new(|delay| {
        run_named(&timers, later(far, delay), each.next().expect("a name for each"))
    });
    for n in 0..times {
        let (_, delay) = flight.next();
        let name = &names[n as usize % IN_FLIGHT];
        assert_eq!(timers.cancel_by_name(name, None).len(), 1);
        run_named(&timers, later(far, delay), name);
    }
}

/// Longer than a run.
const DELAY: Duration = Duration::from_secs(100_000);

/// A task's waker, as far as a sleep can tell.
#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Count>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls a sleep for the first time.
fn poll_first(sleep: Pin<&mut impl Future>, waker: &Waker) {
    let polled = sleep.poll(&mut Context::from_waker(waker));
    assert!(polled.is_pending());
}

fn sleep_pair(times: u64) {
    let waker = Waker::from(Arc::new(Count::default()));
    for _ in 0..times {
        poll_first(pin!(sleep(black_box(DELAY))), &waker);
    }
}

fn sleep_pair_at(times: u64) {
    let waker = Waker::from(Arc::new(Count::default()));
    let deadline = Instant::now() + DELAY;
    for _ in 0..times {
        poll_first(pin!(sleep_until(black_box(deadline))), &waker);
    }
}

fn sleep_wake(times: u64) {
    // A tick is far enough for a first poll to find it in the future.
    let delays = ticks(times).map(|tick| Duration::from_millis(tick + 1));
    wake_each(delays, |clock| {
        for _ in 0..=times / 4 {
            clock.advance(Duration::from_millis(1));
        }
    });
}

fn sleep_burst(times: u64) {
    wake_each((0..times).map(|_| BURST), |clock| clock.advance(BURST));
}

/// Registers a sleep for each delay, and asserts that `pass` wakes all of them.
fn wake_each(delays: impl Iterator<Item = Duration>, pass: impl FnOnce(&VirtualClock)) {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let (timers, clock) = Timers::builder().start_virtual().expect("the defaults start");
    let timers = timers.leak();
    let mut registered = 0;
    for delay in delays {
        let mut sleep = timers.sleep_until(Time::START + delay);
        poll_first(Pin::new(&mut sleep), &waker);
        // A drop would be another look at a timer that has ended.
        std::mem::forget(sleep);
        registered += 1;
    }
    pass(&clock);
    assert_eq!(count.0.load(Ordering::Relaxed), registered);
}

/// A future of which the compiler does not know that it is ready.
fn maybe_ready() -> impl Future<Output = ()> {
    let polls_in_vain = black_box(0);
    poll_fn(move |_| match polls_in_vain {
        0 => Poll::Ready(()),
        _ => Poll::Pending,
    })
}

fn timeout_ready(times: u64) {
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..times {
        let limited = pin!(timeout(black_box(DELAY), maybe_ready()));
        assert!(limited.poll(&mut context).is_ready());
    }
}
