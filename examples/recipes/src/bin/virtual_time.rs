//! Test with virtual time: a service that uses timers, and the tests that its author would
//! write. A day passes in milliseconds, each assertion is about an exact time, and the
//! result is the same on every machine, however busy.
//!
//! The service takes its engine from its caller. A program starts one on the system's
//! clock, and a test one on a virtual clock. Nothing else differs.
//!
//! ```text
//! cargo run -p tickwheel-recipes --bin virtual_time
//! ```

use std::error::Error;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use tickwheel::time::{MissedTickBehavior, Timers};
use tickwheel::{Firing, Refusal, Refused, TaskEngine, Time, Timer, TimerId, VirtualClock};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// Returns the time at which an hour of the virtual day begins.
fn hour(number: u64) -> Time {
    Time::from_secs(3_600 * number)
}

fn main() -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    an_alarm_is_raised_a_minute_after_the_last_heartbeat()?;
    a_watch_of_a_day_raises_each_alarm_once()?;
    a_slow_answer_is_given_up_to_the_second()?;
    awaited_polls_happen_at_exact_times()?;
    println!("four tests of two days: {:.0?}", begun.elapsed());
    Ok(())
}

/// Part of a program: watches servers, and raises an alarm for one that has not been heard
/// for a minute, and every hour again while it is silent.
struct Watch {
    timers: TaskEngine,
    alarms: mpsc::Sender<(Time, String)>,
}

impl Watch {
    const SILENCE: Duration = MINUTE;
    const REMINDER: Duration = HOUR;

    fn add(&self, server: &str) -> Result<TimerId, Refused<Timer<impl FnMut(Firing) + use<>>>> {
        let (alarms, server) = (self.alarms.clone(), server.to_owned());
        let raise = move |firing: Firing| _ = alarms.send((firing.deadline(), server.clone()));
        let timer = Timer::every(Watch::REMINDER, raise);
        self.timers.run(timer.starting(Watch::SILENCE))
    }

    fn heard(&self, server: TimerId) -> Result<(), Refusal> {
        self.timers.reschedule(server, Watch::SILENCE)
    }
}

/// Starts a watch as a test does. The engine in it is a real one: only time is not.
macro_rules! watch {
    () => {{
        let (timers, clock) = TaskEngine::builder().workers(2).start_virtual()?;
        let (alarms, raised) = mpsc::channel();
        (Watch { timers, alarms }, clock, raised)
    }};
}

fn an_alarm_is_raised_a_minute_after_the_last_heartbeat() -> Result<(), Box<dyn Error>> {
    let (watch, clock, raised) = watch!();
    let server = watch.add("db")?;
    clock.run_until(Time::from_secs(59));
    watch.heard(server)?;
    // A test may look at the very tick before, and at the tick.
    clock.run_until(Time::from_millis(118_999));
    assert!(raised.try_recv().is_err());
    clock.run_until(Time::from_secs(119));
    assert_eq!(raised.try_recv()?, (Time::from_secs(119), "db".to_owned()));
    Ok(())
}

fn a_watch_of_a_day_raises_each_alarm_once() -> Result<(), Box<dyn Error>> {
    let (watch, clock, raised) = watch!();
    watch.add("silent")?;
    let server = watch.add("healthy")?;
    for second in (30..24 * 3_600).step_by(30) {
        clock.run_until(Time::from_secs(second));
        watch.heard(server)?;
    }
    clock.run_until(hour(24));
    let expected: Vec<_> = (0..24).map(|n| (hour(n) + MINUTE, "silent".to_owned())).collect();
    assert_eq!(raised.try_iter().collect::<Vec<_>>(), expected);
    Ok(())
}

/// A task to await, and the executor that a test of one thread needs.
struct Task(Option<Pin<Box<dyn Future<Output = ()>>>>);

impl Task {
    fn new(future: impl Future<Output = ()> + 'static) -> Task {
        Task(Some(Box::pin(future)))
    }

    /// Moves the clock up to `time`. The task runs at each due tick until it waits again.
    fn run_until(&mut self, clock: &VirtualClock, time: Time) {
        let mut context = Context::from_waker(Waker::noop());
        clock.run_until_settled(time, || {
            self.0.take_if(|task| task.as_mut().poll(&mut context).is_ready());
        });
    }
}

fn a_slow_answer_is_given_up_to_the_second() -> Result<(), Box<dyn Error>> {
    let (timers, clock) = Timers::builder().start_virtual()?;
    let (give_up, gave_up) = mpsc::channel();
    let mut request = Task::new(async move {
        let answer = timers.sleep(HOUR);
        let limited = timers.timeout(30 * SECOND, answer).await;
        give_up.send(limited.is_err()).unwrap();
    });
    request.run_until(&clock, Time::from_millis(29_999));
    assert!(gave_up.try_recv().is_err());
    request.run_until(&clock, Time::from_secs(30));
    assert!(gave_up.try_recv()?);
    Ok(())
}

fn awaited_polls_happen_at_exact_times() -> Result<(), Box<dyn Error>> {
    let (timers, clock) = Timers::builder().start_virtual()?;
    let (polled, polls) = mpsc::channel();
    let mut poll = Task::new(async move {
        let mut every = timers.interval(HOUR);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            polled.send(timers.now()).unwrap();
        }
    });
    poll.run_until(&clock, hour(24));
    let expected: Vec<_> = (0..=24).map(hour).collect();
    assert_eq!(polls.try_iter().collect::<Vec<_>>(), expected);
    Ok(())
}
