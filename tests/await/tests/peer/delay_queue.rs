//! tokio-util's `time_delay_queue.rs`. Its queue is an engine here if tasks wait for it,
//! and a wheel if it has one owner.

mod compact;

use super::*;
use tickwheel::{
    Cancel, Engine, Expired, NotChanged, RecvError, Tick, Time, Timer, TimerId, VirtualClock, Wheel,
};

/// An engine with a task, polled by hand, that awaits its queue.
struct Queue<T> {
    engine: Engine<T>,
    clock: VirtualClock<T>,
    /// The wait for the next entry, if it has begun.
    task: ByHand<Option<Wait<T>>>,
}

type Wait<T> = Pin<Box<dyn Future<Output = Received<T>>>>;

type Received<T> = Result<Expired<T>, RecvError>;

/// Nothing is due, so the task waits.
const EMPTY: Result<&str, RecvError> = Err(RecvError::Empty);

impl<T: 'static> Queue<T> {
    fn new() -> Queue<T> {
        let (engine, clock) = Engine::builder().shards(1).start_virtual().unwrap();
        let task = ByHand::new(None);
        Queue {
            engine,
            clock,
            task,
        }
    }

    /// A time counted from the queue's start.
    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn insert_at(&self, payload: T, millis: u64) -> TimerId {
        let timer = Timer::at(Self::at(millis), payload);
        self.engine.schedule(timer).unwrap()
    }

    fn reset_at(&self, id: TimerId, millis: u64) -> Result<(), NotChanged> {
        self.engine.reschedule(id, Self::at(millis))
    }

    fn pass(&self, millis: u64) {
        self.clock.advance(ms(millis));
    }

    fn pass_to(&self, millis: u64) {
        self.clock.advance_to(Self::at(millis));
    }

    fn poll(&mut self) -> Result<T, RecvError> {
        self.poll_expired().map(Expired::into_payload)
    }

    fn poll_expired(&mut self) -> Received<T> {
        let mut queue = self.engine.queue(0);
        let polled = self.task.enter(|wait, context| {
            let begun =
                wait.get_or_insert_with(|| Box::pin(async move { queue.recv_async().await }));
            begun.as_mut().poll(context)
        });
        let Poll::Ready(received) = polled else {
            return Err(RecvError::Empty);
        };
        *self.task = None;
        received
    }

    fn is_woken(&self) -> bool {
        self.task.is_woken()
    }

    /// Whether nothing is left that could come due.
    fn is_used_up(&self) -> bool {
        self.engine.ledger().live == 0
    }
}

impl Queue<&'static str> {
    /// Asserts that these payloads are handed out now, that then the task waits, and that
    /// nothing is left that could come due.
    fn assert_rest<const N: usize>(&mut self, payloads: [&'static str; N]) {
        for payload in payloads {
            assert_eq!(self.poll(), Ok(payload));
        }
        assert_eq!(self.poll(), EMPTY);
        assert_eq!(self.engine.ledger().live, 0);
    }
}

/// `single_immediate_delay`
#[test]
fn d01_an_entry_due_now_is_handed_out_once() {
    let mut queue = Queue::new();
    queue.insert_at("foo", 0);
    queue.pass(1);
    queue.assert_rest(["foo"]);
}

/// `multi_immediate_delays`. Better: in the order in which they were inserted.
#[test]
fn d02_entries_due_now_are_all_handed_out() {
    let mut queue = Queue::new();
    for payload in ["1", "2", "3"] {
        queue.insert_at(payload, 0);
    }
    queue.pass(1);
    queue.assert_rest(["1", "2", "3"]);
}

/// `single_short_delay`
#[test]
fn d03_a_waiting_task_is_woken_when_an_entry_comes_due() {
    let mut queue = Queue::new();
    queue.insert_at("foo", 5);
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(1);
    assert!(!queue.is_woken());
    queue.pass(5);
    assert!(queue.is_woken());
    queue.assert_rest(["foo"]);
}

