//! Bells that are answered too late: their timer has gone, and the thread
//! that answers continues to wait, but only until its limit.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use crate::engine::{Bell, Core, Engine};
use crate::queue::{Expired, Lead, RecvError};
use crate::sync::Wait;
use crate::timer::Timer;

const LIMIT: Duration = Duration::from_millis(400);
/// Four bells fit into the limit. All bells together exceed it on any machine.
const BETWEEN_BELLS: Duration = Duration::from_millis(100);
const BELLS: u32 = 24;

/// Rings bells of a queue, or of the reports, with no timer behind them, until `wait`
/// returns. Returns the number of rings. Each bell is another shard's, because there may
/// not be two of one shard, and the waiting thread may be slow.
fn rung_for_nothing(core: &Core<()>, queue: usize, wait: impl FnOnce() + Send) -> u32 {
    let rung = AtomicU32::new(0);
    thread::scope(|scope| {
        let waiting = scope.spawn(wait);
        while !waiting.is_finished() && rung.load(Ordering::Relaxed) < BELLS {
            thread::sleep(BETWEEN_BELLS);
            let shard = rung.fetch_add(1, Ordering::Relaxed);
            core.doorbell(queue).send(Bell(shard));
        }
    });
    rung.load(Ordering::Relaxed)
}

#[test]
fn bells_for_nothing_neither_prolong_nor_end_a_wait() {
    let (engine, _clock) = Engine::<()>::builder().shards(BELLS as usize).start_virtual().unwrap();
    let core = Arc::clone(&engine.core);
    let waits: [&(dyn Fn() -> Option<RecvError> + Sync); 2] =
        [&|| engine.queue(0).recv_timeout(LIMIT).err(), &|| {
            engine.reports().recv_timeout(LIMIT).err()
        }];
    for (queue, wait) in waits.into_iter().enumerate() {
        let wait = || {
            let begun = Instant::now();
            assert_eq!(wait(), Some(RecvError::Empty));
            assert!(begun.elapsed() >= LIMIT);
        };
        assert!(rung_for_nothing(&core, queue, wait) < BELLS);
    }
}

#[test]
fn a_bell_for_nothing_ends_a_wait_that_is_over() {
    let (engine, _clock) = Engine::<()>::builder().shards(2).start_virtual().unwrap();
    let queue = engine.queue(0);
    let doorbell = engine.core.doorbell(0);
    doorbell.send(Bell(0));
    doorbell.send(Bell(1));
    let taken = queue.receive::<Expired<()>>(Wait::at_most(Duration::ZERO));
    assert_eq!(taken.err(), Some(RecvError::Empty));
    // The other bell is still there for the next call.
    assert_eq!(doorbell.try_recv(), Some(Bell(1)));
}

#[test]
fn an_awaiting_reader_takes_a_last_report_whose_bell_another_one_has() {
    let (engine, _clock) = Engine::builder().shards(2).start_virtual().unwrap();
    // In both shards.
    for n in 0..20 {
        let timer = Timer::after(LIMIT, ()).named(n.to_string());
        engine.schedule(timer.reported()).unwrap();
    }
    engine.shutdown();
    let bells = || engine.core.doorbell(engine.core.queues()).try_recv();
    assert_eq!(std::iter::from_fn(bells).count(), 2);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..20 {
        let mut reports = engine.reports();
        let read = pin!(reports.recv_async()).poll(&mut context);
        assert!(matches!(read, Poll::Ready(Ok(_))));
    }
}

#[test]
fn a_hold_takes_a_bounded_number() {
    let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
    let due = |n| engine.schedule(Timer::after(Duration::ZERO, n)).unwrap();
    (0..100).for_each(|n| _ = due(n));
    clock.advance(Duration::ZERO);
    let mut payloads = Vec::new();
    let lent = engine.queue(0).claim_many(Lead::to(0), &mut payloads, 100);
    assert!(lent.is_none() && engine.core.ready_len(0) > 0);
    assert_eq!(payloads.len(), crate::engine::TAKES_PER_HOLD);
}
