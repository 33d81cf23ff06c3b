//! A process of its own for every round of every engine.
//!
//! A round leaves state behind that would disturb the next one: free pieces of
//! memory, which the allocator joins at a later growth and for hundreds of
//! milliseconds; a runtime's clock, which stays slow after it was paused once;
//! threads that are still ending.

use std::io;
use std::process::{Command, Stdio};

use crate::args::Workload;
use crate::case::{Case, Reading, Work};
use crate::effort::Effort;

/// The running program, even if it was built anew meanwhile.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// The longest time of a round. A round that takes longer hangs, and fails.
const LONGEST_SECONDS: u32 = 900;

/// A round without readings. The output of its process is on the terminal.
pub struct Failed;

/// Measures a case once, in a new process. `index` is the place among the
/// workload's cases, which is the same in every process.
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

/// The other end of [`measure`]: measures, and prints the readings.
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
