//! One thread schedules and another cancels. Ids change hands in batches.

use std::sync::mpsc::{channel, sync_channel};
use std::thread;
use std::time::Instant;

use fastrand::Rng;

use super::common::SPAN;
use crate::case::{Case, Effort};
use crate::rival::{Caller, Shared};
use crate::rivals::shared;
use crate::stopwatch::per_step;

const HANDOVER: usize = 256;

/// The number of batches between the threads, so that neither waits for each.
const BATCHES: usize = 4;

pub fn cases(effort: Effort) -> Vec<Case> {
    shared!(case(effort))
}

fn case<E: Shared>(effort: Effort) -> Case {
    let batches = effort.steps() / HANDOVER;
    let case = Case::of::<E>(&[("pair", "ns")], HANDOVER, move || {
        let engine = E::start();
        let (full, filled) = sync_channel::<Vec<E::Id>>(BATCHES);
        let (empty, emptied) = channel();
        (0..BATCHES).for_each(|_| empty.send(Vec::with_capacity(HANDOVER)).unwrap());
        thread::scope(|scope| {
            let canceller = scope.spawn(|| {
                let mut caller = engine.caller();
                for mut batch in filled {
                    batch.drain(..).for_each(|id| caller.cancel(id));
                    // The receiver is gone after the last schedule.
                    let _ = empty.send(batch);
                }
            });
            let mut rng = Rng::with_seed(3);
            let mut caller = engine.caller();
            let begun = Instant::now();
            for _ in 0..batches {
                let mut batch = emptied.recv().unwrap();
                batch.extend((0..HANDOVER).map(|_| caller.schedule(rng.u64(1..=SPAN), 0)));
                full.send(batch).unwrap();
            }
            drop(full);
            canceller.join().unwrap();
            engine.settle();
            vec![per_step(begun.elapsed(), batches * HANDOVER)]
        })
    });
    case.on_threads(2)
}
