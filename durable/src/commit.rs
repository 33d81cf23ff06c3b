//! Group commit: one commit for all callers that wait.
//!
//! While a commit is on its way to the disk, requests gather; the next commit takes all of
//! them. If a commit fails, it is unknown whether it happened. Callers then get their changes
//! back. Starts and outcomes are kept instead, because repeating them is harmless, and are the
//! first to be committed once the store has recovered.
//!
//! For starts and outcomes nobody waits. On a store whose commits are dear they linger: the
//! commit begins no sooner than a set time after the last one began, and takes all that have
//! come by then. A caller's change ends that at once, and so does the thread that starts jobs,
//! if it may start no more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::node::Node;
use crate::outcome::drop_thrown;
use crate::store::{Answer, Change, Result, StoreError};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The bytes of a commit, unless a single request has more: a large one keeps the others waiting.
const MOST_BYTES: usize = 16 << 20;

/// The answers to the changes of a request, or the reason why there are none; and the changes.
pub(crate) type Reply = (Result<Vec<Answer>>, Vec<Change>);

/// The pauses before the attempts to recover: none, and then growing ones until a commit
/// succeeds. To open a file succeeds on a full disk, too.
#[derive(Default)]
struct Pauses(Duration);

impl Pauses {
    fn next(&mut self) -> Duration {
        let longer = (self.0 * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        std::mem::replace(&mut self.0, longer)
    }
}

/// Is called with the answers, without a lock. Returns a change to commit instead, if there is one.
type Answered = Box<dyn FnMut(Reply) -> Option<Change> + Send>;

struct Request {
    changes: Vec<Change>,
    answered: Answered,
}

impl Request {
    /// Returns whether the request outlives a failed commit.
    fn is_kept(&self) -> bool {
        self.changes.iter().all(|change| change.fence().is_some())
    }

    fn bytes(&self) -> usize {
        let bytes = |change: &Change| match change {
            Change::Insert(new) => new.job.payload.len(),
            _ => 0,
        };
        self.changes.iter().map(bytes).sum()
    }

    /// Returns a request that follows this one.
    fn answer(mut self, answers: Result<Vec<Answer>>) -> Option<Request> {
        let next = (self.answered)((answers, self.changes))?;
        Some(Request { changes: vec![next], ..self })
    }
}

#[derive(Default)]
pub(crate) struct Commits {
    queue: Mutex<Queue>,
    bell: Condvar,
    /// The least time between the beginnings of two commits for which no caller waits.
    linger: Duration,
}

#[derive(Default)]
struct Queue {
    requests: Vec<Request>,
    /// Whether a caller waits for one of the requests.
    has_caller: bool,
    /// Whether the last commit was of small requests alone.
    is_small_turn: bool,
    /// The number of threads that may start no more jobs until some of the requests are committed.
    hurried: usize,
    /// The beginning of the last commit.
    begun: Option<Instant>,
    /// Set while the store does not write.
    failure: Option<StoreError>,
    /// Set when nothing waits any more for the store to write again.
    is_ending: bool,
    is_closed: bool,
}

impl Queue {
    fn push(&mut self, request: Request) {
        self.has_caller |= !request.is_kept();
        self.requests.push(request);
    }

    /// Takes the first request, others of about so many bytes, and all that are small beside that.
    /// If large ones wait, every other time takes the small ones alone: they don't wait for more than
    /// the commit of a large one.
    fn take(&mut self, most: usize) -> Vec<Request> {
        let is_small = |request: &Request| request.bytes() <= most >> 8;
        let bytes: usize = self.requests.iter().map(Request::bytes).sum();
        let has_turn = !self.is_small_turn && bytes > most;
        self.is_small_turn = has_turn && self.requests.iter().any(is_small);
        let mut left = if self.is_small_turn { 0 } else { most };
        let mut is_first = !self.is_small_turn;
        let fits = |request: &mut Request| {
            let bytes = request.bytes();
            let fits = std::mem::take(&mut is_first) || bytes <= left || is_small(request);
            left = left.saturating_sub(if fits { bytes } else { 0 });
            fits
        };
        let taken = self.requests.extract_if(.., fits).collect();
        self.has_caller = !self.requests.iter().all(Request::is_kept);
        taken
    }

