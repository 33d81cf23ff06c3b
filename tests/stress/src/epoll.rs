//! Waiting for one descriptor, as event loops do it.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// How often a descriptor says that it is readable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// As long as it is.
    Level,
    /// Each time that it becomes so.
    Edge,
}

/// How long a wait may go on before who waits looks whether it is over.
const LIMIT_MS: i32 = 50;

pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn of(watched: impl AsFd, trigger: Trigger) -> Epoll {
        // SAFETY: no pointers; a descriptor that was made belongs to nobody
        // else, and one that was not fails the check that it is one.
        let epoll = unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)) };
        let mut event = libc::epoll_event {
            events: match trigger {
                Trigger::Level => libc::EPOLLIN as u32,
                Trigger::Edge => (libc::EPOLLIN | libc::EPOLLET) as u32,
            },
            u64: 0,
        };
        let (own, watched) = (epoll.as_raw_fd(), watched.as_fd().as_raw_fd());
        // SAFETY: both descriptors are open, and the event is valid for reads.
        let added = unsafe { libc::epoll_ctl(own, libc::EPOLL_CTL_ADD, watched, &mut event) };
        assert_eq!(added, 0, "a descriptor can be waited for");
        Epoll(epoll)
    }

    /// Waits for the descriptor to be readable; not, if the limit has passed or
    /// a signal came.
    pub fn has_called(&self) -> bool {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: there is room for the one event.
        unsafe { libc::epoll_wait(self.0.as_raw_fd(), &mut event, 1, LIMIT_MS) == 1 }
    }
}
