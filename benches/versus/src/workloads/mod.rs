//! What is measured, each workload in a file of its own.

mod catch_up;
mod churn;
mod expire;
mod expire_live;
mod fill_cancel;
mod idle;
mod lateness;
mod leak;
mod memory;
mod pair;
mod postpone;
mod probe;
mod purgatory;
mod remote;
mod server;
mod tail;
mod uptime;

use crate::args::Workload;
use crate::case::Case;
use crate::effort::Effort;
use crate::rival::Timers;
use crate::rng::Rng;

/// Delays are uniform between one tick and this many.
const SPAN: u64 = 60_000;

/// How many timers there are where the question is how cost grows with them.
const GROWTH: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Everybody's turn at a workload.
pub fn cases(workload: Workload, effort: Effort) -> Vec<Case> {
    match workload {
        Workload::PairClock => pair::with_clock(effort),
        Workload::Pair => pair::cases(effort),
        Workload::Churn => churn::cases(effort),
        Workload::Remote => remote::cases(effort),
        Workload::FillCancel => fill_cancel::cases(effort),
        Workload::Expire => expire::cases(effort),
        Workload::Postpone => postpone::cases(effort),
        Workload::Purgatory => purgatory::cases(effort),
        Workload::Server => server::cases(effort),
        Workload::Leak => leak::cases(effort),
        Workload::Lateness => lateness::cases(effort),
        Workload::Memory => memory::cases(effort),
        Workload::Idle => idle::cases(effort),
        Workload::CatchUp => catch_up::cases(effort),
        Workload::Uptime => uptime::cases(effort),
        Workload::Tail => tail::cases(effort),
        Workload::Probe => probe::cases(effort),
    }
}

/// The ids of timers whose payload is their place in here.
type Table<T> = Vec<Option<<T as Timers>::Id>>;

/// Fills a collection with timers that are due within [`SPAN`] ticks.
fn filled<T: Timers>(timers: &mut T, count: usize, rng: &mut Rng) -> Table<T> {
    (0..count as u64)
        .map(|n| Some(timers.schedule(rng.up_to(SPAN), n)))
        .collect()
}

/// Moves the clock, and strikes the timers that fired off the table.
fn advance<T: Timers>(timers: &mut T, now: u64, table: &mut Table<T>, fired: &mut Vec<u64>) {
    timers.advance(now, fired);
    for payload in fired.drain(..) {
        // Who cannot tell which one fired has no stale ids either.
        let cell = table.get_mut(payload as usize);
        if let Some(id) = cell.and_then(Option::take) {
            timers.ended(id);
        }
    }
}
