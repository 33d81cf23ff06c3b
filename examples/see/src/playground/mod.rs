//! An engine of the viewer's own, with a load and a clock that keys control.

mod crew;
mod loaders;

use std::time::Duration;

use tickwheel::{Engine, StartError, Time, VirtualClock};

use crate::look::{Eye, Look};
use crate::numbers::exact;
use crate::playground::crew::Crew;
use crate::playground::loaders::{Loaders, Work};
use crate::viewer::{Key, Subject};

/// The clock that an engine follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockKind {
    /// The system's monotonic clock, with a ticker thread and worker threads.
    Real,
    /// A clock that the playground moves, stops and steps.
    Virtual,
}

/// The settings of a playground.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The clock at the start.
    pub clock: ClockKind,
    /// The duration of a tick.
    pub tick: Duration,
    /// The number of slots per level.
    pub wheel_size: usize,
    /// The number of shards.
    pub shards: usize,
    /// The number of queues.
    pub queues: usize,
    /// The number of timers that the load schedules a second.
    pub rate: f64,
    /// The part of them that it cancels before they fire, from 0 to 1.
    pub cancelled: f64,
    /// The longest delay. Delays are spread evenly over the orders of magnitude up to it.
    pub longest: Duration,
    /// The seed of the delays.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            clock: ClockKind::Virtual,
            tick: Duration::from_millis(1),
            wheel_size: 64,
            shards: 4,
            queues: 2,
            rate: 1_000.0,
            cancelled: 0.75,
            longest: Duration::from_secs(600),
            seed: 1,
        }
    }
}

const KEYS: [Key; 12] = [
    Key::new("space", "stop", "Stops the virtual clock, or lets it run"),
    Key::new(".", "tick", "Stops the virtual clock at the next tick"),
    Key::new("1-9", "slot", "Stops it where that level's next slot cascades"),
    Key::new("a", "+1k", "Adds a thousand timers"),
    Key::new("m", "+1M", "Adds a million timers"),
    Key::new("c", "-1k", "Cancels a thousand timers"),
    Key::new("x", "cancel all", "Cancels all timers"),
    Key::new("w", "workers", "Stops the workers, or lets them work again"),
    Key::new("l", "load", "Stops the load, or starts it"),
    Key::new("v", "clock", "Changes to the real clock or back, with all timers"),
    Key::new("j", "jump", "Jumps a second in one move, as after a stall"),
    Key::new("+ -", "speed", "Makes virtual time pass twice or half as fast"),
];

/// The most timers that the load adds in one frame, however far time has moved.
const MOST_PER_FRAME: f64 = 100_000.0;

/// An engine with a load. The keys of a viewer control both, and time.
#[derive(Debug)]
pub struct Playground {
    settings: Settings,
    loaders: Loaders,
    engine: Engine<Time>,
    /// `None` on the real clock.
    clock: Option<VirtualClock>,
    /// The threads that take timers on the real clock.
    crew: Option<Crew>,
    eye: Eye,
    is_stopped: bool,
    has_load: bool,
    has_workers: bool,
    speed: f64,
    /// The part of a timer that the load still owes, because time moved too little.
    owed: f64,
}

impl Playground {
    /// Starts an engine. Nothing is scheduled before time passes.
    ///
    /// # Errors
    /// Returns an error if the engine does not start with these settings.
    pub fn start(settings: Settings) -> Result<Playground, StartError> {
        let (engine, clock) = start(&settings, settings.clock, Time::START)?;
        Ok(Playground {
            loaders: Loaders::start(&settings)?,
            crew: clock.is_none().then(|| Crew::start(&engine)),
            engine,
            clock,
            eye: Eye::default(),
            is_stopped: false,
            has_load: true,
            has_workers: true,
            speed: 1.0,
            owed: 0.0,
            settings,
        })
    }

    /// Returns the engine.
    #[must_use]
    pub fn engine(&self) -> &Engine<Time> {
        &self.engine
    }

