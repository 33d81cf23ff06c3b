//! Tasks that wait for a message, and how calls are shared out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::sleepers::{Calls, Place, Sleepers, Threads};
use super::{Channel, Wait};

/// A waker that counts its calls.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Count>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A task that waits for a number.
struct Task {
    place: Place,
    count: Arc<Count>,
}

impl Task {
    fn new() -> Task {
        Task::at(Place::default())
    }

    fn at(place: Place) -> Task {
        let count = Arc::default();
        Task { place, count }
    }

    fn poll(&mut self, channel: &Channel<u32>) -> Option<u32> {
        let waker = Waker::from(Arc::clone(&self.count));
        match channel.poll_recv(&mut self.place, &waker) {
            Poll::Ready(message) => message,
            Poll::Pending => None,
        }
    }

    fn leave(&mut self, channel: &Channel<u32>) {
        channel.leave(&mut self.place);
    }

    fn calls(&self) -> usize {
        self.count.0.load(Ordering::Relaxed)
    }
}

/// Tasks that have waited in turn.
fn waiting<const N: usize>(channel: &Channel<u32>) -> [Task; N] {
    [(); N].map(|()| {
        let mut task = Task::new();
        assert_eq!(task.poll(channel), None);
        task
    })
}

fn calls(tasks: &[Task]) -> Vec<usize> {
    tasks.iter().map(Task::calls).collect()
}

#[test]
fn a_message_calls_the_task_that_has_waited_longest() {
    let channel = Channel::new(3);
    let mut tasks: [Task; 3] = waiting(&channel);
    channel.send(1);
    assert_eq!(calls(&tasks), [1, 0, 0]);
    channel.send(2);
    assert_eq!(calls(&tasks), [1, 1, 0]);
    assert_eq!(tasks[1].poll(&channel), Some(1));
    assert_eq!(tasks[0].poll(&channel), Some(2));
    channel.send(3);
    assert_eq!(calls(&tasks), [1, 1, 1]);
}

#[test]
fn a_task_that_is_polled_again_keeps_its_place() {
    let channel = Channel::new(1);
    let mut tasks: [Task; 2] = waiting(&channel);
    assert_eq!(tasks[0].poll(&channel), None);
    channel.send(1);
    assert_eq!(calls(&tasks), [1, 0]);
}

#[test]
fn the_latest_waker_is_called() {
    let channel = Channel::new(1);
    let [mut task] = waiting(&channel);
    let first = std::mem::take(&mut task.count);
    assert_eq!(task.poll(&channel), None);
    assert_eq!(Arc::strong_count(&first), 1, "dropped");
    channel.send(1);
    assert_eq!((first.0.load(Ordering::Relaxed), task.calls()), (0, 1));
}

#[test]
fn a_task_that_leaves_after_its_call_hands_the_call_on() {
    let channel = Channel::new(1);
    let mut tasks: [Task; 2] = waiting(&channel);
    channel.send(1);
    tasks[0].leave(&channel);
    assert_eq!(calls(&tasks), [1, 1]);
    assert_eq!(tasks[1].poll(&channel), Some(1));
}

#[test]
fn a_task_that_leaves_before_its_call_is_not_called() {
    let channel = Channel::new(1);
    let mut tasks: [Task; 3] = waiting(&channel);
    tasks[0].leave(&channel);
    channel.send(1);
    tasks[0].leave(&channel);
    assert_eq!(calls(&tasks), [0, 1, 0]);
}

#[test]
fn a_call_whose_message_is_gone_is_not_handed_on() {
    let channel = Channel::new(1);
    let mut tasks: [Task; 2] = waiting(&channel);
    channel.send(1);
    assert_eq!(channel.try_recv(), Some(1));
    tasks[0].leave(&channel);
    assert_eq!(calls(&tasks), [1, 0]);
}

