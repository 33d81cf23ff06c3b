//! Retry with backoff: a client sends a message to a server that often fails. Each failure
//! doubles the delay to the next attempt, and a random part of it keeps clients apart.
//! An attempt that panics has failed, too. After five attempts the client gives up.
//!
//! The task is one timer with one id. It sets its own next deadline
//! ([`Firing::rearm`](tickwheel::Firing::rearm)), and its firings count the attempts. A
//! cancel ends it between two attempts as well as during one.
//!
//! ```text
//! cargo run -p tickwheel-recipes --bin retry
//! ```

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Firing, TaskEngine, Timer};

const ATTEMPTS: u64 = 5;
const FIRST_DELAY: Duration = Duration::from_millis(20);
const LONGEST_DELAY: Duration = Duration::from_millis(100);

/// The longest wait for a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> Result<(), Box<dyn Error>> {
    let timers = TaskEngine::builder().name("retries").workers(2).start()?;
    succeed_at_last(&timers)?;
    survive_a_panic(&timers)?;
    give_up(&timers)?;
    cancel_during_an_attempt(&timers)?;
    timers.shutdown();
    assert!(timers.ledger().is_balanced());
    Ok(())
}

/// The server fails three times, so the fourth attempt succeeds.
fn succeed_at_last(timers: &TaskEngine) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let server = flaky_server(3)?;
    let outcome = run_with_retries(timers, move || send(server))?.recv()?;
    assert_eq!(outcome, Ok(4));
    assert!(begin.elapsed() >= shortest_backoff(3));
    println!("delivered at attempt 4, after {:.0?}", begin.elapsed());
    Ok(())
}

/// The client itself fails at first.
fn survive_a_panic(timers: &TaskEngine) -> Result<(), Box<dyn Error>> {
    let mut sent = 0;
    let send = move || {
        sent += 1;
        assert!(sent > 1, "the first attempt panics");
        Ok(())
    };
    assert_eq!(run_with_retries(timers, send)?.recv()?, Ok(2));
    println!("delivered at attempt 2, after a panic");
    Ok(())
}

/// The server never works.
fn give_up(timers: &TaskEngine) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let server = flaky_server(u64::MAX)?;
    let outcome = run_with_retries(timers, move || send(server))?.recv()?;
    assert_eq!(outcome, Err(io::ErrorKind::UnexpectedEof));
    assert!(begin.elapsed() >= shortest_backoff(ATTEMPTS - 1));
    println!("gave up after {ATTEMPTS} attempts, {:.0?}", begin.elapsed());
    Ok(())
}

/// The client no longer needs an answer, and cancels its retries by their name. The attempt,
/// if it has begun, goes on until then.
fn cancel_during_an_attempt(timers: &TaskEngine) -> Result<(), Box<dyn Error>> {
    let server = flaky_server(u64::MAX)?;
    let (cancelled, until_cancelled) = mpsc::channel::<()>();
    let send = move || {
        let _ = until_cancelled.recv();
        send(server)
    };
    let attempts = run_with_retries(timers, send)?;
    timers.cancel_by_name("message", None);
    drop(cancelled);
    // The task drops its end of the channel without an outcome.
    assert!(attempts.recv().is_err());
    println!("cancelled");
    Ok(())
}

/// The number of the attempt that succeeded, or the last error.
type Outcome = Result<u64, io::ErrorKind>;

/// Calls `send` until it succeeds.
fn run_with_retries(
    timers: &TaskEngine,
    mut send: impl FnMut() -> io::Result<()> + Send + 'static,
) -> Result<Receiver<Outcome>, Box<dyn Error>> {
    let (done, outcome) = mpsc::channel();
    let mut backoff = Backoff(FIRST_DELAY);
    let attempt = move |firing: Firing| {
        // An uncaught panic would end the timer, and with it the retries.
        let sent = catch_unwind(AssertUnwindSafe(&mut send));
        match sent.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())) {
            Ok(()) => _ = done.send(Ok(firing.number())),
            Err(error) if firing.number() == ATTEMPTS => _ = done.send(Err(error.kind())),
            // Refused if the timer was cancelled or the engine was shut down meanwhile.
            Err(_) => _ = firing.rearm(backoff.next_delay()),
        }
    };
    timers.run(Timer::after(Duration::ZERO, attempt).named("message"))?;
    Ok(outcome)
}

/// The delay before the next attempt, at most.
struct Backoff(Duration);

impl Backoff {
    /// Returns between half of the current delay and all of it, and doubles it.
    fn next_delay(&mut self) -> Duration {
        let half = self.0 / 2;
        self.0 = (self.0 * 2).min(LONGEST_DELAY);
        half + half.mul_f64(fastrand::f64())
    }
}

/// Returns the shortest time that the delays after so many failures can take.
fn shortest_backoff(failures: u64) -> Duration {
    let delays = (0..failures).map(|n| (FIRST_DELAY * (1 << n)).min(LONGEST_DELAY) / 2);
    delays.sum()
}

/// Makes one attempt.
fn send(server: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"hello")?;
    stream.read_exact(&mut [0; 2])
}

/// Starts a server that closes its first `failures` connections without an answer.
fn flaky_server(failures: u64) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for (stream, number) in listener.incoming().zip(0..) {
            // A client that is gone needs no answer.
            let _ = stream.and_then(|stream| answer(stream, number >= failures));
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream, works: bool) -> io::Result<()> {
    stream.read_exact(&mut [0; 5])?;
    if works { stream.write_all(b"ok") } else { Ok(()) }
}