    /// Lets the load schedule and cancel what `time` brings.
    fn load(&mut self, time: Duration) {
        if !self.has_load {
            return;
        }
        self.owed += (self.settings.rate * time.as_secs_f64()).min(MOST_PER_FRAME);
        let count = self.owed.floor();
        self.owed -= count;
        let cancel = (count * self.settings.cancelled).round() as usize;
        self.work(Work::Schedule(count as usize));
        self.work(Work::Cancel(cancel));
    }

    /// Divides work among the loaders, and waits for them.
    fn work(&mut self, work: Work) -> usize {
        self.loaders.work(&self.engine, work)
    }

    /// Takes what is due, on the virtual clock. On the real clock, the crew does.
    fn take(&self) {
        if self.clock.is_some() && self.has_workers {
            for queue in 0..self.settings.queues {
                self.engine.queue(queue).try_iter().for_each(drop);
            }
        }
    }

    /// Moves the virtual clock from due tick to due tick, as if workers were always free.
    fn move_clock(&self, to: Time) {
        if let Some(clock) = &self.clock {
            clock.run_until_settled(to, || self.take());
        }
    }

    fn step(&mut self, level: u32) -> String {
        if self.clock.is_none() {
            return "The real clock does not step: press v for the virtual one".to_owned();
        }
        if level as usize >= self.levels() {
            return format!("No timer is in level {level} or behind it");
        }
        self.is_stopped = true;
        let slot = (self.settings.wheel_size as u64).saturating_pow(level);
        let next = (self.engine.current_tick().0 / slot + 1).saturating_mul(slot);
        let tick = self.settings.tick.as_nanos() as u64;
        let time = Time::from_nanos(next.saturating_mul(tick));
        self.move_clock(time);
        let next = exact(next);
        match level {
            0 => format!("Moved to tick {next}"),
            _ => format!("Moved to tick {next}, where a slot of level {level} has its turn"),
        }
    }

    /// Returns the number of levels up to the last one that has timers.
    fn levels(&self) -> usize {
        let shards = self.engine.inspect(0).shards.into_iter();
        shards.map(|shard| shard.levels.len()).max().unwrap_or(0)
    }

    fn stop(&mut self) -> String {
        if self.clock.is_none() {
            return "The real clock does not stop: press v for the virtual one".to_owned();
        }
        self.is_stopped = !self.is_stopped;
        let now = if self.is_stopped { "stands still" } else { "runs" };
        format!("The virtual clock {now}")
    }

    fn jump(&mut self) -> String {
        let Some(clock) = &self.clock else {
            return "The real clock does not jump: press v for the virtual one".to_owned();
        };
        clock.advance(Duration::from_secs(1));
        self.take();
        "Jumped a second: what was due on the way is late".to_owned()
    }

    fn change_speed(&mut self, factor: f64) -> String {
        if self.clock.is_none() {
            return "The real clock has one speed: press v for the virtual one".to_owned();
        }
        self.speed = (self.speed * factor).clamp(1.0 / 1024.0, 1024.0);
        format!("Virtual time passes {} times as fast as real time", self.speed())
    }

    fn speed(&self) -> String {
        match self.speed {
            ..1.0 => format!("1/{}", 1.0 / self.speed),
            _ => self.speed.to_string(),
        }
    }

    fn stop_load(&mut self) -> String {
        self.has_load = !self.has_load;
        if self.has_load {
            format!("The load schedules {} timers a second", self.settings.rate)
        } else {
            "The load is off".to_owned()
        }
    }

    fn stop_workers(&mut self) -> String {
        self.has_workers = !self.has_workers;
        if let Some(crew) = &self.crew {
            crew.let_work(self.has_workers);
        }
        self.take();
        if self.has_workers {
            "The workers take what is due".to_owned()
        } else {
            "The workers rest: expired timers wait, still cancellable".to_owned()
        }
    }

