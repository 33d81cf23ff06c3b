//! Run a job by cron: at nine in the morning in Berlin and in New York, across changes to and
//! from daylight saving time, and although somebody sets the wall clock.
//!
//! An engine never reads the wall clock, so it never jumps with it. A job therefore computes
//! its next time on the wall clock, arms its timer for it, and looks at the wall clock again
//! when the timer fires. It arms the timer before it runs, so that a panic ends one run and
//! not the schedule. It also looks once a minute, because the wall clock may have been set
//! meanwhile. On [`ClockSource::BootTime`], delays count the time that the machine is
//! suspended, so a job that was missed in that time runs at once afterwards.
//!
//! `croner` knows the patterns, and `jiff` the time zones.
//!
//! ```text
//! cargo run -p tickwheel-recipes --bin cron
//! ```

use std::error::Error;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use tickwheel::{ClockSource, Firing, TaskEngine, Timer, TimerId, VirtualClock};

/// The longest time between two looks at the wall clock. A job notices within this time that
/// the wall clock was set forward.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    nine_in_the_morning_in_two_zones()?;
    once_at_a_time_that_is_left_out_or_comes_twice()?;
    a_wall_clock_that_is_set()?;
    a_job_that_panics()?;
    every_second_of_real_time()
}

/// Reads the wall clock.
type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A function that runs at the times of a pattern.
struct Job<F> {
    pattern: Cron,
    zone: TimeZone,
    wall: WallClock,
    next: Timestamp,
    run: F,
}

/// Runs `run` at the times of `pattern` in `zone`, until the timer is cancelled.
fn run_by_cron(
    timers: &TaskEngine,
    wall: &WallClock,
    pattern: &str,
    zone: &str,
    run: impl FnMut(Zoned) + Send + 'static,
) -> Result<TimerId, Box<dyn Error>> {
    let parser = CronParser::builder().seconds(Seconds::Optional).build();
    let mut job = Job {
        pattern: parser.parse(pattern)?,
        zone: TimeZone::get(zone)?,
        wall: Arc::clone(wall),
        next: Timestamp::MAX,
        run,
    };
    job.next = job.next_after(wall());
    let first = job.until_next(wall());
    let task = move |firing: Firing| job.look(&firing);
    Ok(timers.run(Timer::after(first, task).named(format!("{pattern} {zone}")))?)
}

impl<F: FnMut(Zoned)> Job<F> {
    /// Arms the timer for the next look, and runs the function if its time has come.
    fn look(&mut self, firing: &Firing) {
        let (now, time) = ((self.wall)(), self.next);
        if now >= time {
            // Leaves out the times that a wall clock which was set forward has jumped over. If
            // it was set back, no time comes twice.
            self.next = self.next_after(now);
        }
        // Armed before the function runs, because a panic would end the schedule otherwise.
        // Refused if the timer was cancelled or the engine was shut down meanwhile.
        let _ = firing.rearm(self.until_next(now));
        if now >= time {
            (self.run)(time.to_zoned(self.zone.clone()));
        }
    }

    /// Returns the pattern's first time after `now`, or the end of time if there is none.
    fn next_after(&self, now: Timestamp) -> Timestamp {
        let now = now.to_zoned(self.zone.clone());
        let next = self.pattern.find_next_occurrence(&now, false);
        next.map_or(Timestamp::MAX, |next| next.timestamp())
    }

    fn until_next(&self, now: Timestamp) -> Duration {
        let wait = now.duration_until(self.next).max(SignedDuration::ZERO);
        wait.unsigned_abs().min(LOOK_AGAIN)
    }
}

/// A wall clock that runs with an engine's virtual clock, and that can be set.
struct Simulation {
    timers: TaskEngine,
    clock: VirtualClock,
    wall: WallClock,
    /// The seconds by which the wall clock was set forward.
    set_by: Arc<AtomicI64>,
}

impl Simulation {
    fn starting(at: &str) -> Result<Simulation, Box<dyn Error>> {
        let start: Timestamp = at.parse()?;
        let (timers, clock) = TaskEngine::builder().workers(1).start_virtual()?;
        let set_by = Arc::new(AtomicI64::new(0));
        let (engine, set) = (timers.downgrade(), Arc::clone(&set_by));
        let wall = move || {
            let engine = engine.upgrade().expect("the engine runs the job");
            let passed = Duration::from_nanos(engine.now().as_nanos());
            start + passed + SignedDuration::from_secs(set.load(Relaxed))
        };
        Ok(Simulation { timers, clock, wall: Arc::new(wall), set_by })
    }

    /// Runs a job, which sends its times.
    fn job(&self, pattern: &str, zone: &str) -> Result<mpsc::Receiver<Zoned>, Box<dyn Error>> {
        let (ran, times) = mpsc::channel();
        let run = move |at| _ = ran.send(at);
        run_by_cron(&self.timers, &self.wall, pattern, zone, run)?;
        Ok(times)
    }

    fn pass_hours(&self, hours: f64) {
        let passed = Duration::from_secs_f64(hours * 3_600.0);
        self.clock.run_until(self.timers.now() + passed);
    }

    fn set_forward(&self, hours: i64) {
        self.set_by.fetch_add(hours * 3_600, Relaxed);
    }
}

