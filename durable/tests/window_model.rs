//! The protocol of the near window, explored exhaustively, and each of its rules dropped once.
//!
//! A loader, a client and a runner take single steps in every possible order, and the wall
//! clock advances or steps between any two of them. The rules are those of DESIGN.md. With all
//! of them nothing is lost, early or run twice; without any one of them, something is.
//!
//! The model is small on purpose: two jobs, six units of time, one program of the client. It
//! knows no leases and no crash, which other tests cover.

use std::collections::HashSet;

/// A rule of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// A load publishes its horizon before it reads.
    PublishFirst,
    /// A client reads the horizon after its commit.
    ReadHorizonAfterCommit,
    /// A load leaves newer versions alone.
    CompareVersions,
    /// The store decides whether a job that fires may start.
    CheckAtStart,
    /// A job that fires is compared with the wall clock.
    CheckWallAtFire,
    /// After a step of the wall clock all jobs are aimed anew.
    ReAimAfterStep,
}

const RULES: [Rule; 6] = [
    Rule::PublishFirst,
    Rule::ReadHorizonAfterCommit,
    Rule::CompareVersions,
    Rule::CheckAtStart,
    Rule::CheckWallAtFire,
    Rule::ReAimAfterStep,
];

const JOBS: usize = 2;
/// The length of the window.
const WINDOW: i8 = 3;
/// The wall clock at which the model ends.
const END: i8 = 6;

/// A change that the client makes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Call {
    Put(usize, i8),
    Move(usize, i8),
    Cancel(usize),
}

/// A row of the store: waiting until it has run or was cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Row {
    version: u8,
    due: i8,
    is_waiting: bool,
    runs: u8,
}

/// An armed job: its version, and the monotonic time at which its timer expires.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Armed {
    version: u8,
    due: i8,
    expires: i8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Loader {
    Idle,
    Published(i8),
    Read(i8, [Row; JOBS]),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    /// Monotonic time, and how far the wall clock is ahead of it.
    time: i8,
    ahead: i8,
    /// Steps of the wall clock that are still to come.
    steps: Vec<i8>,
    must_re_aim: bool,
    rows: [Row; JOBS],
    armed: [Option<Armed>; JOBS],
    horizon: i8,
    loader: Loader,
    /// The next call of the program, the horizon as it was before, and the changed job.
    call: usize,
    horizon_before: Option<i8>,
    committed: Option<usize>,
}

impl State {
    fn wall(&self) -> i8 {
        self.time + self.ahead
    }
}

struct Model<'a> {
    program: &'a [Call],
    dropped: Option<Rule>,
}

impl Model<'_> {
    fn keeps(&self, rule: Rule) -> bool {
        self.dropped != Some(rule)
    }

    /// Every state that one step leads to; or what went wrong.
    fn next(&self, state: &State) -> Result<Vec<State>, &'static str> {
        let mut next = Vec::new();
        self.load(state, &mut next);
        self.client(state, &mut next);
        for job in 0..JOBS {
            self.fire(state, job, &mut next)?;
        }
        self.pass(state, &mut next)?;
        Ok(next)
    }

    fn load(&self, state: &State, next: &mut Vec<State>) {
        let mut after = state.clone();
        after.loader = match state.loader {
            Loader::Idle if state.horizon - state.wall() <= WINDOW / 2 => {
                let horizon = state.wall() + WINDOW;
                if self.keeps(Rule::PublishFirst) {
                    after.horizon = horizon;
                }
                Loader::Published(horizon)
            }
            Loader::Idle => return,
            Loader::Published(horizon) => Loader::Read(horizon, state.rows),
            Loader::Read(horizon, rows) => {
                if !self.keeps(Rule::PublishFirst) {
                    after.horizon = horizon;
                }
                for (job, row) in rows.into_iter().enumerate() {
                    if row.is_waiting && row.due < horizon {
                        self.arm_read(&mut after, job, row);
                    }
                }
                Loader::Idle
            }
        };
        next.push(after);
    }

    fn arm_read(&self, state: &mut State, job: usize, row: Row) {
        let has_newer = state.armed[job].is_some_and(|armed| armed.version >= row.version);
        if !has_newer || !self.keeps(Rule::CompareVersions) {
            arm(state, job, row);
        }
    }

    /// The client looks at the horizon, commits, and tells the window.
    fn client(&self, state: &State, next: &mut Vec<State>) {
        let mut after = state.clone();
        match (state.horizon_before, state.committed) {
            (None, _) if state.call == self.program.len() => return,
            (None, _) => after.horizon_before = Some(state.horizon),
            (Some(_), None) => {
                after.committed = Some(commit(&mut after, self.program[state.call]));
            }
            (Some(before), Some(job)) => {
                let horizon =
                    if self.keeps(Rule::ReadHorizonAfterCommit) { state.horizon } else { before };
                tell(&mut after, job, horizon);
                (after.horizon_before, after.committed) = (None, None);
                after.call += 1;
            }
        }
        next.push(after);
    }

    /// A timer that has expired starts its job.
    fn fire(&self, state: &State, job: usize, next: &mut Vec<State>) -> Result<(), &'static str> {
        let Some(armed) = state.armed[job].filter(|armed| armed.expires <= state.time) else {
            return Ok(());
        };
        let mut after = state.clone();
        after.armed[job] = None;
        let row = &mut after.rows[job];
        let is_current = row.is_waiting && row.version == armed.version;
        if armed.due > state.wall() && self.keeps(Rule::CheckWallAtFire) {
            let row = Row { version: armed.version, due: armed.due, ..*row };
            arm(&mut after, job, row);
        } else if is_current || !self.keeps(Rule::CheckAtStart) {
            if armed.due > state.wall() {
                return Err("early");
            }
            if !is_current {
                return Err("ran although it was cancelled, moved or done");
            }
            row.is_waiting = false;
            row.runs += 1;
        }
        next.push(after);
        Ok(())
    }

    /// Time passes, or the wall clock steps. Nothing else may be overdue by then.
    fn pass(&self, state: &State, next: &mut Vec<State>) -> Result<(), &'static str> {
        let is_expired = |armed: &Armed| armed.expires <= state.time;
        let is_busy = state.armed.iter().flatten().any(is_expired)
            || state.loader != Loader::Idle
            || state.horizon_before.is_some()
            || state.horizon - state.wall() <= WINDOW / 2;
        if state.must_re_aim && self.keeps(Rule::ReAimAfterStep) {
            let mut after = state.clone();
            re_aim(&mut after);
            next.push(after);
            return Ok(());
        }
        if let Some((step, rest)) = state.steps.split_first() {
            let mut after = state.clone();
            after.ahead += step;
            after.steps = rest.to_vec();
            after.must_re_aim = true;
            next.push(after);
        }
        if is_busy {
            return Ok(());
        }
        let is_late = |row: &Row| row.is_waiting && row.due <= state.wall();
        if state.rows.iter().any(is_late) {
            return Err("late");
        }
        if state.wall() < END && state.time < END * 2 {
            let mut after = state.clone();
            after.time += 1;
            next.push(after);
        }
        Ok(())
    }
}

