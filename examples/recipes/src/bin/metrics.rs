//! Export metrics and set alarms: a service that Prometheus can scrape, with events for its
//! operators. The program also does to itself what the alarms of `docs/dashboards` are for:
//! it fills an engine, keeps all workers busy, panics in a task, and lets a loop hang. It
//! scrapes itself over HTTP and looks whether the published numbers show each fault.
//!
//! A count costs the timers nothing. The engine counts anyway, and a snapshot is taken only
//! when a repeating task publishes it, here every 100 ms; for a Prometheus that scrapes every 15
//! seconds, publish every 15 seconds.
//!
//! ```text
//! cargo run -p tickwheel-recipes --bin metrics
//! ```

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::PrometheusBuilder;
use tickwheel::{Driver, Engine, TaskEngine, Timer};

const PUBLISH_EVERY: Duration = Duration::from_millis(100);

/// The longest time in which a fault must show in a scrape, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> Result<(), Box<dyn Error>> {
    // Events go to the standard error: starts, shutdowns, and the panic below.
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    let service = Service::start()?;
    publish(&service)?;
    let exporter = serve()?;

    // Healthy. A snapshot's panics are published last.
    wait_until(exporter, PANICS, |panics| panics == 0.0)?;
    let scrape = scrape(exporter)?;
    assert_eq!(value(&scrape, r#"tickwheel_workers{engine="jobs"}"#), Some(2.0));
    assert_eq!(value(&scrape, r#"tickwheel_timers_limit{engine="sessions"}"#), Some(100.0));
    assert_eq!(value(&scrape, REFUSED), Some(0.0));

    refuse_timers(&service, exporter)?;
    panic_in_a_task(&service, exporter)?;
    keep_workers_busy(&service, exporter)?;
    let (_loop, hung) = hang_a_loop()?;
    wait_until(exporter, r#"tickwheel_behind_seconds{engine="loop"}"#, |seconds| seconds > 0.2)?;
    println!("TickwheelTickerStopped: the loop is behind");
    drop(hung);
    show(exporter)
}

const REFUSED: &str = r#"tickwheel_timers_refused_total{engine="sessions",reason="full"}"#;
const PANICS: &str = r#"tickwheel_panics_total{engine="jobs"}"#;

/// A service with an engine for sessions and one for jobs.
struct Service {
    sessions: Engine<&'static str>,
    jobs: TaskEngine,
}

impl Service {
    fn start() -> Result<Service, Box<dyn Error>> {
        let sessions = Engine::builder().name("sessions").shards(1);
        Ok(Service {
            sessions: sessions.max_timers(100).start()?,
            jobs: TaskEngine::builder().name("jobs").workers(2).start()?,
        })
    }
}

/// Publishes the counts of both engines again and again. The timer is one of an engine of its
/// own, so it fires although all workers of `jobs` are busy.
fn publish(service: &Service) -> Result<(), Box<dyn Error>> {
    let publisher = TaskEngine::builder().name("publisher").workers(1).start()?;
    let (sessions, jobs) = (service.sessions.clone(), service.jobs.clone());
    // The closure keeps the engine of its own alive, as long as the process lives.
    let own = publisher.clone();
    publisher.run_every(PUBLISH_EVERY, move |_| {
        sessions.snapshot().publish();
        jobs.snapshot().publish();
        own.snapshot().publish();
    })?;
    Ok(())
}

/// Installs the exporter, which answers `GET /metrics` in a thread of its own.
fn serve() -> Result<SocketAddr, Box<dyn Error>> {
    // A free port: a service has a fixed one, such as 9000.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let exporter = PrometheusBuilder::new().with_http_listener(address);
    exporter.install()?;
    Ok(address)
}

/// Exceeds the bound of the engine for sessions. Each refused timer comes back.
fn refuse_timers(service: &Service, exporter: SocketAddr) -> Result<(), Box<dyn Error>> {
    let session = || Timer::after(Duration::from_secs(30), "session");
    let refused = (0..103).filter(|_| service.sessions.schedule(session()).is_err());
    assert_eq!(refused.count(), 3);
    wait_until(exporter, REFUSED, |timers| timers == 3.0)?;
    let live = r#"tickwheel_timers_live{engine="sessions"}"#;
    assert_eq!(value(&scrape(exporter)?, live), Some(100.0));
    println!("TickwheelTimersRefused, TickwheelNearlyFull: 3 refused, 100 of 100 live");
    Ok(())
}

/// The panic is caught, counted, and reported as an event that has the timer's name.
fn panic_in_a_task(service: &Service, exporter: SocketAddr) -> Result<(), Box<dyn Error>> {
    std::panic::set_hook(Box::new(|_| {})); // the event says it all
    let fail = |_| panic!("the disk is full");
    let backup = Timer::after(Duration::ZERO, fail).named("backup");
    service.jobs.run(backup)?;
    wait_until(exporter, PANICS, |panics| panics == 1.0)?;
    let failed = r#"tickwheel_timers_ended_total{engine="jobs",reason="failed"}"#;
    wait_until(exporter, failed, |timers| timers == 1.0)?;
    println!("TickwheelTasksPanic, TickwheelTimersFail: one panic");
    Ok(())
}

/// Two tasks wait for something that does not come, and three more wait for a worker.
fn keep_workers_busy(service: &Service, exporter: SocketAddr) -> Result<(), Box<dyn Error>> {
    let (come, comes) = mpsc::channel::<()>();
    let comes = Arc::new(Mutex::new(comes));
    for _ in 0..5 {
        let comes = comes.clone();
        let wait = move || _ = comes.lock().map(|comes| comes.recv());
        service.jobs.run_after(Duration::ZERO, wait)?;
    }
    wait_until(exporter, r#"tickwheel_firings_held{engine="jobs"}"#, |held| held == 2.0)?;
    let queued = r#"tickwheel_timers_queued{engine="jobs",queue="0"}"#;
    wait_until(exporter, queued, |timers| timers == 3.0)?;
    println!("TickwheelWorkersBusy, TickwheelReadyTimersGrow: 2 of 2 busy, 3 wait");
    drop(come);
    // The tasks that had to wait were taken late.
    let at_start = r#"tickwheel_lateness_at_start_firings_total{engine="jobs",within="+Inf"}"#;
    wait_until(exporter, at_start, |firings| firings == 6.0)?;
    println!("TickwheelFiringsLate: {} of 6 firings within 17 ms", within_17_ms(exporter)?);
    Ok(())
}

fn within_17_ms(exporter: SocketAddr) -> io::Result<f64> {
    let within = r#"tickwheel_lateness_at_start_firings_total{engine="jobs",within="0.016777216"}"#;
    let firings = value(&scrape(exporter)?, within);
    firings.ok_or_else(|| io::Error::other("no such bound"))
}

/// Starts an engine in a loop that does not turn. Another thread publishes its counts, until
/// the sender is dropped.
fn hang_a_loop() -> Result<(Driver<()>, mpsc::Sender<()>), Box<dyn Error>> {
    let (engine, driver) = Engine::builder().name("loop").start_driven()?;
    engine.schedule(Timer::after(Duration::ZERO, ()))?;
    let (hung, turns) = mpsc::channel();
    thread::spawn(move || {
        while turns.recv_timeout(PUBLISH_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
            engine.snapshot().publish();
        }
    });
    Ok((driver, hung))
}

/// Scrapes until a sample satisfies `is_so`.
fn wait_until(
    exporter: SocketAddr,
    sample: &str,
    is_so: impl Fn(f64) -> bool,
) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if value(&scrape(exporter)?, sample).is_some_and(&is_so) {
            return Ok(());
        }
        thread::sleep(PUBLISH_EVERY / 2);
    }
    Err(format!("not seen: {sample}\n{}", scrape(exporter)?).into())
}

/// Fetches the exposition over HTTP, as Prometheus does.
fn scrape(exporter: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(exporter)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if answer.starts_with("HTTP/1.1 200") { Ok(answer) } else { Err(io::Error::other(answer)) }
}

/// Returns the value of a sample, which is given with all of its labels.
fn value(scrape: &str, sample: &str) -> Option<f64> {
    let lines = scrape.lines().filter_map(|line| line.strip_prefix(sample));
    lines.filter_map(|rest| rest.trim().parse().ok()).next()
}

/// Prints some of what Prometheus gets.
fn show(exporter: SocketAddr) -> Result<(), Box<dyn Error>> {
    let scrape = scrape(exporter)?;
    let of_jobs = scrape.lines().filter(|line| line.contains("\"jobs\""));
    for line in of_jobs.filter(|line| !line.contains("within")) {
        println!("  {line}");
    }
    Ok(())
}
