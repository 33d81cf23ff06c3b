//! The group commit, explored exhaustively, and each of its rules dropped once.
//!
//! Callers, a worker, the thread that starts jobs, the thread that commits and the one that
//! closes the node take single steps in every possible order. Commits fail before or after
//! they have happened, and so do recoveries. With all rules every caller gets its answer, no
//! insert happens twice, and no outcome is lost; without any one of them, something goes wrong,
//! or somebody waits for ever.
//!
//! The model is that of `src/commit.rs` and of the end of a node. It knows no damaged rows, no
//! outcomes that are reckoned again, and no time: a pause is over at some moment, and so is the time for which starts and outcomes
//! linger. By that moment nobody may have waited who should not.

use std::collections::HashMap;

/// A rule of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rule {
    /// The committer looks for requests and falls asleep in one step.
    SleepUnderTheLock,
    /// While the store fails, an insert that is handed in is refused at once.
    RefuseWhileFailing,
    /// A failed commit refuses the inserts that were handed in beside it, too.
    RefuseWhatGathered,
    /// An insert is not committed again after a failed commit.
    RepeatNoInsert,
    /// Starts and outcomes are committed again after a failed commit.
    KeepOutcomes,
    /// The store recovers before the next commit.
    Recover,
    /// An end lets a recovery that does not succeed be given up.
    EndRecoveries,
    /// What is given up is refused.
    RefuseWhatIsGivenUp,
    /// The commits are closed after the threads that hand in outcomes have ended.
    CloseLast,
    /// The committer ends once it has committed everything.
    CommitBeforeEnd,
    /// What is handed in after the close is refused.
    RefuseAfterClose,
    /// Starts and outcomes linger for a time only.
    LingerForATime,
    /// A caller's change ends the lingering.
    CallersEndLingering,
    /// A thread that may start no more jobs ends it.
    FullEndsLingering,
    /// The end of the node ends it.
    EndEndsLingering,
}

const RULES: [Rule; 15] = [
    Rule::SleepUnderTheLock,
    Rule::RefuseWhileFailing,
    Rule::RefuseWhatGathered,
    Rule::RepeatNoInsert,
    Rule::KeepOutcomes,
    Rule::Recover,
    Rule::EndRecoveries,
    Rule::RefuseWhatIsGivenUp,
    Rule::CloseLast,
    Rule::CommitBeforeEnd,
    Rule::RefuseAfterClose,
    Rule::LingerForATime,
    Rule::CallersEndLingering,
    Rule::FullEndsLingering,
    Rule::EndEndsLingering,
];

/// The requests: an insert of a caller that the closer waits for, one of a caller that it does
/// not know, an outcome that nobody waits for, and a start.
const INSERT: usize = 0;
const STRAY: usize = 1;
const OUTCOME: usize = 2;
const START: usize = 3;
const REQUESTS: usize = 4;

fn is_kept(request: usize) -> bool {
    matches!(request, OUTCOME | START)
}

/// A set of requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Set(u8);

impl Set {
    fn with(self, request: usize) -> Set {
        Set(self.0 | 1 << request)
    }

