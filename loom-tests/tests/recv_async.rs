//! Tasks await a message, or an expired timer, beside other tasks and blocking threads.

#![cfg(loom)]

use loom::sync::Arc;
use loom::thread::{self, JoinHandle};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Waker};
use tickwheel::model::{Channel, Place, Wait};
use tickwheel::{Queue, RecvError, Timer};
use tickwheel_loom_tests::{Bell, Payload, assert_all_ended, engine_model, model, payload, tick};

async fn recv(channel: &Channel<u32>) -> u32 {
    let mut place = Place::default();
    poll_fn(|context| channel.poll_recv(&mut place, context.waker())).await.unwrap()
}

fn task(channel: &Arc<Channel<u32>>) -> JoinHandle<u32> {
    let channel = Arc::clone(channel);
    thread::spawn(move || Bell::default().block_on(recv(&channel)))
}

fn blocking(channel: &Arc<Channel<u32>>) -> JoinHandle<u32> {
    let channel = Arc::clone(channel);
    thread::spawn(move || channel.recv(Wait::Forever).unwrap())
}

/// A message arrives while a task takes its place.
#[test]
fn send_beside_a_first_poll() {
    model(|| {
        let channel = Arc::new(Channel::new(1));
        let task = task(&channel);
        channel.send(7);
        assert_eq!(task.join().unwrap(), 7);
    });
}

/// A message arrives while a task changes its waker: the new one is woken, or the poll
/// finds the message.
#[test]
fn send_beside_a_poll_with_another_waker() {
    model(|| {
        let channel = Arc::new(Channel::new(1));
        let mut place = Place::default();
        let polled = channel.poll_recv(&mut place, Waker::noop());
        assert!(polled.is_pending());
        let sender = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || channel.send(7))
        };
        let recv = poll_fn(|context| channel.poll_recv(&mut place, context.waker()));
        assert_eq!(Bell::default().block_on(recv), Some(7));
        sender.join().unwrap();
    });
}

/// A task that may have been called leaves, and another task takes the message.
#[test]
fn drop_of_a_called_task_beside_a_task() {
    drop_beside(task);
}

/// The same beside a blocking thread.
#[test]
fn drop_of_a_called_task_beside_a_thread() {
    drop_beside(blocking);
}

fn drop_beside(receiver: fn(&Arc<Channel<u32>>) -> JoinHandle<u32>) {
    model(move || {
        let channel = Arc::new(Channel::new(1));
        let mut place = Place::default();
        let polled = channel.poll_recv(&mut place, Waker::noop());
        assert!(polled.is_pending());
        let receiver = receiver(&channel);
        let sender = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || channel.send(7))
        };
        channel.leave(&mut place);
        assert_eq!(receiver.join().unwrap(), 7);
        sender.join().unwrap();
    });
}

/// The same where threads go first: a thread that was called is not called again before
/// it has woken up.
#[test]
fn two_messages_for_a_thread_before_a_task() {
    model(|| two_messages(Channel::new(2).threads_first()));
}

fn two_messages(channel: Channel<u32>) {
    let channel = Arc::new(channel);
    let (task, thread) = (task(&channel), blocking(&channel));
    channel.send(1);
    channel.send(2);
    assert_eq!(task.join().unwrap() + thread.join().unwrap(), 3);
}

fn taking(mut queue: Queue<Payload>) -> JoinHandle<Result<u32, RecvError>> {
    thread::spawn(move || {
        let taken = Bell::default().block_on(queue.recv_async());
        taken.map(|expired| expired.payload().name())
    })
}

/// Two tasks are polled beside a shutdown, and both learn of it.
#[test]
fn shutdown_beside_two_polls() {
    engine_model(|engine, _clock| {
        let tasks = [taking(engine.queue(0)), taking(engine.queue(0))];
        engine.shutdown();
        for task in tasks {
            assert_eq!(task.join().unwrap(), Err(RecvError::ShutDown));
        }
    });
}

/// Two tasks take a timer each. The bell of both wakes one task, which wakes the other.
#[test]
fn two_timers_of_one_bell() {
    engine_model(|engine, clock| {
        for n in 1..=2 {
            engine.schedule(Timer::at(tick(1), payload(n))).unwrap();
        }
        let tasks = [taking(engine.queue(0)), taking(engine.queue(0))];
        clock.advance_to(tick(1));
        let taken = tasks.map(|task| task.join().unwrap().unwrap());
        assert_eq!(taken.iter().sum::<u32>(), 3);
        assert_all_ended(engine.ledger());
    });
}

/// A clock that waits for a worker does not wait for a task, which is never polled.
#[test]
fn run_until_beside_a_task_and_a_worker() {
    engine_model(|engine, clock| {
        let mut queue = engine.queue(0);
        let mut waiting = queue.recv_async();
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(&mut waiting).poll(&mut context).is_pending());
        engine.queue(0).expect_workers(1);
        let queue = engine.queue(0);
        let worker = thread::spawn(move || queue.recv().unwrap().payload().name());
        engine.schedule(Timer::at(tick(1), payload(7))).unwrap();
        clock.run_until(tick(1));
        assert_eq!(worker.join().unwrap(), 7);
        drop(waiting);
        assert_all_ended(engine.ledger());
    });
}
