//! The control: a wheel behind a mutex of the standard library, and a map of
//! names. What anybody would write.

use std::collections::{HashMap, VecDeque};
use std::hint::black_box;
use std::mem;
use std::sync::Mutex;
use std::time::Duration;

use tickwheel::{Tick, TimerId, Wheel};

use super::subject::{Name, Subject};
use crate::book::lock;

const WHEEL_SIZE: usize = 64;

pub struct Control(Mutex<State>);

struct State {
    wheel: Wheel<u64>,
    named: HashMap<Name, VecDeque<TimerId>>,
    is_closed: bool,
}

impl Control {
    pub fn new() -> Control {
        Control(Mutex::new(State {
            wheel: Wheel::new(WHEEL_SIZE),
            named: HashMap::new(),
            is_closed: false,
        }))
    }
}

fn ticks(delay: Duration) -> u64 {
    delay.as_millis() as u64
}

impl Subject for Control {
    fn schedule(&self, delay: Duration, name: Option<&Name>) -> Option<TimerId> {
        let mut state = lock(&self.0);
        if state.is_closed {
            return None;
        }
        let id = state.wheel.schedule_after(ticks(delay), 0);
        if let Some(name) = name {
            let named = state.named.entry(Name::clone(name));
            named.or_default().push_back(id);
        }
        Some(id)
    }

    fn cancel(&self, id: TimerId) {
        lock(&self.0).wheel.cancel(id);
    }

    fn reschedule(&self, id: TimerId, delay: Duration) {
        let mut state = lock(&self.0);
        let deadline = Tick(state.wheel.now().0 + ticks(delay));
        let _moved = state.wheel.reschedule(id, deadline);
    }

    fn cancel_one(&self, name: &Name) {
        let mut state = lock(&self.0);
        let State { wheel, named, .. } = &mut *state;
        let ids = named.get_mut(name).into_iter();
        let mut oldest = ids.flat_map(|ids| std::iter::from_fn(|| ids.pop_front()));
        oldest.find_map(|id| wheel.cancel(id));
    }

    fn look(&self) {
        black_box(lock(&self.0).wheel.len());
    }

    fn look_closely(&self) {
        let state = lock(&self.0);
        black_box((state.wheel.len(), state.wheel.next_wakeup()));
    }

    fn shut_down(&self) {
        let mut state = lock(&self.0);
        state.is_closed = true;
        let wheel = mem::replace(&mut state.wheel, Wheel::new(WHEEL_SIZE));
        drop(state);
        drop(wheel);
    }
}
