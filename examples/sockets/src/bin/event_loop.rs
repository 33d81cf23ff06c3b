//! Timers in an event loop: one thread and one poll for timers and sockets alike.
//! The engine's driver is a descriptor that is readable when a timer is due. Its
//! tasks run in the loop's own thread.
//!
//! The program has two timers at 100 ms, one at 300 ms, one at 210 ms that is
//! deleted, and a socket that a peer writes to.
//!
//! ```text
//! cargo run -p tickwheel-socket-examples --bin event_loop
//! ```

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::run()
}

#[cfg(not(target_os = "linux"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    eprintln!("a driver is a descriptor on Linux only; elsewhere, wait for `driver.timeout()`");
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::error::Error;
    use std::io::{self, ErrorKind, Read, Write};
    use std::os::fd::AsRawFd;
    use std::sync::mpsc::{self, Sender};
    use std::thread;
    use std::time::{Duration, Instant};

    use mio::net::UnixStream;
    use mio::unix::SourceFd;
    use mio::{Events, Interest, Poll, Token};
    use tickwheel::wheel::Advance;
    use tickwheel::{Cancel, Refusal, TaskEngine, TimerId};

    const TIMERS: Token = Token(0);
    const SOCKET: Token = Token(1);

    /// The most tasks that run before the loop serves sockets again.
    const BUDGET: usize = 100;

    pub fn run() -> Result<(), Box<dyn Error>> {
        let (tasks, driver) = TaskEngine::builder().start_driven()?;
        let (mut socket, peer) = UnixStream::pair()?;
        let mut poll = Poll::new()?;
        let registry = poll.registry();
        registry.register(&mut SourceFd(&driver.as_raw_fd()), TIMERS, Interest::READABLE)?;
        registry.register(&mut socket, SOCKET, Interest::READABLE)?;

        let (fired, has_fired) = mpsc::channel();
        let reactor = Reactor { tasks, start: Instant::now(), fired };
        reactor.add(100, "100 a")?;
        reactor.add(300, "300")?;
        reactor.add(100, "100 b")?;
        let deleted = reactor.add(210, "210, deleted")?;
        if reactor.tasks.cancel(deleted) != Cancel::Cancelled(()) {
            return Err("a waiting timer could not be deleted".into());
        }
        let peer = thread::spawn(move || write_later(peer));

        let mut order = Vec::new();
        let mut read = Vec::new();
        let mut events = Events::with_capacity(16);
        while order.len() < 3 || read != b"hello" {
            // Without a timeout: the timers have a descriptor too. A signal ends the wait early.
            match poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                match event.token() {
                    // After `More`, the descriptor is readable anew.
                    TIMERS => match driver.process_due(BUDGET) {
                        Advance::Done | Advance::More => order.extend(has_fired.try_iter()),
                        Advance::ShutDown => return Err("the engine was shut down".into()),
                    },
                    _ => {
                        let new = read_available(&mut socket)?;
                        let text = String::from_utf8_lossy(&new);
                        println!("{:>4.0?}: socket: {text}", reactor.start.elapsed());
                        read.extend(new);
                    }
                }
            }
        }
        let _peer = peer.join().map_err(|_| "the peer panicked")??;

        if order != ["100 a", "100 b", "300"] {
            return Err(format!("in the wrong order: {order:?}").into());
        }
        let ledger = reactor.tasks.ledger();
        println!("{} completed, {} cancelled", ledger.completed, ledger.cancelled);
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
        /// Adds a timer that reports its name. Its time counts from the start, so that the order
        /// does not depend on how long this thread takes between two calls.
        fn add(&self, ms: u64, name: &'static str) -> Result<TimerId, Refusal> {
            let (start, fired) = (self.start, self.fired.clone());
            let time = start + Duration::from_millis(ms);
            let report = move || {
                println!("{:>4.0?}: timer {name}", start.elapsed());
                // The receiver is gone if the loop has failed.
                let _ = fired.send(name);
            };
            Ok(self.tasks.run_at(time, report)?)
        }
    }

    /// Reads until the socket would block: mio reports only new input.
    fn read_available(socket: &mut UnixStream) -> io::Result<Vec<u8>> {
        let mut read = Vec::new();
        match socket.read_to_end(&mut read) {
            Ok(_) => Err(io::Error::other("the peer has closed its end")),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(read),
            Err(error) => Err(error),
        }
    }

    /// Returns the peer's end of the socket, which stays open until then.
    fn write_later(mut peer: UnixStream) -> io::Result<UnixStream> {
        thread::sleep(Duration::from_millis(180));
        peer.write_all(b"hello")?;
        Ok(peer)
    }
}
