//! Drops in a forked child, while another thread of the parent may have any lock.
//! A child that waits for a lock is stuck, because that thread is not in it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use crate::engine::Engine;
use crate::fork::tests::in_a_child;
use crate::hub::{Core, ShardCell};
use crate::timer::Timer;

const HOUR: Duration = Duration::from_secs(3_600);
const MS: Duration = Duration::from_millis(1);

static DROPPED: AtomicUsize = AtomicUsize::new(0);

/// A payload of the parent's, which the child must not drop.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Drops `value` in a child that was forked while all locks of `core` were held. Drops it
/// in the parent afterwards.
pub(crate) fn dropped_in_a_child<T, V>(what: &str, core: &Core<T>, value: V) {
    let mut value = Some(value);
    let ends_well = with_all_locks(core, core.queues(), || {
        in_a_child(|| {
            // Other tests drop payloads in the parent, also while it forks.
            let before = DROPPED.load(Ordering::Relaxed);
            drop(value.take());
            DROPPED.load(Ordering::Relaxed) == before
        })
    });
    assert!(ends_well, "{what}: the child is stuck or dropped a payload");
    drop(value);
}

fn with_all_locks<T, R>(core: &Core<T>, doorbell: usize, during: impl FnOnce() -> R) -> R {
    core.doorbell(doorbell).while_locked(|| match doorbell {
        0 => {
            let _shards: Vec<_> = core.shards.iter().map(ShardCell::lock).collect();
            core.census.while_locked(during)
        }
        _ => with_all_locks(core, doorbell - 1, during),
    })
}

pub(crate) fn poll<F: Future>(future: Pin<&mut F>) {
    let polled = future.poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
}

#[test]
fn what_a_worker_or_a_reader_holds() {
    let builder = Engine::builder().shards(2).queues(2);
    let (engine, clock) = builder.start_virtual().unwrap();
    let core = engine.core();
    engine.schedule(Timer::every(MS, Payload)).unwrap();
    engine
        .schedule(Timer::after(MS, Payload).queue(1).rearmable())
        .unwrap();
    clock.advance(MS);
    for queue in [0, 1] {
        let lent = engine.queue(queue).recv().unwrap();
        dropped_in_a_child("a lent firing", core, lent);
    }
    clock.advance(MS);
    let worker = engine.queue(0);
    drop(worker.recv().unwrap());
    dropped_in_a_child("a worker's queue", core, worker);
    let mut queue = engine.queue(1);
    let mut future = Box::pin(queue.recv_async());
    poll(future.as_mut());
    dropped_in_a_child("a future of a queue", core, future);
    let mut reports = engine.reports();
    let mut future = Box::pin(reports.recv_async());
    poll(future.as_mut());
    dropped_in_a_child("a future of the reports", core, future);
    assert_eq!(engine.ledger().live, 1);
}

#[test]
fn what_a_caller_holds() {
    let (engine, driver) = Engine::builder().shards(2).start_driven().unwrap();
    let core = engine.core();
    for _ in 0..2_000 {
        engine.schedule(Timer::after(HOUR, Payload)).unwrap();
    }
    let mut live = engine.live();
    assert!(live.next().is_some());
    dropped_in_a_child("a walk", core, live);
    let unstarted = engine.create(Timer::after(HOUR, Payload)).unwrap();
    dropped_in_a_child("an unstarted timer", core, unstarted);
    dropped_in_a_child(
        "a queue and the reports",
        core,
        (engine.queue(0), engine.reports()),
    );
    dropped_in_a_child("a driver", core, driver);
    dropped_in_a_child("a weak handle", core, engine.downgrade());
    let core = crate::sync::Arc::clone(&engine.core);
    dropped_in_a_child("an engine", &core, engine);
}
