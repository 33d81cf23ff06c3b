//! The client: one thread, many connections, and the spread of the delays.

use std::error::Error;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::DELAY;
use crate::epoll::{Epoll, READABLE};

/// How long there may be no reply at all.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many lines are sent before replies are looked for: with very many
/// connections the first ones arrive while lines are still being sent.
const BURST: usize = 64;

/// Sends a line on each of so many connections and waits for all replies.
pub fn load(address: SocketAddr, connections: usize) -> Result<Delays, Box<dyn Error>> {
    let epoll = Epoll::new()?;
    let mut clients = Vec::with_capacity(connections);
    for key in 0..connections {
        let stream = TcpStream::connect(address)?;
        epoll.add(&stream, key as u64, READABLE)?;
        clients.push(Client::new(stream, key));
    }

    let mut delays = Vec::with_capacity(connections);
    for burst in 0..connections.div_ceil(BURST) {
        for client in clients.iter_mut().skip(burst * BURST).take(BURST) {
            client.send()?;
        }
        take_replies(&epoll, &mut clients, &mut delays, Duration::ZERO)?;
    }
    while delays.len() < connections {
        if !take_replies(&epoll, &mut clients, &mut delays, PATIENCE)? {
            return Err(format!("{} replies are missing", connections - delays.len()).into());
        }
    }
    delays.sort_unstable();
    Ok(Delays(delays))
}

/// Whether there was anything within `limit`.
fn take_replies(
    epoll: &Epoll,
    clients: &mut [Client],
    delays: &mut Vec<Duration>,
    limit: Duration,
) -> Result<bool, Box<dyn Error>> {
    let ready = epoll.wait(Some(limit))?;
    for &key in &ready {
        delays.extend(clients[key as usize].receive()?);
    }
    Ok(!ready.is_empty())
}

struct Client {
    stream: TcpStream,
    line: String,
    reply: Vec<u8>,
    sent: Instant,
}

impl Client {
    fn new(stream: TcpStream, key: usize) -> Client {
        Client {
            stream,
            line: format!("hello from {key}\n"),
            reply: Vec::new(),
            sent: Instant::now(),
        }
    }

    fn send(&mut self) -> Result<(), Box<dyn Error>> {
        self.sent = Instant::now();
        self.stream.write_all(self.line.as_bytes())?;
        self.stream.set_nonblocking(true)?;
        Ok(())
    }

    /// Reads what is there; the delay, if it completes the reply.
    fn receive(&mut self) -> Result<Option<Duration>, Box<dyn Error>> {
        let mut chunk = [0; 256];
        match self.stream.read(&mut chunk) {
            Ok(0) => return Err("the server has closed a connection".into()),
            Ok(length) => self.reply.extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        let delay = self.sent.elapsed();
        match self.line.as_bytes().strip_prefix(&self.reply[..]) {
            Some([]) => Ok(Some(delay)),
            Some(_) => Ok(None),
            None => Err("a reply to another line".into()),
        }
    }
}

/// From before a line was sent until after its reply was read, in order.
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
        write!(
            f,
            "{count} replies after: min {min}, p50 {p50}, p99 {p99}, max {max}"
        )
    }
}

struct Millis(Duration);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} ms", self.0.as_secs_f64() * 1e3)
    }
}
