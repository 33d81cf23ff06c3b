//! A node against a sorted map.
//!
//! Random sequences of calls, passing time, steps of the wall clock, failing commits, crashes
//! and takeovers. The map predicts which jobs have run at every moment. After a failure the
//! oracle asks the store what has happened; a job that it had for certain must still be there.
//! Time is virtual, so a sequence gives the same run each time, and shrinks.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use support::failing::{Failing, Mode};
use tickwheel_durable::store::{List, Page, Store};
use tickwheel_durable::{
    Cancelled, Durable, IfTaken, Job, JobId, ManualClock, RedbStore, State, StoredJob, VirtualNode,
    WallClock, WallTime,
};

const BEGIN: u64 = 1_000_000;
const KEYS: [&str; 3] = ["a", "b", "c"];
/// Longer than a lease.
const TAKEOVER: Duration = Duration::from_secs(11);

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A job without a key, due so many seconds from now.
    Schedule(u64),
    Keyed(usize, IfTaken, u64),
    /// The job with this index among the expected ones.
    Cancel(usize),
    Move(usize, u64),
    Pass(u64),
    /// Sets the wall clock forward or back.
    Jump(i64),
    /// The commits after so many fail, until the node crashes.
    Fail(u32, bool),
    Crash,
    TakeOver,
}

fn step() -> impl Strategy<Value = Step> {
    let policy = prop_oneof![Just(IfTaken::Refuse), Just(IfTaken::Keep), Just(IfTaken::Replace)];
    prop_oneof![
        5 => (0..200_u64).prop_map(Step::Schedule),
        3 => (0..KEYS.len(), policy, 0..200_u64)
            .prop_map(|(key, policy, due)| Step::Keyed(key, policy, due)),
        2 => (0..9_usize).prop_map(Step::Cancel),
        3 => (0..9_usize, 0..200_u64).prop_map(|(index, due)| Step::Move(index, due)),
        6 => (0..100_u64).prop_map(Step::Pass),
        1 => (-100..100_i64).prop_map(Step::Jump),
        1 => (0..4_u32, any::<bool>()).prop_map(|(left, after)| Step::Fail(left, after)),
        1 => Just(Step::Crash),
        1 => Just(Step::TakeOver),
    ]
}

type Runs = Arc<Mutex<Vec<JobId>>>;

struct Oracle {
    clock: ManualClock,
    memory: RedbStore,
    store: Failing,
    node: Option<(Durable, VirtualNode)>,
    owner: u32,
    runs: Runs,
    /// The jobs that have yet to run, in the order of due times.
    expected: BTreeSet<(WallTime, JobId)>,
    keys: BTreeMap<&'static str, JobId>,
    /// The jobs that a node had started when it crashed. They may count as running until the next one has
    /// a lease.
    interrupted: BTreeSet<JobId>,
    /// Whether commits may fail, so that the store must be asked afterwards.
    is_failing: bool,
}

impl Oracle {
    fn new() -> Oracle {
        let clock = ManualClock::new(WallTime::from_unix_micros(BEGIN * 1_000_000));
        let memory = RedbStore::in_memory_by(clock.clone());
        let mut oracle = Oracle {
            store: Failing::new(memory.clone()),
            clock,
            memory,
            node: None,
            owner: 0,
            runs: Runs::default(),
            expected: BTreeSet::new(),
            keys: BTreeMap::new(),
            interrupted: BTreeSet::new(),
            is_failing: false,
        };
        oracle.open();
        oracle
    }

    fn open(&mut self) {
        let (runs, clock) = (Arc::clone(&self.runs), self.clock.clone());
        let opened = Durable::builder()
            .owner(format!("node {}", self.owner))
            .window(Duration::from_secs(40))
            .window_jobs(5)
            .running(2)
            .handler("job", move |attempt| {
                assert!(attempt.due() <= clock.now(), "early");
                runs.lock().unwrap().push(attempt.id());
            })
            .open_virtual(self.store.clone(), self.clock.clone());
        self.node = Some(opened.unwrap());
    }

    fn jobs(&self) -> &Durable {
        &self.node.as_ref().unwrap().0
    }

    fn due(&self, secs: u64) -> WallTime {
        self.clock.now() + Duration::from_secs(secs)
    }

    fn expected(&self, index: usize) -> Option<(WallTime, JobId)> {
        let count = self.expected.len().max(1);
        self.expected.iter().nth(index % count).copied()
    }

