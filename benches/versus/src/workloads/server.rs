//! Read timeouts of 4,096 connections. Each connection arms and cancels a timeout
//! sixteen times, in random order. No timeout fires.

use std::time::Duration;

use fastrand::Rng;

use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::{Caller, Shared, Timers};
use crate::rivals::{owners, shared};
use crate::stopwatch::Stopwatch;

const CONNECTIONS: usize = 4_096;
const READS: usize = 16;
const TIMEOUT_TICKS: u64 = 30_000;

pub fn cases(_: Effort) -> Vec<Case> {
    let mut cases = owners!(owner());
    cases.extend(shared!(threaded()));
    cases
}

fn owner<T: Timers>() -> Case {
    Case::new(T::NAME, T::THREAD_SAFE, CONNECTIONS, || {
        let mut timers = T::new();
        let served = serve(|id, connection| {
            if let Some(id) = id {
                timers.cancel(id);
            }
            timers.schedule(TIMEOUT_TICKS, connection)
        });
        vec![Reading::per_step("read", served, READS * CONNECTIONS)]
    })
}

fn threaded<E: Shared>() -> Case {
    Case::new(E::NAME, E::THREAD_SAFE, CONNECTIONS, || {
        let engine = E::start();
        let mut caller = engine.caller();
        let served = serve(|id, connection| {
            if let Some(id) = id {
                caller.cancel(id);
            }
            caller.schedule(TIMEOUT_TICKS, connection)
        });
        let begun = Stopwatch::start_all();
        engine.settle();
        let elapsed = served + begun.elapsed();
        vec![Reading::per_step(
            "read, engine",
            elapsed,
            READS * CONNECTIONS,
        )]
    })
}

fn serve<Id>(mut rearm: impl FnMut(Option<Id>, u64) -> Id) -> Duration {
    let mut rng = Rng::with_seed(9);
    let mut ids: Vec<Option<Id>> = (0..CONNECTIONS as u64)
        .map(|connection| Some(rearm(None, connection)))
        .collect();
    let mut next: Vec<usize> = (0..CONNECTIONS).collect();
    let mut elapsed = Duration::ZERO;
    for _ in 0..READS {
        rng.shuffle(&mut next);
        let begun = Stopwatch::start_all();
        for &connection in &next {
            let armed = ids[connection].take();
            ids[connection] = Some(rearm(armed, connection as u64));
        }
        elapsed += begun.elapsed();
    }
    elapsed
}
