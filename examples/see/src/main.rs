//! Shows an engine at work in the terminal.

use std::error::Error;
use std::time::Duration;

use clap::Parser;
use tickwheel_see::{ClockKind, Playground, Settings, Viewer};

/// Shows an engine at work. Press ? for the keys.
#[derive(Parser)]
struct Args {
    /// Follow the real clock from the start, instead of a virtual one
    #[arg(long)]
    real: bool,

    /// The length of a tick in microseconds
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    tick: u64,

    /// The number of slots per level
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(2..=65_536))]
    wheel_size: u32,

    /// The number of shards, rounded up to a power of two
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1_024))]
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

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let settings = Settings {
        clock: if args.real { ClockKind::Real } else { ClockKind::Virtual },
        tick: Duration::from_micros(args.tick),
        wheel_size: args.wheel_size as usize,
        shards: usize::from(args.shards),
        queues: usize::from(args.queues),
        rate: args.rate.max(0.0),
        cancelled: args.cancelled.clamp(0.0, 1.0),
        longest: Duration::try_from_secs_f64(args.longest.clamp(0.001, 1e9))?,
        seed: args.seed,
    };
    Ok(Viewer::of(Playground::start(settings)?).run()?)
}
