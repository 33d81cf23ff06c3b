//! What a durable job costs, beside a probe of the disk in the same run.
//!
//! The probe appends 4 KiB to a file and syncs its data. Its rate is `1 / f`. It alternates
//! with the measurements, so that a bad spell of the disk meets both, and the table gives
//! ratios and the targets for them. Rates of a busy machine mean nothing.
//!
//!     cargo bench -p tickwheel-durable -- [--jobs n] [--folder path]
//!
//! `--jobs` is the number of stored jobs for the rows that claim and that open; it defaults to
//! 50,000.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use tickwheel_durable::store::{Answer, Change, NewJob, Store, Then};
use tickwheel_durable::{Durable, Job, RedbOptions, RedbStore, SystemClock, WallClock, WallTime};

const ROUNDS: usize = 5;
const BODY: [u8; 100] = [7; 100];
const FAR: Duration = Duration::from_secs(1_000_000);

fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let folder = argument("--folder").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("durable-ratios-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let jobs = argument("--jobs").map_or(50_000, |jobs| jobs.parse().unwrap());
    inserts(&folder);
    stored(&folder, jobs);
    for ahead in [0, 60, 0, 60, 1_000] {
        backlog(&folder, ahead);
    }
    for (rate, ahead) in [(1_000, 0), (1_000, 60), (5_000, 0), (5_000, 60)] {
        lag(&folder, rate, ahead);
    }
    fs::remove_dir_all(folder).unwrap();
}

fn row(what: &str, is: String, target: &str) {
    println!("{what:<44} {is:<24} {target}");
}

/// Operations a second of the probe.
fn probe(file: &mut File) -> f64 {
    let (begin, mut count) = (Instant::now(), 0);
    while begin.elapsed() < Duration::from_millis(100) {
        file.write_all(&[1; 4_096]).unwrap();
        file.sync_data().unwrap();
        count += 1;
    }
    f64::from(count) / begin.elapsed().as_secs_f64()
}

