//! The client: one thread, many connections, and the spread of the delays.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{self, SocketAddr};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::DELAY;
use crate::server::wait;

/// The longest wait for a reply.
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of lines that are sent before the client looks for replies. With
/// very many connections the first replies arrive during the sending.
const BURST: usize = 64;

/// Sends a line on each of `connections` connections and waits for all replies.
pub fn load(address: SocketAddr, connections: usize) -> Result<Delays, Box<dyn Error>> {
    let poll = Poll::new()?;
    let clients = (0..connections).map(|number| Client::connect(address, number, &poll));
    let mut load = Load {
        clients: clients.collect::<io::Result<_>>()?,
        delays: Vec::with_capacity(connections),
        events: Events::with_capacity(256),
        poll,
    };
    for first in (0..connections).step_by(BURST) {
        let mut burst = load.clients.iter_mut().skip(first).take(BURST);
        burst.try_for_each(Client::send)?;
        load.take_replies(Duration::ZERO)?;
    }
    while load.delays.len() < connections {
        if !load.take_replies(PATIENCE)? {
            let missing = connections - load.delays.len();
            return Err(format!("{missing} replies are missing").into());
        }
    }
    load.delays.sort_unstable();
    Ok(Delays(load.delays))
}

struct Load {
    poll: Poll,
    events: Events,
    clients: Vec<Client>,
    delays: Vec<Duration>,
}

impl Load {
    /// Whether there was an event within `limit`.
    fn take_replies(&mut self, limit: Duration) -> Result<bool, Box<dyn Error>> {
        wait(&mut self.poll, &mut self.events, Some(limit))?;
        for event in &self.events {
            self.delays.extend(self.clients[event.token().0].receive()?);
        }
        Ok(!self.events.is_empty())
    }
}

struct Client {
    stream: TcpStream,
    line: String,
    reply: Vec<u8>,
    sent: Instant,
}

impl Client {
    fn connect(address: SocketAddr, number: usize, poll: &Poll) -> io::Result<Client> {
        // Blocks until the connection stands, unlike mio's own `connect`.
        let stream = net::TcpStream::connect(address)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        let registry = poll.registry();
        registry.register(&mut stream, Token(number), Interest::READABLE)?;
        Ok(Client {
            stream,
            line: format!("hello from {number}\n"),
            reply: Vec::new(),
            sent: Instant::now(),
        })
    }

    fn send(&mut self) -> io::Result<()> {
        self.sent = Instant::now();
        // A new connection has room for a line.
        self.stream.write_all(self.line.as_bytes())
    }

    /// Reads all available input. Returns the delay if it completes the reply.
    fn receive(&mut self) -> Result<Option<Duration>, Box<dyn Error>> {
        let was_complete = self.reply.len() == self.line.len();
        let mut chunk = [0; 256];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err("the server has closed a connection".into()),
                Ok(length) => self.reply.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        let delay = self.sent.elapsed();
        match self.line.as_bytes().strip_prefix(&self.reply[..]) {
            Some([]) => Ok((!was_complete).then_some(delay)),
            Some(_) => Ok(None),
            None => Err("a reply to another line".into()),
        }
    }
}

/// The times from before a line was sent until after its reply was read, in
/// ascending order.
pub struct Delays(Vec<Duration>);

impl Delays {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn any_early(&self) -> bool {
        self.0.first().is_some_and(|&shortest| shortest < DELAY)
    }

    fn percentile(&self, percent: usize) -> Millis {
        Millis(self.0[(self.0.len() - 1) * percent / 100])
    }
}

impl fmt::Display for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("no replies");
        }
        let [min, p50, p99, max] = [0, 50, 99, 100].map(|percent| self.percentile(percent));
        let count = self.len();
        write!(f, "{count} replies after: min {min}, p50 {p50}, p99 {p99}, max {max}")
    }
}

struct Millis(Duration);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ms", self.0.as_secs_f64() * 1e3)
    }
}
