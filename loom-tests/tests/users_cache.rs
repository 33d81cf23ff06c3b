//! A user's program: a cache whose entries expire unless they are used.

#![cfg(loom)]

#[path = "../programs/cache.rs"]
mod cache;

use crate::threads::sync::Arc;
use crate::threads::thread;
use cache::Cache;
use tickwheel::Engine;
use tickwheel_loom_tests::{model, tick};

/// Returns a cache with one entry, which expires at tick 1 in a thread of its own.
fn expiring() -> (Arc<Cache>, thread::JoinHandle<()>) {
    let small = Engine::builder().wheel_size(4).shards(1);
    let (engine, clock) = small.start_virtual().unwrap();
    let queue = engine.queue(0);
    let cache = Arc::new(Cache::new(engine));
    cache.insert(1, "old", tick(1));
    let expiring = Arc::clone(&cache);
    let time = thread::spawn(move || {
        clock.advance_to(tick(1));
        while let Ok(expired) = queue.try_recv() {
            expiring.expire(expired);
        }
    });
    (cache, time)
}

/// An entry is used while it expires: a caller that got its value finds it again, and a
/// caller that did not does not.
#[test]
fn an_entry_is_used_while_it_expires() {
    model(|| {
        let (cache, time) = expiring();
        let used = cache.get(1, tick(9));
        time.join().unwrap();
        assert_eq!(cache.stored(1), used);
    });
}

/// The same with two callers. Whichever got the value has kept it for the other.
#[test]
fn two_callers_use_an_entry_while_it_expires() {
    model(|| {
        let (cache, time) = expiring();
        let other = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || cache.get(1, tick(9)))
        };
        let used = cache.get(1, tick(9)).or(other.join().unwrap());
        time.join().unwrap();
        assert_eq!(cache.stored(1), used);
    });
}

/// The timer of an old value does not remove a new one.
#[test]
fn an_entry_is_replaced_while_it_expires() {
    model(|| {
        let (cache, time) = expiring();
        cache.insert(1, "new", tick(9));
        time.join().unwrap();
        assert_eq!(cache.stored(1), Some("new"));
    });
}
