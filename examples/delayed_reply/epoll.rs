//! The two things that the standard library does not have: waiting for many
//! sockets at once, and the limit on open descriptors.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Says each time that there is something to read, or to accept.
pub const READABLE: u32 = libc::EPOLLIN as u32;

/// Says once when reading, and once when writing, has become possible: whoever
/// is told goes on until the socket would block. A writer on another thread
/// then needs no call to ask for more news.
pub const EDGES: u32 = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET) as u32;

/// Many sockets to wait for. One that is closed leaves by itself.
pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: the call takes no pointers.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor was just made and belongs to nobody else.
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Waits for `socket` too, and calls it `key`.
    pub fn add(&self, socket: &impl AsFd, key: u64, what: u32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, key, what)
    }

    /// Waits for something else of `socket`; 0 for errors only.
    pub fn change(&self, socket: &impl AsFd, key: u64, what: u32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, key, what)
    }

    fn control(&self, how: i32, socket: &impl AsFd, key: u64, what: u32) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: what,
            u64: key,
        };
        let socket = socket.as_fd().as_raw_fd();
        // SAFETY: both descriptors are open, and the event is only read.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), how, socket, &mut event) })?;
        Ok(())
    }

    /// The keys of sockets that something has happened to, waiting for at most
    /// `limit`; none when that has passed, or a signal has arrived.
    pub fn wait(&self, limit: Option<Duration>) -> io::Result<Vec<u64>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 256];
        let limit = match limit {
            Some(limit) => i32::try_from(limit.as_millis()).unwrap_or(i32::MAX),
            None => -1,
        };
        let epoll = self.0.as_raw_fd();
        // SAFETY: the kernel writes at most as many events as it is told that
        // there is room for.
        let waited =
            unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), events.len() as i32, limit) };
        match check(waited) {
            Ok(count) => Ok(events[..count as usize].iter().map(|e| e.u64).collect()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// Raises the limit on open descriptors as far as it goes, and returns it.
pub fn raise_descriptor_limit() -> io::Result<usize> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limit is valid for writing.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })?;
    let raised = libc::rlimit {
        rlim_cur: limit.rlim_max,
        ..limit
    };
    // SAFETY: the limit is valid for reading.
    if check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) }).is_ok() {
        limit = raised;
    }
    Ok(usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX))
}

fn check(result: i32) -> io::Result<i32> {
    match result {
        0.. => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}