#[test]
fn a_called_task_that_finds_nothing_waits_behind_the_others() {
    let channel = Channel::new(1);
    let mut tasks: [Task; 2] = waiting(&channel);
    channel.send(1);
    assert_eq!(channel.try_recv(), Some(1));
    assert_eq!(tasks[0].poll(&channel), None);
    channel.send(2);
    assert_eq!(calls(&tasks), [1, 1]);
    assert_eq!(tasks[1].poll(&channel), Some(2));
    channel.send(3);
    assert_eq!(calls(&tasks), [2, 1]);
}

#[test]
fn a_task_that_has_received_is_called_no_more() {
    let channel = Channel::new(1);
    let mut tasks: [Task; 2] = waiting(&channel);
    // As it may find a message that is still to call somebody.
    channel.messages.push(1);
    let sleepers = || channel.sleepers.load(Ordering::Relaxed);
    assert_eq!((tasks[0].poll(&channel), sleepers()), (Some(1), 1));
    channel.send(2);
    assert_eq!((calls(&tasks), sleepers()), (vec![0, 1], 0));
}

#[test]
fn a_message_that_calls_a_watcher_calls_one_more() {
    let channel = Channel::new(1);
    let mut watchers = [(); 2].map(|()| {
        let mut watcher = Task::at(Place::watching());
        assert_eq!(watcher.poll(&channel), None);
        watcher
    });
    let mut tasks: [Task; 2] = waiting(&channel);
    channel.send(1);
    assert_eq!((calls(&watchers), calls(&tasks)), (vec![1, 1], vec![1, 0]));
    // They still watch when they wait again.
    assert_eq!(tasks.each_mut().map(|task| task.poll(&channel)), [Some(1), None]);
    tasks[1].leave(&channel);
    assert!(watchers.iter_mut().chain(&mut tasks).all(|it| it.poll(&channel).is_none()));
    channel.send(2);
    assert_eq!((calls(&watchers), calls(&tasks)), (vec![2, 2], vec![2, 0]));
}

#[test]
fn everyone_is_called_at_once() {
    let channel = Channel::new(1);
    let tasks: [Task; 3] = waiting(&channel);
    channel.close();
    assert_eq!(calls(&tasks), [0, 0, 0]);
    channel.wake_receivers();
    assert_eq!(calls(&tasks), [1, 1, 1]);
}

#[test]
fn a_wait_is_no_shorter_than_its_limit() {
    let (channel, limit, begun) =
        (Channel::<()>::new(1), Duration::from_micros(500), Instant::now());
    assert_eq!(channel.recv(Wait::at_most(limit)), None);
    assert!(begun.elapsed() >= limit);
}

#[test]
fn all_threads_are_woken_at_once() {
    let (channel, limit) = (Channel::<()>::new(1), Duration::from_secs(20));
    let begun = Instant::now();
    thread::scope(|scope| {
        (0..2).for_each(|_| _ = scope.spawn(|| channel.recv(Wait::at_most(limit))));
        while channel.sleepers.load(Ordering::Relaxed) < 2 && begun.elapsed() < limit {
            thread::yield_now();
        }
        channel.close();
        channel.wake_receivers();
    });
    assert!(begun.elapsed() < limit);
}

fn callees(sleepers: &mut Sleepers, count: usize) -> Vec<&'static str> {
    let mut call = || match sleepers.call_one() {
        Calls { threads: Threads::One, task: None, .. } => "thread",
        Calls { threads: Threads::None, task: Some(_), .. } => "task",
        Calls { threads: Threads::None, task: None, .. } => "none",
        _ => unreachable!("two are called"),
    };
    (0..count).map(|_| call()).collect()
}

fn sleepers(threads: usize, tasks: usize) -> Sleepers {
    let mut sleepers = Sleepers::default();
    (0..threads).for_each(|_| sleepers.add_thread());
    for _ in 0..tasks {
        let (mut place, mut spare) = (Place::default(), Some(Waker::noop().clone()));
        assert!(sleepers.enter(&mut place, Waker::noop(), &mut spare));
    }
    sleepers
}

