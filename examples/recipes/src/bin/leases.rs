//! Hold a lease: a server lends names to one client each, for half a second at a time. A
//! client that goes on renews its lease, and a client that stops loses it. Each grant has a
//! higher number, with which a store refuses the late writes of a client that does not yet
//! know that its lease has ended: that number fences the store off.
//!
//! A lease is one timer. A renewal reschedules the timer, and the answer of the engine
//! decides a race with the expiry: whoever of the two comes first under the shard's lock
//! wins.
//!
//! Three clients use the server over sockets. The server runs first on a virtual clock, so
//! the order of events is exact, and then on the system's clock.
//!
//! ```text
//! cargo run -p tickwheel-recipes --bin leases
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::error::Error;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{Engine, Queue, Timer, TimerId};

/// The time for which a client holds a lease without renewing it.
const TERM: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn Error>> {
    on_a_virtual_clock()?;
    on_the_systems_clock()
}

fn on_a_virtual_clock() -> Result<(), Box<dyn Error>> {
    let (engine, clock) = Engine::builder().name("leases").start_virtual()?;
    let address = Server::start(engine.clone())?;
    engine.queue(0).expect_workers(1); // the thread that ends leases
    let mut store = Store::default();
    let [mut ann, mut bob, mut cyd] = connect(address)?;

    // Ann has the lease, so Bob is refused. Another name is free.
    let anns = ann.ask("acquire leader")?.number()?;
    assert_eq!(bob.ask("acquire leader")?, Answer::Taken);
    let cyds = cyd.ask("acquire backup")?.number()?;
    assert!(store.write(anns, "by Ann"));

    // Ann stalls. Cyd renews, in time, for much longer than a term.
    for _ in 0..8 {
        clock.run_until(engine.now() + TERM * 3 / 4);
        assert_eq!(cyd.ask(&format!("renew {cyds}"))?, Answer::Granted(cyds));
    }

    // Ann's lease has ended, and Bob gets the next one.
    let bobs = bob.ask("acquire leader")?.number()?;
    assert!(bobs > anns);
    assert!(store.write(bobs, "by Bob"));

    // Ann wakes up and goes on. Her write comes too late, and so does her renewal.
    assert!(!store.write(anns, "by Ann, late"));
    assert_eq!(ann.ask(&format!("renew {anns}"))?, Answer::Ended);
    assert_eq!(store.value, "by Bob");

    // A renewal at the last tick before the end is in time. At the end, it is not.
    clock.run_until(engine.now() + (TERM - Duration::from_millis(1)));
    assert_eq!(bob.ask(&format!("renew {bobs}"))?, Answer::Granted(bobs));
    clock.run_until(engine.now() + TERM);
    assert_eq!(bob.ask(&format!("renew {bobs}"))?, Answer::Ended);

    // A client that gives its lease back does not keep others waiting.
    let anns = ann.ask("acquire leader")?.number()?;
    assert_eq!(ann.ask(&format!("release {anns}"))?, Answer::Ended);
    assert!(bob.ask("acquire leader")?.number()? > anns);

    let ledger = engine.ledger();
    assert!(ledger.is_balanced() && ledger.cancelled == 1 && ledger.completed == 3);
    println!("{} leases, {} of them ended by time", ledger.accepted, ledger.completed);
    engine.shutdown();
    Ok(())
}

/// A client waits for a lease whose holder has died.
fn on_the_systems_clock() -> Result<(), Box<dyn Error>> {
    let engine = Engine::builder().name("leases").start()?;
    let [mut ann, mut bob, _] = connect(Server::start(engine.clone())?)?;
    let begun = Instant::now();
    let anns = ann.ask("acquire leader")?.number()?;
    drop(ann);
    let bobs = bob.ask("wait leader")?.number()?;
    assert!(bobs > anns && begun.elapsed() >= TERM);
    println!("a dead client's lease ended after {:.0?}", begun.elapsed());
    engine.shutdown();
    Ok(())
}

/// The number of a grant, higher than those of all earlier grants.
type Fence = u64;

/// The server's answer to a client.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Granted(Fence),
    /// Another client has the lease.
    Taken,
    /// The lease has ended.
    Ended,
}

