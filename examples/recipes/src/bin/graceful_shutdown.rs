//! Shut a service down: on SIGTERM, a server finishes the work that is due soon, answers its
//! other clients, reports what was live, and ends.
//!
//! `drain` refuses new timers, waits for the one-shots that are due within its limit, and
//! returns every other timer. `join` then waits for tasks that are still running, and for
//! those that run because of the shutdown ([`Timer::notified`]).
//!
//! ```text
//! cargo run -p tickwheel-recipes --bin graceful_shutdown
//! ```
//!
//! The program is its own client, and sends the signal to itself.

#[cfg(unix)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    unix::run()
}

#[cfg(not(unix))]
fn main() {
    eprintln!("this recipe waits for SIGTERM, which only Unix sends");
}

#[cfg(unix)]
mod unix {
    use std::error::Error;
    use std::io::{self, BufRead, BufReader, Read, Write};
    use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
    use std::sync::Arc;
    use std::thread;
    use std::time::{Duration, Instant};

    use signal_hook::consts::SIGTERM;
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::raise;
    use tickwheel::{CloseReason, Firing, TaskEngine, Timer};

    /// The time that a shutdown may take for work that is due soon.
    const LIMIT: Duration = Duration::from_secs(5);

    pub fn run() -> Result<(), Box<dyn Error>> {
        // Before anything is done that a signal could interrupt.
        let mut signals = Signals::new([SIGTERM])?;
        let timers = TaskEngine::builder().name("service").workers(4).start()?;
        let flush = Timer::every(Duration::from_millis(100), |_| {});
        timers.run(flush.named("flush"))?;
        let address = serve(&timers)?;
        let client = thread::spawn(move || use_service(address).map_err(|it| it.to_string()));

        signals.forever().next();
        let begin = Instant::now();
        println!("SIGTERM: {} timers are live", timers.ledger().live);
        let left = timers.drain(LIMIT);
        timers.join();
        println!("ended after {:.0?}", begin.elapsed());

        // The drain returned what it did not wait for.
        let mut names: Vec<_> = left.iter().filter_map(|it| it.name.as_deref()).collect();
        names.sort_unstable();
        println!("live at the end: {}", names.join(", "));
        assert_eq!(names, ["flush", "job 3600 s", "job 3600 s"]);
        let ended_by = |closed: &tickwheel::Closed<_>| closed.reason;
        assert!(left.iter().map(ended_by).all(|it| it == CloseReason::ShutDown));
        // Within the limit, although no timer was left to wait for long before it.
        assert!(begin.elapsed() < LIMIT);

        let ledger = timers.ledger();
        assert!(ledger.live == 0 && ledger.is_balanced());
        client.join().map_err(|_| "the client panicked")??;
        Ok(())
    }

    /// Starts the server. A client sends numbers of milliseconds, one a line, and gets a
    /// line when each has passed.
    fn serve(timers: &TaskEngine) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let timers = timers.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let timers = timers.clone();
                thread::spawn(move || take_jobs(&timers, stream));
            }
        });
        Ok(address)
    }

    fn take_jobs(timers: &TaskEngine, stream: TcpStream) -> io::Result<()> {
        let stream = Arc::new(stream);
        for line in BufReader::new(&*stream).lines() {
            let millis = line?.parse().map_err(io::Error::other)?;
            let delay = Duration::from_millis(millis);
            let answer =
                if accept_job(timers, delay, &stream) { "accepted\n" } else { "refused\n" };
            (&*stream).write_all(answer.as_bytes())?;
        }
        Ok(())
    }

    /// Schedules the answer to a job. It is sent in any case, at the latest by the shutdown.
    fn accept_job(timers: &TaskEngine, delay: Duration, stream: &Arc<TcpStream>) -> bool {
        let stream = Arc::clone(stream);
        let answer = move |firing: Firing| {
            let answer = match firing.outcome() {
                CloseReason::Completed => "done\n",
                _ => "shutting down\n",
            };
            // The client may be gone.
            let _ = (&*stream).write_all(answer.as_bytes());
        };
        let name = format!("job {} s", delay.as_secs());
        let job = Timer::after(delay, answer).notified().named(name);
        timers.run_once(job).is_ok()
    }

    /// Sends twenty jobs that are due soon and two that are due in an hour. Then sends the
    /// signal and reads how each of them ends.
    fn use_service(address: SocketAddr) -> Result<(), Box<dyn Error>> {
        let mut stream = TcpStream::connect(address)?;
        let jobs = ["300\n".repeat(20), "3600000\n".repeat(2)].concat();
        stream.write_all(jobs.as_bytes())?;
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let mut answers = Vec::new();
        // A busy machine may have done some of the jobs before it has accepted all.
        while answers.iter().filter(|it| *it == "accepted").count() < 22 {
            answers.push(lines.next().ok_or("the server has hung up")??);
        }
        raise(SIGTERM)?;
        answers.extend(lines.take(44 - answers.len()).collect::<io::Result<Vec<_>>>()?);
        let count = |answer: &str| answers.iter().filter(|it| *it == answer).count();
        println!("the client got {} results", count("done"));
        assert_eq!(count("accepted"), 22);
        assert_eq!((count("done"), count("shutting down")), (20, 2));

        // The service is closed.
        stream.write_all(b"1\n")?;
        let mut refused = [0; 8];
        stream.read_exact(&mut refused)?;
        assert_eq!(&refused, b"refused\n");
        Ok(stream.shutdown(Shutdown::Both)?)
    }
}
