//! Promises 1, 2 and 13 on every ticker there is: a timerfd, a condition
//! variable, a loop of the caller's own. The engines are not new-born: what counts
//! from their start is longer than what is tested.

use super::*;

/// How old an engine is before anything is tested. A sleep that takes a time for a
/// duration is longer by this.
const AGE: Duration = Duration::from_millis(400);

#[derive(Clone, Copy, PartialEq, Debug)]
enum Ticker {
    System,
    Portable,
    Loop,
}

const ALL: [Ticker; 3] = [Ticker::System, Ticker::Portable, Ticker::Loop];

/// Those that have a thread, whose wake-ups are counted.
const THREADS: [Ticker; 2] = [Ticker::System, Ticker::Portable];

fn start<T: Send + 'static>(builder: Builder<Engine<T>>, ticker: Ticker) -> Engine<T> {
    let engine = match ticker {
        Ticker::System => builder.start().unwrap(),
        Ticker::Portable => builder.portable_ticker().start().unwrap(),
        Ticker::Loop => {
            let (engine, driver) = builder.start_driven().unwrap();
            thread::spawn(move || {
                while driver.process_due(1_000) != Advance::ShutDown {
                    sleep(&driver);
                }
            });
            engine
        }
    };
    thread::sleep(AGE);
    engine
}

/// Until the descriptor says that there is something to do.
#[cfg(target_os = "linux")]
fn sleep<T>(driver: &Driver<T>) {
    driven::is_readable(driver, PATIENCE);
}

#[cfg(not(target_os = "linux"))]
fn sleep<T>(driver: &Driver<T>) {
    thread::sleep(driver.timeout().unwrap_or(MS).min(MS));
}

/// The lateness of a timer that is alone in its engine, from its deadline to the worker.
fn lateness_alone(engine: &Engine<()>, delay: Duration) -> Duration {
    engine.after(delay, ());
    engine.queue(0).recv_timeout(PATIENCE).unwrap().lateness()
}

#[test]
fn promise_01_never_early() {
    let fine = Duration::from_micros(50);
    for ticker in ALL {
        for (tick, clock) in [(MS, ClockSource::Monotonic), (fine, ClockSource::BootTime)] {
            let engine = start(Engine::builder().tick(tick).clock(clock), ticker);
            let queue = engine.queue(0);
            let worker = thread::spawn(move || {
                for expired in queue {
                    let (scheduled, delay): (Instant, Duration) = expired.into_payload();
                    assert!(scheduled.elapsed() >= delay, "{delay:?} early, {ticker:?}");
                }
            });
            let submit = |seed| {
                let mut random = Rng::with_seed(seed);
                for _ in 0..1_000 {
                    // Now and then the ticker sleeps, and a stale reading of the clock
                    // would show.
                    if random.u64(..100) == 0 {
                        thread::sleep(Duration::from_micros(random.u64(..3_000)));
                    }
                    let delay = Duration::from_micros(random.u64(..30_000));
                    engine.after(delay, (Instant::now(), delay));
                }
            };
            thread::scope(|scope| [1, 2].map(|seed| _ = scope.spawn(move || submit(seed))));
            assert!(engine.drain(PATIENCE).is_empty());
            assert_eq!(engine.ledger().completed, 2_000);
            worker.join().unwrap();
        }
    }
}

#[test]
fn promise_02_a_sleeping_ticker_is_in_time_for_the_earliest() {
    for ticker in ALL {
        let engine = start(Engine::builder(), ticker);
        let late = |n: u32| {
            // One that is slept for already, and an earlier one.
            engine.after(HOUR, ());
            lateness_alone(&engine, n % 9 * MS)
        };
        let mut late: Vec<Duration> = (0..40).map(late).collect();
        late.sort();
        // The median, because a busy machine may hold up any single wake-up.
        assert!(late[20] < AGE / 8, "{ticker:?}: {late:?}");
    }
}

/// A ticker says until when it sleeps before it lets go of the last lock: who schedules
/// between wakes it.
#[test]
fn promise_02_no_wakeup_is_lost_while_the_ticker_goes_to_sleep() {
    const TICK: Duration = Duration::from_micros(50);
    let builder = Engine::builder().tick(TICK).shards(4).queues(2);
    let engine = builder.start().unwrap();
    engine.after(HOUR, ());
    let submit = |queue: usize| {
        for _ in 0..3_000 {
            // The ticker, which has just fired, is on its way to sleep.
            engine.put(Timer::after(TICK, ()).queue(queue));
            let fired = engine.queue(queue).recv_timeout(PATIENCE);
            fired.expect("slept over it");
        }
    };
    thread::scope(|scope| [0, 1].map(|queue| _ = scope.spawn(move || submit(queue))));
}

