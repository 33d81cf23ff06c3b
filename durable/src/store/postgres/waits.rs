//! Waits that end: calls on threads of their own, which are given up when no answer comes.
//!
//! A server that is stopped says nothing, and its machine acknowledges what is sent to it. Neither
//! `tcp_user_timeout` nor keepalives end such a wait, and a call of the client cannot be
//! interrupted. It is left to its thread instead, which ends once the server answers or the
//! connection breaks.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use ::postgres::Client;

use super::line::Line;
use crate::store::StoreError;

/// So many calls may be given up before new connections become rare.
const MOST_LEFT: usize = 8;

/// How long calls wait, and those that were given up.
pub(super) struct Waits {
    limit: Duration,
    left: Mutex<Left>,
}

#[derive(Default)]
struct Left {
    calls: Vec<Weak<()>>,
    /// The time of the last attempt to connect.
    connected: Option<Instant>,
}

impl Waits {
    pub(super) fn new(limit: Duration) -> Waits {
        let left = Mutex::default();
        Waits { limit, left }
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Waits for the answer of a call, which holds `call` until it ends.
    fn wait<R>(
        &self,
        answer: &Receiver<R>,
        call: Weak<()>,
        limit: Duration,
    ) -> Result<R, StoreError> {
        answer.recv_timeout(limit).map_err(|_| {
            let mut left = self.left.lock().unwrap_or_else(|error| error.into_inner());
            left.calls.push(call);
            unanswered(limit)
        })
    }

    /// Calls `connect` on a thread of its own.
    pub(super) fn connect<R: Send + 'static>(
        &self,
        connect: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, StoreError> {
        self.may_connect(Instant::now())?;
        let (reply, answer) = sync_channel(1);
        let held = Arc::new(());
        let call = Arc::downgrade(&held);
        spawn("connect", move || {
            let _ = reply.send(connect());
            drop(held);
        })?;
        self.wait(&answer, call, self.limit)
    }

    /// Refuses attempts that would pile up threads and connections before a server that is
    /// stopped: the more calls are unanswered, the longer is the pause between attempts.
    fn may_connect(&self, now: Instant) -> Result<(), StoreError> {
        let mut left = self.left.lock().unwrap_or_else(|error| error.into_inner());
        left.calls.retain(|call| call.strong_count() > 0);
        let count = left.calls.len();
        let pause = Duration::from_secs(count as u64);
        let is_soon = |last: Instant| now.duration_since(last) < pause;
        if count > MOST_LEFT && left.connected.is_some_and(is_soon) {
            return Err(unanswered(pause));
        }
        left.connected = Some(now);
        Ok(())
    }
}

fn unanswered(after: Duration) -> StoreError {
    let text = format!("the database has not answered for {after:?}");
    StoreError::Io(Arc::new(io::Error::new(io::ErrorKind::TimedOut, text)))
}

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let thread = thread::Builder::new().name(format!("durable-{name}"));
    let spawned = thread.spawn(run).map(drop);
    spawned.map_err(|error| StoreError::Io(Arc::new(error)))
}

type Work = Box<dyn FnOnce(&mut Line) + Send>;

/// A connection on a thread of its own, which ends with this.
pub(super) struct Remote {
    works: Sender<Work>,
    is_closed: Arc<AtomicBool>,
    call: Weak<()>,
}

impl Remote {
    pub(super) fn start(client: Client) -> Result<Remote, StoreError> {
        let (works, queue) = channel::<Work>();
        let held = Arc::new(());
        let call = Arc::downgrade(&held);
        spawn("line", move || {
            let mut line = Line::new(client);
            for work in queue {
                work(&mut line);
            }
            drop((line, held));
        })?;
        let is_closed = Arc::default();
        Ok(Remote {
            works,
            is_closed,
            call,
        })
    }

    /// Returns whether the connection has ended, as far as its last call has seen, or a call was
    /// given up.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Calls `work` on the connection's thread, and waits for so long.
    pub(super) fn call<R: Send + 'static>(
        &self,
        waits: &Waits,
        limit: Duration,
        work: impl FnOnce(&mut Line) -> R + Send + 'static,
    ) -> Result<R, StoreError> {
        let (reply, answer) = sync_channel(1);
        let is_closed = Arc::clone(&self.is_closed);
        let work = move |line: &mut Line| {
            let result = work(line);
            is_closed.fetch_or(line.client.is_closed(), Ordering::SeqCst);
            let _ = reply.send(result);
        };
        // If the thread has ended, the reply has ended with it.
        let _ = self.works.send(Box::new(work));
        let answer = waits.wait(&answer, self.call.clone(), limit);
        self.is_closed.fetch_or(answer.is_err(), Ordering::SeqCst);
        answer
    }
}

/// A connection for calls of many threads, one after the other.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) remote: Option<Remote>,
    failed: Option<(Instant, StoreError)>,
}

impl Lane {
    /// Returns why the last call failed, if it did so after this time: a caller that has waited
    /// for that one need not wait as long again.
    pub(super) fn failed_since(&self, time: Instant) -> Option<StoreError> {
        let failed = self.failed.as_ref().filter(|(at, _)| *at >= time);
        failed.map(|(_, error)| error.clone())
    }

    pub(super) fn note(&mut self, error: &StoreError) {
        self.failed = Some((Instant::now(), error.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_does_not_come_is_given_up() {
        let waits = Waits::new(Duration::from_millis(300));
        let (end, ended) = channel::<()>();
        let refused = waits.connect(move || ended.recv());
        assert!(
            matches!(&refused, Err(StoreError::Io(error)) if error.kind() == io::ErrorKind::TimedOut)
        );
        drop(end);
        assert_eq!(waits.connect(|| 7).unwrap(), 7);
    }

    /// Threads that wait for a server that is stopped for a day must not fill the machine.
    #[test]
    fn attempts_become_rare_while_nothing_answers() {
        let waits = Waits::new(Duration::ZERO);
        let calls: Vec<Arc<()>> = (0..40).map(|_| Arc::default()).collect();
        let left = calls.iter().map(Arc::downgrade).collect();
        waits.left.lock().unwrap().calls = left;
        let begin = Instant::now();
        let at = |secs| waits.may_connect(begin + Duration::from_secs(secs)).is_ok();
        assert!(at(0));
        assert!(!at(39));
        assert!(at(40));
        drop(calls);
        assert!(at(40));
    }
}
