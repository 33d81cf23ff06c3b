//! tokio-util's `time_delay_queue.rs`. Its queue is an engine here, whose queue a task
//! awaits. What the engine promises beside that, to remove, postpone and count entries,
//! `tests/promises` shows.

use super::*;
use tickwheel::{Engine, RecvError, Timer, TimerId, VirtualClock};

/// An engine with a task, polled by hand, that awaits its queue.
struct Queue {
    engine: Engine<u64>,
    clock: VirtualClock,
    /// The wait for the next entry, if it has begun.
    task: ByHand<Option<Wait>>,
}

type Wait = Pin<Box<dyn Future<Output = Result<u64, RecvError>>>>;

impl Queue {
    /// Returns a queue with an entry for this millisecond, for which its task waits.
    fn new(millis: u64) -> (Queue, TimerId) {
        let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
        let task = ByHand::new(None);
        let mut queue = Queue { engine, clock, task };
        let id = queue.insert(millis);
        assert_eq!(queue.poll(), Poll::Pending);
        (queue, id)
    }

    fn insert(&self, millis: u64) -> TimerId {
        let timer = Timer::at(at(millis), millis);
        self.engine.schedule(timer).unwrap()
    }

    fn poll(&mut self) -> Poll<Result<u64, RecvError>> {
        let mut queue = self.engine.queue(0);
        let receive = async move { Ok(queue.recv_async().await?.into_payload()) };
        let polled = self.task.enter(|wait, context| {
            let begun = wait.get_or_insert_with(|| Box::pin(receive));
            begun.as_mut().poll(context)
        });
        if polled.is_ready() {
            *self.task = None;
        }
        polled
    }

    /// Asserts that the task is woken at this millisecond and not before, for this entry.
    fn wakes_at(&mut self, millis: u64, entry: u64) {
        if at(millis) > self.clock.now() {
            self.clock.advance_to(at(millis - 1));
            assert!(!self.task.is_woken(), "too early");
        }
        self.clock.advance_to(at(millis));
        assert!(self.task.is_woken());
        assert_eq!(self.poll(), Poll::Ready(Ok(entry)));
        assert_eq!(self.poll(), Poll::Pending);
    }
}

/// `single_short_delay`, `multi_delay_at_start`. Better: tokio's queue also wakes its task
/// when entries move to a lower level.
#[test]
fn d04_entries_of_all_levels_wake_the_task_at_their_tick_and_never_between() {
    let (mut queue, _) = Queue::new(1_000);
    for entry in [2, 234, 262_144 + 9 * 4_096, 60, 10] {
        queue.insert(entry);
    }
    for entry in [2, 10, 60, 234, 1_000, 262_144 + 9 * 4_096] {
        queue.wakes_at(entry, entry);
    }
}

/// `reset_entry`, `reset_to_past_wakes_pending_queue`, `reset_much_later`,
/// `expire_first_key_when_reset_to_expire_earlier`, `reset_later_after_slot_starts`,
/// `reset_earlier_after_slot_starts`, `reset_twice`
#[test]
fn d07_an_entry_that_is_moved_wakes_the_task_at_its_new_tick_only() {
    let later = [(5, 1, 10), (100, 80, 120)];
    let earlier = [(10_100, 100, 0), (200, 4, 10), (200, 0, 100), (200, 80, 120)];
    for (entry, now, moved_to) in later.into_iter().chain(earlier) {
        let (mut queue, id) = Queue::new(entry);
        queue.engine.reschedule(id, at(entry - 1)).unwrap();
        queue.clock.advance_to(at(now));
        queue.engine.reschedule(id, at(moved_to)).unwrap();
        queue.wakes_at(moved_to.max(now), entry);
    }
}

/// `expires_before_last_insert`, `insert_before_first_after_poll`,
/// `insert_in_past_after_poll_fires_immediately`
#[test]
fn d19_an_entry_inserted_before_the_first_wakes_the_task_at_its_own_tick() {
    for (first, now, second) in [(10_000, 0, 600), (200, 0, 100), (200, 80, 40)] {
        let (mut queue, _) = Queue::new(first);
        queue.clock.advance_to(at(now));
        queue.insert(second);
        queue.wakes_at(second.max(now), second);
    }
}

/// `wake_after_remove_last`, `wake_after_clear`. Differs: a queue ends with its engine, not
/// with its last entry, because any thread may insert another.
#[test]
fn d35_differs_removing_the_last_entry_wakes_nobody() {
    let (mut queue, id) = Queue::new(1_000);
    assert!(queue.engine.cancel(id).is_cancelled());
    queue.insert(2_000);
    let [(_, last)] = queue.engine.cancel_all()[..] else {
        panic!("one is left");
    };
    assert_eq!(last, tickwheel::Cancel::Cancelled(2_000));
    assert!(!queue.task.is_woken());
    queue.engine.shutdown();
    assert!(queue.task.is_woken());
    assert_eq!(queue.poll(), Poll::Ready(Err(RecvError::ShutDown)));
}