    /// Returns whether starts and outcomes linger no more.
    fn is_urgent(&self) -> bool {
        self.has_caller || self.hurried > 0 || self.is_ending || self.is_closed
    }
}

impl Commits {
    /// Returns commits whose starts and outcomes linger for up to `linger`.
    pub(crate) fn new(linger: Duration) -> Commits {
        Commits { linger, ..Commits::default() }
    }

    /// Hands in changes, and returns where their answers will come.
    pub(crate) fn request(&self, changes: Vec<Change>) -> Receiver<Reply> {
        let (sender, receiver) = sync_channel(1);
        self.start(changes, move |reply| {
            drop(sender.send(reply));
            None
        });
        receiver
    }

    /// Hands in changes, and has `answered` called with their answers, unless they are given up.
    pub(crate) fn start(
        &self,
        changes: Vec<Change>,
        answered: impl FnMut(Reply) -> Option<Change> + Send + 'static,
    ) {
        let answered: Answered = Box::new(answered);
        self.push(Request { changes, answered });
    }

    /// Hands in changes that nobody waits for.
    pub(crate) fn post(&self, changes: Vec<Change>) {
        self.start(changes, |_| None);
    }

    /// Calls `wait`, which waits for the end of runs. Nothing lingers meanwhile.
    pub(crate) fn hurried<R>(&self, wait: impl FnOnce() -> R) -> R {
        if self.linger.is_zero() {
            return wait();
        }
        self.queue.lock().hurried += 1;
        self.bell.notify_one();
        let result = wait();
        self.queue.lock().hurried -= 1;
        result
    }

    fn push(&self, request: Request) {
        let mut queue = self.queue.lock();
        match &queue.failure {
            _ if queue.is_closed => {
                drop(queue);
                request.answer(Err(StoreError::NotWriting));
            }
            Some(error) if !request.is_kept() => {
                let error = error.clone();
                drop(queue);
                request.answer(Err(error));
            }
            _ => {
                let was_empty = queue.requests.is_empty();
                queue.push(request);
                let is_heard = was_empty || queue.has_caller;
                drop(queue);
                if is_heard {
                    self.bell.notify_one();
                }
            }
        }
    }

    /// Returns why the store does not write, if it does not.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.queue.lock().failure.clone()
    }

    /// Gives up what cannot be committed, from now on.
    pub(crate) fn end(&self) {
        self.queue.lock().is_ending = true;
        self.bell.notify_all();
    }

    /// Lets [`work`](Commits::work) return once nothing is left to commit.
    pub(crate) fn close(&self) {
        self.queue.lock().is_closed = true;
        self.bell.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.queue.lock().is_closed
    }

    /// Commits until [`close`](Commits::close), and calls `after` after each commit and each
    /// recovery.
    pub(crate) fn work(&self, node: &Node, mut after: impl FnMut()) {
        let mut pauses = Pauses::default();
        while self.wait() {
            self.commit_all(node);
            after();
            if self.failure().is_none() {
                pauses = Pauses::default();
                continue;
            }
            self.recover(node, &mut pauses);
            after();
        }
    }

    /// Waits for requests, and while they linger. Returns `false` if there will be none.
    fn wait(&self) -> bool {
        let mut queue = self.queue.lock();
        let is_idle = |queue: &mut Queue| queue.requests.is_empty() && !queue.is_closed;
        self.bell.wait_while(&mut queue, is_idle);
        let has_requests = !queue.requests.is_empty();
        if let Some(begun) = queue.begun.filter(|_| !self.linger.is_zero()) {
            let lingers = |queue: &mut Queue| !queue.is_urgent();
            self.bell.wait_while_until(&mut queue, lingers, begun + self.linger);
        }
        queue.begun = Some(Instant::now());
        has_requests
    }