/// How often the ticker wakes up while `act` runs.
fn wakeups<T>(engine: &Engine<T>, act: impl FnOnce()) -> u64 {
    let before = engine.snapshot().wakeups;
    act();
    engine.snapshot().wakeups - before
}

#[test]
fn promise_13_idle_is_free() {
    for ticker in THREADS {
        let engine = start(Engine::builder(), ticker);
        let wakeups = |act: &dyn Fn()| wakeups(&engine, act);
        let without_timers = wakeups(&|| thread::sleep(300 * MS));
        assert_eq!(without_timers, 0, "{ticker:?}");
        let far = engine.after(HOUR, 0);
        thread::sleep(50 * MS);
        // A later timer wakes nothing, and neither does cancelling.
        let later = |n| _ = engine.cancel(engine.after(HOUR + n * SECOND, n));
        let many = || {
            (1..1_000).for_each(later);
            thread::sleep(200 * MS);
        };
        assert_eq!(wakeups(&many), 0, "{ticker:?}: an hour away");
        // At most one wake-up for an armed instant whose timer was cancelled.
        let near = || {
            engine.cancel(engine.after(100 * MS, 1)).into_payload().unwrap();
            thread::sleep(300 * MS);
        };
        let woken = wakeups(&near);
        assert!(woken <= 2, "{ticker:?}: {woken}");
        assert_eq!(engine.cancel(far).into_payload(), Some(0));
    }
}

#[test]
fn promise_13_notifying_a_cancelled_task_wakes_no_ticker() {
    let tasks = TaskEngine::builder().start().unwrap();
    let told = told();
    let far = Timer::after(HOUR, told.of(Firing::outcome)).notified();
    let far = tasks.run(far).unwrap();
    thread::sleep(50 * MS);
    let cancel = || {
        tasks.cancel(far).into_payload().unwrap();
        assert_eq!(told.next(), CloseReason::Cancelled);
        thread::sleep(50 * MS);
    };
    assert_eq!(wakeups(&tasks, cancel), 0);
}

/// The journey in ARCHITECTURE.md: the alarm is set for the deadline, not for the slot's
/// turn, and a sleep for it ends no tick too soon.
#[test]
fn promise_13_a_timer_alone_costs_one_wakeup() {
    for ticker in THREADS {
        let engine = start(Engine::builder(), ticker);
        let alone = || {
            // Beyond the first level's 64 ticks, and in no slot's first tick.
            let now = engine.now().as_nanos() / 1_000_000;
            engine.put(Timer::at(at((now / 64 + 3) * 64 + 32), "alone"));
            engine.queue(0).recv_timeout(PATIENCE).unwrap();
        };
        assert_eq!(wakeups(&engine, alone), 1, "{ticker:?}");
    }
}

/// The turns of slots on the way to the far one wake nobody.
#[test]
fn promise_13_a_far_timer_beside_a_near_one_costs_one_wakeup_more() {
    let builder = Engine::builder().tick(Duration::from_micros(50));
    let engine = start(builder, Ticker::System);
    let woken = wakeups(&engine, || {
        // Has the shard look, once, at what else there is.
        engine.after(MS, "near");
        // 6,000 ticks: three levels of 64.
        engine.after(300 * MS, "far");
        for name in ["near", "far"] {
            let expired = engine.queue(0).recv_timeout(PATIENCE).unwrap();
            assert_eq!(expired.into_payload(), name);
        }
    });
    assert!(woken <= 2, "{woken} wake-ups");
}

/// How often a ticker wakes while each of four threads arms timers of `delay` and
/// cancels them; and how long that took.
fn wakeups_of_what_is_cancelled(ticker: Ticker, delay: Duration) -> (u64, Duration) {
    let engine = start(Engine::<u32>::builder().shards(4), ticker);
    let (begun, gate) = (Instant::now(), Barrier::new(4));
    let submit = || {
        gate.wait();
        while begun.elapsed() < 500 * MS {
            engine.cancel(engine.after(delay, 1));
            thread::sleep(Duration::from_micros(200));
        }
    };
    let all = || thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(submit)));
    (wakeups(&engine, all), begun.elapsed())
}

#[test]
fn promise_13_a_cancelled_alarm_costs_at_most_one_wakeup() {
    for ticker in THREADS {
        let delay = 5 * MS;
        let (woken, took) = wakeups_of_what_is_cancelled(ticker, delay);
        let delays = took.as_nanos() / delay.as_nanos();
        // Half as many again: a thread may stand between arming and cancelling.
        let limit = delays + delays / 2 + 4;
        let woken = u128::from(woken);
        assert!(woken <= limit, "{ticker:?}: {woken} in {delays} delays");
    }
}
