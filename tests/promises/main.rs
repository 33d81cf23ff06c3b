//! The fifteen promises of `src/promises.rs`, each with the tests that
//! fail when it is broken. Time is virtual unless real time is the subject.

#![cfg(not(any(loom, shuttle)))]

#[path = "../support/mod.rs"]
mod support;

mod awaiting;
mod bounds;
mod cancels;
mod changes;
mod driven;
mod endings;
mod handles;
mod isolation;
mod many;
mod order;
mod rearm;
mod refusals;
mod repeats;
mod reports;
mod settings;
mod shares;
mod shutdowns;
mod tickers;
mod times;
mod virtual_time;
mod workers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use support::{
    HOUR, MS, PATIENCE, SECOND, parts, payloads, take, take_all, virtual_engine, wait_until,
};
use tickwheel::wheel::Advance;
use tickwheel::*;

/// The calls that most scenarios make.
trait Brief<T> {
    fn put(&self, timer: Timer<T>) -> TimerId;

    /// Takes the next firing of queue 0.
    fn next(&self) -> Expired<T>;

    fn after(&self, delay: Duration, payload: T) -> TimerId {
        self.put(Timer::after(delay, payload))
    }

    fn every(&self, period: Duration, payload: T) -> TimerId {
        self.put(Timer::every(period, payload))
    }
}

impl<T> Brief<T> for Engine<T> {
    fn put(&self, timer: Timer<T>) -> TimerId {
        self.schedule(timer).unwrap()
    }

    fn next(&self) -> Expired<T> {
        self.queue(0).try_recv().unwrap()
    }
}

/// The timers that are live, completed, cancelled, shut down and failed. The ledger is
/// balanced, and agrees with a walk through the storage.
fn ends<T>(engine: &Engine<T>) -> [u64; 5] {
    let ledger = engine.ledger();
    assert!(ledger.is_balanced(), "{ledger:?}");
    assert_eq!(ledger.live, engine.live().count() as u64);
    let ended = (ledger.completed, ledger.cancelled, ledger.shut_down);
    [ledger.live, ended.0, ended.1, ended.2, ledger.failed]
}

fn virtual_tasks() -> (TaskEngine, VirtualClock) {
    TaskEngine::builder().start_virtual().unwrap()
}

fn driven_tasks() -> (TaskEngine, Driver<Task>) {
    TaskEngine::builder().start_driven().unwrap()
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// What tasks, or other threads, tell the test.
struct Told<M>(Sender<M>, Receiver<M>);

fn told<M: Send + 'static>() -> Told<M> {
    let (tell, told) = channel();
    Told(tell, told)
}

impl<M: Send + 'static> Told<M> {
    fn tell(&self) -> Sender<M> {
        self.0.clone()
    }

    /// A task that tells something of each of its firings.
    fn of<F: Fn(&Firing) -> M + Send + 'static>(
        &self,
        of: F,
    ) -> impl FnMut(Firing) + Send + use<M, F> {
        let tell = self.tell();
        move |firing| tell.send(of(&firing)).unwrap()
    }

    /// A task that tells this.
    fn say(&self, word: M) -> impl FnOnce() + Send + use<M> {
        let tell = self.tell();
        move || tell.send(word).unwrap()
    }

    /// A task that tells this, and then runs until the other end is dropped.
    fn hold(&self, word: M) -> (Sender<()>, impl FnOnce() + Send + use<M>) {
        let (say, (release, released)) = (self.say(word), channel());
        (release, move || _ = (say(), released.recv()))
    }

    fn all(&self) -> Vec<M> {
        self.1.try_iter().collect()
    }

    fn next(&self) -> M {
        self.1.recv_timeout(PATIENCE).expect("nobody says anything")
    }
}

fn panics(act: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(act)).is_err()
}

/// Asserts that the calls of eight threads return once `release` has been called.
fn each_returns_after(wait: impl Fn(usize) + Clone + Send + 'static, release: impl FnOnce()) {
    let told = told();
    for n in 0..8 {
        let (wait, tell) = (wait.clone(), told.tell());
        thread::spawn(move || {
            tell.send(()).unwrap();
            wait(n);
            tell.send(()).unwrap();
        });
    }
    // Each is about to wait, and most do when this has slept.
    (0..8).for_each(|_| told.next());
    thread::sleep(20 * MS);
    release();
    (0..8).for_each(|_| told.next());
}

/// Tells which thread drops it.
struct Where(Sender<thread::ThreadId>);

impl Drop for Where {
    fn drop(&mut self) {
        let _ = self.0.send(thread::current().id());
    }
}

/// The shard that a timer is in, as its id shows it: only for telling shards apart.
fn shard_of(id: TimerId) -> String {
    let shown = format!("{id:?}");
    shown.split('.').next().unwrap().to_string()
}

/// Calls `act` in a thread that uses another shard than that of the timer: threads that
/// live at the same time have numbers of their own, so that one of them gets there.
fn elsewhere<T: Send>(engine: &Engine<T>, id: TimerId, any: fn() -> T, act: &(impl Fn() + Sync)) {
    let other = engine.after(HOUR, any());
    assert!(engine.cancel(other).is_cancelled());
    if shard_of(other) == shard_of(id) {
        thread::scope(|scope| _ = scope.spawn(|| elsewhere(engine, id, any, act)))
    } else {
        act()
    }
}