    fn and(self, other: Set) -> Set {
        Set(self.0 | other.0)
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn each(self) -> impl Iterator<Item = usize> {
        (0..REQUESTS).filter(move |request| self.0 >> request & 1 == 1)
    }

    fn filter(self, is_in: impl Fn(usize) -> bool) -> Set {
        self.each().filter(|one| is_in(*one)).fold(Set::default(), Set::with)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Client {
    Idle,
    Waits,
    /// It has its answer: whether the change was committed.
    Done(bool),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Committer {
    Looks,
    /// It has seen no request, and will sleep.
    Drowsy,
    Asleep,
    /// It sleeps until the requests have lingered.
    Lingers,
    Took(Set),
    Committed(Set),
    Failed(Set),
    Pauses,
    Recovers,
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Closer {
    Open,
    Ended,
    Closed,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    clients: [Client; REQUESTS],
    queue: Set,
    is_failing: bool,
    committer: Committer,
    /// Whether the next recovery is tried without a pause.
    is_first_try: bool,
    closer: Closer,
    /// Whether the thread that starts jobs waits for the start to be committed.
    is_full: bool,
    /// Whether the store accepts changes.
    accepts: bool,
    /// Whether a recovery was given up at the end: what waited for it runs again.
    has_given_up: bool,
    /// How often each change has happened.
    happened: [u8; REQUESTS],
    /// The commits and the recoveries that may still fail.
    failures: u8,
    failed_recoveries: u8,
}

struct Model {
    dropped: Option<Rule>,
    /// Whether the store never recovers.
    is_down: bool,
    /// Whether the node is closed after all have their answers.
    closes_late: bool,
    /// Whether no more than one job may be started.
    has_one_worker: bool,
}

impl Model {
    fn keeps(&self, rule: Rule) -> bool {
        self.dropped != Some(rule)
    }

    /// Every state that one step leads to; or what went wrong.
    fn next(&self, state: &State) -> Result<Vec<State>, &'static str> {
        let mut next = Vec::new();
        for request in 0..REQUESTS {
            self.hand_in(state, request, &mut next);
        }
        self.fill(state, &mut next);
        self.commit(state, &mut next)?;
        self.close(state, &mut next);
        Ok(next)
    }

    fn hand_in(&self, state: &State, request: usize, next: &mut Vec<State>) {
        if state.clients[request] != Client::Idle {
            return;
        }
        let mut after = state.clone();
        let is_closed = state.closer == Closer::Closed && self.keeps(Rule::RefuseAfterClose);
        let is_failing = state.is_failing && self.keeps(Rule::RefuseWhileFailing);
        if is_closed || is_failing && !is_kept(request) {
            after.clients[request] = Client::Done(false);
        } else {
            after.clients[request] = Client::Waits;
            after.queue = state.queue.with(request);
            self.wake(&mut after);
        }
        next.push(after);
    }

    /// The thread that starts jobs finds that it may start no more.
    fn fill(&self, state: &State, next: &mut Vec<State>) {
        if self.has_one_worker && state.clients[START] == Client::Waits && !state.is_full {
            let mut after = state.clone();
            after.is_full = true;
            self.wake(&mut after);
            next.push(after);
        }
    }

    fn wake(&self, state: &mut State) {
        match state.committer {
            Committer::Asleep => state.committer = Committer::Looks,
            Committer::Lingers if self.is_urgent(state) => state.committer = Committer::Looks,
            _ => {}
        }
    }

    /// Returns whether nothing lingers.
    fn is_urgent(&self, state: &State) -> bool {
        has_caller(state.queue) && self.keeps(Rule::CallersEndLingering)
            || state.is_full && self.keeps(Rule::FullEndsLingering)
            || state.closer != Closer::Open && self.keeps(Rule::EndEndsLingering)
    }

    fn commit(&self, state: &State, next: &mut Vec<State>) -> Result<(), &'static str> {
        let mut after = state.clone();
        match state.committer {
            Committer::Looks => {
                if !state.queue.is_empty() && !self.is_urgent(state) {
                    after.committer = Committer::Lingers;
                    next.push(after.clone());
                }
                self.look(&mut after);
            }
            Committer::Drowsy => after.committer = Committer::Asleep,
            Committer::Lingers if !self.keeps(Rule::LingerForATime) => return Ok(()),
            Committer::Lingers => {
                after.committer = Committer::Took(std::mem::take(&mut after.queue));
                check_lingering(state)?;
            }
            Committer::Asleep | Committer::Gone => return Ok(()),
            Committer::Took(batch) => return self.try_commit(state, batch, next),
            Committer::Committed(batch) => {
                answer(&mut after, batch, true);
                after.is_first_try = true;
                after.committer =
                    if state.is_failing { Committer::Pauses } else { Committer::Looks };
            }
            Committer::Failed(batch) => self.fail(&mut after, batch),
            Committer::Pauses => {
                if has_caller(state.queue) && self.keeps(Rule::RepeatNoInsert) {
                    return Err("a caller waits for a recovery");
                }
                self.end_pause(&mut after);
            }
            Committer::Recovers => return self.recover(state, next),
        }
        next.push(after);
        Ok(())
    }

    fn look(&self, state: &mut State) {
        let is_closed = state.closer == Closer::Closed;
        state.committer = match state.queue.is_empty() {
            _ if is_closed && !self.keeps(Rule::CommitBeforeEnd) => Committer::Gone,
            true if is_closed => Committer::Gone,
            true if self.keeps(Rule::SleepUnderTheLock) => Committer::Asleep,
            true => Committer::Drowsy,
            false => Committer::Took(std::mem::take(&mut state.queue)),
        };
    }

    /// A commit happens and says so, or fails before or after it has happened.
    fn try_commit(
        &self,
        state: &State,
        batch: Set,
        next: &mut Vec<State>,
    ) -> Result<(), &'static str> {
        let mut failed = state.clone();
        failed.committer = Committer::Failed(batch);
        failed.accepts = false;
        if !state.accepts {
            next.push(failed);
            return Ok(());
        }
        let mut done = state.clone();
        for request in batch.each() {
            // Starts and outcomes that come again change nothing.
            let count = &mut done.happened[request];
            *count = if is_kept(request) { 1 } else { *count + 1 };
            if *count > 1 {
                return Err("an insert happened twice");
            }
        }
        if state.failures > 0 {
            failed.failures -= 1;
            next.push(failed.clone());
            failed.happened = done.happened;
            next.push(failed);
        }
        done.committer = Committer::Committed(batch);
        next.push(done);
        Ok(())
    }

    fn fail(&self, state: &mut State, batch: Set) {
        let all = if self.keeps(Rule::RefuseWhatGathered) {
            batch.and(std::mem::take(&mut state.queue))
        } else {
            batch
        };
        let is_again = |request| {
            if is_kept(request) {
                self.keeps(Rule::KeepOutcomes)
            } else {
                !self.keeps(Rule::RepeatNoInsert)
            }
        };
        let again = all.filter(is_again);
        state.queue = state.queue.and(again);
        answer(state, all.filter(|request| !is_again(request)), false);
        state.is_failing = true;
        state.committer = Committer::Pauses;
    }

    fn end_pause(&self, state: &mut State) {
        let is_ending = state.closer != Closer::Open && self.keeps(Rule::EndRecoveries);
        if is_ending && !state.is_first_try {
            state.has_given_up = true;
            let given_up = std::mem::take(&mut state.queue);
            if self.keeps(Rule::RefuseWhatIsGivenUp) {
                answer(state, given_up, false);
            }
            state.committer = Committer::Looks;
        } else {
            state.committer = Committer::Recovers;
        }
        state.is_first_try = false;
    }

    fn recover(&self, state: &State, next: &mut Vec<State>) -> Result<(), &'static str> {
        if self.is_down || state.failed_recoveries > 0 {
            let mut failed = state.clone();
            failed.failed_recoveries = state.failed_recoveries.saturating_sub(1);
            failed.committer = Committer::Pauses;
            next.push(failed);
        }
        if !self.is_down {
            let mut recovered = state.clone();
            recovered.accepts = self.keeps(Rule::Recover);
            recovered.is_failing = false;
            recovered.committer = Committer::Looks;
            next.push(recovered);
        }
        Ok(())
    }

    /// The closer ends the pauses, waits for the threads that it knows, and closes.
    fn close(&self, state: &State, next: &mut Vec<State>) {
        let is_done = |request: usize| matches!(state.clients[request], Client::Done(_));
        let posted = state.clients[OUTCOME] != Client::Idle;
        let have_ended = is_done(INSERT) && is_done(START) && posted;
        let are_done = (0..REQUESTS).all(|request| request == OUTCOME || is_done(request));
        let mut after = state.clone();
        after.closer = match state.closer {
            Closer::Open if self.closes_late && !are_done => return,
            Closer::Open if is_done(INSERT) => Closer::Ended,
            Closer::Ended if have_ended || !self.keeps(Rule::CloseLast) => Closer::Closed,
            _ => return,
        };
        self.wake(&mut after);
        next.push(after);
    }

    /// Checks a state in which nothing happens any more.
    fn check_end(&self, state: &State) -> Result<(), &'static str> {
        if state.clients.contains(&Client::Waits) {
            return Err("somebody waits for ever");
        }
        for request in [INSERT, STRAY] {
            let is_there = state.happened[request] == 1;
            if state.clients[request] == Client::Done(true) && !is_there {
                return Err("an insert was answered and is lost");
            }
        }
        if !state.has_given_up && state.happened[OUTCOME] == 0 {
            return Err("an outcome is lost");
        }
        if state.has_given_up && state.failures > 0 && state.failed_recoveries > 0 {
            return Err("a store that has recovered was given up");
        }
        Ok(())
    }
}