impl Answer {
    fn number(&self) -> Result<Fence, io::Error> {
        match self {
            Answer::Granted(fence) => Ok(*fence),
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }
}

#[derive(Clone)]
struct Server {
    engine: Engine<Fence>,
    leases: Arc<Mutex<Leases>>,
    /// Notified when a lease ends.
    ended: Arc<Condvar>,
}

/// The current leases, by name and by number.
#[derive(Default)]
struct Leases {
    last: Fence,
    holders: HashMap<String, Fence>,
    live: HashMap<Fence, (String, TimerId)>,
}

impl Server {
    /// Listens for clients. Ends with the engine and with its clients.
    fn start(engine: Engine<Fence>) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let server = Server { engine, leases: Arc::default(), ended: Arc::default() };
        let ending = (server.clone(), server.engine.queue(0));
        thread::spawn(move || ending.0.end_leases(ending.1));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                thread::spawn(move || server.serve(stream));
            }
        });
        Ok(address)
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().expect("no client panics")
    }

    /// Ends the leases whose timers expire, until the engine is shut down.
    fn end_leases(&self, queue: Queue<Fence>) {
        for expired in queue {
            self.forget(expired.into_payload());
        }
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let requests = BufReader::new(stream.try_clone()?);
        for request in requests.lines() {
            let answer = self.answer(&request?);
            writeln!(stream, "{}", answer.map_or(-1, |fence| fence as i64))?;
        }
        Ok(())
    }

    /// Returns the number of the lease that the client then has, and otherwise `None`.
    fn answer(&self, request: &str) -> Option<Fence> {
        let (verb, rest) = request.split_once(' ')?;
        match verb {
            "acquire" => self.acquire(&mut self.leases(), rest),
            "wait" => self.wait(rest),
            "renew" => self.renew(rest.parse().ok()?),
            "release" => self.release(rest.parse().ok()?),
            _ => None,
        }
    }

    fn acquire(&self, leases: &mut Leases, name: &str) -> Option<Fence> {
        let fence = leases.last + 1;
        let Entry::Vacant(free) = leases.holders.entry(name.to_owned()) else {
            return None;
        };
        let id = self.engine.schedule(Timer::after(TERM, fence)).ok()?;
        free.insert(fence);
        leases.live.insert(fence, (name.to_owned(), id));
        leases.last = fence;
        Some(fence)
    }

    fn wait(&self, name: &str) -> Option<Fence> {
        let is_taken = |leases: &mut Leases| leases.holders.contains_key(name);
        let mut leases = self.ended.wait_while(self.leases(), is_taken).ok()?;
        self.acquire(&mut leases, name)
    }

    /// Puts the end of a lease off. Fails once the timer has been taken from its queue.
    fn renew(&self, fence: Fence) -> Option<Fence> {
        let (_, id) = *self.leases().live.get(&fence)?;
        self.engine.reschedule(id, TERM).ok()?;
        Some(fence)
    }

    fn release(&self, fence: Fence) -> Option<Fence> {
        let (_, id) = *self.leases().live.get(&fence)?;
        let fence = self.engine.cancel(id).into_payload()?;
        self.forget(fence);
        None
    }

    fn forget(&self, fence: Fence) {
        let mut leases = self.leases();
        if let Some((name, _)) = leases.live.remove(&fence) {
            leases.holders.remove(&name);
        }
        self.ended.notify_all();
    }
}

/// A store that several clients write to, one at a time. It remembers the highest number
/// that it has seen.
#[derive(Default)]
struct Store {
    value: &'static str,
    highest: Fence,
}

impl Store {
    /// Writes unless a later lease has been used. Returns whether it did.
    fn write(&mut self, fence: Fence, value: &'static str) -> bool {
        if fence < self.highest {
            return false;
        }
        (self.highest, self.value) = (fence, value);
        true
    }
}

struct Client {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Client {
    /// Sends a request and waits for its answer.
    fn ask(&mut self, request: &str) -> io::Result<Answer> {
        writeln!(self.stream, "{request}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let answer: i64 = line.trim().parse().map_err(io::Error::other)?;
        Ok(match u64::try_from(answer) {
            Ok(fence) => Answer::Granted(fence),
            Err(_) if request.starts_with("acquire") => Answer::Taken,
            Err(_) => Answer::Ended,
        })
    }
}

fn connect(address: SocketAddr) -> io::Result<[Client; 3]> {
    let client = || -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        let answers = BufReader::new(stream.try_clone()?);
        Ok(Client { stream, answers })
    };
    Ok([client()?, client()?, client()?])
}
