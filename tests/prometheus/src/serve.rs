//! A busy engine and a busy node that Prometheus can scrape.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tickwheel::{TaskEngine, Timer};
use tickwheel_durable::{Durable, Job, RedbStore, Retry};

/// Enough for a check on a busy machine, which scrapes once a second.
const SCRAPES: usize = 300;

/// Serves the counts of an engine and of a node at `address`. Each answer has fresh ones.
///
/// # Errors
/// Returns an error if one of them does not start, or if the address is not free.
pub fn serve(address: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address)?;
    let recorder = PrometheusBuilder::new().build_recorder();
    let rendered = recorder.handle();
    let timers = busy_engine()?;
    let jobs = busy_node()?;
    for stream in listener.incoming().take(SCRAPES) {
        let publish = || {
            timers.snapshot().publish();
            jobs.status().publish();
        };
        metrics::with_local_recorder(&recorder, publish);
        // A client that hangs up is none of the server's business.
        let _ = stream.and_then(|stream| answer(stream, &rendered));
    }
    Ok(())
}

/// Starts an engine in which each count that a dashboard shows as a rate grows, except that of
/// panics.
pub fn busy_engine() -> Result<TaskEngine, Box<dyn Error>> {
    let builder = TaskEngine::builder().name("busy").shards(1).max_timers(3);
    let timers = builder.start()?;
    let own = timers.downgrade();
    timers.run_every(Duration::from_millis(5), move |_| {
        let soon = || Timer::after(Duration::from_millis(2), |_| ());
        // The second of these exceeds the bound.
        own.upgrade().map(|timers| [timers.run(soon()).is_ok(), timers.run(soon()).is_ok()]);
    })?;
    timers.run_after(Duration::from_secs(3_600), || ())?;
    Ok(timers)
}

/// Starts a node that runs two jobs again and again, one of which fails.
pub fn busy_node() -> Result<Durable, Box<dyn Error>> {
    let builder = Durable::builder()
        .owner("busy")
        .handler("mail", |_| ())
        .handler("fails", |_| Err::<(), _>("on purpose"))
        .retry("fails", Retry::attempts(1));
    let jobs = builder.open(RedbStore::in_memory())?;
    for kind in ["mail", "fails"] {
        jobs.schedule(Job::new(kind, "").every(Duration::from_millis(200)))?;
    }
    Ok(jobs)
}

fn answer(mut stream: TcpStream, rendered: &PrometheusHandle) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        request.extend(byte);
    }
    let text = rendered.render();
    let length = text.len();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close";
    write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{text}")
}
