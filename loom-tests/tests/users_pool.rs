//! A user's program: a pool of connections, whose callers wait up to a limit.

#![cfg(loom)]

#[path = "../programs/pool.rs"]
mod pool;

use crate::threads::sync::Arc;
use crate::threads::thread;
use pool::{Connection, Pool};
use tickwheel::{Engine, Queue, VirtualClock};
use tickwheel_loom_tests::{model, tick};

type Timers = (VirtualClock, Queue<Arc<pool::Waiter>>);

fn pool_of(idle: Vec<Connection>) -> (Arc<Pool>, Timers) {
    let small = Engine::builder().wheel_size(4).shards(1);
    let (engine, clock) = small.start_virtual().unwrap();
    let queue = engine.queue(0);
    (Arc::new(Pool::new(engine, idle)), (clock, queue))
}

/// Lets the limit pass, and serves the callers that have waited so long.
fn pass_limit((clock, queue): &Timers) {
    clock.advance_to(tick(1));
    while let Ok(expired) = queue.try_recv() {
        Pool::time_out(expired);
    }
}

/// A caller waits while its limit passes and the connection is released: the connection
/// is the caller's or idle, and never both or neither.
#[test]
fn a_limit_passes_beside_a_release() {
    model(|| {
        let (pool, timers) = pool_of(Vec::new());
        let caller = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.acquire(tick(1)))
        };
        let time = thread::spawn(move || pass_limit(&timers));
        pool.release(Connection(7));
        let acquired = caller.join().unwrap();
        time.join().unwrap();
        assert_eq!(usize::from(acquired.is_ok()) + pool.idle(), 1);
    });
}

/// Two callers share a connection, and the limit of one passes. The other always gets the
/// connection, past a caller that may have timed out, and nothing is lost.
#[test]
fn a_release_passes_over_a_caller_that_timed_out() {
    model(|| {
        let (pool, timers) = pool_of(Vec::new());
        let [hasty, patient] = [1, 9].map(|limit| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || match pool.acquire(tick(limit)) {
                Ok(connection) => pool.release(connection),
                Err(pool::TimedOut) => assert_eq!(limit, 1),
            })
        });
        let time = thread::spawn(move || pass_limit(&timers));
        pool.release(Connection(7));
        time.join().unwrap();
        hasty.join().unwrap();
        patient.join().unwrap();
        assert_eq!(pool.idle(), 1);
    });
}