/// `multi_delay_at_start`. Better: tokio's queue also wakes its task when entries move to
/// a lower level.
#[test]
fn d04_entries_of_all_levels_wake_the_task_at_their_tick_and_never_between() {
    let delays = [1_000, 2, 234, 262_144 + 9 * 4_096, 60, 10];
    let mut queue = Queue::new();
    for delay in delays {
        queue.insert_at(delay, delay);
    }
    assert_eq!(queue.poll(), Err(RecvError::Empty));
    assert!(!queue.is_woken());
    for now in 1..=1_200 {
        queue.pass(1);
        assert_eq!(queue.is_woken(), delays.contains(&now), "at {now}");
        if queue.is_woken() {
            assert_eq!(queue.poll(), Ok(now));
            assert_eq!(queue.poll(), Err(RecvError::Empty));
        }
    }
    assert_eq!(queue.engine.ledger().live, 1);
}

/// `insert_in_past_fires_immediately`. Differs on a virtual clock, which hands out entries
/// only when it is moved, be it by zero.
#[test]
fn d05_an_entry_of_the_past_is_due_at_once() {
    let mut queue = Queue::new();
    queue.pass(10);
    queue.insert_at("foo", 0);
    queue.pass(0);
    assert_eq!(queue.poll(), Ok("foo"));

    let engine = Engine::builder().start().unwrap();
    engine.schedule(Timer::at(Time::START, "foo")).unwrap();
    assert_eq!(engine.queue(0).recv().unwrap().into_payload(), "foo");
}

/// `remove_entry`
#[test]
fn d06_a_removed_entry_is_returned_and_never_handed_out() {
    let mut queue = Queue::new();
    let id = queue.insert_at("foo", 5);
    assert_eq!(queue.poll(), EMPTY);
    assert_eq!(queue.engine.cancel(id), Cancel::Cancelled("foo"));
    queue.pass(10);
    queue.assert_rest([]);
}

/// `reset_entry`
#[test]
fn d07_a_postponed_entry_comes_at_its_new_time_only() {
    let mut queue = Queue::new();
    let id = queue.insert_at("foo", 5);
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(1);
    queue.reset_at(id, 10).unwrap();
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(7);
    assert!(!queue.is_woken());
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(3);
    assert!(queue.is_woken());
    queue.assert_rest(["foo"]);
}

/// `reset_to_past_wakes_pending_queue`. A virtual clock wakes when it is moved.
#[test]
fn d08_an_entry_that_is_moved_to_the_past_wakes_the_task() {
    let mut queue = Queue::new();
    queue.pass(100);
    let id = queue.insert_at("foo", 10_100);
    assert_eq!(queue.poll(), EMPTY);
    assert!(!queue.is_woken());
    queue.reset_at(id, 0).unwrap();
    queue.pass(0);
    assert!(queue.is_woken());
    queue.assert_rest(["foo"]);
}

/// `reset_much_later`
#[test]
fn d09_an_entry_that_is_brought_forward_late_still_wakes_the_task() {
    let mut queue = Queue::new();
    queue.pass(1);
    let id = queue.insert_at("foo", 200);
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(3);
    queue.reset_at(id, 10).unwrap();
    queue.pass(20);
    assert!(queue.is_woken());
}

/// `reset_twice`
#[test]
fn d10_an_entry_may_be_brought_forward_twice() {
    let mut queue = Queue::new();
    queue.pass(1);
    let id = queue.insert_at("foo", 200);
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(3);
    queue.reset_at(id, 50).unwrap();
    queue.pass(20);
    queue.reset_at(id, 40).unwrap();
    queue.pass(20);
    assert!(queue.is_woken());
}

/// `repeatedly_reset_entry_inserted_as_expired`
#[test]
fn d11_an_entry_inserted_for_the_past_may_be_moved_to_the_future_twice() {
    let mut queue = Queue::new();
    queue.pass(1_000);
    let id = queue.insert_at("foo", 900);
    queue.reset_at(id, 1_100).unwrap();
    queue.reset_at(id, 1_050).unwrap();
    assert_eq!(queue.poll(), EMPTY);
    queue.pass_to(1_060);
    assert!(queue.is_woken());
    queue.assert_rest(["foo"]);
}

