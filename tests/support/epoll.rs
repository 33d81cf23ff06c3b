//! epoll, as little of it as the tests need that drive an engine from a loop.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

/// How often a descriptor says that it is readable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// As long as it is.
    Level,
    /// Each time that it becomes so.
    Edge,
}

pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> Epoll {
        Epoll(epoll::create(CreateFlags::CLOEXEC).unwrap())
    }

    pub fn add(&self, watched: impl AsFd, token: u64, trigger: Trigger) {
        let flags = match trigger {
            Trigger::Level => EventFlags::IN,
            Trigger::Edge => EventFlags::IN | EventFlags::ET,
        };
        epoll::add(&self.0, watched, EventData::new_u64(token), flags).unwrap();
    }

    /// Waits for descriptors to be readable and returns their tokens: none, if the
    /// timeout has passed or a signal came.
    pub fn wait(&self, timeout: Option<Duration>) -> Vec<u64> {
        let timeout = timeout.map(|timeout| timeout.try_into().unwrap());
        let mut events = Vec::with_capacity(8);
        let room = rustix::buffer::spare_capacity(&mut events);
        let _ = epoll::wait(&self.0, room, timeout.as_ref());
        events.iter().map(|event| event.data.u64()).collect()
    }
}
