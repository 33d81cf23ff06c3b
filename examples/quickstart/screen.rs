//! Draws an engine: in place if the output is a terminal, line by line otherwise.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::wheel::Level;
use tickwheel::{Engine, Task};

const FRAME: Duration = Duration::from_millis(40);

const LEGEND: &str = "\n  a slot of  the wheel's slots: · empty  ░ a few timers  ▒ ▓  █ hundreds";

/// The number of log lines below the wheel.
const LOGGED: usize = 12;

/// Takes the lines of tasks, from any thread.
#[derive(Clone)]
pub struct Log {
    begun: Instant,
    sender: Sender<String>,
}

impl Log {
    pub fn line(&self, text: String) {
        let line = format!("{}  {text}", seconds(self.begun));
        // The screen is gone only if the program has failed already.
        let _ = self.sender.send(line);
    }
}

pub struct Screen {
    engine: Engine<Task>,
    begun: Instant,
    news: Receiver<String>,
    lines: VecDeque<String>,
    /// The number of lines of the last frame.
    height: usize,
}

impl Screen {
    pub fn new(engine: Engine<Task>) -> (Screen, Log) {
        let (sender, news) = mpsc::channel();
        let (begun, lines) = (Instant::now(), VecDeque::new());
        let screen = Screen {
            engine,
            begun,
            news,
            lines,
            height: 0,
        };
        (screen, Log { begun, sender })
    }

    /// Shows the engine at work for `duration`.
    pub fn show(&mut self, duration: Duration) -> io::Result<()> {
        let end = Instant::now() + duration;
        let live = io::stdout().is_terminal();
        while Instant::now() < end {
            thread::sleep(FRAME.min(end - Instant::now()));
            self.update(live)?;
        }
        self.update(live)?;
        if !live {
            println!("{}", self.status());
        }
        Ok(())
    }

    fn update(&mut self, live: bool) -> io::Result<()> {
        if !live {
            self.news.try_iter().for_each(|line| println!("{line}"));
            return Ok(());
        }
        self.lines.extend(self.news.try_iter());
        let surplus = self.lines.len().saturating_sub(LOGGED);
        self.lines.drain(..surplus);
        self.draw()
    }

    /// Writes a frame over the last one.
    fn draw(&mut self) -> io::Result<()> {
        let shard = &self.engine.inspect(256).shards[0];
        let wheel = shard.levels.iter().enumerate().rev().map(row);
        let mut frame = vec![self.status(), LEGEND.to_string()];
        frame.extend(wheel);
        frame.push(String::new());
        frame.extend(self.lines.iter().cloned());

        let mut out = io::stdout().lock();
        if self.height > 0 {
            write!(out, "\x1b[{}A\x1b[J", self.height)?;
        }
        self.height = frame.len() + 1;
        writeln!(out, "{}", frame.join("\n"))
    }

    fn status(&self) -> String {
        let snapshot = self.engine.snapshot();
        let (ledger, lateness) = (snapshot.ledger, snapshot.lateness);
        let late = |share| lateness.quantile(share).unwrap_or_default();
        format!(
            "{}  {:6} live  {:6} ran  {:6} cancelled  half < {:.1?} late, 99 % < {:.1?}",
            seconds(self.begun),
            ledger.live,
            ledger.completed,
            ledger.cancelled,
            late(0.5),
            late(0.99),
        )
    }
}

fn seconds(begun: Instant) -> String {
    format!("{:5.2} s", begun.elapsed().as_secs_f64())
}

/// A level of the wheel: what a slot covers, and how full each slot is.
fn row((number, level): (usize, &Level)) -> String {
    let shade = |&timers: &usize| match timers {
        0 => '·',
        1..8 => '░',
        8..64 => '▒',
        64..256 => '▓',
        _ => '█',
    };
    let slots: String = level.timers.iter().map(shade).collect();
    let slot = Duration::from_millis(level.slot_ticks);
    format!("{number} {:>8} {slots}", format!("{slot:.1?}"))
}
