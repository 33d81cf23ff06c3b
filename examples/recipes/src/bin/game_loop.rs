//! Pause and scale a game's time: a loop that owns its world and a wheel. Each frame moves
//! the game's time by the length of the frame, times a factor: half for slow motion, two for
//! fast forward, zero for a pause. Timers count the game's time, so a pause needs no call
//! for any of them.
//!
//! The program plays for a second and a half of real time, and records the length of each
//! frame and the player's commands. The same records give the same game again, to the letter,
//! whatever the machine does meanwhile.
//!
//! Timers that several threads schedule need an engine instead of a wheel:
//! [`VirtualClock::advance_within`](tickwheel::VirtualClock::advance_within) moves its time
//! in the same way, as the end of the program shows.
//!
//! ```text
//! cargo run -p tickwheel-recipes --bin game_loop
//! ```

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::wheel::Advance;
use tickwheel::{Engine, Tick, Timer, Wheel};

/// The time of a frame, a sixtieth of a second.
const FRAME: Duration = Duration::from_micros(16_667);
const FRAMES: usize = 90;

/// A game that was away for a minute, on a laptop that slept, goes on where it was.
const LONGEST_FRAME: Duration = Duration::from_millis(100);

fn main() -> Result<(), Box<dyn Error>> {
    let (record, log) = play();
    for line in &log {
        println!("{line}");
    }
    check(&record, &log);
    assert_eq!(replay(&record), log);
    println!("replayed: the same, line by line");
    in_an_engine()
}

/// What a player may do to the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Command {
    Pause,
    SlowMotion,
    Normal,
    FastForward,
}

/// A frame as it was: all that the game depends on.
#[derive(Clone, Copy)]
struct Frame {
    lasted: Duration,
    command: Option<Command>,
}

/// Plays with the system's clock and with these commands. Returns the frames and the log.
fn play() -> (Vec<Frame>, Vec<String>) {
    let mut game = Game::new();
    let mut record = Vec::new();
    let mut last = Instant::now();
    for number in 0..FRAMES {
        thread::sleep(FRAME.saturating_sub(last.elapsed())); // as a display would wait
        let now = Instant::now();
        let frame = Frame {
            lasted: now - last,
            command: match number {
                20 => Some(Command::SlowMotion),
                40 => Some(Command::Pause),
                60 => Some(Command::FastForward),
                80 => Some(Command::Normal),
                _ => None,
            },
        };
        last = now;
        game.frame(frame);
        record.push(frame);
    }
    (record, game.log)
}

fn replay(record: &[Frame]) -> Vec<String> {
    let mut game = Game::new();
    record.iter().for_each(|&frame| game.frame(frame));
    game.log
}

enum Event {
    /// A wave of enemies, and its number.
    Wave(u64),
    /// The end of a shield.
    ShieldEnds,
}

/// A tick of the wheel is a millisecond of the game's time.
struct Game {
    timers: Wheel<Event>,
    /// The microseconds of the game's time, which is zero at the beginning.
    micros: u64,
    /// The speed of the game's time in percent.
    speed: u64,
    log: Vec<String>,
}

impl Game {
    const WAVES_EVERY: u64 = 150;

    fn new() -> Game {
        let mut timers = Wheel::new(64);
        timers.schedule_after(Game::WAVES_EVERY, Event::Wave(1));
        Game { timers, micros: 0, speed: 100, log: Vec::new() }
    }

    fn frame(&mut self, frame: Frame) {
        if let Some(command) = frame.command {
            self.obey(command);
        }
        // Integers, because sums of fractions depend on the compiler and the processor.
        let micros = frame.lasted.min(LONGEST_FRAME).as_micros() as u64;
        self.micros += micros * self.speed / 100;
        let now = Tick(self.micros / 1_000);
        while let Some(expired) = self.timers.pop_due(now) {
            self.happen(expired.deadline, expired.payload);
        }
    }

    fn obey(&mut self, command: Command) {
        self.speed = match command {
            Command::Pause => 0,
            Command::SlowMotion => 50,
            Command::Normal => 100,
            Command::FastForward => 200,
        };
        self.say(self.timers.now(), &format!("{command:?}"));
    }

    /// Reacts to an event, which was due at `tick`. Timers that it schedules count from that
    /// tick, so a long frame shifts nothing. Those that are due within the frame fire in it.
    fn happen(&mut self, tick: Tick, event: Event) {
        match event {
            Event::Wave(number) => {
                self.say(tick, &format!("wave {number}"));
                let next = tick.after(Game::WAVES_EVERY);
                self.timers.schedule_at(next, Event::Wave(number + 1));
                self.timers.schedule_at(tick.after(40), Event::ShieldEnds);
            }
            Event::ShieldEnds => self.say(tick, "the shield ends"),
        }
    }

    fn say(&mut self, tick: Tick, what: &str) {
        self.log.push(format!("{:>5} ms: {what}", tick.0));
    }
}

/// Checks that nothing happens in a pause, and that each wave came at its millisecond.
fn check(record: &[Frame], log: &[String]) {
    let paused = log.iter().position(|line| line.ends_with("Pause")).unwrap();
    assert!(log[paused + 1].ends_with("FastForward"), "{log:?}");
    let waves = log.iter().filter(|line| line.contains("wave"));
    for (wave, number) in waves.zip(1..) {
        let due = number * Game::WAVES_EVERY;
        assert_eq!(*wave, format!("{due:>5} ms: wave {number}"));
    }
    let real: Duration = record.iter().map(|frame| frame.lasted).sum();
    println!("{FRAMES} frames in {real:.1?}");
}

/// The same with an engine, to which other threads may add timers. Fires three at most in a
/// frame; the rest keep their order and fire in the next one.
fn in_an_engine() -> Result<(), Box<dyn Error>> {
    let (engine, clock) = Engine::builder().name("room").start_virtual()?;
    for number in 0..5 {
        engine.schedule(Timer::after(Duration::from_millis(33), number))?;
    }
    let mut frames = Vec::new();
    for speed in [100, 0, 50, 50, 0] {
        let budget = 3;
        let served = clock.advance_within(FRAME * speed / 100, budget);
        let fired: Vec<i32> = engine.queue(0).try_iter().map(|due| due.into_payload()).collect();
        frames.push((fired, served));
    }
    let empty = (vec![], Advance::Done);
    let more = (vec![0, 1, 2], Advance::More);
    let rest = (vec![3, 4], Advance::Done);
    assert_eq!(frames, [empty.clone(), empty.clone(), empty, more, rest]);
    println!("an engine fired five timers in two frames");
    Ok(())
}
