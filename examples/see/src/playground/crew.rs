//! Worker threads that take timers on the real clock, and rest on request.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use tickwheel::{Engine, Queue, Time};

#[derive(Default, Debug)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set_closed(&self, closed: bool) {
        *self.is_closed.lock().unwrap_or_else(PoisonError::into_inner) = closed;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let guard = self.is_closed.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = self.opened.wait_while(guard, |is_closed| *is_closed);
        drop(passed);
    }
}

/// A worker for each queue. They end when the engine is shut down.
#[derive(Debug)]
pub(super) struct Crew {
    gate: Arc<Gate>,
}

impl Crew {
    pub(super) fn start(engine: &Engine<Time>) -> Crew {
        let gate = Arc::new(Gate::default());
        for queue in 0..engine.snapshot().queued.len() {
            let (timers, gate) = (engine.queue(queue), Arc::clone(&gate));
            thread::spawn(move || work(&timers, &gate));
        }
        Crew { gate }
    }

    /// Lets the workers work, or rest after the timer that each has already begun to wait for.
    pub(super) fn let_work(&self, works: bool) {
        self.gate.set_closed(!works);
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.gate.set_closed(false);
    }
}

fn work(timers: &Queue<Time>, gate: &Gate) {
    while let Ok(expired) = timers.recv() {
        drop(expired);
        gate.pass();
    }
}
