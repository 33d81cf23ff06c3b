//! A process of its own for every round of every engine.
//!
//! What ran before leaves something behind: an allocator whose free pieces are
//! put together at some later growth, for hundreds of milliseconds (a round of
//! lateness once had a median of 0.2 s because of it), a runtime's clock that
//! was paused once and is slow ever after, threads that are still ending.

use std::io;
use std::process::{Command, Stdio};

use crate::args::Workload;
use crate::case::{Case, Reading, Work};
use crate::effort::Effort;

/// The very program that runs, even if it was built anew meanwhile.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// A round that takes longer hangs, and is given up.
const LONGEST_SECONDS: u32 = 900;

/// Why a round has no readings. What its process had to say is on the terminal.
pub struct Failed;

/// Measures a case once, in a new process. `index` counts the workload's
/// cases, which are the same in every process.
pub fn measure(
    workload: Workload,
    effort: Effort,
    index: usize,
) -> io::Result<Result<Vec<Reading>, Failed>> {
    let mut command = Command::new(THIS_PROGRAM);
    command.args(["--workload", &workload.to_string()]);
    command.args(["--only", &index.to_string()]);
    if effort.quick {
        command.arg("--quick");
    }
    let ended = command.stderr(Stdio::inherit()).output()?;
    if !ended.status.success() {
        return Ok(Err(Failed));
    }
    let printed = String::from_utf8_lossy(&ended.stdout);
    let readings: Result<_, _> = printed.lines().map(serde_json::from_str).collect();
    Ok(readings.map_err(|_| Failed))
}

/// The other end of [`measure`]: does it, and prints what it read.
pub fn run(cases: &[Case], index: usize) -> serde_json::Result<()> {
    // SAFETY: the call takes no pointers.
    unsafe { libc::alarm(LONGEST_SECONDS) };
    if let Some(Work::Measure(measure)) = cases.get(index).map(|case| &case.work) {
        for reading in measure() {
            println!("{}", serde_json::to_string(&reading)?);
        }
    }
    Ok(())
}
