//! The workloads, each in a file of its own.

mod churn;
mod closures;
mod common;
mod crew;
mod expire;
mod fill_cancel;
mod lateness;
mod memory;
mod pair;
mod postpone;
mod purgatory;
mod remote;
mod sleep;
mod tail;
mod uptime;
mod wake;

#[cfg(test)]
pub use common::GRACE;

use crate::case::{Case, Effort};

type Cases = fn(Effort) -> Vec<Case>;

const WORKLOADS: [(&str, Cases); 14] = [
    ("pair", pair::cases),
    ("closures", closures::cases),
    ("remote", remote::cases),
    ("expire", expire::cases),
    ("sleep", sleep::cases),
    ("memory", memory::cases),
    ("lateness", lateness::cases),
    ("churn", churn::cases),
    ("fill-cancel", fill_cancel::cases),
    ("postpone", postpone::cases),
    ("purgatory", purgatory::cases),
    ("uptime", uptime::cases),
    ("tail", tail::cases),
    ("wake", wake::cases),
];

pub fn names() -> Vec<&'static str> {
    WORKLOADS.iter().map(|(name, _)| *name).collect()
}

/// Returns all cases, in the same order in every process.
pub fn cases(effort: Effort) -> Vec<Case> {
    let of = |&(workload, cases): &(&'static str, Cases)| {
        let named = move |case| Case { workload, ..case };
        cases(effort).into_iter().map(named)
    };
    WORKLOADS.iter().flat_map(of).collect()
}
