//! What a node costs in front of millions of stored jobs: memory, and the time to open.
//!
//! Fills a file with jobs that are due in years, then measures in processes of their own: the
//! opening of a file that was closed, of one whose process was killed, both with and without
//! quick repair, and the memory of a node. A probe of the disk, 4 KiB and a sync, stands beside
//! the commits, because both depend on what else uses the disk.
//!
//!     cargo bench -p tickwheel-durable --bench millions -- [--stored n] [--far n] [--folder path]
//!
//! `--stored` is the number of jobs for the openings, 5 million by default; `--far` the number
//! for the memory, 10 million. The file takes about 400 bytes a job.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tickwheel_durable::store::{Change, List, NewJob, Store};
use tickwheel_durable::{Durable, Job, RedbOptions, RedbStore, SystemClock, WallClock};

const BODY: [u8; 100] = [7; 100];
const YEAR: Duration = Duration::from_secs(365 * 24 * 3_600);
const DUE: usize = 1_000;
const BATCH: u64 = 100_000;
const OPENINGS: usize = 5;

/// The variable by which a child knows what to do.
const PART: &str = "DURABLE_MILLIONS";

fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

fn number(name: &str, default: u64) -> u64 {
    argument(name).map_or(default, |given| given.parse().unwrap())
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    if let Ok(part) = std::env::var(PART) {
        return child(&part, Path::new(&argument("--file").unwrap()));
    }
    let folder = argument("--folder").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("durable-millions-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    measure(&folder, number("--stored", 5_000_000), number("--far", 10_000_000));
    fs::remove_dir_all(folder).unwrap();
}

fn measure(folder: &Path, stored: u64, far: u64) {
    let file = folder.join("jobs.redb");
    row("probe: 4 KiB and fdatasync", &probe(folder), "");
    row("fill", &fill(&file, stored), "");
    openings(&file, stored);
    row("fill", &fill(&file, far - stored), "");
    let what = format!("memory of a node, {far} far jobs");
    row(&what, &ask("memory", &file), "< 100 MB");
    let what = format!("the same after a SIGKILL, {far} far jobs");
    ask("kill", &file);
    row(&what, &ask("memory", &file), "< 100 MB");
    row("probe: 4 KiB and fdatasync", &probe(folder), "");
}

fn openings(file: &Path, stored: u64) {
    let what = |how: &str| format!("open {stored} and read a batch, {how}");
    row(&what("clean"), &ask("open", file), "<= 50 ms");
    for (kill, how, target) in [
        ("kill", "after SIGKILL", "<= 1 s, or with quick repair"),
        ("kill-quick", "after SIGKILL, quick repair", "<= 1 s"),
    ] {
        let commit = ask(kill, file);
        row(&what(how), &ask("open", file), target);
        row("the commit of one insert before it", &commit, "");
    }
}

fn row(what: &str, is: &str, target: &str) {
    println!("{what:<64} {is:<50} {target}");
}

/// The time of a write and sync, the fastest, the middle and the slowest of 100.
fn probe(folder: &Path) -> String {
    let mut file = File::create(folder.join("probe")).unwrap();
    let write = |_| {
        let begin = Instant::now();
        file.write_all(&[1; 4_096]).unwrap();
        file.sync_data().unwrap();
        begin.elapsed()
    };
    spread((0..100).map(write).collect())
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let [first, middle, last] = [0, times.len() / 2, times.len() - 1].map(|at| times[at]);
    format!("{first:.1?} / {middle:.1?} / {last:.1?}")
}

/// Stores jobs that are due in one to a hundred years, and the first time some that are due. In
/// the order of due times a batch touches few pages, so that filling takes minutes.
fn fill(path: &Path, jobs: u64) -> String {
    let store = RedbStore::open(path).unwrap();
    let begin = Instant::now();
    let now = SystemClock.now();
    let insert = |job| Change::Insert(NewJob::new(job, now).unwrap());
    for first in (0..jobs).step_by(BATCH as usize) {
        let far = |n| YEAR + YEAR.mul_f64(99.0 * n as f64 / jobs as f64);
        let batch = (first..jobs.min(first + BATCH))
            .map(|n| insert(Job::new("job", BODY).at(now + far(n))));
        store.commit(&batch.collect::<Vec<_>>()).unwrap();
    }
    if store.due_before(lease(&store), &["job".to_owned()], now, 1).unwrap().jobs.is_empty() {
        let batch = (0..DUE).map(|_| insert(Job::new("job", BODY).at(now)));
        store.commit(&batch.collect::<Vec<_>>()).unwrap();
    }
    let rate = jobs as f64 / begin.elapsed().as_secs_f64();
    drop(store);
    let megabytes = fs::metadata(path).unwrap().len() / 1_000_000;
    format!("{rate:.0}/s, {megabytes} MB")
}

fn lease(store: &RedbStore) -> tickwheel_durable::store::Lease {
    store.acquire("bench", &["job".into()], YEAR).unwrap().unwrap()
}

/// Has a process do a part, and returns what it says. A part that waits is killed.
fn ask(part: &str, file: &Path) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--file", file.to_str().unwrap()])
        .env(PART, part)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut said).unwrap();
    if part.starts_with("kill") {
        child.kill().unwrap();
    }
    child.wait().unwrap();
    said.trim().to_owned()
}

fn child(part: &str, file: &Path) {
    match part {
        "open" => println!("{}", open(file)),
        "memory" => println!("{}", memory(file)),
        quick => insert_and_wait(file, quick == "kill-quick"),
    }
}

/// The first opening is that of the file as it was left; the others follow a close.
fn open(file: &Path) -> String {
    let open = |_| {
        let begin = Instant::now();
        let store = RedbStore::open(file).unwrap();
        let due = store.due_before(lease(&store), &["job".to_owned()], SystemClock.now(), DUE);
        assert!(!due.unwrap().jobs.is_empty());
        begin.elapsed()
    };
    let times: Vec<Duration> = (0..OPENINGS).map(open).collect();
    let (first, later) = (times[0], times[1..].iter().max().unwrap());
    format!("{first:.1?}, reopened <= {later:.1?}, {}", resident())
}

/// A node that holds its window, and schedules beside it.
fn memory(file: &Path) -> String {
    let jobs = Durable::builder()
        .handler("job", |_| std::thread::sleep(YEAR))
        .open(RedbStore::open(file).unwrap())
        .unwrap();
    while jobs.status().armed == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    for _ in 0..DUE {
        jobs.schedule(Job::new("job", BODY).after(YEAR)).unwrap();
    }
    assert!(jobs.count(List::Live).unwrap() > DUE as u64);
    let resident = resident();
    println!("{resident}");
    std::process::exit(0);
}

fn insert_and_wait(file: &Path, quick: bool) {
    let store = RedbOptions::new().quick_repair(quick).open(file).unwrap();
    let insert = |_| {
        let begin = Instant::now();
        let job = NewJob::new(Job::new("job", BODY).after(YEAR), SystemClock.now());
        store.commit(&[Change::Insert(job.unwrap())]).unwrap();
        begin.elapsed()
    };
    println!("{}", spread((0..100).map(insert).collect()));
    loop {
        std::thread::park();
    }
}

/// The largest memory that this process has had, where the system tells it.
fn resident() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: Option<u64> = most.and_then(|most| most.trim().strip_suffix(" kB")?.parse().ok());
    kib.map_or("memory unknown".to_owned(), |kib| {
        format!("{} MB resident at most", kib * 1_024 / 1_000_000)
    })
}
