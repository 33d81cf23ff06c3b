//! One thread schedules and another cancels. Ids change hands in batches.

use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use super::setup::SPAN;
use crate::case::{Case, Reading};
use crate::effort::Effort;
use crate::rival::{Caller, Shared};
use crate::rivals::shared;

const HANDOVER: usize = 256;

/// The number of batches between the threads, so that neither waits for each.
const BATCHES: usize = 4;

pub fn cases(effort: Effort) -> Vec<Case> {
    shared!(case(effort))
}

fn case<E: Shared>(effort: Effort) -> Case {
    let steps = effort.steps();
    let case = Case::new(E::NAME, E::THREAD_SAFE, HANDOVER, move || {
        vec![
            Reading::per_step("pair", run::<E>(steps, one_by_one::<E>), steps),
            Reading::per_step("pair, many at once", run::<E>(steps, at_once::<E>), steps),
        ]
    });
    let reason = "a wheel has one owner, and no other thread can cancel in it";
    case.on_threads(2).unless((!E::REMOTE).then_some(reason))
}

type Cancel<E> = for<'c, 'e> fn(&'c mut <E as Shared>::Caller<'e>, &'c mut Vec<<E as Shared>::Id>);

fn one_by_one<E: Shared>(caller: &mut E::Caller<'_>, batch: &mut Vec<E::Id>) {
    batch.drain(..).for_each(|id| caller.cancel(id));
}

fn at_once<E: Shared>(caller: &mut E::Caller<'_>, batch: &mut Vec<E::Id>) {
    caller.cancel_all(batch);
}

fn run<E: Shared>(steps: usize, cancel_batch: Cancel<E>) -> Duration {
    let engine = E::start();
    let (full, filled) = sync_channel(BATCHES);
    let (empty, emptied) = channel();
    (0..BATCHES).for_each(|_| empty.send(Vec::with_capacity(HANDOVER)).unwrap());
    thread::scope(|scope| {
        let canceller = scope.spawn(|| cancel(&engine, filled, empty, cancel_batch));
        let mut rng = Rng::with_seed(3);
        let mut caller = engine.caller();
        let begun = Instant::now();
        for _ in 0..steps / HANDOVER {
            let mut batch: Vec<E::Id> = emptied.recv().unwrap();
            batch.extend((0..HANDOVER).map(|_| caller.schedule(rng.u64(1..=SPAN), 0)));
            full.send(batch).unwrap();
        }
        drop(full);
        canceller.join().unwrap();
        engine.settle();
        begun.elapsed()
    })
}

fn cancel<E: Shared>(
    engine: &E,
    filled: Receiver<Vec<E::Id>>,
    empty: Sender<Vec<E::Id>>,
    cancel_batch: Cancel<E>,
) {
    let mut caller = engine.caller();
    for mut batch in filled {
        cancel_batch(&mut caller, &mut batch);
        // The receiver is gone after the last schedule.
        let _ = empty.send(batch);
    }
}