fn has_caller(requests: Set) -> bool {
    requests.each().any(|request| !is_kept(request))
}

/// Checks what has waited for as long as requests linger.
fn check_lingering(state: &State) -> Result<(), &'static str> {
    if has_caller(state.queue) {
        return Err("a caller waits for what lingers");
    }
    if state.is_full {
        return Err("a worker waits for a start that lingers");
    }
    if state.closer != Closer::Open {
        return Err("the end waits for what lingers");
    }
    Ok(())
}

fn answer(state: &mut State, requests: Set, is_committed: bool) {
    for request in requests.each() {
        state.is_full &= request != START;
        state.clients[request] = Client::Done(is_committed);
    }
}

fn first() -> State {
    State {
        clients: [Client::Idle; REQUESTS],
        queue: Set::default(),
        is_failing: false,
        committer: Committer::Looks,
        is_first_try: true,
        closer: Closer::Open,
        is_full: false,
        accepts: true,
        has_given_up: false,
        happened: [0; REQUESTS],
        failures: 2,
        failed_recoveries: 1,
    }
}

/// Explores all states. Returns their number, or what went wrong: in a state, in one in which
/// nothing happens any more, or if no such state can be reached from some state.
fn explore(model: &Model) -> Result<usize, &'static str> {
    let mut numbers = HashMap::from([(first(), 0)]);
    let (mut states, mut before) = (vec![first()], vec![Vec::new()]);
    let mut ends = Vec::new();
    let mut at = 0;
    while at < states.len() {
        let next = model.next(&states[at])?;
        if next.is_empty() {
            model.check_end(&states[at])?;
            ends.push(at);
        }
        for state in next {
            let number = *numbers.entry(state.clone()).or_insert(states.len());
            if number == states.len() {
                states.push(state);
                before.push(Vec::new());
            }
            before[number].push(at);
        }
        at += 1;
    }
    if count_of(ends, &before) == states.len() {
        Ok(states.len())
    } else {
        Err("somebody is busy for ever")
    }
}

/// Counts the states from which one of `ends` can be reached.
fn count_of(ends: Vec<usize>, before: &[Vec<usize>]) -> usize {
    let mut reaches = vec![false; before.len()];
    let mut left = ends;
    while let Some(state) = left.pop() {
        if !std::mem::replace(&mut reaches[state], true) {
            left.extend(&before[state]);
        }
    }
    reaches.into_iter().filter(|reaches| *reaches).count()
}

fn explore_all(dropped: Option<Rule>) -> Vec<Result<usize, &'static str>> {
    let programs =
        [(false, false, false), (true, false, false), (false, true, false), (false, false, true)];
    let run = |(is_down, closes_late, has_one_worker)| {
        explore(&Model { dropped, is_down, closes_late, has_one_worker })
    };
    programs.map(run).into()
}

#[test]
fn every_caller_is_answered_and_nothing_is_lost_or_happens_twice() {
    for run in explore_all(None) {
        let states = run.unwrap();
        assert!(states > 500, "{states}");
    }
}

#[test]
fn every_rule_is_needed() {
    for rule in RULES {
        let runs = explore_all(Some(rule));
        println!("without {rule:?}: {runs:?}");
        assert!(runs.iter().any(Result::is_err), "{rule:?} is not needed");
    }
}
