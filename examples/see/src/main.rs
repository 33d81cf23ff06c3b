//! Shows an engine at work in the terminal, and writes the pictures of the documentation.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use tickwheel_see::record::{Record, all_frames, all_pictures};
use tickwheel_see::{ClockKind, Playground, Settings, Viewer};

/// Shows an engine at work. Press ? for the keys.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Follow the real clock from the start, instead of a virtual one
    #[arg(long)]
    real: bool,

    /// The length of a tick in microseconds
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    tick: u64,

    /// The number of slots per level
    #[arg(long, default_value_t = 64)]
    wheel_size: usize,

    /// The number of shards, rounded up to a power of two
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    shards: u16,

    /// The number of queues
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    queues: u16,

    /// The number of timers that are scheduled a second
    #[arg(long, default_value_t = 1_000.0)]
    rate: f64,

    /// The part of them that is cancelled, from 0 to 1
    #[arg(long, default_value_t = 0.75)]
    cancelled: f64,

    /// The longest delay in seconds
    #[arg(long, default_value_t = 600.0)]
    longest: f64,

    /// The seed of the delays
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Subcommand)]
enum Command {
    /// Record the frames that the tests compare, in examples/see/frames
    Frames,
    /// Draw the pictures of the documentation, in docs/pictures
    Pictures,
}

impl Args {
    fn settings(&self) -> Settings {
        Settings {
            clock: if self.real {
                ClockKind::Real
            } else {
                ClockKind::Virtual
            },
            tick: Duration::from_micros(self.tick),
            wheel_size: self.wheel_size,
            shards: usize::from(self.shards),
            queues: usize::from(self.queues),
            rate: self.rate.max(0.0),
            cancelled: self.cancelled.clamp(0.0, 1.0),
            longest: Duration::from_secs_f64(self.longest.clamp(0.001, 1e9)),
            seed: self.seed,
        }
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tickwheel-see: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    match &args.command {
        Some(Command::Frames) => write(all_frames()),
        Some(Command::Pictures) => write(all_pictures()),
        None => Ok(Viewer::of(Playground::start(args.settings())?).run()?),
    }
}

fn write(records: Vec<Record>) -> Result<(), Box<dyn Error>> {
    for record in records {
        record.write()?;
        println!("{}", record.path.display());
    }
    Ok(())
}
