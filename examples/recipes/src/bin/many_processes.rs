//! Run many processes: each has an engine of its own, and a key belongs to one of them. A
//! front process sends each timer over a Unix socket to the worker process that owns the
//! timer's key, so a later cancel finds it there. The timers of several processes need no
//! shared memory and no lock.
//!
//! Then one worker is killed (`SIGKILL`). Its timers are gone: an engine keeps them in memory
//! alone. The front process starts another worker and sends it again what the dead one had not
//! finished. A timer may therefore fire twice, if the worker died between firing it and saying
//! so, but it fires at least once. For timers that outlive all processes, the source of the
//! truth has to be on a disk: the workspace's member `durable` keeps jobs in a file.
//!
//! ```text
//! cargo run -p tickwheel-recipes --bin many_processes
//! ```

#[cfg(unix)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1) {
        Some(path) => worker::run(&path),
        None => front::run(),
    }
}

#[cfg(not(unix))]
fn main() {
    println!("processes of this system have no Unix sockets");
}

/// A worker process: schedules the timers that come over its socket, and says which fired.
#[cfg(unix)]
mod worker {
    use std::collections::HashMap;
    use std::error::Error;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Duration;

    use tickwheel::{Engine, Timer};

    /// Serves until the front process closes the socket.
    pub fn run(path: &str) -> Result<(), Box<dyn Error>> {
        let mut socket = UnixStream::connect(path)?;
        let requests = BufReader::new(socket.try_clone()?);
        let engine = Engine::<String>::builder().name("worker").start()?;
        let fired = engine.queue(0);
        let answering = thread::spawn(move || {
            for expired in fired {
                // The front process is gone: this one will follow.
                let _ = writeln!(socket, "fired {}", expired.into_payload());
            }
        });
        let mut ids = HashMap::new();
        for request in requests.lines() {
            let request = request?;
            match *request.split(' ').collect::<Vec<_>>() {
                ["schedule", key, millis] => {
                    let delay = Duration::from_millis(millis.parse()?);
                    let id = engine.schedule(Timer::after(delay, key.to_owned()))?;
                    ids.insert(key.to_owned(), id);
                }
                // A timer that has fired meanwhile is gone, which its "fired" says.
                ["cancel", key] => ids.remove(key).into_iter().for_each(|id| _ = engine.cancel(id)),
                _ => return Err(format!("no request: {request}").into()),
            }
        }
        engine.shutdown();
        answering.join().map_err(|_| "the answering thread panicked")?;
        Ok(())
    }
}

