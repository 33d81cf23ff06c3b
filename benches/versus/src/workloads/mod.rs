//! The workloads, each in a file of its own.

mod awaited;
mod catch_up;
mod churn;
mod closures;
mod cores;
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
mod reuse;
mod server;
mod setup;
mod shards;
mod tail;
mod ticker;
mod uptime;

use crate::args::Workload;
use crate::case::Case;
use crate::effort::Effort;

/// Returns the cases of a workload, one for each engine and setting.
pub fn cases(workload: Workload, effort: Effort) -> Vec<Case> {
    match workload {
        Workload::PairClock => pair::with_clock(effort),
        Workload::Pair => pair::cases(effort),
        Workload::Closures => closures::cases(effort),
        Workload::Churn => churn::cases(effort),
        Workload::Remote => remote::cases(effort),
        Workload::FillCancel => fill_cancel::cases(effort),
        Workload::Expire => expire::cases(effort),
        Workload::Postpone => postpone::cases(effort),
        Workload::Reuse => reuse::cases(effort),
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
        Workload::Shards => shards::cases(effort),
        Workload::Ticker => ticker::cases(effort),
        Workload::Cores => cores::cases(effort),
        Workload::Sleep => awaited::sleep::cases(effort),
        Workload::Timeout => awaited::timeout::cases(effort),
        Workload::Reset => awaited::reset::cases(effort),
        Workload::Wake => awaited::wake::cases(effort),
        Workload::AsyncLateness => awaited::lateness::cases(effort),
        Workload::Tasks => awaited::tasks::cases(effort),
    }
}
