//! The programs of users that loom explores with three threads, with more of them.

#![cfg(shuttle)]

#[path = "../../programs/cache.rs"]
mod cache;
#[path = "../../programs/pool.rs"]
mod pool;
#[path = "../../programs/retry.rs"]
mod retry;
#[path = "../../programs/threads.rs"]
mod threads;

use std::time::Duration;

use cache::Cache;
use pool::{Connection, Pool};
use threads::sync::Arc;
use threads::sync::atomic::{AtomicBool, Ordering};
use threads::thread;
use tickwheel::{Engine, TaskEngine};
use tickwheel_shuttle_tests::{check, join, threads as spawn, tick};

/// Six callers share two connections while limits pass: no more than two callers hold one
/// at a time, and in the end both are idle.
#[test]
fn a_pool_with_limits() {
    check(|| {
        let engine = Engine::builder().wheel_size(4).shards(2);
        let (engine, clock) = engine.start_model().unwrap();
        let queue = engine.queue(0);
        let connections = [1, 2].map(Connection).into();
        let pool = Arc::new(Pool::new(engine.clone(), connections));
        let worker = thread::spawn(move || queue.for_each(Pool::time_out));
        let callers = spawn(6, |n| {
            let pool = Arc::clone(&pool);
            move || {
                if let Ok(connection) = pool.acquire(tick(1 + u64::from(n % 3))) {
                    thread::yield_now();
                    pool.release(connection);
                }
            }
        });
        let time = thread::spawn(move || (1..5).for_each(|n| clock.pass_to(tick(n))));
        join(callers);
        assert_eq!(pool.idle(), 2);
        engine.shutdown();
        join([worker, time]);
    });
}

/// Four callers use and replace an entry while it expires beside two workers. In the end
/// it is stored if and only if its timer is live.
#[test]
fn a_cache_in_use() {
    check(|| {
        let engine = Engine::builder().wheel_size(4).shards(2);
        let (engine, clock) = engine.start_model().unwrap();
        let cache = Arc::new(Cache::new(engine.clone()));
        cache.insert(1, "old", tick(1));
        let workers = spawn(2, |_| {
            let (queue, cache) = (engine.queue(0), Arc::clone(&cache));
            move || queue.for_each(|expired| cache.expire(expired))
        });
        let callers = spawn(4, |n| {
            let cache = Arc::clone(&cache);
            move || match n {
                0 => cache.insert(1, "new", tick(2)),
                // Far beyond the time that passes here.
                _ => _ = cache.get(1, tick(99)),
            }
        });
        let time = thread::spawn(move || (1..5).for_each(|n| clock.pass_to(tick(n))));
        join(callers);
        join([time]);
        while engine.ledger().live > 0 && engine.earliest_deadline() < Some(tick(99)) {
            thread::yield_now();
        }
        let live = engine.ledger().live;
        engine.shutdown();
        join(workers);
        assert_eq!(u64::from(cache.stored(1).is_some()), live);
    });
}

/// Three chains of attempts are stopped while three workers run them: once a chain is
/// stopped, none of its attempts runs.
#[test]
fn chains_are_stopped() {
    check(|| {
        let builder = TaskEngine::builder().workers(3);
        let (timers, clock) = builder.start_model().unwrap();
        let late = Arc::new(AtomicBool::new(false));
        let stoppers = spawn(3, |n| {
            let (timers, late) = (timers.clone(), Arc::clone(&late));
            move || {
                let stopped = Arc::new(AtomicBool::new(false));
                let seen = Arc::clone(&stopped);
                // A panic would stay in the task.
                let fails = move |_| {
                    thread::yield_now();
                    late.fetch_or(seen.load(Ordering::SeqCst), Ordering::SeqCst);
                    false
                };
                let (first, pause) = (tick(1), Duration::from_millis(u64::from(n)));
                let chain = retry::start(&timers, first, pause, fails).unwrap();
                thread::yield_now();
                retry::stop(&timers, chain);
                stopped.store(true, Ordering::SeqCst);
            }
        });
        let time = thread::spawn(move || (1..5).for_each(|n| clock.pass_to(tick(n))));
        join(stoppers);
        join([time]);
        timers.shutdown();
        timers.join();
        assert!(
            !late.load(Ordering::SeqCst),
            "an attempt of a stopped chain"
        );
        assert_eq!(timers.ledger().live, 0);
    });
}
