//! Expire a cache: answers of a name server are kept for 50 ms, at most 100 of them.
//!
//! The cache is a bare wheel with keys: an entry is a timer whose payload is the value. It
//! needs no thread, because each call first removes what has expired by now. An entry that
//! is overwritten gets the end of the new value. A full cache gives up the entry that would
//! expire first.
//!
//! ```text
//! cargo run -p tickwheel-recipes --bin cache
//! ```

use std::error::Error;
use std::hash::Hash;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::Tick;
use tickwheel::wheel::KeyedWheel;

const TTL: Duration = Duration::from_millis(50);
const CAPACITY: usize = 100;
const NAMES: u64 = 120;
const THREADS: usize = 4;
const LOOK_UPS: usize = 5_000;

/// The longest wait for the name server.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> Result<(), Box<dyn Error>> {
    let resolver = Resolver::start()?;
    thread::scope(|scope| {
        let look_up = || resolver.look_up_many();
        let threads = [(); THREADS].map(|()| scope.spawn(look_up));
        threads.map(|thread| thread.join().expect("a look-up panicked"))
    })
    .into_iter()
    .collect::<io::Result<()>>()?;
    let look_ups = THREADS * LOOK_UPS;
    let queries = resolver.queries.load(Ordering::Relaxed);
    println!("{look_ups} look-ups, {queries} queries to the name server");
    assert!(resolver.cache().wheel.len() <= CAPACITY);
    assert!(queries < look_ups as u64);
    Ok(())
}

struct Cache<K, V> {
    wheel: KeyedWheel<K, V>,
    start: Instant,
    capacity: usize,
}

impl<K: Eq + Hash, V> Cache<K, V> {
    fn new(start: Instant, capacity: usize) -> Cache<K, V> {
        Cache { wheel: KeyedWheel::new(64), start, capacity }
    }

    /// Returns the value of `key`, unless it has expired by `now`.
    fn get(&mut self, key: &K, now: Instant) -> Option<&V> {
        self.remove_expired(now);
        self.wheel.get(key)
    }

    /// Keeps a value until `expires`, instead of an older one of this key.
    fn insert(&mut self, key: K, value: V, expires: Instant, now: Instant) {
        self.remove_expired(now);
        self.wheel.insert(key, self.tick_of(expires), value);
        if self.wheel.len() > self.capacity {
            self.wheel.pop_first();
        }
    }

    fn remove_expired(&mut self, now: Instant) {
        let now = self.tick_of(now);
        while self.wheel.pop_due(now).is_some() {}
    }

    /// Returns the tick that lasts at this time, of a millisecond each. An entry thus ends
    /// up to a tick early, and never late.
    fn tick_of(&self, time: Instant) -> Tick {
        let since = time.saturating_duration_since(self.start);
        Tick(since.as_millis() as u64)
    }
}

/// A client of a name server, for many threads.
struct Resolver {
    cache: Mutex<Cache<u64, Answer>>,
    server: SocketAddr,
    queries: Arc<AtomicU64>,
}

#[derive(Clone, Copy)]
struct Answer {
    address: u64,
    /// The time of the query.
    queried: Instant,
}

impl Resolver {
    fn start() -> io::Result<Resolver> {
        let queries = Arc::default();
        Ok(Resolver {
            cache: Mutex::new(Cache::new(Instant::now(), CAPACITY)),
            server: name_server(Arc::clone(&queries))?,
            queries,
        })
    }

    fn look_up_many(&self) -> io::Result<()> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_read_timeout(Some(PATIENCE))?;
        for _ in 0..LOOK_UPS {
            let (name, begin) = (fastrand::u64(..NAMES), Instant::now());
            let answer = self.look_up(name, &socket)?;
            assert_eq!(answer.address, name + 1);
            // No answer is older than it may be.
            assert!(answer.queried + TTL >= begin);
        }
        Ok(())
    }

    fn look_up(&self, name: u64, socket: &UdpSocket) -> io::Result<Answer> {
        if let Some(answer) = self.cache().get(&name, Instant::now()) {
            return Ok(*answer);
        }
        let queried = Instant::now();
        let address = query(socket, self.server, name)?;
        let answer = Answer { address, queried };
        self.cache().insert(name, answer, queried + TTL, Instant::now());
        Ok(answer)
    }

    fn cache(&self) -> MutexGuard<'_, Cache<u64, Answer>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn query(socket: &UdpSocket, server: SocketAddr, name: u64) -> io::Result<u64> {
    let mut answer = [0; 8];
    socket.send_to(&name.to_le_bytes(), server)?;
    socket.recv(&mut answer)?;
    Ok(u64::from_le_bytes(answer))
}

/// Starts a server that counts its queries.
fn name_server(queries: Arc<AtomicU64>) -> io::Result<SocketAddr> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?;
    thread::spawn(move || -> io::Result<()> {
        let mut name = [0; 8];
        loop {
            let (_, client) = socket.recv_from(&mut name)?;
            queries.fetch_add(1, Ordering::Relaxed);
            let address = u64::from_le_bytes(name) + 1;
            socket.send_to(&address.to_le_bytes(), client)?;
        }
    });
    Ok(address)
}
