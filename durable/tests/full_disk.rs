//! A disk that is full: a file system of a few megabytes, in a namespace of its own.
//!
//! The child fills it with jobs until one is refused, sees that no running job is lost, makes
//! room, and goes on. Where the system lets no test mount a file system, nothing is checked,
//! and the test says so.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tickwheel_durable::store::List;
use tickwheel_durable::{Durable, Job, JobId, RedbOptions, Refusal, StoreError};

const FOLDER: &str = "DURABLE_FULL_DISK";
/// The limit of a wait, which no machine reaches.
const LIMIT: Duration = Duration::from_secs(30);

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LIMIT, "{what} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Schedules jobs, due in an hour, until the disk refuses one. Returns their ids.
fn fill(jobs: &Durable) -> Vec<JobId> {
    let mut ids = Vec::new();
    loop {
        let far = Job::new("job", vec![7; 50_000]).after(Duration::from_secs(3_600));
        match jobs.schedule(far) {
            Ok(id) => ids.push(id),
            Err(refused) => {
                assert!(matches!(refused.reason, Refusal::Store(StoreError::Full)), "{refused}");
                assert_eq!(refused.job.into_payload().len(), 50_000);
                return ids;
            }
        }
    }
}

/// Opens the jobs with a handler that counts.
fn open(folder: &Path, ran: &Arc<AtomicU64>) -> Durable {
    let ran = Arc::clone(ran);
    Durable::builder()
        .handler("job", move |_| {
            ran.fetch_add(1, Ordering::SeqCst);
        })
        .open(RedbOptions::new().reserve_bytes(2 << 20).open(folder.join("jobs.redb")).unwrap())
        .unwrap()
}

/// The part of the child: a test that does nothing unless it is started as one.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let (folder, ran) = (PathBuf::from(folder), Arc::new(AtomicU64::new(0)));
    let ballast = folder.join("ballast");
    fs::write(&ballast, vec![1; 4 << 20]).unwrap();
    let jobs = open(&folder, &ran);
    // Due while the disk is full: its completion needs the reserve.
    let soon = Job::new("job", "soon").after(Duration::from_secs(2));
    jobs.schedule(soon).unwrap();
    let ids = fill(&jobs);
    assert!(ids.len() > 10, "{}", ids.len());
    let reserve = folder.join("jobs.redb.reserve");
    wait_until("the use of the reserve", || !reserve.exists());
    wait_until("the completion", || {
        jobs.count(List::Live).is_ok_and(|left| left as usize <= ids.len())
    });
    assert_eq!(ran.load(Ordering::SeqCst), 1, "the job ran once");

    fs::remove_file(ballast).unwrap();
    wait_until("room", || jobs.schedule(Job::new("job", "again")).is_ok());
    wait_until("the run", || ran.load(Ordering::SeqCst) == 2);
    for id in &ids {
        assert_eq!(jobs.get(*id).unwrap().map(|job| job.payload.len()), Some(50_000));
    }
    drop(jobs);
    let jobs = open(&folder, &ran);
    assert_eq!(jobs.count(List::Live).unwrap() as usize, ids.len());
    println!("the disk was full");
}

#[test]
fn durable_14_a_full_disk_is_a_state() {
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=24m none \"$1\" || exit 77; shift; exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(FOLDER, folder.path())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return println!("not checked: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    if !said.contains("running 1 test") {
        return println!("not checked: {complained}");
    }
    assert!(output.status.success(), "{said}\n{complained}");
    assert!(said.contains("the disk was full"), "{said}\n{complained}");
}
