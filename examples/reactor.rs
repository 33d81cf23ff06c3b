//! A reactor: one thread and one epoll for timers and sockets alike. The
//! engine's driver is a descriptor like any other, readable when a timer is
//! due, and the tasks run here, in the loop's own thread.
//!
//! Two timers at 1000, one at 3000, one at 2100 that is deleted, and a socket
//! that a peer writes to; all at a tenth of those milliseconds.
//!
//! ```text
//! cargo run --release --example reactor
//! ```

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::run()
}

#[cfg(not(target_os = "linux"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    eprintln!("this example waits with epoll, which needs Linux");
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::io::{self, Read, Write};
    use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{self, Sender};
    use std::thread;
    use std::time::{Duration, Instant};

    use tickwheel::wheel::Advance;
    use tickwheel::{Cancel, Refusal, TaskEngine, TimerId};

    /// What epoll calls the two.
    const TIMERS: u64 = 0;
    const SOCKET: u64 = 1;

    /// At most so many tasks before sockets are looked at again.
    const BUDGET: usize = 100;

    pub fn run() -> Result<(), Box<dyn Error>> {
        let (tasks, driver) = TaskEngine::builder().start_driven()?;
        let (mut socket, peer) = UnixStream::pair()?;
        let epoll = Epoll::new()?;
        epoll.add(&driver, TIMERS)?;
        epoll.add(&socket, SOCKET)?;

        let (fired, has_fired) = mpsc::channel();
        let reactor = Reactor {
            tasks,
            start: Instant::now(),
            fired,
        };
        reactor.add(1_000, "1000 a")?;
        reactor.add(3_000, "3000")?;
        reactor.add(1_000, "1000 b")?;
        let deleted = reactor.add(2_100, "2100, which was deleted")?;
        if reactor.tasks.cancel(deleted) != Cancel::Cancelled(()) {
            return Err("a timer that waits could not be deleted".into());
        }
        let peer = thread::spawn(move || write_later(peer));

        let mut order = Vec::new();
        let mut read = Vec::new();
        while order.len() < 3 || read != b"hello" {
            for ready in epoll.wait()? {
                match ready {
                    // What is left over the budget makes it readable anew.
                    TIMERS => match driver.run_due(BUDGET) {
                        Advance::Done | Advance::More => order.extend(has_fired.try_iter()),
                        Advance::Closed => return Err("the engine was shut down".into()),
                    },
                    _ => {
                        let mut buffer = [0; 64];
                        let len = socket.read(&mut buffer)?;
                        if len == 0 {
                            return Err("the peer hung up".into());
                        }
                        read.extend_from_slice(&buffer[..len]);
                        let text = String::from_utf8_lossy(&buffer[..len]);
                        println!("{:>4.0?}: socket: {text}", reactor.start.elapsed());
                    }
                }
            }
        }
        let _peer = peer.join().map_err(|_| "the peer panicked")??;

        if order != ["1000 a", "1000 b", "3000"] {
            return Err(format!("in the wrong order: {order:?}").into());
        }
        let ledger = reactor.tasks.ledger();
        println!(
            "{} completed, {} cancelled",
            ledger.completed, ledger.cancelled
        );
        match (ledger.live, ledger.is_balanced()) {
            (0, true) => Ok(()),
            _ => Err("the ledger is not balanced".into()),
        }
    }

    struct Reactor {
        tasks: TaskEngine,
        start: Instant,
        fired: Sender<&'static str>,
    }

    impl Reactor {
        /// Adds a timer, at a tenth of its time, that says what it is called.
        fn add(&self, ms: u64, name: &'static str) -> Result<TimerId, Refusal> {
            let (start, fired) = (self.start, self.fired.clone());
            let delay = Duration::from_millis(ms / 10);
            let tell = move || {
                println!("{:>4.0?}: timer {name}", start.elapsed());
                // Nobody listens if the loop has failed.
                let _ = fired.send(name);
            };
            Ok(self.tasks.run_after(delay, tell)?)
        }
    }

    /// The other end of the socket, which is not hung up before it is returned.
    fn write_later(mut peer: UnixStream) -> io::Result<UnixStream> {
        thread::sleep(Duration::from_millis(180));
        peer.write_all(b"hello")?;
        Ok(peer)
    }

    /// epoll, as little of it as this needs.
    struct Epoll(OwnedFd);

    impl Epoll {
        fn new() -> io::Result<Epoll> {
            // SAFETY: the call takes no pointers.
            let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
            // SAFETY: the descriptor was just made and belongs to nobody else.
            Ok(Epoll(unsafe { OwnedFd::from_raw_fd(fd) }))
        }

        fn add(&self, what: &impl AsFd, key: u64) -> io::Result<()> {
            let mut event = libc::epoll_event {
                events: libc::EPOLLIN as u32,
                u64: key,
            };
            let (epoll, fd) = (self.0.as_raw_fd(), what.as_fd().as_raw_fd());
            // SAFETY: both descriptors are open, and the event is only read.
            check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event) })?;
            Ok(())
        }

        /// Waits, for as long as it takes: the timers have a descriptor too.
        fn wait(&self) -> io::Result<Vec<u64>> {
            let mut events = [libc::epoll_event { events: 0, u64: 0 }; 8];
            let (epoll, room) = (self.0.as_raw_fd(), events.len() as i32);
            // SAFETY: the kernel writes at most as many events as it is told
            // that there is room for.
            let waited = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), room, -1) };
            let ready = match check(waited) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                ready => ready? as usize,
            };
            Ok(events[..ready].iter().map(|event| event.u64).collect())
        }
    }

    fn check(result: i32) -> io::Result<i32> {
        match result {
            -1 => Err(io::Error::last_os_error()),
            result => Ok(result),
        }
    }
}
