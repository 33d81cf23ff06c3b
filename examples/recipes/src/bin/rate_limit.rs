//! Limit a rate: messages leave through one socket at least 10 ms apart, however many
//! threads send them. At most 20 messages wait; a sender gets the next one back.
//!
//! One timer paces the queue. It sends a message, re-arms itself for 10 ms later
//! ([`Firing::rearm`]), and ends when it finds the queue empty. The distance counts from the
//! sending itself, so a worker that is late sends no burst afterwards, and an idle queue
//! costs no wake-up. If a sending panics, its message is lost, and the next one follows.
//!
//! ```text
//! cargo run -p tickwheel-recipes --bin rate_limit
//! ```

use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Firing, TaskEngine, Timer};

const DISTANCE: Duration = Duration::from_millis(10);
const MOST_WAITING: usize = 20;
const SENDERS: u32 = 3;
const MESSAGES: u32 = 20;

/// The longest wait for a message.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> Result<(), Box<dyn Error>> {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    receiver.set_read_timeout(Some(PATIENCE))?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(receiver.local_addr()?)?;
    let calls = AtomicU32::new(0);
    let paced = Paced::new(move |message| {
        let is_third = calls.fetch_add(1, Relaxed) == 2;
        assert!(!is_third, "the third message is lost");
        socket.send(&message.to_le_bytes())
    })?;

    let refused = send_from_threads(&paced);
    let accepted = SENDERS * MESSAGES - refused;
    let arriving = accepted - 1;
    for _ in 0..arriving {
        receiver.recv(&mut [0; 8])?;
    }
    println!("{arriving} messages went out, 1 was lost, {refused} were given back");

    let sent = &paced.state().sent;
    let distances = sent.windows(2).map(|pair| pair[1] - pair[0]);
    let shortest = distances.min().ok_or("nothing was sent")?;
    println!("the shortest distance of two messages was {shortest:.1?}");
    assert!(sent.len() == arriving as usize && shortest >= DISTANCE);
    assert!(accepted >= MOST_WAITING as u32);
    Ok(())
}

/// Sends from several threads at once. Returns the number of messages that came back.
fn send_from_threads(paced: &Arc<Paced>) -> u32 {
    thread::scope(|scope| {
        let send = || (0..MESSAGES).filter(|&n| paced.send(n).is_err()).count() as u32;
        let senders: Vec<_> = (0..SENDERS).map(|_| scope.spawn(send)).collect();
        let refused = senders.into_iter().map(|sender| sender.join());
        refused.map(|count| count.expect("a sender panicked")).sum()
    })
}

/// What a message leaves through.
type Transmit = dyn Fn(u32) -> io::Result<usize> + Send + Sync;

/// A socket with a queue before it.
struct Paced {
    transmit: Box<Transmit>,
    timers: TaskEngine,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<u32>,
    /// Whether a timer will look at the queue.
    is_armed: bool,
    sent: Vec<Instant>,
}

impl Paced {
    fn new(
        transmit: impl Fn(u32) -> io::Result<usize> + Send + Sync + 'static,
    ) -> Result<Arc<Paced>, Box<dyn Error>> {
        Ok(Arc::new(Paced {
            transmit: Box::new(transmit),
            timers: TaskEngine::builder().name("pacer").start()?,
            state: Mutex::default(),
        }))
    }

    /// Accepts a message to be sent in its turn.
    ///
    /// # Errors
    /// Returns the message if too many wait, or if the engine was shut down.
    fn send(self: &Arc<Paced>, message: u32) -> Result<(), u32> {
        let mut state = self.state();
        if state.waiting.len() == MOST_WAITING {
            return Err(message);
        }
        if !state.is_armed {
            let paced = Arc::clone(self);
            let task = move |firing: Firing| paced.send_next(&firing);
            let armed = self.timers.run(Timer::after(Duration::ZERO, task));
            armed.map_err(|_refused| message)?;
            state.is_armed = true;
        }
        state.waiting.push_back(message);
        Ok(())
    }

    /// Sends a message and comes back for the next one, or ends.
    fn send_next(&self, firing: &Firing) {
        let mut state = self.state();
        let Some(message) = state.take_next() else {
            return;
        };
        // Armed before it sends, because after a panic nobody else would send what waits.
        // Refused after a shutdown, when nothing is to be sent any more.
        let _ = firing.rearm(DISTANCE);
        match (self.transmit)(message) {
            Ok(_) => state.sent.push(Instant::now()),
            Err(error) => eprintln!("message {message} was not sent: {error}"),
        }
        // The distance counts from here: this call overrides the first.
        let _ = firing.rearm(DISTANCE);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_next(&mut self) -> Option<u32> {
        let next = self.waiting.pop_front();
        self.is_armed = next.is_some();
        next
    }
}
