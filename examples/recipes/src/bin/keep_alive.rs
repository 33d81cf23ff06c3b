//! Keep a connection alive: a gateway closes connections that have been silent for two
//! seconds. Each connection has one timer for its whole life, and every message postpones
//! it, which stores a number and touches no list.
//!
//! The gateway is one thread. Its loop polls the sockets until the next timer is due, and
//! the engine has no thread of its own ([`Builder::start_driven`]).
//!
//! ```text
//! cargo run -p tickwheel-recipes --bin keep_alive
//! ```
//!
//! [`Builder::start_driven`]: tickwheel::Builder::start_driven

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{self, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use tickwheel::stats::Ledger;
use tickwheel::{Driver, Engine, Refusal, Timer, TimerId};

/// The longest silence of a live connection.
const SILENCE: Duration = Duration::from_secs(2);

/// As many connections as the system lets one process have, up to this number.
const MOST_CONNECTIONS: usize = 2_000;

/// The last messages of a connection that is in use, and the time between two of them.
const MESSAGES: u32 = 8;
const EVERY: Duration = Duration::from_millis(100);

/// The expired timers that one turn of the loop may handle before it serves sockets again.
const BUDGET: usize = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let connections = raise_limit().min(MOST_CONNECTIONS);
    let mut gateway = Gateway::new(connections)?;
    let address = gateway.listener.local_addr()?;
    let served = thread::spawn(move || gateway.run().map_err(|error| error.to_string()));
    use_connections(address, connections)?;
    let ledger = served.join().map_err(|_| "the gateway panicked")??;
    println!(
        "{} connections, {} of them closed for their silence",
        ledger.accepted, ledger.completed
    );
    // One timer for each connection. Every fourth one was closed by its client.
    assert_eq!(ledger.accepted, connections as u64);
    assert_eq!(ledger.cancelled, connections.div_ceil(4) as u64);
    assert!(ledger.live == 0 && ledger.is_balanced());
    Ok(())
}

struct Gateway {
    listener: TcpListener,
    poll: Poll,
    timers: Engine<Token>,
    driver: Driver<Token>,
    connections: HashMap<Token, Connection>,
    /// The number of connections that are still to come.
    expected: usize,
    last_token: Token,
}

struct Connection {
    stream: TcpStream,
    idle: TimerId,
    last_message: Instant,
}

const LISTENER: Token = Token(0);

impl Gateway {
    fn new(expected: usize) -> Result<Gateway, Box<dyn Error>> {
        let mut listener = TcpListener::bind(([127, 0, 0, 1], 0).into())?;
        let poll = Poll::new()?;
        let registry = poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        let (timers, driver) = Engine::builder().name("gateway").start_driven()?;
        Ok(Gateway {
            listener,
            poll,
            timers,
            driver,
            connections: HashMap::new(),
            expected,
            last_token: LISTENER,
        })
    }

    /// Serves until all connections have come and gone.
    fn run(&mut self) -> Result<Ledger, Box<dyn Error>> {
        let mut events = Events::with_capacity(256);
        while self.expected > 0 || !self.connections.is_empty() {
            match self.poll.poll(&mut events, self.driver.timeout()) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept()?,
                    token => self.read(token)?,
                }
            }
            self.close_silent();
        }
        Ok(self.timers.ledger())
    }

    fn accept(&mut self) -> Result<(), Box<dyn Error>> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.add(stream)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn add(&mut self, mut stream: TcpStream) -> Result<(), Box<dyn Error>> {
        self.last_token.0 += 1;
        self.expected -= 1;
        let token = self.last_token;
        let registry = self.poll.registry();
        registry.register(&mut stream, token, Interest::READABLE)?;
        let last_message = Instant::now();
        let idle = self.timers.schedule(Timer::after(SILENCE, token))?;
        let connection = Connection { stream, idle, last_message };
        self.connections.insert(token, connection);
        Ok(())
    }

    /// Postpones the end of a connection that has sent something. Removes one that has
    /// ended, with its timer.
    fn read(&mut self, token: Token) -> Result<(), Refusal> {
        let Some(connection) = self.connections.get_mut(&token) else {
            return Ok(());
        };
        match drain(&mut connection.stream) {
            Ok(()) => {
                connection.last_message = Instant::now();
                self.timers.reschedule(connection.idle, SILENCE)
            }
            Err(_ended) => {
                self.timers.cancel(connection.idle);
                self.connections.remove(&token);
                Ok(())
            }
        }
    }

    /// Closes the connections whose timers have expired.
    fn close_silent(&mut self) {
        // If timers are left over, the driver asks for another turn at once.
        let _ = self.driver.process_due(BUDGET);
        for expired in self.timers.queue(0).try_iter() {
            let connection = self.connections.remove(expired.payload());
            let silent = connection.map(|it| it.last_message.elapsed());
            assert!(silent >= Some(SILENCE), "closed after {silent:?}");
        }
    }
}

/// Reads everything that is there. Returns an error if the connection has ended.
fn drain(stream: &mut TcpStream) -> io::Result<()> {
    loop {
        match stream.read(&mut [0; 256]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Opens the connections and uses most of them. Of four, one sends messages and is then
/// closed, one sends messages and then falls silent, and two are silent from the start.
fn use_connections(address: SocketAddr, count: usize) -> io::Result<()> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        all.push(net::TcpStream::connect(address)?);
        // To connect them all may take longer than a connection may be silent.
        if all.len() % 100 == 0 {
            send_messages(&mut all)?;
        }
    }
    for _ in 0..MESSAGES {
        thread::sleep(EVERY);
        send_messages(&mut all)?;
    }
    let mut number = 0..;
    all.retain(|_| number.next().is_some_and(|n: usize| n % 4 != 0));
    // Each read ends when the gateway closes the connection.
    all.iter_mut().try_for_each(|stream| match stream.read(&mut [0]) {
        Ok(0) => Ok(()),
        _ => Err(io::Error::other("a connection did not end")),
    })
}

/// Sends a message on two of four connections.
fn send_messages(all: &mut [net::TcpStream]) -> io::Result<()> {
    let mut in_use = all.chunks_mut(4).flat_map(|four| four.iter_mut().take(2));
    in_use.try_for_each(|stream| stream.write_all(b"alive"))
}

/// Raises the limit of open files, and returns how many connections it allows with both
/// ends in this process.
#[cfg(unix)]
fn raise_limit() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    let files = getrlimit(Resource::Nofile).current;
    let files = files.and_then(|files| usize::try_from(files).ok());
    files.unwrap_or(usize::MAX).saturating_sub(50) / 2
}

#[cfg(not(unix))]
fn raise_limit() -> usize {
    MOST_CONNECTIONS
}
