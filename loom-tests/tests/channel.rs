//! Receivers sleep until a message arrives or their limit passes.

#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tickwheel::Timer;
use tickwheel::model::{Channel, Wait};
use tickwheel_loom_tests::{assert_all_ended, engine_model, model, name_of, payload, tick};

/// No time passes in a model; limits pass when the model says so.
const LIMIT: Duration = Duration::from_secs(3_600);

/// A message arrives while its receiver goes to sleep.
#[test]
fn one_receiver() {
    model(|| {
        let channel = Arc::new(Channel::new(1));
        let receiver = receiver(&channel);
        channel.send(7);
        assert_eq!(receiver.join().unwrap(), 7);
    });
}

/// Two messages arrive while two receivers go to sleep.
#[test]
fn two_receivers() {
    model(|| {
        let channel = Arc::new(Channel::new(2));
        let receivers = [receiver(&channel), receiver(&channel)];
        channel.send(1);
        channel.send(2);
        let received = receivers.map(|receiver| receiver.join().unwrap());
        assert_eq!(received.iter().sum::<u32>(), 3);
    });
}

fn receiver(channel: &Arc<Channel<u32>>) -> JoinHandle<u32> {
    let channel = Arc::clone(channel);
    thread::spawn(move || channel.recv(Wait::Forever).unwrap())
}

/// A receiver is to leave while it goes to sleep, beside another one: both wake up, and one
/// of them takes the message.
#[test]
fn receiver_that_is_to_leave() {
    model(|| {
        let channel = Arc::new(Channel::new(2));
        let leave = Arc::new(AtomicBool::new(false));
        let leaving = {
            let (channel, leave) = (Arc::clone(&channel), Arc::clone(&leave));
            thread::spawn(move || channel.recv(Wait::Unless(&leave)))
        };
        let other = receiver(&channel);
        channel.send(1);
        leave.store(true, Ordering::Relaxed);
        channel.wake_receivers();
        if leaving.join().unwrap().is_some() {
            channel.send(2);
        }
        other.join().unwrap();
    });
}

/// A message wakes a receiver whose limit has passed: that receiver takes it, or the
/// other one, which has no limit.
#[test]
fn receiver_whose_limit_has_passed() {
    model(|| {
        let channel = Arc::new(Channel::new(2));
        let limited = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || channel.recv(Wait::Until(Instant::now() + LIMIT)).is_some())
        };
        let unlimited = {
            let channel = Arc::clone(&channel);
            thread::spawn(move || {
                channel.recv(Wait::Forever);
                channel.pass_limits();
                channel.wake_receivers();
            })
        };
        channel.send(1);
        channel.pass_limits();
        if limited.join().unwrap() {
            channel.send(2);
        }
        unlimited.join().unwrap();
    });
}

/// The same with an expired timer and its bell.
#[test]
fn worker_whose_limit_has_passed() {
    engine_model(|engine, clock| {
        let limited = {
            let queue = engine.queue(0);
            thread::spawn(move || queue.recv_timeout(LIMIT).is_ok())
        };
        let unlimited = {
            let queue = engine.queue(0);
            thread::spawn(move || {
                let name = name_of(&queue.recv().unwrap());
                queue.pass_limits();
                queue.wake_receivers();
                name
            })
        };
        engine.schedule(Timer::at(tick(1), payload(1))).unwrap();
        clock.advance_to(tick(1));
        engine.queue(0).pass_limits();
        let more = limited.join().unwrap();
        if more {
            engine.schedule(Timer::at(tick(2), payload(2))).unwrap();
            clock.advance_to(tick(2));
        }
        assert_eq!(unlimited.join().unwrap(), 1 + u32::from(more));
        assert_all_ended(engine.ledger());
    });
}
