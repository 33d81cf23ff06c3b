//! Promises 1, 2 and 13 on every ticker there is: a timerfd, a condition
//! variable, a loop of the caller's own. The engines are not new-born: what counts
//! from their start is longer than what is tested.

use super::*;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;
use tickwheel::wheel::Advance;
use tickwheel::{Builder, ClockSource, Driver, Time, Timer};

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

fn start<T: Send + 'static>(builder: Builder<T>, ticker: Ticker) -> Engine<T> {
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
    use std::os::fd::AsRawFd;
    let mut polled = libc::pollfd {
        fd: driver.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one valid entry, as the count says.
    unsafe { libc::poll(&mut polled, 1, -1) };
}

#[cfg(not(target_os = "linux"))]
fn sleep<T>(driver: &Driver<T>) {
    thread::sleep(driver.timeout().unwrap_or(MS).min(MS));
}

#[test]
fn each_builder_gets_the_ticker_that_it_asked_for() {
    let sleeps_on = |ticker| {
        let engine = start(Engine::<()>::builder(), ticker);
        let said = format!("{engine:?}");
        let (_, what) = said.split_once("sleeps_on: \"").unwrap();
        what.split_once('"').unwrap().0.to_string()
    };
    assert_eq!(sleeps_on(Ticker::Portable), "condition variable");
    if cfg!(target_os = "linux") {
        assert_eq!(sleeps_on(Ticker::System), "timerfd");
        assert_eq!(sleeps_on(Ticker::Loop), "timerfd");
    } else if cfg!(windows) {
        assert_eq!(sleeps_on(Ticker::System), "waitable timer");
    } else {
        assert_eq!(sleeps_on(Ticker::System), "condition variable");
    }
}

/// The lateness of a timer that is alone in its engine, from its deadline to the worker.
fn lateness_alone(engine: &Engine<()>, delay: Duration) -> Duration {
    engine.schedule(Timer::after(delay, ())).unwrap();
    let expired = engine.queue(0).recv_timeout(20 * SECOND).unwrap();
    expired.lateness()
}

/// The figures of docs/PLATFORMS.md: `cargo test --release --test promises lateness --
/// --ignored --nocapture`.
#[test]
#[ignore = "prints figures"]
fn lateness_of_each_ticker() {
    let start = |ticker| start(Engine::builder().tick(Duration::from_micros(50)), ticker);
    let engines = THREADS.map(start);
    let mut random = Rng::with_seed(7);
    let mut late = [vec![], vec![]];
    // In turn, so that both meet the same load of the machine.
    for n in 0..1_000 {
        let delay = Duration::from_micros(random.u64(1_000..20_000));
        for which in [n % 2, 1 - n % 2] {
            late[which].push(lateness_alone(&engines[which], delay));
        }
    }
    for (mut late, ticker) in late.into_iter().zip(THREADS) {
        late.sort();
        let [median, most] = [late[500], late[990]];
        println!("{ticker:?}: median {median:?}, 99 in 100 at most {most:?}");
    }
}

#[test]
fn promise_01_never_early_on_any_ticker() {
    for ticker in ALL {
        for (tick, clock) in [
            (MS, ClockSource::Monotonic),
            (Duration::from_micros(50), ClockSource::BootTime),
        ] {
            let engine = start(Engine::builder().tick(tick).clock(clock), ticker);
            let queue = engine.queue(0);
            let mut random = Rng::with_seed(7);
            for _ in 0..100 {
                let delay = Duration::from_micros(random.u64(..30_000));
                let timer = Timer::after(delay, (Instant::now(), delay));
                engine.schedule(timer).unwrap();
            }
            for _ in 0..100 {
                let expired = queue.recv_timeout(20 * SECOND).unwrap();
                assert!(expired.lateness() >= Duration::ZERO);
                let (scheduled, delay) = expired.into_payload();
                assert!(scheduled.elapsed() >= delay, "{delay:?} early, {ticker:?}");
            }
        }
    }
}

#[test]
fn promise_02_an_old_ticker_is_in_time() {
    for ticker in ALL {
        let engine = start(Engine::builder(), ticker);
        let queue = engine.queue(0);
        let mut late: Vec<Duration> = (0..40)
            .map(|n| {
                // One that is slept for already, and an earlier one.
                let far = engine.schedule(Timer::after(3_600 * SECOND, ())).unwrap();
                engine.schedule(Timer::after((n % 9) * MS, ())).unwrap();
                let taken = queue.recv_timeout(20 * SECOND).unwrap();
                engine.cancel(far).payload().unwrap();
                taken.lateness()
            })
            .collect();
        late.sort();
        // The median, because a busy machine may hold up any single wake-up.
        assert!(late[20] < AGE / 4, "{ticker:?}: {late:?}");
    }
}

#[test]
fn promise_13_idle_is_free_on_any_ticker() {
    for ticker in THREADS {
        let engine = start(Engine::builder(), ticker);
        let before = engine.snapshot().wakeups;
        thread::sleep(200 * MS);
        let far = Timer::after(3_600 * SECOND, "far");
        engine.schedule(far).unwrap();
        thread::sleep(200 * MS);
        assert!(
            engine.snapshot().wakeups - before <= 1,
            "{ticker:?} is not idle"
        );

        // A timer by itself: the sleep for it ends no tick too soon.
        let before = engine.snapshot().wakeups;
        let now = engine.now().as_nanos() / 1_000_000;
        let deadline = Time::from_millis((now / 64 + 3) * 64 + 32);
        engine.schedule(Timer::at(deadline, "alone")).unwrap();
        let expired = engine.queue(0).recv_timeout(20 * SECOND).unwrap();
        assert_eq!(expired.into_payload(), "alone");
        // Brought forward, the portable one looks again how long to sleep; that is
        // no wake-up.
        assert_eq!(engine.snapshot().wakeups - before, 1, "{ticker:?}");
    }
}

/// How often a ticker wakes while each of four threads arms timers of `delay` and
/// cancels them, or does not; and how long that took.
fn wakeups_of_what_is_cancelled(ticker: Ticker, delay: Duration, arm: bool) -> (u64, Duration) {
    let engine = start(Engine::<u32>::builder().shards(4), ticker);
    let before = engine.snapshot().wakeups;
    let begun = Instant::now();
    let gate = Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                gate.wait();
                while begun.elapsed() < 500 * MS {
                    if arm {
                        let id = engine.schedule(Timer::after(delay, 1)).unwrap();
                        let _ = engine.cancel(id);
                    }
                    thread::sleep(Duration::from_micros(200));
                }
            });
        }
    });
    (engine.snapshot().wakeups - before, begun.elapsed())
}

#[test]
fn promise_13_a_cancelled_alarm_costs_at_most_one_wakeup() {
    for ticker in THREADS {
        let delay = 5 * MS;
        let (idle, _) = wakeups_of_what_is_cancelled(ticker, delay, false);
        let (woken, took) = wakeups_of_what_is_cancelled(ticker, delay, true);
        assert_eq!(idle, 0, "{ticker:?}");
        let delays = took.as_nanos() / delay.as_nanos();
        // Half as many again: a thread may stand between arming and cancelling.
        let limit = delays + delays / 2 + 4;
        assert!(
            u128::from(woken) <= limit,
            "{ticker:?}: {woken} in {delays} delays"
        );
    }
}
