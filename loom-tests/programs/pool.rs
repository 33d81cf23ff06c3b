//! A pool of connections. A caller that finds none waits for a release, up to a limit.
//!
//! Each waiting caller has a timer. A release cancels the timer, and the answer decides:
//! if the cancel comes first, the caller gets the connection, and if a worker has taken
//! the timer, the caller has timed out. The caller therefore learns one of the two, and
//! no connection goes to a caller that has given up.

use std::collections::VecDeque;

use tickwheel::{Engine, Expired, Time, Timer, TimerId};

use crate::threads::sync::{Arc, Condvar, Mutex};

/// A connection, recognised by its number.
#[derive(PartialEq, Eq, Debug)]
pub struct Connection(pub u32);

/// The answer of a pool whose connections are all in use.
#[derive(PartialEq, Eq, Debug)]
pub struct TimedOut;

type Answer = Result<Connection, TimedOut>;

/// A caller that waits for a connection.
#[derive(Default)]
pub struct Waiter {
    answer: Mutex<Option<Answer>>,
    answered: Condvar,
}

pub struct Pool {
    timers: Engine<Arc<Waiter>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    idle: Vec<Connection>,
    /// In the order of their calls. Contains callers that have timed out, until a
    /// release finds them.
    waiting: VecDeque<(TimerId, Arc<Waiter>)>,
}

impl Pool {
    pub fn new(timers: Engine<Arc<Waiter>>, idle: Vec<Connection>) -> Pool {
        let waiting = VecDeque::new();
        Pool { timers, state: Mutex::new(State { idle, waiting }) }
    }

    /// Takes a connection. Blocks until one is released or `limit` has passed.
    pub fn acquire(&self, limit: Time) -> Answer {
        let waiter = {
            let mut state = self.state.lock().unwrap();
            if let Some(connection) = state.idle.pop() {
                return Ok(connection);
            }
            let waiter = Arc::new(Waiter::default());
            let timer = Timer::at(limit, Arc::clone(&waiter));
            let id = self.timers.schedule(timer).map_err(|_| TimedOut)?;
            state.waiting.push_back((id, Arc::clone(&waiter)));
            waiter
        };
        waiter.wait()
    }

    /// Gives the connection to the caller that has waited longest, or keeps it.
    pub fn release(&self, connection: Connection) {
        let mut state = self.state.lock().unwrap();
        while let Some((id, waiter)) = state.waiting.pop_front() {
            if self.timers.cancel(id).is_cancelled() {
                return waiter.answer(Ok(connection));
            }
        }
        state.idle.push(connection);
    }

    /// Returns the number of connections that nobody uses.
    pub fn idle(&self) -> usize {
        self.state.lock().unwrap().idle.len()
    }

    /// What a worker does with an expired timer.
    pub fn time_out(expired: Expired<Arc<Waiter>>) {
        expired.into_payload().answer(Err(TimedOut));
    }
}

impl Waiter {
    fn answer(&self, answer: Answer) {
        *self.answer.lock().unwrap() = Some(answer);
        self.answered.notify_one();
    }

    fn wait(&self) -> Answer {
        let mut answer = self.answer.lock().unwrap();
        loop {
            match answer.take() {
                Some(answer) => return answer,
                None => answer = self.answered.wait(answer).unwrap(),
            }
        }
    }
}