/// Durable inserts a second by so many threads.
fn insert_by(jobs: &Durable, threads: usize) -> f64 {
    let begin = Instant::now();
    let count = |_| {
        let mut count = 0;
        while begin.elapsed() < Duration::from_millis(200) {
            jobs.schedule(Job::new("job", BODY).after(FAR)).unwrap();
            count += 1;
        }
        count
    };
    let total: u32 = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|n| scope.spawn(move || count(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    f64::from(total) / begin.elapsed().as_secs_f64()
}

fn inserts(folder: &Path) {
    let mut file = File::create(folder.join("probe")).unwrap();
    let jobs = Durable::open(folder.join("inserts.redb")).unwrap();
    let mut rates = [0.0; 4];
    for _ in 0..ROUNDS {
        rates[0] += probe(&mut file) / ROUNDS as f64;
        for (index, threads) in [(1, 1), (2, 8), (3, 64)] {
            rates[index] += insert_by(&jobs, threads) / ROUNDS as f64;
        }
    }
    let [probe, one, eight, many] = rates;
    row("probe: 4 KiB and fdatasync", format!("{probe:.0}/s"), "");
    row("one thread, a durable insert each", format!("{:.2} / f", one / probe), ">= 0.3 / f");
    row("8 threads", format!("{:.1} x one thread", eight / one), ">= 2.5 x");
    row("64 threads", format!("{:.1} x one thread", many / one), ">= 5 x");
}

fn fill(store: &RedbStore, jobs: u64) {
    let now = SystemClock.now();
    for begin in (0..jobs).step_by(10_000) {
        let insert = |_| {
            let due = WallTime::from_unix_micros(now.as_unix_micros() - fastrand::u64(..1 << 40));
            let job = Job::new("job", BODY).at(due);
            Change::Insert(NewJob::new(job, now).unwrap())
        };
        let batch: Vec<_> = (begin..jobs.min(begin + 10_000)).map(insert).collect();
        store.commit(&batch).unwrap();
    }
}

/// Starts and completes all jobs of a store, a thousand at a time.
fn drain(store: &RedbStore) -> u64 {
    let lease = store.acquire("bench", &["job".into()], FAR).unwrap().unwrap();
    let fence = lease.fence;
    let mut count = 0;
    loop {
        let due = store.due_before(lease, &["job".to_owned()], WallTime::MAX, 1_000).unwrap().jobs;
        if due.is_empty() {
            return count;
        }
        let start = due.iter().map(|job| Change::Start { id: job.id, version: job.version, fence });
        let started = store.commit(&start.collect::<Vec<_>>()).unwrap();
        let finish = started.iter().filter_map(|answer| match answer {
            Answer::Started { job, .. } => Some(Change::finish(job, fence, Then::End)),
            _ => None,
        });
        store.commit(&finish.collect::<Vec<_>>()).unwrap();
        count += due.len() as u64;
    }
}

fn stored(folder: &Path, jobs: u64) {
    let path = folder.join("stored.redb");
    let options = RedbOptions::new().cache_bytes(256 << 20);
    let store = options.open(&path).unwrap();
    fill(&store, jobs);
    let copy = folder.join("killed.redb");
    fs::copy(&path, &copy).unwrap();
    drop(store);
    let open = |path: &Path| {
        let begin = Instant::now();
        let store = options.open(path).unwrap();
        let lease = store.acquire("bench", &["job".into()], FAR).unwrap().unwrap();
        store.due_before(lease, &["job".to_owned()], WallTime::MAX, 1_000).unwrap();
        (store, begin.elapsed())
    };
    let (store, clean) = open(&path);
    let (_, killed) = open(&copy);
    row(&format!("open and read {jobs} stored, clean"), format!("{clean:.1?}"), "<= 50 ms");
    row("the same after a SIGKILL", format!("{killed:.1?}"), "<= 1 s with 5 million");
    let begin = Instant::now();
    let count = drain(&store);
    let rate = count as f64 / begin.elapsed().as_secs_f64();
    row("claim and complete, a thousand at a time", format!("{rate:.0}/s"), ">= 10,000/s");
}

/// The rate at which a node with four workers runs jobs that are all due.
fn backlog(folder: &Path, ahead: usize) {
    const JOBS: u64 = 5_000;
    let mut file = File::create(folder.join("probe")).unwrap();
    let path = folder.join(format!("backlog-{ahead}.redb"));
    let _ = fs::remove_file(&path);
    fill(&RedbStore::open(&path).unwrap(), JOBS);
    let (before, (sender, receiver)) = (probe(&mut file), channel());
    let jobs = Durable::builder()
        .ahead(ahead)
        .handler("job", move |_| sender.send(()).unwrap())
        .open(RedbStore::open(path).unwrap())
        .unwrap();
    let begin = Instant::now();
    assert_eq!(receiver.iter().take(JOBS as usize).count(), JOBS as usize);
    let rate = JOBS as f64 / begin.elapsed().as_secs_f64();
    drop(jobs);
    let probe = (before + probe(&mut file)) / 2.0;
    let is = format!("{rate:.0}/s, {:.1} / f", rate / probe);
    let target = if ahead == 60 { ">= 10,000/s" } else { "" };
    row(&format!("a backlog, up to {ahead} started ahead"), is, target);
}

/// The time from the due time to the handler, with so many jobs a second for two seconds.
fn lag(folder: &Path, rate: u32, ahead: usize) {
    let (sender, receiver) = channel();
    let path = folder.join(format!("lag-{rate}-{ahead}.redb"));
    let jobs = Durable::builder()
        .ahead(ahead)
        .handler("job", move |attempt| {
            sender.send(SystemClock.now().since(attempt.due())).unwrap();
        })
        .open(RedbStore::open(path).unwrap())
        .unwrap();
    let total = rate * 2;
    let begin = SystemClock.now() + Duration::from_secs(2);
    let job = |n| Job::new("job", BODY).at(begin + Duration::from_secs(1) * n / rate);
    for first in (0..total).step_by(1_000) {
        let batch = first..total.min(first + 1_000);
        assert!(jobs.schedule_many(batch.map(job)).iter().all(Result::is_ok));
    }
    let mut lags: Vec<Duration> = receiver.iter().take(total as usize).collect();
    lags.sort_unstable();
    let (half, most) = (lags[lags.len() / 2], lags[lags.len() * 99 / 100]);
    let is = format!("p50 {half:.1?}, p99 {most:.1?}");
    let what = format!("lag at {rate} a second, up to {ahead} ahead");
    row(&what, is, "p99 <= 6 ms");
}