#[cfg(unix)]
mod front {
    use std::collections::{HashMap, HashSet};
    use std::env;
    use std::error::Error;
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    use std::io::{self, BufRead, BufReader, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::PathBuf;
    use std::process::{self, Child, Command};
    use std::sync::mpsc::{self, Receiver, Sender};
    use std::thread;
    use std::time::{Duration, Instant};

    const WORKERS: usize = 3;
    const TIMERS: u64 = 300;

    /// Long enough for the victim to die before they are due.
    const LONG: u64 = 1_500;

    pub fn run() -> Result<(), Box<dyn Error>> {
        let mut front = Front::start()?;
        front.fire_what_is_not_cancelled()?;
        front.survive_a_kill()?;
        Ok(front.stop()?)
    }

    /// What a worker process says.
    enum News {
        Fired(String),
        /// The socket of this worker is closed.
        Gone(usize),
    }

    /// The front process.
    struct Front {
        directory: PathBuf,
        workers: Vec<Worker>,
        news: Receiver<News>,
        sender: Sender<News>,
        /// The timers that have neither fired nor been cancelled, with their instants. Here it
        /// is a map; in a service, it is a table of a database.
        unfinished: HashMap<String, Instant>,
    }

    struct Worker {
        process: Child,
        socket: UnixStream,
    }

    impl Front {
        fn start() -> Result<Front, Box<dyn Error>> {
            let directory = env::temp_dir().join(format!("tickwheel-{}", process::id()));
            std::fs::create_dir(&directory)?;
            let (sender, news) = mpsc::channel();
            let mut front =
                Front { directory, workers: Vec::new(), news, sender, unfinished: HashMap::new() };
            for number in 0..WORKERS {
                let worker = front.start_worker(number)?;
                front.workers.push(worker);
            }
            Ok(front)
        }

        /// Starts a process from this program's own file. An engine stays with its
        /// process, so each starts one.
        fn start_worker(&self, number: usize) -> io::Result<Worker> {
            let path = self.directory.join("socket");
            let listener = UnixListener::bind(&path)?;
            let process = Command::new(env::current_exe()?).arg(&path).spawn()?;
            let (socket, _) = listener.accept()?;
            std::fs::remove_file(&path)?;
            let lines = BufReader::new(socket.try_clone()?).lines();
            let sender = self.sender.clone();
            thread::spawn(move || {
                let fired = lines.map_while(Result::ok);
                let keys = fired.filter_map(|line| Some(line.strip_prefix("fired ")?.to_owned()));
                keys.for_each(|key| _ = sender.send(News::Fired(key)));
                let _ = sender.send(News::Gone(number));
            });
            Ok(Worker { process, socket })
        }

        /// Returns the worker to which a key belongs: the same for every process and run.
        fn owner(key: &str) -> usize {
            let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
            hash as usize % WORKERS
        }

        fn schedule(&mut self, key: &str, millis: u64) -> io::Result<()> {
            let due = Instant::now() + Duration::from_millis(millis);
            self.unfinished.insert(key.to_owned(), due);
            let mut socket = &self.workers[Front::owner(key)].socket;
            writeln!(socket, "schedule {key} {millis}")
        }

        fn cancel(&mut self, key: &str) -> io::Result<()> {
            self.unfinished.remove(key);
            let mut socket = &self.workers[Front::owner(key)].socket;
            writeln!(socket, "cancel {key}")
        }

        fn fire_what_is_not_cancelled(&mut self) -> Result<(), Box<dyn Error>> {
            for n in 0..TIMERS {
                let millis = if n % 2 == 0 { 200 } else { 60_000 };
                self.schedule(&format!("session-{n}"), millis)?;
            }
            for n in (1..TIMERS).step_by(2) {
                self.cancel(&format!("session-{n}"))?;
            }
            let fired = self.wait_for_all()?;
            assert_eq!(fired.len() as u64, TIMERS / 2);
            println!("{WORKERS} processes: {} timers fired, as many cancelled", fired.len());
            Ok(())
        }

        fn survive_a_kill(&mut self) -> Result<(), Box<dyn Error>> {
            let victim = 0;
            for n in 0..TIMERS {
                self.schedule(&format!("lease-{n}"), LONG)?;
            }
            self.workers[victim].process.kill()?;
            self.workers[victim].process.wait()?;
            let lost = self.unfinished.keys();
            let lost = lost.filter(|key| Front::owner(key) == victim).count();
            assert!(lost > 0);
            let fired = self.wait_for_all()?;
            assert_eq!(fired.len() as u64, TIMERS);
            println!("a process was killed with {lost} timers; another one fired them");
            Ok(())
        }

        /// Waits until every timer has fired. Returns the keys.
        fn wait_for_all(&mut self) -> Result<HashSet<String>, Box<dyn Error>> {
            let mut fired = HashSet::new();
            while !self.unfinished.is_empty() {
                match self.news.recv()? {
                    News::Fired(key) => {
                        let due = self.unfinished.remove(&key);
                        // Cancelled at the last moment, or fired twice.
                        let Some(due) = due else { continue };
                        assert!(Instant::now() >= due, "{key} is early");
                        fired.insert(key);
                    }
                    News::Gone(number) => self.replace(number)?,
                }
            }
            Ok(fired)
        }

        /// Starts another process for the keys of one that has ended, and sends it what is
        /// left to be done.
        fn replace(&mut self, number: usize) -> io::Result<()> {
            self.workers[number] = self.start_worker(number)?;
            let mut socket = &self.workers[number].socket;
            for (key, due) in &self.unfinished {
                if Front::owner(key) == number {
                    // A millisecond more, because the delay is cut to whole ones.
                    let left = due.saturating_duration_since(Instant::now());
                    writeln!(socket, "schedule {key} {}", left.as_millis() + 1)?;
                }
            }
            Ok(())
        }

        fn stop(self) -> io::Result<()> {
            for mut worker in self.workers {
                worker.socket.shutdown(std::net::Shutdown::Both)?;
                assert!(worker.process.wait()?.success());
            }
            std::fs::remove_dir(&self.directory)
        }
    }
}