    /// Commits what has been handed in first, in one commit. Returns whether there is more.
    pub(crate) fn commit_all(&self, node: &Node) -> bool {
        let mut requests = self.queue.lock().take(MOST_BYTES);
        let lengths: Vec<usize> = requests.iter().map(|one| one.changes.len()).collect();
        let taken = requests.iter_mut().flat_map(|one| one.changes.drain(..));
        let changes: Vec<Change> = taken.collect();
        let answers = commit(node, &changes);
        let mut changes = changes.into_iter();
        for (request, length) in requests.iter_mut().zip(lengths) {
            request.changes.extend(changes.by_ref().take(length));
        }
        match answers {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                let answer = |request: Request| {
                    let answers = answers.by_ref().take(request.changes.len()).collect();
                    request.answer(Ok(answers))
                };
                // Also after the close: it is the end of what was handed in before.
                let next: Vec<Request> = requests.into_iter().filter_map(answer).collect();
                self.queue.lock().requests.extend(next);
            }
            Err(error) => self.fail(requests, &error),
        }
        !self.queue.lock().requests.is_empty()
    }

    /// Keeps starts and outcomes, and refuses everything else, so that no caller waits for the
    /// recovery.
    fn fail(&self, mut requests: Vec<Request>, error: &StoreError) {
        let mut queue = self.queue.lock();
        requests.append(&mut queue.requests);
        let (kept, refused): (Vec<_>, Vec<_>) = requests.into_iter().partition(Request::is_kept);
        queue.requests = kept;
        queue.has_caller = false;
        queue.failure = Some(error.clone());
        drop(queue);
        for request in refused {
            request.answer(Err(error.clone()));
        }
    }

    fn take_requests(&self) -> Vec<Request> {
        self.queue.lock().take(usize::MAX)
    }

    /// Waits until the store accepts changes again.
    fn recover(&self, node: &Node, pauses: &mut Pauses) {
        while self.rest(pauses.next()) {
            if self.try_recover(node) {
                return;
            }
        }
        self.give_up();
    }

    /// Waits for so long, whatever is handed in. Returns `false` if nothing waits for the store
    /// any more; without a pause there is one more attempt.
    fn rest(&self, pause: Duration) -> bool {
        let mut queue = self.queue.lock();
        let goes_on = |queue: &mut Queue| !queue.is_ending;
        self.bell.wait_while_for(&mut queue, goes_on, pause);
        pause.is_zero() || !queue.is_ending
    }

    /// Drops what cannot be committed before the end. The jobs will run again.
    fn give_up(&self) {
        for request in self.take_requests() {
            request.answer(Err(StoreError::NotWriting));
        }
    }

    /// Returns whether the store accepts changes.
    pub(crate) fn try_recover(&self, node: &Node) -> bool {
        if self.failure().is_none() {
            return true;
        }
        let failure = recover(node).err();
        let works = failure.is_none();
        self.queue.lock().failure = failure;
        works
    }
}

fn commit(node: &Node, changes: &[Change]) -> Result<Vec<Answer>> {
    let call = || guarded(|| node.commit(changes));
    let starts = |change: &Change| matches!(change, Change::Start { .. });
    let result = if changes.iter().any(starts) { node.pace.set_by(call) } else { call() };
    node.observer.committed(changes, &result);
    result
}

/// Has the store accept changes again, and the window loaded: a change that was refused may
/// have happened.
fn recover(node: &Node) -> Result<()> {
    guarded(|| node.recover())?;
    node.ask_for_load();
    Ok(())
}

/// Calls a store, which may panic if it meets what it cannot read.
pub(crate) fn guarded<R>(call: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|thrown| {
        drop_thrown(thrown);
        Err(StoreError::Damaged("the store panicked".to_owned()))
    })
}

#[cfg(test)]
mod tests;