    fn cancel(&mut self, count: usize) -> String {
        let cancelled = self.work(Work::Cancel(count));
        format!("Cancelled {} timers", exact(cancelled as u64))
    }

    fn add(&mut self, count: usize) -> String {
        let added = self.work(Work::Schedule(count));
        format!("Added {} timers", exact(added as u64))
    }

    fn cancel_all(&mut self) -> String {
        let cancelled = self.engine.cancel_all().len();
        format!("Cancelled all {} timers", exact(cancelled as u64))
    }

    /// Starts an engine on the other clock, and moves the timers there.
    fn change_clock(&mut self) -> String {
        let other = match self.clock {
            Some(_) => ClockKind::Real,
            None => ClockKind::Virtual,
        };
        match start(&self.settings, other, self.engine.now()) {
            Ok((engine, clock)) => self.move_to(engine, clock),
            Err(error) => format!("The engine did not start: {error}"),
        }
    }

    fn move_to(&mut self, engine: Engine<Time>, clock: Option<VirtualClock>) -> String {
        let old = std::mem::replace(&mut self.engine, engine);
        let now = old.now();
        let live = old.shutdown();
        let moved = live.len();
        self.crew = clock.is_none().then(|| Crew::start(&self.engine));
        if let Some(crew) = &self.crew {
            crew.let_work(self.has_workers);
        }
        self.clock = clock;
        self.eye = Eye::default();
        let delays = live.into_iter().filter_map(|closed| closed.payload);
        self.loaders.take_over(&self.engine, delays.map(|due| due.since(now)).collect());
        let name = if self.clock.is_some() { "virtual" } else { "real" };
        let moved = exact(moved as u64);
        format!("{moved} timers go on in an engine on the {name} clock")
    }
}

fn start(
    settings: &Settings,
    clock: ClockKind,
    now: Time,
) -> Result<(Engine<Time>, Option<VirtualClock>), StartError> {
    let builder = Engine::builder()
        .name("playground")
        .tick(settings.tick)
        .wheel_size(settings.wheel_size)
        .shards(settings.shards)
        .queues(settings.queues)
        .measure_work(true);
    match clock {
        ClockKind::Real => Ok((builder.start()?, None)),
        ClockKind::Virtual => {
            let clock = VirtualClock::starting_at(now);
            Ok((builder.start_on(&clock)?, Some(clock)))
        }
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        self.engine.shutdown();
    }
}

impl Subject for Playground {
    fn look(&mut self) -> Look {
        self.eye.look(&self.engine)
    }

    fn status(&self) -> String {
        let clock = match (&self.clock, self.is_stopped) {
            (None, _) => "real clock".to_owned(),
            (Some(_), true) => "virtual clock, stopped".to_owned(),
            (Some(_), false) => format!("virtual clock ×{}", self.speed()),
        };
        if self.has_workers { clock } else { clock + ", workers rest" }
    }

    fn keys(&self) -> &'static [Key] {
        &KEYS
    }

    fn press(&mut self, key: char) -> Option<String> {
        let message = match key {
            ' ' => self.stop(),
            '.' => self.step(0),
            '1'..='9' => self.step(u32::from(key) - u32::from('0')),
            'a' => self.add(1_000),
            'm' => self.add(1_000_000),
            'c' => self.cancel(1_000),
            'x' => self.cancel_all(),
            'w' => self.stop_workers(),
            'v' => self.change_clock(),
            'l' => self.stop_load(),
            'j' => self.jump(),
            '+' | '=' => self.change_speed(2.0),
            '-' => self.change_speed(0.5),
            _ => return None,
        };
        self.eye.refresh();
        Some(message)
    }

    fn pass(&mut self, time: Duration) {
        match self.clock {
            Some(_) if self.is_stopped => {}
            Some(_) => {
                let time = time.mul_f64(self.speed);
                self.load(time);
                self.move_clock(self.engine.now() + time);
            }
            None => self.load(time),
        }
    }
}
