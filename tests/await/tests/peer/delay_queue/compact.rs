//! The tests of `DelayQueue::compact`, which gives memory back as `shrink` does here.

use super::*;
use tickwheel::wheel::KeyedWheel;

/// `compact_expire_empty`. Differs: there is no capacity to be read.
#[test]
fn d26_a_queue_whose_entries_came_due_can_be_shrunk() {
    let mut wheel = Wheel::new(64);
    for payload in ["foo1", "foo2"] {
        wheel.schedule_at(Tick(10), payload);
    }
    while wheel.pop_due(Tick(10)).is_some() {}
    wheel.shrink();
    assert!(wheel.is_empty());
}

/// `compact_remove_empty`
#[test]
fn d27_a_queue_whose_entries_were_removed_can_be_shrunk() {
    let mut wheel = KeyedWheel::new(64);
    for key in ["foo1", "foo2"] {
        wheel.schedule_at(key, Tick(10), ()).unwrap();
    }
    assert!(wheel.cancel("foo1").is_some() && wheel.cancel("foo2").is_some());
    wheel.shrink();
    assert!(wheel.is_empty());
}

/// `compact_remove_remapped_keys`
#[test]
fn d28_entries_that_a_shrink_moved_can_be_removed_by_their_ids() {
    let mut wheel = Wheel::new(64);
    wheel.schedule_at(Tick(10), "foo1");
    wheel.schedule_at(Tick(10), "foo2");
    let (foo3, foo4) = (
        wheel.schedule_at(Tick(20), "foo3"),
        wheel.schedule_at(Tick(20), "foo4"),
    );
    while wheel.pop_due(Tick(10)).is_some() {}
    wheel.shrink();
    wheel.schedule_at(Tick(20), "foo5");
    assert_eq!(
        (wheel.cancel(foo3), wheel.cancel(foo4)),
        (Some("foo3"), Some("foo4"))
    );
    wheel.shrink();
    assert_eq!(wheel.len(), 1);
}

/// `compact_change_deadline`
#[test]
fn d29_entries_that_a_shrink_moved_can_be_rescheduled_by_their_ids() {
    let mut queue = Queue::new();
    queue.insert_at("foo1", 10);
    queue.insert_at("foo2", 10);
    queue.insert_at("foo3", 20);
    let foo4 = queue.insert_at("foo4", 20);
    queue.pass(10);
    assert_eq!((queue.poll(), queue.poll()), (Ok("foo1"), Ok("foo2")));
    queue.engine.shrink();
    queue.insert_at("foo5", 20);
    let foo6 = queue.insert_at("foo6", 20);
    queue.reset_at(foo4, 30).unwrap();
    queue.reset_at(foo6, 30).unwrap();
    queue.pass(10);
    assert_eq!((queue.poll(), queue.poll()), (Ok("foo3"), Ok("foo5")));
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(10);
    assert_eq!((queue.poll(), queue.poll()), (Ok("foo4"), Ok("foo6")));
    queue.assert_rest([]);
}

/// `remove_after_compact`. Differs: a stale id does nothing, where a stale key panics.
#[test]
fn d31_differs_a_removed_entry_is_gone_for_a_second_remove() {
    let queue = Queue::new();
    let foo = queue.insert_at("foo", 10);
    queue.insert_at("bar", 20);
    assert_eq!(queue.engine.cancel(foo), Cancel::Cancelled("foo"));
    queue.engine.shrink();
    assert_eq!(queue.engine.cancel(foo), Cancel::Gone);
    assert_eq!(queue.engine.ledger().live, 1);
}

/// `remove_after_compact_poll`. Differs as above.
#[test]
fn d32_differs_an_entry_that_was_handed_out_is_gone_for_a_remove() {
    let mut queue = Queue::new();
    let foo = queue.insert_at("foo", 10);
    queue.insert_at("bar", 20);
    queue.pass(10);
    let due = queue.poll_expired().unwrap();
    assert_eq!((due.id(), due.into_payload()), (foo, "foo"));
    queue.engine.shrink();
    assert_eq!(queue.engine.cancel(foo), Cancel::Gone);
    assert_eq!(queue.engine.ledger().live, 1);
}
