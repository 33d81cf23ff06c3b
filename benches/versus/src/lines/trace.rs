//! Running the calling case again under valgrind, and playing what it records.

use std::io::{self, BufRead, BufReader};
use std::process::{Command, Stdio};

use super::caches::{Access, Caches, Count};
use super::marks::{self, Kind, PAGE, PAGE_SIZE, STRIDE};

/// The counts of each kind of calls.
pub type Counts = Vec<Count>;

/// The variable that a traced process finds in its environment.
const TRACED: &str = "TICKWHEEL_VERSUS_TRACED";

const KINDS: usize = (PAGE_SIZE / STRIDE) as usize;

/// Whether this process is traced. If so, its marks are recorded.
fn is_traced() -> bool {
    std::env::var_os(TRACED).is_some()
}

/// Runs this process's own command line again under valgrind, and returns the counts.
/// There, `work` runs in place of this call, and the process ends.
pub fn trace(work: impl FnOnce()) -> io::Result<Counts> {
    if is_traced() {
        marks::provide();
        work();
        std::process::exit(0);
    }
    let mut valgrind = Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes", "--trace-sched=yes"])
        .args(["--basic-counts=no", "--fair-sched=no", "--max-threads=1000"])
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(TRACED, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut play = Play::new();
    if let Some(recorded) = valgrind.stderr.take() {
        let mut recorded = BufReader::with_capacity(1 << 20, recorded);
        let mut line = Vec::new();
        while recorded.read_until(b'\n', &mut line)? > 0 {
            play.line(&line);
            line.clear();
        }
    }
    match valgrind.wait()?.success() {
        true => Ok(play.counts),
        false => Err(io::Error::other("the traced process failed")),
    }
}

/// A trace that is being played.
struct Play {
    caches: Caches,
    counts: Counts,
    /// The thread that runs. Valgrind runs one at a time.
    thread: usize,
    /// The kind of the current call of each thread.
    kinds: Vec<Kind>,
}

impl Play {
    fn new() -> Play {
        Play {
            caches: Caches::default(),
            counts: vec![Count::default(); KINDS],
            thread: 0,
            kinds: vec![0; 256],
        }
    }

    /// Plays a line of the trace. Lines of other content are ignored.
    fn line(&mut self, line: &[u8]) {
        match line {
            [b' ', kind, b' ', access @ ..] => {
                if let Some((address, size)) = address_and_size(access) {
                    self.access(*kind, address, size);
                }
            }
            [b'-', b'-', ..] => self.thread = thread(line).unwrap_or(self.thread),
            _ => {}
        }
    }

    fn access(&mut self, access: u8, address: u64, size: u64) {
        if (PAGE..PAGE + PAGE_SIZE).contains(&address) {
            return self.mark(((address - PAGE) / STRIDE) as Kind);
        }
        let kind = self.kinds[self.thread];
        if kind == 0 {
            return;
        }
        let access = match access {
            b'L' => Access::Read,
            _ => Access::Write,
        };
        let transfers = self.caches.access(self.thread, address, size, access);
        self.counts[kind].transfers += transfers;
    }

    fn mark(&mut self, kind: Kind) {
        let ended = std::mem::replace(&mut self.kinds[self.thread], kind);
        if ended != 0 {
            self.caches.end_call(&mut self.counts[ended]);
        }
    }
}

/// Parses `1ffeff7d8,8`.
fn address_and_size(text: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let (address, size) = text.split_once(',')?;
    Some((u64::from_str_radix(address, 16).ok()?, size.parse().ok()?))
}

/// Parses `--123--   SCHED[2]:  acquired lock (why)`, and returns the thread.
fn thread(line: &[u8]) -> Option<usize> {
    let line = std::str::from_utf8(line).ok()?;
    let (_, rest) = line.split_once("SCHED[")?;
    let (thread, what) = rest.split_once("]:")?;
    what.trim_start().starts_with("acquired").then_some(())?;
    thread.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(lines: &str) -> Counts {
        let mut play = Play::new();
        lines.lines().for_each(|line| play.line(line.as_bytes()));
        play.counts
    }

    #[test]
    fn accesses_count_between_the_marks_of_their_thread() {
        let counts = played(
            "==7== Lackey, an example tool\n\
             --7--   SCHED[1]:  acquired lock (a)\n\
             I  04001000,3\n\x20\
             S 1000,8\n\x20\
             S 555500000080,1\n\x20\
             S 1000,8\n\x20\
             L 2000,8\n\x20\
             S 555500000000,1\n\x20\
             S 1000,8\n\
             --7--   SCHED[1]: releasing lock (b) -> VgTs_WaitSys\n\
             --7--   SCHED[2]:  acquired lock (c)\n\x20\
             L 1000,8\n\x20\
             S 555500000040,1\n\x20\
             M 1000,8\n\x20\
             L 2000,4\n\x20\
             S 555500000000,1\n",
        );
        let count = |lines, written, transfers| Count {
            calls: 1,
            lines,
            written,
            transfers,
        };
        assert_eq!(counts[2], count(2, 1, 0));
        // The write takes one line away, and the read shares the other.
        assert_eq!(counts[1], count(2, 1, 2));
        assert_eq!(counts[0], Count::default());
    }
}
