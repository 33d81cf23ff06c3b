//! A PostgreSQL server that goes away while nodes work: it is stopped, or killed and started again,
//! or the way to it is blocked. Needs `durable/tests/postgres.sh`.
//!
//! It is away for some seconds, or for `AWAY` seconds: `AWAY=60` leaves all limits at their defaults.

#[path = "support/postgres.rs"]
#[allow(dead_code, reason = "not every test uses all of it")]
mod postgres;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use ::postgres::{Client, NoTls};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tickwheel_durable::store::List;
use tickwheel_durable::{Durable, Health, Job, PostgresOptions, PostgresStore};
use tokio_postgres_rustls::MakeRustlsConnect;

const SECOND: Duration = Duration::from_secs(1);
/// What a busy machine may need beyond any limit.
const BUSY: Duration = Duration::from_secs(20);

/// Waits until something holds, for two minutes.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + SECOND * 120;
    while !holds() {
        assert!(Instant::now() < end, "in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A server of a test's own.
struct Server {
    folder: TempDir,
    process: Child,
}

impl Server {
    /// Returns `None` if there is no script that starts one.
    fn start() -> Option<Server> {
        let server = Server::begin(|_| ())?;
        server.until_ready();
        Some(server)
    }

    /// Begins to start one, with settings.
    fn begin(set: impl FnOnce(&mut Command)) -> Option<Server> {
        let Ok(script) = std::env::var("TICKWHEEL_POSTGRES_SCRIPT") else {
            let why = b"SKIPPED: durable/tests/postgres.sh runs this test\n";
            let _ = std::io::stderr().write_all(why);
            return None;
        };
        let folder = tempfile::Builder::new().prefix("away").tempdir_in("/tmp").unwrap();
        let mut command = serve(&script, &folder);
        set(&mut command);
        let process = command.spawn().unwrap();
        Some(Server { folder, process })
    }

    fn params(&self) -> String {
        let folder = self.folder.path().display();
        format!("host={folder} user=tickwheel dbname=postgres")
    }

    /// Waits until it answers, and has tables: to create them may take longer than the limits.
    fn until_ready(&self) {
        until("a server", || PostgresOptions::new().connect(&self.params()).is_ok());
    }

    /// Sends a signal to all its processes.
    fn signal(&self, signal: &str) {
        let main = self.process.id();
        let children = format!("/proc/{main}/task/{main}/children");
        let children = std::fs::read_to_string(children).unwrap_or_default();
        let all = format!("kill -{signal} {main} {children}");
        // One of them may have ended meanwhile.
        Command::new("sh").args(["-c", &all]).output().unwrap();
    }

    fn kill(&mut self) {
        self.signal("KILL");
        self.process.wait().unwrap();
    }

    /// Starts it again on its data.
    fn restart(&mut self) {
        let script = std::env::var("TICKWHEEL_POSTGRES_SCRIPT").unwrap();
        self.process = serve(&script, &self.folder).spawn().unwrap();
        self.until_ready();
    }
}

fn serve(script: &str, folder: &TempDir) -> Command {
    let mut command = Command::new(script);
    command.arg("--serve").arg(folder.path());
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A way to the server by TCP, which can be blocked: nothing arrives any more, and nobody hears
/// of it.
struct Way {
    port: u16,
    is_blocked: Arc<AtomicBool>,
    ends: Arc<Mutex<Vec<TcpStream>>>,
}

impl Way {
    fn to(params: &str) -> Way {
        let folder = params.split(' ').find_map(|word| word.strip_prefix("host="));
        let socket = format!("{}/.s.PGSQL.5432", folder.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let way = Way {
            port: listener.local_addr().unwrap().port(),
            is_blocked: Arc::default(),
            ends: Arc::default(),
        };
        let (is_blocked, ends) = (Arc::clone(&way.is_blocked), Arc::clone(&way.ends));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = UnixStream::connect(&socket) else {
                    continue;
                };
                ends.lock().unwrap().push(client.try_clone().unwrap());
                let (to, from) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let (one, other) = (Arc::clone(&is_blocked), Arc::clone(&is_blocked));
                thread::spawn(move || carry(client, to, &one));
                thread::spawn(move || carry(server, from, &other));
            }
        });
        way
    }

    fn params(&self) -> String {
        let port = self.port;
        format!("host=127.0.0.1 port={port} user=tickwheel dbname=postgres")
    }

    fn block(&self, is_blocked: bool) {
        self.is_blocked.store(is_blocked, Ordering::SeqCst);
    }

    /// Ends all connections.
    fn cut(&self) {
        for end in self.ends.lock().unwrap().drain(..) {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

fn carry(mut from: impl Read, mut to: impl Write, is_blocked: &AtomicBool) {
    let mut bytes = [0; 4_096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        while is_blocked.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
        if to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// For how long a server is away, and the limits of the nodes.
struct Limits {
    away: Duration,
    answer: Duration,
    lease: Duration,
}

impl Limits {
    fn new() -> Limits {
        let away = std::env::var("AWAY").map(|secs| secs.parse().expect("seconds"));
        match away {
            Ok(secs) => {
                Limits { away: Duration::from_secs(secs), answer: SECOND * 30, lease: SECOND * 10 }
            }
            Err(_) => Limits { away: SECOND * 2, answer: SECOND / 2, lease: SECOND },
        }
    }

    fn open(&self, params: &str) -> PostgresStore {
        let options = PostgresOptions::new().answers_within(self.answer);
        options.connect(params).unwrap()
    }
}

/// The fences of the runs of each job.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<BTreeMap<String, Vec<u64>>>>);

impl Ledger {
    fn node(&self, limits: &Limits, name: &str, store: PostgresStore) -> Durable {
        let ledger = self.clone();
        let builder = Durable::builder().owner(name).lease(limits.lease);
        let node = builder.handler("note", move |attempt| {
            let job = String::from_utf8_lossy(attempt.payload()).into_owned();
            let mut runs = ledger.0.lock().unwrap();
            runs.entry(job).or_default().push(attempt.fence());
        });
        node.open(store).unwrap()
    }

    fn has(&self, job: &str) -> bool {
        self.0.lock().unwrap().contains_key(job)
    }

    /// Checks that each of these jobs has run, and again only under a later holder.
    fn balance(&self, jobs: &[String]) {
        let runs = self.0.lock().unwrap();
        for job in jobs {
            assert!(runs.contains_key(job), "{job} is lost");
        }
        let rises = |fences: &[u64]| fences.windows(2).all(|pair| pair[0] < pair[1]);
        for (job, fences) in &*runs {
            assert!(rises(fences), "{job} ran twice under one holder: {fences:?}");
        }
        let again = runs.values().filter(|fences| fences.len() > 1).count();
        println!("{} jobs, {again} of them ran again", runs.len());
    }
}

fn note(job: &str, after: Duration) -> Job {
    Job::new("note", job).after(after)
}

/// Schedules jobs that are due while the server is away, before and after.
fn schedule(node: &Durable, limits: &Limits) -> Vec<String> {
    let names: Vec<String> = (0..60).map(|number| format!("job {number}")).collect();
    let step = (limits.away + SECOND) / 60;
    let jobs = (0..).zip(&names).map(|(number, name)| note(name, step * number));
    assert!(node.schedule_many(jobs).iter().all(Result::is_ok));
    names
}

/// Returns two nodes in the midst of their jobs, and the names of these.
fn at_work(server: &Server, limits: &Limits, ledger: &Ledger) -> ([Durable; 2], Vec<String>) {
    let nodes = ["one", "two"].map(|name| {
        let store = limits.open(&server.params());
        ledger.node(limits, name, store)
    });
    let jobs = schedule(&nodes[0], limits);
    until("a job", || ledger.has("job 1"));
    (nodes, jobs)
}

/// Checks what a node says while nothing answers: each call comes back within the limit, and the
/// job with it.
fn is_refused(node: &Durable, limits: &Limits) {
    let begin = Instant::now();
    // The server may store it when it comes back.
    let job = note(&format!("refused {begin:?}"), Duration::ZERO);
    let refused = node.schedule(job.clone()).unwrap_err();
    assert_eq!(*refused.job, job);
    let took = begin.elapsed();
    assert!(took < limits.answer + BUSY, "an error after {took:?}");
    until("a node that says so", || {
        matches!(node.status().health(), Health::Failing(_)) && !node.status().holds_lease
    });
    let begin = Instant::now();
    assert!(node.schedule(note(&format!("refused {begin:?}"), Duration::ZERO)).is_err());
    assert!(node.count(List::Live).is_err());
    let took = begin.elapsed();
    assert!(took < limits.answer * 3 + BUSY, "an error after {took:?}");
}

/// Waits until everything has run, and a new job runs in time.
fn is_back(nodes: &[&Durable], ledger: &Ledger, jobs: &[String]) {
    let begin = Instant::now();
    until("nodes at work", || {
        let mut health = nodes.iter().map(|node| node.status().health());
        health.all(|health| matches!(health, Health::Working))
    });
    println!("at work again after {:?}", begin.elapsed());
    for node in nodes {
        let begin = Instant::now();
        let name = format!("late {begin:?}");
        until("a job is accepted", || node.schedule(note(&name, Duration::ZERO)).is_ok());
        until("it runs", || ledger.has(&name));
        let took = begin.elapsed();
        assert!(took < BUSY, "ran after {took:?}");
    }
    until("the end of all jobs", || nodes[0].count(List::Live).is_ok_and(|count| count == 0));
    ledger.balance(jobs);
}

/// Returns the number of threads that wait for an answer or hold a connection.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    let names = tasks.filter_map(|task| name(task.ok()?).ok());
    names.filter(|name| name.starts_with("durable-connect")).count()
}

#[test]
fn a_server_that_is_stopped_is_away() {
    let Some(server) = Server::start() else {
        return;
    };
    let (limits, ledger) = (Limits::new(), Ledger::default());
    let (nodes, jobs) = at_work(&server, &limits, &ledger);
    let begin = Instant::now();
    server.signal("STOP");
    for node in &nodes {
        is_refused(node, &limits);
    }
    let opened = PostgresOptions::new().answers_within(SECOND / 10);
    assert!(opened.connect(&server.params()).is_err(), "nobody answers");
    thread::sleep(limits.away.saturating_sub(begin.elapsed()));
    assert!(threads() < 40, "{} threads wait", threads());
    server.signal("CONT");
    is_back(&[&nodes[0], &nodes[1]], &ledger, &jobs);
    until("the end of the threads that waited", || threads() == 0);
}

#[test]
fn a_server_that_is_killed_loses_nothing() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let (limits, ledger) = (Limits::new(), Ledger::default());
    let (nodes, jobs) = at_work(&server, &limits, &ledger);
    let begin = Instant::now();
    server.kill();
    for node in &nodes {
        is_refused(node, &limits);
    }
    thread::sleep(limits.away.saturating_sub(begin.elapsed()));
    server.restart();
    is_back(&[&nodes[0], &nodes[1]], &ledger, &jobs);
}

/// A node on connections with TLS. Without the certificate's authority there are none.
#[test]
fn a_node_connects_by_tls() {
    // Below the ports that the system gives to whoever asks for any.
    let mut ports = std::iter::repeat_with(|| fastrand::u16(20_000..32_000));
    let port = ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap();
    let listens = |command: &mut Command| {
        command.env("POSTGRES_TLS", "yes").args([
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            &format!("port={port}"),
        ]);
    };
    let Some(server) = Server::begin(listens) else {
        return;
    };
    let params = format!(
        "host=localhost port={port} user=tickwheel dbname=postgres sslmode=require connect_timeout=10"
    );
    let certificate = server.folder.path().join("certificate.pem");
    until("a server", || {
        let plain = format!("{params} application_name=plain").replace("require", "disable");
        Client::connect(&plain, NoTls).is_ok()
    });
    let connect = |roots: RootCertStore| {
        let config = ClientConfig::builder().with_root_certificates(roots);
        let tls = MakeRustlsConnect::new(config.with_no_client_auth());
        let params = Arc::new(params.parse::<tokio_postgres::Config>().unwrap());
        PostgresOptions::new().connect_by(move || {
            let (params, tls) = (Arc::clone(&params), tls.clone());
            async move { params.connect(tls).await }
        })
    };
    let refused = connect(RootCertStore::empty()).unwrap_err();
    assert!(matches!(refused, tickwheel_durable::store::StoreError::Io(_)), "{refused}");

    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(certificate).unwrap();
    roots.add(authority).unwrap();
    let (limits, ledger) = (Limits::new(), Ledger::default());
    let node = ledger.node(&limits, "node", connect(roots).unwrap());
    node.schedule(note("job", SECOND / 10)).unwrap();
    until("the job", || ledger.has("job"));
    let plain = params.replace("require", "disable");
    let text = "SELECT count(*) FILTER (WHERE s.ssl), count(*) FROM pg_stat_activity a \
         JOIN pg_stat_ssl s USING (pid) WHERE a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()";
    let row = Client::connect(&plain, NoTls).unwrap().query_one(text, &[]).unwrap();
    let (with, all): (i64, i64) = (row.get(0), row.get(1));
    assert!(with >= 2 && with == all, "{with} of {all} with TLS");
}

/// One node loses its way to the server, and the other one has all jobs meanwhile.
#[test]
fn a_way_that_is_blocked_or_cut_stops_one_node() {
    let Some(server) = Server::start() else {
        return;
    };
    let (limits, ledger) = (Limits::new(), Ledger::default());
    let way = Way::to(&server.params());
    let blocked = ledger.node(&limits, "blocked", limits.open(&way.params()));
    let other = ledger.node(&limits, "other", limits.open(&server.params()));
    for is_cut in [false, true] {
        let jobs = schedule(&other, &limits);
        let begin = Instant::now();
        way.block(true);
        if is_cut {
            way.cut();
        }
        is_refused(&blocked, &limits);
        until("the end of all jobs", || other.count(List::Live).unwrap() == 0);
        thread::sleep(limits.away.saturating_sub(begin.elapsed()));
        way.block(false);
        is_back(&[&blocked, &other], &ledger, &jobs);
        ledger.0.lock().unwrap().clear();
    }
}