/// `remove_expired_item`
#[test]
fn d12_an_entry_may_be_removed_after_it_came_due() {
    let mut queue = Queue::new();
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(10);
    let overdue = queue.insert_at("foo", 0);
    assert_eq!(queue.engine.cancel(overdue), Cancel::Cancelled("foo"));

    let ready = queue.insert_at("foo", 0);
    queue.pass(0);
    assert!(queue.is_woken());
    assert_eq!(queue.engine.cancel(ready), Cancel::Cancelled("foo"));
}

/// `remove_at_timer_wheel_threshold`
#[test]
fn d13_an_entry_at_the_edge_of_a_level_may_be_removed_at_its_tick() {
    let mut wheel = Wheel::new(64);
    let (foo, bar) = (
        wheel.schedule_at(Tick(64), "foo"),
        wheel.schedule_at(Tick(64), "bar"),
    );
    let first = wheel.pop_due(Tick(80)).unwrap();
    assert_eq!((first.payload, wheel.now()), ("foo", Tick(64)));
    assert_eq!(wheel.cancel(bar), Some("bar"));
    assert_eq!(wheel.cancel(foo), None);

    let mut queue = Queue::new();
    queue.insert_at("foo", 64);
    let bar = queue.insert_at("bar", 64);
    queue.pass(80);
    assert_eq!(queue.poll(), Ok("foo"));
    assert_eq!(queue.engine.cancel(bar), Cancel::Cancelled("bar"));
}

/// `expires_before_last_insert`
#[test]
fn d14_a_later_insert_with_an_earlier_deadline_comes_first() {
    let mut queue = Queue::new();
    queue.insert_at("foo", 10_000);
    assert_eq!(queue.poll(), EMPTY);
    queue.insert_at("bar", 600);
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(600);
    assert!(queue.is_woken());
    assert_eq!(queue.poll(), Ok("bar"));
}

/// `multi_reset`
#[test]
fn d15_several_entries_may_be_postponed_in_turn() {
    let mut queue = Queue::new();
    let (one, two) = (queue.insert_at("one", 200), queue.insert_at("two", 250));
    assert_eq!(queue.poll(), EMPTY);
    queue.reset_at(one, 300).unwrap();
    queue.reset_at(two, 350).unwrap();
    queue.reset_at(one, 400).unwrap();
    queue.pass(310);
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(50);
    assert_eq!(queue.poll(), Ok("two"));
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(50);
    queue.assert_rest(["one"]);
}

/// `expire_first_key_when_reset_to_expire_earlier`
#[test]
fn d16_the_first_entry_may_be_brought_forward() {
    let mut queue = Queue::new();
    let one = queue.insert_at("one", 200);
    queue.insert_at("two", 250);
    assert_eq!(queue.poll(), EMPTY);
    queue.reset_at(one, 100).unwrap();
    queue.pass(100);
    assert!(queue.is_woken());
    assert_eq!(queue.poll(), Ok("one"));
}

/// `expire_second_key_when_reset_to_expire_earlier`
#[test]
fn d17_the_second_entry_may_be_brought_before_the_first() {
    let mut queue = Queue::new();
    queue.insert_at("one", 200);
    let two = queue.insert_at("two", 250);
    assert_eq!(queue.poll(), EMPTY);
    queue.reset_at(two, 100).unwrap();
    queue.pass(100);
    assert!(queue.is_woken());
    assert_eq!(queue.poll(), Ok("two"));
}

/// `reset_first_expiring_item_to_expire_later`
#[test]
fn d18_postponing_the_first_entry_leaves_the_second_on_time() {
    let mut queue = Queue::new();
    let one = queue.insert_at("one", 200);
    queue.insert_at("two", 250);
    assert_eq!(queue.poll(), EMPTY);
    queue.reset_at(one, 300).unwrap();
    queue.pass(250);
    assert!(queue.is_woken());
    assert_eq!(queue.poll(), Ok("two"));
}

