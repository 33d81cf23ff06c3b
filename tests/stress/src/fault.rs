//! What can be made to go wrong, by name.

use std::str::FromStr;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Tasks and workers panic.
    Panics,
    /// Workers sleep while they hold a firing.
    Sleepers,
    /// Queues hand out only a few firings at a time.
    Full,
    /// A virtual clock jumps by hours.
    Jumps,
    /// Signals interrupt the system calls of every thread.
    Signals,
    /// Threads come, submit a little and go.
    Visitors,
    /// The engine is shut down while all are at work.
    Shutdown,
    /// The ticker gets what processor time nobody else wants.
    Starved,
    /// The last handle is dropped wherever it happens to be, also in a task.
    Dropped,
}

const NAMES: [(&str, Fault); 9] = [
    ("panics", Fault::Panics),
    ("sleepers", Fault::Sleepers),
    ("full", Fault::Full),
    ("jumps", Fault::Jumps),
    ("signals", Fault::Signals),
    ("visitors", Fault::Visitors),
    ("shutdown", Fault::Shutdown),
    ("starved", Fault::Starved),
    ("dropped", Fault::Dropped),
];

/// A set of faults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Faults(Vec<Fault>);

impl Faults {
    pub fn has(&self, fault: Fault) -> bool {
        self.0.contains(&fault)
    }

    /// Those of them that `keep` wants.
    pub fn some(&self, mut keep: impl FnMut() -> bool) -> Faults {
        Faults(self.0.iter().copied().filter(|_| keep()).collect())
    }
}

impl FromStr for Faults {
    type Err = String;

    fn from_str(list: &str) -> Result<Faults, String> {
        match list {
            "all" => Ok(Faults(NAMES.map(|(_, fault)| fault).to_vec())),
            "none" => Ok(Faults(Vec::new())),
            list => list
                .split(',')
                .map(named)
                .collect::<Result<_, _>>()
                .map(Faults),
        }
    }
}

fn named(name: &str) -> Result<Fault, String> {
    let found = NAMES.iter().find(|(known, _)| *known == name);
    let known = || NAMES.map(|(name, _)| name).join(", ");
    found
        .map(|&(_, fault)| fault)
        .ok_or_else(|| format!("there are: {}", known()))
}
