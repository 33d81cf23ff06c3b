//! The server: one thread accepts and reads, one worker writes what is due.
//! The second in between costs a timer, not a thread.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tickwheel::{Engine, Timer};

use crate::DELAY;
use crate::epoll::{EDGES, Epoll, READABLE};

/// A line, and whom to send it to.
pub type Reply = (Arc<Connection>, Box<[u8]>);

/// The most that a connection may have in flight: a client that sends without
/// reading is cut off.
const MOST_OWED: usize = 1 << 20;

/// The longest line that is answered.
const LONGEST_LINE: usize = 1 << 16;

/// What epoll calls the listener. Connections count on from here, so that news
/// of a closed one never reaches another.
const LISTENER: u64 = 0;

/// Answers every line `DELAY` later. Returns only if something fails.
pub fn serve(listener: &TcpListener, engine: &Engine<Reply>) -> io::Result<()> {
    let queue = engine.queue(0);
    thread::spawn(move || {
        for due in queue {
            let (connection, line) = due.into_payload();
            connection.send(&line);
        }
    });

    listener.set_nonblocking(true)?;
    let epoll = Epoll::new()?;
    epoll.add(listener, LISTENER, READABLE)?;
    let mut accepting = true;
    let mut readers = HashMap::new();
    let mut last_key = LISTENER;
    loop {
        for key in epoll.wait(None)? {
            if key == LISTENER {
                match listener.accept() {
                    Ok((stream, _)) => {
                        last_key += 1;
                        stream.set_nonblocking(true)?;
                        // A reply is not held back for more to send with it.
                        stream.set_nodelay(true)?;
                        epoll.add(&stream, last_key, EDGES)?;
                        readers.insert(last_key, Reader::new(stream));
                    }
                    Err(error) if is_passing(&error) => {}
                    // Most likely there are too many open descriptors. Asking
                    // again at once would spin until a connection has ended.
                    Err(error) if !readers.is_empty() => {
                        eprintln!("not accepting for now: {error}");
                        epoll.change(listener, LISTENER, 0)?;
                        accepting = false;
                    }
                    Err(error) => return Err(error),
                }
            } else if let Some(reader) = readers.get_mut(&key) {
                if reader.is_done_after_reading(engine) {
                    // The socket closes when the last timer that refers to it
                    // has fired as well.
                    readers.remove(&key);
                    if !accepting {
                        epoll.change(listener, LISTENER, READABLE)?;
                        accepting = true;
                    }
                }
            }
        }
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
        Reader {
            connection: Arc::new(Connection { stream, output }),
            input: Vec::new(),
        }
    }

    fn is_done_after_reading(&mut self, engine: &Engine<Reply>) -> bool {
        if self.read(engine).is_err() {
            self.connection.close(&mut self.connection.output());
        }
        // Perhaps it was news that writing has become possible.
        let mut output = self.connection.output();
        self.connection.flush(&mut output);
        output.closed
    }

    /// Reads all that has arrived and schedules the replies.
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
    /// Replies that are due and that the socket had no room for.
    waiting: Vec<u8>,
    /// How many bytes are still to be written: what waits here, and what waits
    /// for its timer.
    owed: usize,
    /// The client sends nothing more. It still gets what it is owed.
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

    /// Writes as much as the socket takes. It never blocks, so that a client
    /// that does not read delays nobody else; epoll says when to go on.
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

    /// Ends both directions, which epoll reports, so that the reader goes too.
    fn close(&self, output: &mut Output) {
        output.closed = true;
        output.waiting.clear();
        // It fails if the client was faster, which is as good.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Whether accepting may work the next time.
fn is_passing(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}
