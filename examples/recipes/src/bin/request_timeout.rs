//! Time out a request: a client sends many requests over one connection, each with a limit
//! of its own, and the connection survives every time-out.
//!
//! A request leaves two traces: its number in a map, and a timer with that number as
//! payload. The reply and the expired timer both go to the map, and whichever removes the
//! number first decides. A reply cancels the timer, so a request that is answered costs a
//! schedule and a cancel; a late reply finds no number and is dropped.
//!
//! ```text
//! cargo run -p tickwheel-recipes --bin request_timeout
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Engine, Timer, TimerId};

const REQUESTS: u64 = 1_000;

/// One request in so many is answered too late.
const ONE_IN: u64 = 50;

/// The limit of a request that is to be answered.
const PATIENT: Duration = Duration::from_secs(20);

/// The limit of a request that is to be timed out.
const IMPATIENT: Duration = Duration::from_millis(100);

fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::connect(start_server()?)?;
    thread::scope(|scope| {
        scope.spawn(|| client.take_replies());
        scope.spawn(|| client.give_up());
        let done = talk(&client);
        client.close();
        done
    })?;
    let ledger = client.timers.ledger();
    println!(
        "{} timed out and {} were answered on one connection; {} late replies were dropped",
        ledger.completed,
        ledger.cancelled,
        client.late.load(Ordering::Relaxed)
    );
    assert_eq!(ledger.completed, REQUESTS / ONE_IN);
    assert_eq!(client.late.load(Ordering::Relaxed), REQUESTS / ONE_IN);
    assert!(ledger.live == 0 && ledger.is_balanced());
    Ok(())
}

/// Sends all requests at once, and then waits for their outcomes.
fn talk(client: &Client) -> Result<(), Box<dyn Error>> {
    let send = |n| match n % ONE_IN {
        0 => client.request("slow", IMPATIENT),
        _ => client.request("fast", PATIENT),
    };
    let begin = Instant::now();
    let outcomes: Vec<_> = (0..REQUESTS).map(send).collect::<Result<_, _>>()?;
    for (outcome, n) in outcomes.iter().zip(0..) {
        let in_time = n % ONE_IN != 0;
        assert_eq!(outcome.recv()?, if in_time { Ok(()) } else { Err(TimedOut) });
        assert!(in_time || begin.elapsed() >= IMPATIENT);
    }
    // The connection still works. The server first answers what it has held back.
    let outcome = client.request("release", PATIENT)?;
    assert_eq!(outcome.recv()?, Ok(()));
    Ok(())
}

#[derive(Debug, PartialEq)]
struct TimedOut;

/// What a request waits for.
struct Waiting {
    outcome: Sender<Result<(), TimedOut>>,
    limit: TimerId,
}

struct Client {
    stream: TcpStream,
    timers: Engine<u64>,
    waiting: Mutex<HashMap<u64, Waiting>>,
    requests: AtomicU64,
    late: AtomicU64,
}

impl Client {
    fn connect(address: SocketAddr) -> Result<Client, Box<dyn Error>> {
        Ok(Client {
            stream: TcpStream::connect(address)?,
            timers: Engine::builder().name("requests").start()?,
            waiting: Mutex::default(),
            requests: AtomicU64::new(0),
            late: AtomicU64::new(0),
        })
    }

    /// Sends a request. Its outcome comes within `limit`, whatever the server does.
    fn request(
        &self,
        text: &str,
        limit: Duration,
    ) -> Result<Receiver<Result<(), TimedOut>>, Box<dyn Error>> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let (outcome, receiver) = mpsc::channel();
        // The lock is held until the number is in the map, so that neither thread looks
        // for it too early.
        let mut waiting = self.waiting();
        let limit = self.timers.schedule(Timer::after(limit, number))?;
        waiting.insert(number, Waiting { outcome, limit });
        drop(waiting);
        (&self.stream).write_all(format!("{number} {text}\n").as_bytes())?;
        Ok(receiver)
    }

    /// Delivers replies, until the connection ends.
    fn take_replies(&self) {
        let lines = BufReader::new(&self.stream).lines().map_while(Result::ok);
        for number in lines.filter_map(|line| line.parse().ok()) {
            let Some(request) = self.waiting().remove(&number) else {
                self.late.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            self.timers.cancel(request.limit);
            let _ = request.outcome.send(Ok(()));
        }
    }

    /// Gives up requests whose limit has passed, until the engine is shut down.
    fn give_up(&self) {
        for expired in self.timers.queue(0) {
            if let Some(request) = self.waiting().remove(expired.payload()) {
                let _ = request.outcome.send(Err(TimedOut));
            }
        }
    }

    fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        self.timers.shutdown();
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a server for one client. It answers every request with its number, but holds the
/// answers to slow requests back until it is to release them.
fn start_server() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || listener.accept().and_then(|(stream, _)| serve(stream)));
    Ok(address)
}

fn serve(stream: TcpStream) -> io::Result<()> {
    let mut held_back = Vec::new();
    let mut output = stream.try_clone()?;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        let (number, text) = line.split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
        match text {
            "slow" => {
                held_back.push(format!("{number}\n"));
                continue;
            }
            "release" => output.write_all(held_back.concat().as_bytes())?,
            _fast => {}
        }
        output.write_all(format!("{number}\n").as_bytes())?;
    }
    Ok(())
}