    fn due_of(&self, id: JobId) -> Option<WallTime> {
        let found = self.expected.iter().find(|(_, other)| *other == id);
        found.map(|(due, _)| *due)
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Schedule(secs) => self.schedule(secs),
            Step::Keyed(key, policy, secs) => self.keyed(KEYS[key], policy, secs),
            Step::Cancel(index) => self.cancel(index),
            Step::Move(index, secs) => self.move_job(index, secs),
            Step::Pass(secs) => self.pass(Duration::from_secs(secs)),
            Step::Jump(secs) => self.jump(secs),
            Step::Fail(left, true) => self.fail(left, Mode::FailsAfter),
            Step::Fail(left, false) => self.fail(left, Mode::FailsBefore),
            Step::Crash => self.crash(),
            Step::TakeOver => self.take_over(),
        }
    }

    fn schedule(&mut self, secs: u64) {
        let due = self.due(secs);
        if let Ok(id) = self.jobs().schedule(Job::new("job", "").at(due)) {
            self.expected.insert((due, id));
        }
    }

    fn keyed(&mut self, key: &'static str, policy: IfTaken, secs: u64) {
        let due = self.due(secs);
        let held = self.keys.get(key).copied();
        let answer = self.jobs().schedule(Job::new("job", "").at(due).key(key, policy));
        match (held, answer, policy) {
            _ if self.is_failing => {}
            (None, Ok(id), _) => {
                self.keys.insert(key, id);
                self.expected.insert((due, id));
            }
            (Some(held), Ok(id), IfTaken::Replace) if held == id => self.put(id, due),
            (Some(held), Ok(id), IfTaken::Keep) => assert_eq!(held, id),
            (Some(_), Err(_), IfTaken::Refuse) => {}
            other => panic!("{other:?}"),
        }
    }

    fn put(&mut self, id: JobId, due: WallTime) {
        let before = self.due_of(id).expect("a job is gone");
        self.expected.remove(&(before, id));
        self.expected.insert((due, id));
    }

    fn cancel(&mut self, index: usize) {
        let Some((due, id)) = self.expected(index) else {
            return;
        };
        let answer = self.jobs().cancel(id);
        if !self.is_failing {
            let is_right = match &answer {
                Ok(Cancelled::Cancelled(_)) => true,
                Ok(Cancelled::Running(_)) => self.interrupted.contains(&id),
                _ => false,
            };
            assert!(is_right, "{answer:?}");
            self.expected.remove(&(due, id));
            self.keys.retain(|_, holder| *holder != id);
        }
    }

    fn move_job(&mut self, index: usize, secs: u64) {
        let due = self.due(secs);
        let Some((_, id)) = self.expected(index) else {
            return;
        };
        let answer = self.jobs().reschedule(id, due);
        if !self.is_failing {
            assert!(answer.unwrap(), "a job is gone");
            self.put(id, due);
        }
    }

    /// Lets time pass. Exactly the jobs that are due by its end run, each once.
    fn pass(&mut self, by: Duration) {
        let until = self.clock.now() + by;
        self.node.as_ref().unwrap().1.run_until(until);
        if self.is_failing {
            return;
        }
        self.interrupted.clear();
        let mut ran = std::mem::take(&mut *self.runs.lock().unwrap());
        let is_due = |(due, _): &(WallTime, JobId)| *due <= until;
        let due = self.expected.iter().copied().filter(is_due);
        let mut due: Vec<JobId> = due.map(|(_, id)| id).collect();
        ran.sort_unstable();
        due.sort_unstable();
        assert_eq!(ran, due, "ran, and was due");
        self.expected.retain(|job| !is_due(job));
        self.keys.retain(|_, holder| !due.contains(holder));
    }

    /// The jobs that a step forward makes due run with the next look.
    fn jump(&mut self, secs: i64) {
        let micros = self.clock.now().as_unix_micros() as i64 + secs * 1_000_000;
        self.clock.set(WallTime::from_unix_micros(micros as u64));
        self.pass(Duration::ZERO);
    }

    fn fail(&mut self, left: u32, mode: Mode) {
        self.store.fail_after(left, mode);
        self.is_failing = true;
    }

    /// The node is gone, with everything that is not in the store.
    fn crash(&mut self) {
        self.node = None;
        self.store.set(Mode::Works);
        if self.is_failing {
            self.ask_store();
        }
        self.open();
    }

    /// Takes the store's word for what happened since it began to fail. A job that was there
    /// before, and has not run since, may have been moved or cancelled by a call that failed;
    /// otherwise it must still be there.
    fn ask_store(&mut self) {
        self.is_failing = false;
        self.runs.lock().unwrap().clear();
        let stored = self.memory.list(Page::new(List::Live, None, usize::MAX)).unwrap();
        self.expected = stored.iter().map(|job| (job.due, job.id)).collect();
        let is_started = |job: &&StoredJob| matches!(job.state, State::Started { .. });
        let started = stored.iter().filter(is_started);
        self.interrupted = started.map(|job| job.id).collect();
        let keyed = stored.iter().filter_map(|job| {
            let key = job.key.as_deref()?;
            Some((*KEYS.iter().find(|name| **name == key)?, job.id))
        });
        self.keys = keyed.collect();
    }

    /// Another node takes over once the lease of the first one has run out.
    fn take_over(&mut self) {
        self.owner += 1;
        self.crash();
        while !self.jobs().status().holds_lease {
            // By the store's clock, which the steps make longer or shorter.
            let until = self.clock.now() + TAKEOVER;
            self.node.as_ref().unwrap().1.run_until(until);
        }
        self.pass(Duration::ZERO);
    }

    fn finish(&mut self) {
        self.crash();
        self.pass(Duration::from_secs(1_000));
        assert!(self.expected.is_empty());
        assert_eq!(self.memory.count(List::Live).unwrap(), 0);
        assert_eq!(self.memory.count(List::Dead).unwrap(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn a_node_runs_what_the_map_says(steps in vec(step(), 1..60)) {
        let mut oracle = Oracle::new();
        for step in steps {
            oracle.step(step);
        }
        oracle.finish();
    }
}

/// The answer to a start was lost with its node. Until the next one has a lease, nobody knows that
/// the job does not run.
#[test]
fn a_job_of_a_node_that_is_gone_counts_as_running() {
    let mut oracle = Oracle::new();
    let (fail, cancel) = (Step::Fail(3, true), Step::Cancel(0));
    for step in [Step::Schedule(7), fail, Step::Pass(7), Step::Crash, cancel] {
        oracle.step(step);
    }
    oracle.finish();
}
