//! The reports and payloads that the last handle of an engine drops.

use crate::drive::VirtualClock;
use crate::engine::Engine;
use crate::sync::Arc;
use crate::timeline::Time;
use crate::timer::Timer;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(1);

/// A payload that counts its drop, and panics in it if `panics` is set.
struct Counted {
    drops: Arc<AtomicUsize>,
    panics: bool,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
        assert!(!self.panics, "on purpose");
    }
}

/// Leaves `count` reports unread, in two shards, and drops all handles while the
/// core has another owner, which stands for a ticker. Returns the number of payloads
/// dropped by then.
fn drops_of_unread(count: usize, panics: Option<usize>) -> usize {
    let drops = Arc::new(AtomicUsize::new(0));
    let builder = Engine::builder().shards(2);
    let (engine, clock) = builder.start_virtual().unwrap();
    let core = Arc::clone(engine.shared().core());
    let schedule = |n| {
        let panics = panics == Some(n);
        let drops = Arc::clone(&drops);
        let last = Timer::every(TICK, Counted { drops, panics }).times(1);
        engine.schedule(last.reported()).unwrap();
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| (0..count / 2).for_each(schedule));
        // A sanitizer sees a thread's join, but not the end of a scope.
        other.join().unwrap();
    });
    (count / 2..count).for_each(schedule);
    clock.advance(TICK);
    engine.queue(0).try_iter().for_each(drop);
    assert_eq!(engine.reports().len(), count);
    drop(clock);
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(engine)));
    assert_eq!(dropped.is_err(), panics.is_some());
    let before_the_core = drops.load(Ordering::Relaxed);
    drop(core);
    before_the_core
}

#[test]
fn the_last_handle_drops_what_nobody_read_in_any_number() {
    for count in [0, 1, 163] {
        assert_eq!(drops_of_unread(count, None), count);
    }
}

#[test]
fn what_stands_behind_a_drop_that_panics_is_dropped_as_well() {
    for panics in [0, 7, 60, 99] {
        assert_eq!(drops_of_unread(100, Some(panics)), 100);
    }
}

/// A payload that moves a clock when it is dropped.
struct Moves(VirtualClock);

impl Drop for Moves {
    fn drop(&mut self) {
        self.0.advance(TICK);
    }
}

#[test]
fn the_last_handle_drops_what_nobody_read_beside_a_clock_and_under_no_lock() {
    let (engine, clock) = Engine::builder().start_virtual().unwrap();
    let last = Timer::every(TICK, Moves(clock.clone())).times(1);
    engine.schedule(last.reported()).unwrap();
    clock.advance(TICK);
    drop(engine.queue(0).try_recv());
    drop(engine);
    assert_eq!(clock.now(), Time::START + 2 * TICK);
}
