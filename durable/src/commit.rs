//! Group commit: one commit for all callers that wait.
//!
//! While a commit is on its way to the disk, requests gather; the next commit takes all of
//! them. If a commit fails, it is unknown whether it happened. Callers then get their changes
//! back. Starts and outcomes are kept instead, because repeating them is harmless, and are the
//! first to be committed once the store has recovered.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::node::Node;
use crate::store::{Answer, Change, StoreError};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The changes of a failed request, and the reason.
pub(crate) type Failed = (StoreError, Vec<Change>);
type Reply = Result<Vec<Answer>, Failed>;

struct Request {
    changes: Vec<Change>,
    reply: Option<SyncSender<Reply>>,
}

impl Request {
    /// Returns whether the request outlives a failed commit.
    fn is_kept(&self) -> bool {
        self.changes.iter().all(|change| change.fence().is_some())
    }

    fn answer(self, reply: Reply) {
        if let Some(sender) = self.reply {
            let _ = sender.send(reply);
        }
    }

    fn refuse(mut self, error: StoreError) {
        let changes = std::mem::take(&mut self.changes);
        self.answer(Err((error, changes)));
    }
}

#[derive(Default)]
pub(crate) struct Commits {
    queue: Mutex<Queue>,
    bell: Condvar,
}

#[derive(Default)]
struct Queue {
    requests: Vec<Request>,
    /// Set while the store does not write.
    failure: Option<StoreError>,
    /// Set when nothing waits any more for the store to write again.
    is_ending: bool,
    is_closed: bool,
}

impl Commits {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|error| error.into_inner())
    }

    /// Hands in changes, and returns where their answers will come.
    pub(crate) fn request(&self, changes: Vec<Change>) -> Receiver<Reply> {
        let (sender, receiver) = sync_channel(1);
        let request = Request {
            changes,
            reply: Some(sender),
        };
        self.push(request);
        receiver
    }

    /// Hands in outcomes that nobody waits for.
    pub(crate) fn post(&self, changes: Vec<Change>) {
        let reply = None;
        self.push(Request { changes, reply });
    }

    fn push(&self, request: Request) {
        let mut queue = self.queue();
        match &queue.failure {
            Some(error) if !request.is_kept() => {
                let error = error.clone();
                drop(queue);
                request.refuse(error);
            }
            _ => {
                queue.requests.push(request);
                drop(queue);
                self.bell.notify_one();
            }
        }
    }

    /// Returns why the store does not write, if it does not.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.queue().failure.clone()
    }

    /// Gives up what cannot be committed, from now on.
    pub(crate) fn end(&self) {
        self.queue().is_ending = true;
        self.bell.notify_all();
    }

    /// Lets [`work`](Commits::work) return once nothing is left to commit.
    pub(crate) fn close(&self) {
        self.queue().is_closed = true;
        self.bell.notify_all();
    }

    /// Commits until [`close`](Commits::close), and calls `after` after each commit.
    pub(crate) fn work(&self, node: &Node, mut after: impl FnMut()) {
        while self.wait() {
            self.commit_all(node);
            after();
            self.recover(node);
        }
    }

    /// Waits for requests. Returns `false` if there will be none.
    fn wait(&self) -> bool {
        let mut queue = self.queue();
        while queue.requests.is_empty() && !queue.is_closed {
            queue = self
                .bell
                .wait(queue)
                .unwrap_or_else(|error| error.into_inner());
        }
        !queue.requests.is_empty()
    }

    /// Commits what has been handed in, in one commit.
    pub(crate) fn commit_all(&self, node: &Node) {
        let mut requests = std::mem::take(&mut self.queue().requests);
        let lengths: Vec<usize> = requests.iter().map(|one| one.changes.len()).collect();
        let taken = requests.iter_mut().flat_map(|one| one.changes.drain(..));
        let changes: Vec<Change> = taken.collect();
        match node.commit(&changes) {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                for (request, length) in requests.into_iter().zip(lengths) {
                    request.answer(Ok(answers.by_ref().take(length).collect()));
                }
            }
            Err(error) => {
                let mut changes = changes.into_iter();
                for (request, length) in requests.iter_mut().zip(lengths) {
                    request.changes.extend(changes.by_ref().take(length));
                }
                self.fail(requests, error);
            }
        }
    }

    fn fail(&self, requests: Vec<Request>, error: StoreError) {
        let (mut kept, refused): (Vec<_>, Vec<_>) =
            requests.into_iter().partition(Request::is_kept);
        let mut queue = self.queue();
        kept.append(&mut queue.requests);
        queue.requests = kept;
        queue.failure = Some(error.clone());
        drop(queue);
        for request in refused {
            request.refuse(error.clone());
        }
    }

    /// Waits until the store writes again, if it does not.
    fn recover(&self, node: &Node) {
        let mut pause = FIRST_PAUSE;
        while !self.try_recover(node) {
            let queue = self.queue();
            if queue.is_ending {
                self.give_up(queue);
                return;
            }
            drop(self.bell.wait_timeout(queue, pause));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Drops what cannot be committed before the end. The jobs will run again.
    fn give_up(&self, mut queue: MutexGuard<'_, Queue>) {
        let requests = std::mem::take(&mut queue.requests);
        drop(queue);
        for request in requests {
            request.refuse(StoreError::NotWriting);
        }
    }

    /// Returns whether the store writes.
    pub(crate) fn try_recover(&self, node: &Node) -> bool {
        if self.failure().is_none() {
            return true;
        }
        match node.store().recover() {
            Ok(()) => {
                self.queue().failure = None;
                true
            }
            Err(error) => {
                self.queue().failure = Some(error);
                false
            }
        }
    }
}