/// `insert_before_first_after_poll`
#[test]
fn d19_an_entry_inserted_before_the_first_wakes_the_task_at_its_own_tick() {
    let mut queue = Queue::new();
    queue.insert_at("one", 200);
    assert_eq!(queue.poll(), EMPTY);
    queue.insert_at("two", 100);
    queue.pass(99);
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(1);
    assert!(queue.is_woken());
    assert_eq!(queue.poll(), Ok("two"));
}

/// `insert_after_ready_poll`
#[test]
fn d20_entries_may_be_inserted_between_those_that_are_handed_out() {
    let mut queue = Queue::new();
    for payload in ["1", "2", "3"] {
        queue.insert_at(payload, 100);
    }
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(100);
    assert!(queue.is_woken());
    for payload in ["1", "2", "3"] {
        assert_eq!(queue.poll(), Ok(payload));
        queue.insert_at("foo", 500);
    }
}

/// `reset_later_after_slot_starts`. Better: tokio's queue wakes its task at once to find
/// out the time.
#[test]
fn d21_postponing_an_entry_whose_slot_has_begun_wakes_the_task_at_its_tick_only() {
    let mut queue = Queue::new();
    let foo = queue.insert_at("foo", 100);
    assert_eq!(queue.poll(), EMPTY);
    queue.pass_to(80);
    assert!(!queue.is_woken());
    queue.reset_at(foo, 120).unwrap();
    queue.pass_to(119);
    assert!(!queue.is_woken());
    queue.pass(1);
    assert!(queue.is_woken());
    assert_eq!(queue.poll(), Ok("foo"));
}

/// `reset_inserted_expired`
#[test]
fn d22_an_entry_inserted_for_the_past_and_moved_to_the_future_is_counted_once() {
    let mut queue = Queue::new();
    queue.pass(1_000);
    let id = queue.insert_at("foo", 900);
    queue.reset_at(id, 1_100).unwrap();
    assert_eq!(queue.engine.ledger().live, 1);
    queue.pass(200);
    assert_eq!(queue.poll(), Ok("foo"));
    assert_eq!(queue.engine.ledger().live, 0);
}

/// `reset_earlier_after_slot_starts`
#[test]
fn d23_bringing_forward_an_entry_whose_slot_has_begun_wakes_the_task_at_its_tick_only() {
    let mut queue = Queue::new();
    let foo = queue.insert_at("foo", 200);
    assert_eq!(queue.poll(), EMPTY);
    queue.pass_to(80);
    assert!(!queue.is_woken());
    queue.reset_at(foo, 120).unwrap();
    queue.pass_to(119);
    assert!(!queue.is_woken());
    queue.pass(1);
    assert!(queue.is_woken());
    assert_eq!(queue.poll(), Ok("foo"));
}

/// `insert_in_past_after_poll_fires_immediately`
#[test]
fn d24_an_entry_inserted_for_the_past_wakes_a_waiting_task() {
    let mut queue = Queue::new();
    queue.insert_at("foo", 200);
    assert_eq!(queue.poll(), EMPTY);
    queue.pass(80);
    assert!(!queue.is_woken());
    queue.insert_at("bar", 40);
    queue.pass(0);
    assert!(queue.is_woken());
    assert_eq!(queue.poll(), Ok("bar"));
}

/// `delay_queue_poll_expired_when_empty`
#[test]
fn d25_a_queue_is_used_up_once_its_last_entry_is_removed() {
    let mut queue = Queue::new();
    let id = queue.insert_at(0, 10_000);
    assert_eq!(queue.poll(), Err(RecvError::Empty));
    assert_eq!(queue.engine.cancel(id), Cancel::Cancelled(0));
    assert_eq!(queue.poll(), Err(RecvError::Empty));
    assert!(queue.is_used_up());
}