/// Europe leaves daylight saving time a week before America: for that week, New York is five
/// hours behind Berlin and not six.
fn nine_in_the_morning_in_two_zones() -> Result<(), Box<dyn Error>> {
    let simulation = Simulation::starting("2026-10-19T00:00:00Z")?;
    let berlin = simulation.job("0 9 * * MON-FRI", "Europe/Berlin")?;
    let new_york = simulation.job("0 9 * * MON-FRI", "America/New_York")?;
    simulation.pass_hours(21.0 * 24.0);
    let pairs: Vec<_> = berlin.try_iter().zip(new_york.try_iter()).collect();
    assert_eq!(pairs.len(), 15);
    for (n, (east, west)) in pairs.iter().enumerate() {
        assert!(east.hour() == 9 && west.hour() == 9 && east.date() == west.date());
        let apart = east.timestamp().duration_until(west.timestamp());
        let hours = if (5..10).contains(&n) { 5 } else { 6 };
        assert_eq!(apart, SignedDuration::from_hours(hours), "{east}");
        println!("{east}, and {hours} hours later {west}");
    }
    Ok(())
}

/// At the change to daylight saving time, half past two is left out; at the change back, it
/// comes twice. A job for that time runs once on either day. A job for every half hour runs
/// at each half hour that passes.
fn once_at_a_time_that_is_left_out_or_comes_twice() -> Result<(), Box<dyn Error>> {
    for (day, half_hours) in [("2026-03-29", 46), ("2026-10-25", 50)] {
        // A little before midnight in Berlin, in winter or in summer.
        let midnight: Zoned = format!("{day}T00:00[Europe/Berlin]").parse()?;
        let before = midnight.timestamp() - SignedDuration::from_secs(1);
        let simulation = Simulation::starting(&before.to_string())?;
        let nightly = simulation.job("30 2 * * *", "Europe/Berlin")?;
        let often = simulation.job("*/30 * * * *", "Europe/Berlin")?;
        simulation.pass_hours(f64::from(half_hours) / 2.0);
        let nights: Vec<_> = nightly.try_iter().collect();
        assert_eq!(nights.len(), 1, "{nights:?}");
        assert_eq!(often.try_iter().count(), half_hours as usize, "{day}");
        println!("{}: once, although the day has {half_hours} half hours", nights[0]);
    }
    Ok(())
}

/// A job for every full hour, while the wall clock is set forward by two hours at half past
/// ten and set back by one hour at half past one.
fn a_wall_clock_that_is_set() -> Result<(), Box<dyn Error>> {
    let simulation = Simulation::starting("2026-06-01T09:30:00Z")?;
    let times = simulation.job("0 * * * *", "UTC")?;
    let hours = || -> Vec<i8> { times.try_iter().map(|at| at.hour()).collect() };
    simulation.pass_hours(1.0);
    assert_eq!(hours(), [10]);
    simulation.set_forward(2); // from 10:30 to 12:30
    simulation.pass_hours(LOOK_AGAIN.as_secs_f64() / 3_600.0);
    assert_eq!(hours(), [11], "runs once for 11:00, and not for 12:00");
    simulation.pass_hours(1.0);
    assert_eq!(hours(), [13]);
    simulation.set_forward(-1); // from 13:31 to 12:31
    simulation.pass_hours(1.0);
    assert!(hours().is_empty(), "13:00 does not come twice");
    simulation.pass_hours(0.5);
    assert_eq!(hours(), [14]);
    println!("the wall clock was set twice, and each hour ran once at most");
    Ok(())
}

/// A job that fails at ten o'clock runs again at eleven.
fn a_job_that_panics() -> Result<(), Box<dyn Error>> {
    let simulation = Simulation::starting("2026-06-01T09:30:00Z")?;
    let (ran, times) = mpsc::channel();
    let run = move |at: Zoned| {
        let _ = ran.send(at.hour());
        assert!(at.hour() != 10, "this job fails at ten o'clock");
    };
    let (timers, wall) = (&simulation.timers, &simulation.wall);
    run_by_cron(timers, wall, "0 * * * *", "UTC", run)?;
    simulation.pass_hours(2.0);
    assert_eq!(times.try_iter().collect::<Vec<_>>(), [10, 11]);
    assert_eq!(timers.snapshot().panics, 1);
    println!("the job failed at ten o'clock and ran at eleven");
    Ok(())
}

/// The same job on the system's clocks.
fn every_second_of_real_time() -> Result<(), Box<dyn Error>> {
    let builder = TaskEngine::builder().name("cron").workers(1);
    let timers = builder.clock(ClockSource::BootTime).start()?;
    let wall: WallClock = Arc::new(Timestamp::now);
    let (ran, times) = mpsc::channel();
    let run = move |at: Zoned| _ = ran.send((at.timestamp(), Timestamp::now()));
    let job = run_by_cron(&timers, &wall, "* * * * * *", "UTC", run)?;
    for (at, now) in times.iter().take(2) {
        assert!(at <= now);
        println!("{at}: {:.0?} late", at.duration_until(now).unsigned_abs());
    }
    timers.cancel(job);
    Ok(())
}
