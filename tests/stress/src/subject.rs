//! What callers do to an engine, and in the same way to its control: a wheel behind a mutex of
//! the standard library, and a map of names. What anybody would write.

use std::collections::{HashMap, VecDeque};
use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{iter, mem};

use tickwheel::{Engine, Tick, Timer, TimerId, Wheel};

use crate::account::lock;

const FAR: Duration = Duration::from_secs(3_600);
const FAR_TICKS: u64 = 3_600_000;

pub enum Call<'a> {
    /// With this name, if there is one.
    Schedule(Option<&'a str>),
    Cancel(TimerId),
    Move(TimerId),
    /// Cancels one timer of a name.
    CancelOne(&'a str),
    /// Asks how many timers there are, as a dashboard does.
    Look,
    /// Asks whatever there is to ask: live timers, ledger, earliest deadline.
    LookClosely,
    ShutDown,
}

/// Something that has timers and is used by many threads.
pub trait Subject: Sync {
    /// Makes a call, and returns the id of a new timer.
    fn call(&self, call: Call<'_>) -> Option<TimerId>;
}

impl Subject for Engine<u64> {
    fn call(&self, call: Call<'_>) -> Option<TimerId> {
        let timer = Timer::after(FAR, 0);
        match call {
            Call::Schedule(None) => return self.schedule(timer).ok(),
            Call::Schedule(Some(name)) => return self.schedule(timer.named(name)).ok(),
            Call::Cancel(id) => drop(self.cancel(id)),
            Call::Move(id) => _ = self.reschedule(id, FAR / 2),
            Call::CancelOne(name) => drop(self.cancel_by_name(name, 1)),
            Call::Look => drop(black_box(self.snapshot())),
            Call::LookClosely => {
                black_box((self.ledger(), self.earliest_deadline(), self.live().count()));
            }
            Call::ShutDown => drop(self.shutdown()),
        }
        None
    }
}

#[derive(Default)]
pub struct Control(Mutex<State>);

struct State {
    wheel: Wheel<u64>,
    named: HashMap<Arc<str>, VecDeque<TimerId>>,
    is_closed: bool,
}

impl Default for State {
    fn default() -> State {
        State {
            wheel: Wheel::new(64),
            named: HashMap::new(),
            is_closed: false,
        }
    }
}

impl Subject for Control {
    fn call(&self, call: Call<'_>) -> Option<TimerId> {
        let mut state = lock(&self.0);
        let State {
            wheel,
            named,
            is_closed,
        } = &mut *state;
        match call {
            Call::Schedule(_) if *is_closed => {}
            Call::Schedule(name) => {
                let id = wheel.schedule_after(FAR_TICKS, 0);
                if let Some(name) = name {
                    named.entry(name.into()).or_default().push_back(id);
                }
                return Some(id);
            }
            Call::Cancel(id) => _ = wheel.cancel(id),
            Call::Move(id) => _ = wheel.reschedule(id, Tick(FAR_TICKS / 2)),
            Call::CancelOne(name) => {
                let mut oldest = iter::from_fn(|| named.get_mut(name)?.pop_front());
                oldest.find_map(|id| wheel.cancel(id));
            }
            Call::Look => _ = black_box(wheel.len()),
            Call::LookClosely => _ = black_box((wheel.len(), wheel.next_wakeup())),
            Call::ShutDown => {
                *is_closed = true;
                let wheel = mem::replace(wheel, Wheel::new(64));
                drop(state);
                drop(wheel);
            }
        }
        None
    }
}
