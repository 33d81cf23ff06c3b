//! The server: one thread accepts and reads, one worker writes due replies. The
//! second in between costs a timer, not a thread.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{self, Shutdown};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use tickwheel::{Engine, Timer};

use crate::DELAY;

/// A line, and the connection to send it to.
pub type Reply = (Arc<Connection>, Box<[u8]>);

/// The most bytes that a connection may have in flight. A client that sends
/// without reading is cut off.
const MOST_OWED: usize = 1 << 20;

/// The longest line that is answered.
const LONGEST_LINE: usize = 1 << 16;

/// The listener's token. The tokens of connections count on from here and are
/// used once, so that a late event never reaches another connection.
const LISTENER: Token = Token(0);

/// Answers every line `DELAY` later. Returns only if something fails.
pub fn serve(listener: net::TcpListener, engine: &Engine<Reply>) -> io::Result<()> {
    let queue = engine.queue(0);
    thread::spawn(move || {
        for due in queue {
            let (connection, line) = due.into_payload();
            connection.send(&line);
        }
    });

    let mut server = Server::new(listener)?;
    let mut events = Events::with_capacity(256);
    loop {
        wait(&mut server.poll, &mut events, None)?;
        for event in &events {
            match event.token() {
                LISTENER => server.accept()?,
                connection => server.serve(connection, engine)?,
            }
        }
    }
}

/// Waits for events, for at most `limit`. A signal ends the wait early.
pub fn wait(poll: &mut Poll, events: &mut Events, limit: Option<Duration>) -> io::Result<()> {
    match poll.poll(events, limit) {
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
        waited => waited,
    }
}

struct Server {
    poll: Poll,
    listener: TcpListener,
    readers: HashMap<Token, Reader>,
    last_token: Token,
}

impl Server {
    fn new(listener: net::TcpListener) -> io::Result<Server> {
        listener.set_nonblocking(true)?;
        let mut listener = TcpListener::from_std(listener);
        let poll = Poll::new()?;
        let registry = poll.registry();
        registry.register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Server { poll, listener, readers: HashMap::new(), last_token: LISTENER })
    }

    /// Accepts every waiting connection: mio reports the listener again only when
    /// another client arrives.
    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.add(stream)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_passing(&error) => {}
                // Most likely there are too many open descriptors. The end of a
                // connection is the time to try again.
                Err(error) if !self.readers.is_empty() => {
                    eprintln!("not accepting for now: {error}");
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn add(&mut self, mut stream: TcpStream) -> io::Result<()> {
        self.last_token.0 += 1;
        // Send each reply at once, without waiting for more data.
        stream.set_nodelay(true)?;
        // mio reports each edge to this thread, so that the worker that writes
        // need not ask for events.
        let edges = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        registry.register(&mut stream, self.last_token, edges)?;
        self.readers.insert(self.last_token, Reader::new(stream));
        Ok(())
    }

    /// Reads from a connection and writes to it, as far as it goes.
    fn serve(&mut self, token: Token, engine: &Engine<Reply>) -> io::Result<()> {
        let Some(reader) = self.readers.get_mut(&token) else {
            return Ok(());
        };
        if !reader.is_done_after_reading(engine) {
            return Ok(());
        }
        // The socket closes when the last timer that refers to it has fired.
        self.readers.remove(&token);
        self.accept()
    }
}

/// The reading side of a connection.
struct Reader {
    connection: Arc<Connection>,
    /// The beginning of a line whose end has not arrived.
    input: Vec<u8>,
}

impl Reader {
    fn new(stream: TcpStream) -> Reader {
        let output = Mutex::default();
        Reader { connection: Arc::new(Connection { stream, output }), input: Vec::new() }
    }

    fn is_done_after_reading(&mut self, engine: &Engine<Reply>) -> bool {
        if self.read(engine).is_err() {
            self.connection.close(&mut self.connection.output());
        }
        // The event may say that the socket has room for more output.
        let mut output = self.connection.output();
        self.connection.flush(&mut output);
        output.closed
    }

    /// Reads all available input and schedules the replies.
    fn read(&mut self, engine: &Engine<Reply>) -> io::Result<()> {
        let mut chunk = [0; 4096];
        loop {
            match (&self.connection.stream).read(&mut chunk) {
                Ok(0) => {
                    self.connection.output().ended = true;
                    return Ok(());
                }
                Ok(length) => {
                    self.input.extend_from_slice(&chunk[..length]);
                    self.schedule_lines(engine)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn schedule_lines(&mut self, engine: &Engine<Reply>) -> io::Result<()> {
        let last = self.input.iter().rposition(|&byte| byte == b'\n');
        let complete = last.map_or(0, |last| last + 1);
        for line in self.input[..complete].split_inclusive(|&byte| byte == b'\n') {
            self.connection.promise(line.len())?;
            let reply = (Arc::clone(&self.connection), line.into());
            engine
                .schedule(Timer::after(DELAY, reply))
                .map_err(|refused| io::Error::other(refused.reason()))?;
        }
        self.input.drain(..complete);
        match self.input.len() {
            0..=LONGEST_LINE => Ok(()),
            _ => Err(io::Error::other("too long a line")),
        }
    }
}

/// A connection, shared between its reader and its timers.
pub struct Connection {
    stream: TcpStream,
    output: Mutex<Output>,
}

#[derive(Default)]
struct Output {
    /// Due replies that the socket had no room for.
    waiting: Vec<u8>,
    /// The number of bytes still to be written: those in `waiting` and those in
    /// timers.
    owed: usize,
    /// The client sends nothing more. It still receives its replies.
    ended: bool,
    closed: bool,
}

impl Connection {
    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn promise(&self, bytes: usize) -> io::Result<()> {
        let mut output = self.output();
        output.owed += bytes;
        match output.owed {
            0..=MOST_OWED => Ok(()),
            _ => Err(io::Error::other("too much in flight")),
        }
    }

    fn send(&self, line: &[u8]) {
        let mut output = self.output();
        if !output.closed {
            output.waiting.extend_from_slice(line);
            self.flush(&mut output);
        }
    }

    /// Writes as much as the socket takes. Never blocks, so a client that does
    /// not read delays no other. An event continues the rest.
    fn flush(&self, output: &mut Output) {
        while !output.waiting.is_empty() {
            match (&self.stream).write(&output.waiting) {
                Ok(written) => {
                    output.waiting.drain(..written);
                    output.owed -= written;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.close(output),
            }
        }
        if output.ended && output.owed == 0 {
            self.close(output);
        }
    }

    /// Ends both directions. The resulting event removes the reader.
    fn close(&self, output: &mut Output) {
        output.closed = true;
        output.waiting.clear();
        // Fails if the client has closed the connection already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Whether the next attempt to accept may succeed.
fn is_passing(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, Interrupted};
    matches!(error.kind(), Interrupted | ConnectionAborted)
}