#[test]
fn threads_and_tasks_take_turns() {
    let mut sleepers = sleepers(2, 3);
    let expected = ["task", "thread", "task", "thread", "task", "none"];
    assert_eq!(callees(&mut sleepers, 6), expected);
    assert_eq!(sleepers.uncalled(), 0);
}

#[test]
fn threads_go_first_where_a_clock_waits_for_them() {
    let mut sleepers = sleepers(2, 1);
    sleepers.put_threads_first();
    assert_eq!(callees(&mut sleepers, 3), ["thread", "thread", "task"]);
}

#[test]
fn a_message_that_calls_a_watcher_calls_a_thread_too() {
    let (mut sleepers, mut place) = (sleepers(1, 0), Place::watching());
    assert!(sleepers.enter(&mut place, Waker::noop(), &mut Some(Waker::noop().clone())));
    let calls = sleepers.call_one();
    assert_eq!((calls.watchers.len(), calls.threads), (1, Threads::One));
}

#[test]
fn a_thread_that_wakes_up_can_be_called_again() {
    let mut sleepers = sleepers(1, 0);
    assert_eq!(callees(&mut sleepers, 2), ["thread", "none"]);
    sleepers.answer();
    assert_eq!(sleepers.uncalled(), 1);
    assert_eq!(callees(&mut sleepers, 1), ["thread"]);
}

/// A waker that panics when it is called and when it is dropped, and what it throws.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Panics>) {
        std::panic::panic_any(Panics);
    }
}

impl Drop for Panics {
    fn drop(&mut self) {
        if !thread::panicking() {
            // What a second panic throws is leaked, so it takes no memory.
            std::panic::panic_any(());
        }
    }
}

#[test]
fn a_waker_that_panics_harms_nobody() {
    let channel = Channel::new(2);
    let mut place = Place::watching();
    let panics = Arc::new(Panics);
    let waker = Waker::from(Arc::clone(&panics));
    assert!(channel.poll_recv(&mut place, &waker).is_pending());
    let [mut task] = waiting(&channel);
    let sent = catch_unwind(AssertUnwindSafe(|| channel.send(1)));
    assert!(sent.map_err(std::mem::forget).is_ok(), "the call");
    assert_eq!((channel.panics(), task.calls()), (1, 1), "the call");
    channel.leave(&mut place);
    assert_eq!(task.poll(&channel), Some(1));

    // The last reference to a waker goes with the message.
    assert!(channel.poll_recv(&mut place, &waker).is_pending());
    drop((waker, panics));
    channel.messages.push(2);
    assert_eq!(channel.poll_recv(&mut place, Waker::noop()), Poll::Ready(Some(2)));
    assert_eq!(channel.panics(), 2, "the drop");
    assert!(channel.poll_recv(&mut place, &Waker::from(Arc::new(Panics))).is_pending());
    channel.leave(&mut place);
    assert_eq!(channel.panics(), 3, "the drop of one that was not called");
}

/// A waker that calls its channel when it is called and when it is dropped.
struct Caller(Weak<Channel<u32>>);

impl Caller {
    fn look(&self) {
        let Some(channel) = self.0.upgrade() else {
            return;
        };
        let mut task = Task::new();
        while task.poll(&channel).is_some() {}
        task.leave(&channel);
    }
}

impl Wake for Caller {
    fn wake(self: Arc<Caller>) {
        self.look();
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.look();
    }
}

#[test]
fn a_waker_may_call_the_channel() {
    let channel = Arc::new(Channel::new(2));
    let mut place = Place::default();
    let caller = || Waker::from(Arc::new(Caller(Arc::downgrade(&channel))));
    assert!(channel.poll_recv(&mut place, &caller()).is_pending());
    assert!(channel.poll_recv(&mut place, &caller()).is_pending(), "replaced");
    channel.send(1);
    assert_eq!(channel.try_recv(), None, "taken in the call");
    channel.leave(&mut place);
    assert!(channel.poll_recv(&mut place, &caller()).is_pending());
    channel.leave(&mut place);
}