fn arm(state: &mut State, job: usize, row: Row) {
    let left = (row.due - state.wall()).max(0);
    state.armed[job] =
        Some(Armed { version: row.version, due: row.due, expires: state.time + left });
}

fn re_aim(state: &mut State) {
    state.must_re_aim = false;
    for job in 0..JOBS {
        if let Some(Armed { version, due, .. }) = state.armed[job] {
            let row = Row { version, due, ..state.rows[job] };
            arm(state, job, row);
        }
    }
}

/// Changes the store, and returns the job. A job that is done stays so.
fn commit(state: &mut State, call: Call) -> usize {
    let (Call::Put(job, _) | Call::Move(job, _) | Call::Cancel(job)) = call;
    let row = &mut state.rows[job];
    match call {
        Call::Put(_, due) => {
            (row.due, row.is_waiting) = (due, true);
            row.version += 1;
        }
        Call::Move(_, due) if row.is_waiting => {
            row.due = due;
            row.version += 1;
        }
        Call::Cancel(_) => row.is_waiting = false,
        Call::Move(..) => {}
    }
    job
}

/// Tells the window of a job that was committed.
fn tell(state: &mut State, job: usize, horizon: i8) {
    let row = state.rows[job];
    let has_older = state.armed[job].is_some_and(|armed| armed.version < row.version);
    if !row.is_waiting {
        state.armed[job] = None;
    } else if row.due < horizon && (has_older || state.armed[job].is_none()) {
        arm(state, job, row);
    } else if has_older {
        state.armed[job] = None;
    }
}

/// The programs, each with jobs that cross the horizon in some way.
fn programs() -> Vec<Vec<Call>> {
    vec![
        vec![Call::Put(0, 1), Call::Put(1, 4)],
        vec![Call::Put(0, 5), Call::Move(0, 2)],
        vec![Call::Put(0, 2), Call::Move(0, 5)],
        vec![Call::Put(0, 2), Call::Cancel(0), Call::Put(1, 3)],
        vec![Call::Put(0, 4), Call::Move(0, 1), Call::Cancel(0)],
        vec![Call::Put(0, 1), Call::Put(0, 3)],
    ]
}

/// The steps of the wall clock: none, forward, back, both.
fn histories() -> [Vec<i8>; 4] {
    [vec![], vec![3], vec![-2], vec![3, -2]]
}

/// Explores all states. Returns their number, or what went wrong.
fn explore(program: &[Call], steps: &[i8], dropped: Option<Rule>) -> Result<usize, &'static str> {
    let model = Model { program, dropped };
    let first = State {
        time: 0,
        ahead: 0,
        steps: steps.to_vec(),
        must_re_aim: false,
        rows: [Row::default(); JOBS],
        armed: [None; JOBS],
        horizon: 0,
        loader: Loader::Idle,
        call: 0,
        horizon_before: None,
        committed: None,
    };
    let (mut seen, mut left) = (HashSet::from([first.clone()]), vec![first]);
    while let Some(state) = left.pop() {
        for next in model.next(&state)? {
            if seen.insert(next.clone()) {
                left.push(next);
            }
        }
    }
    Ok(seen.len())
}

fn explore_all(dropped: Option<Rule>) -> Vec<Result<usize, &'static str>> {
    let programs = programs();
    let runs = programs
        .iter()
        .flat_map(|program| histories().map(|steps| explore(program, &steps, dropped)));
    runs.collect()
}

#[test]
fn nothing_is_lost_early_or_run_twice() {
    for run in explore_all(None) {
        let states = run.unwrap();
        assert!(states > 200, "{states}");
    }
}

#[test]
fn every_rule_is_needed() {
    for rule in RULES {
        let runs = explore_all(Some(rule));
        let violations: Vec<_> = runs.iter().filter_map(|run| run.err()).collect();
        println!("without {rule:?}: {} of {} runs: {violations:?}", violations.len(), runs.len());
        assert!(!violations.is_empty(), "{rule:?} is not needed");
    }
}