/// `item_expiry_greater_than_wheel`
#[test]
fn d30_a_queue_older_than_two_years_takes_new_entries() {
    let mut queue = Queue::new();
    for _ in 0..2 {
        queue.pass(1 << 35);
        let now = queue.clock.now();
        queue.engine.schedule(Timer::at(now, 0)).unwrap();
        queue.pass(0);
        assert_eq!(queue.poll(), Ok(0));
    }
    queue.engine.schedule(Timer::after(ms(1), 1)).unwrap();
    queue.pass(1);
    assert_eq!(queue.poll(), Ok(1));
}

/// The entry that is due first: `DelayQueue::peek` for a wheel.
fn peek<T>(wheel: &Wheel<T>) -> Option<TimerId> {
    let earliest = wheel.iter().min_by_key(|&(_, deadline, _)| deadline);
    earliest.map(|(id, ..)| id)
}

/// `peek`. Differs: the call visits all entries; `earliest_deadline` does not.
#[test]
fn d33_the_entry_that_is_due_first_can_be_found() {
    let mut wheel = Wheel::new(64);
    let foo = wheel.schedule_at(Tick(5), "foo");
    let bar = wheel.schedule_at(Tick(0), "bar");
    let baz = wheel.schedule_at(Tick(10), "baz");
    assert_eq!(peek(&wheel), Some(bar));
    assert_eq!(wheel.pop_due(Tick(6)).unwrap().payload, "bar");
    assert_eq!(
        (peek(&wheel), wheel.earliest_deadline()),
        (Some(foo), Some(Tick(5)))
    );
    assert_eq!(wheel.pop_due(Tick(6)).unwrap().payload, "foo");
    assert_eq!(
        (peek(&wheel), wheel.earliest_deadline()),
        (Some(baz), Some(Tick(10)))
    );
    assert!(wheel.pop_due(Tick(6)).is_none());
    assert_eq!(peek(&wheel), Some(baz));
    assert_eq!(wheel.pop_due(Tick(11)).unwrap().payload, "baz");
    assert_eq!((peek(&wheel), wheel.earliest_deadline()), (None, None));
}

/// `peek_entries_sharing_a_wheel_slot`
#[test]
fn d34_of_entries_in_one_slot_the_earliest_is_due_first() {
    for deadlines in [[100, 120], [120, 100]] {
        let mut wheel = Wheel::new(64);
        let ids = deadlines.map(|deadline| wheel.schedule_at(Tick(deadline), deadline));
        let [early, late] = if deadlines == [100, 120] {
            ids
        } else {
            [ids[1], ids[0]]
        };
        assert_eq!(peek(&wheel), Some(early));
        assert_eq!(wheel.earliest_deadline(), Some(Tick(100)));
        let due = wheel.pop_due(Tick(105)).unwrap();
        assert_eq!((due.id(), due.payload), (early, 100));
        assert!(wheel.pop_due(Tick(105)).is_none());
        assert_eq!(peek(&wheel), Some(late));
        assert_eq!(wheel.pop_due(Tick(125)).unwrap().id(), late);
        assert_eq!(peek(&wheel), None);
    }
}

/// `wake_after_remove_last`. Differs: a queue ends with its engine, not with its last
/// entry, because any thread may insert another.
#[test]
fn d35_differs_removing_the_last_entry_wakes_nobody() {
    let mut queue = Queue::new();
    let foo = queue.insert_at("foo", 1_000);
    assert_eq!(queue.poll(), EMPTY);
    assert_eq!(queue.engine.cancel(foo), Cancel::Cancelled("foo"));
    assert!(!queue.is_woken() && queue.is_used_up());
    queue.engine.shutdown();
    assert!(queue.is_woken());
    assert_eq!(queue.poll(), Err(RecvError::ShutDown));
}

/// `wake_after_clear`. Differs as above.
#[test]
fn d36_differs_clearing_returns_all_entries_and_wakes_nobody() {
    let mut queue = Queue::new();
    queue.insert_at("foo", 1_000);
    assert_eq!(queue.poll(), EMPTY);
    assert!(!queue.is_woken());
    assert_eq!(queue.engine.cancel_all().payloads, ["foo"]);
    assert!(!queue.is_woken() && queue.is_used_up());
    assert_eq!(queue.poll(), EMPTY);
}
