//! What the threads of a node share.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use parking_lot::Mutex;

use crate::commit::{Commits, Reply};
use crate::job::StoredJob;
use crate::keeper::Alarm;
use crate::node::Node;
use crate::store::{Answer, Change};
use crate::wall::WallTime;
use crate::window::Aimed;

/// The pause before the next dead letters are removed.
const BURY_AGAIN: Duration = Duration::from_secs(1);

pub(crate) struct Inner {
    pub(crate) node: Node,
    pub(crate) commits: Commits,
    pub(crate) mode: Mode,
}

/// Who commits, and who keeps the window.
pub(crate) enum Mode {
    /// Threads of their own.
    Threads(Alarm),
    /// The caller, on virtual time. Holds the lock of the one commit at a time.
    Virtual(Mutex<()>),
}

/// A job that may run, and the lease under which it was started.
pub(crate) struct Run {
    pub(crate) job: StoredJob,
    pub(crate) fence: u64,
    /// The number that the handler sees.
    pub(crate) token: u64,
}

impl Run {
    fn of(answer: Answer, fence: u64) -> Option<Run> {
        match answer {
            Answer::Started { job, token } => Some(Run { job: *job, fence, token }),
            _ => None,
        }
    }
}

impl Inner {
    /// Hands in changes, and returns where their answers come.
    pub(crate) fn request(&self, changes: Vec<Change>) -> Receiver<Reply> {
        let reply = self.commits.request(changes);
        self.commit_here();
        reply
    }

    /// Commits what was handed in, on virtual time.
    pub(crate) fn commit_here(&self) {
        if let Mode::Virtual(lock) = &self.mode {
            let _one = lock.lock();
            while self.commits.failure().is_none() && self.commits.commit_all(&self.node) {}
        }
    }

    /// Keeps lease and window, and removes old dead letters. Returns the time at which it wants to be
    /// called again.
    pub(crate) fn keep(&self) -> WallTime {
        let next = self.node.keep();
        let burials = self.node.burials();
        if burials.is_empty() {
            return next;
        }
        self.commits.post(burials);
        self.commit_here();
        next.min(self.node.now() + BURY_AGAIN)
    }

    /// Has the window loaded, if half of it is used up.
    pub(crate) fn after_commit(&self) {
        if self.node.take_load_due() {
            self.call_keeper();
        }
    }

    pub(crate) fn call_keeper(&self) {
        match &self.mode {
            Mode::Threads(alarm) => alarm.ring(),
            Mode::Virtual(_) => {
                self.node.keep();
            }
        }
    }

    /// Lets the threads that commit and keep the lease end.
    pub(crate) fn close(&self) {
        self.commits.close();
        self.call_keeper();
    }

    /// Hands in the starts of jobs whose timers have expired. After the commit, has those run that may.
    pub(crate) fn start(&self, lane: usize, aimed: Vec<Aimed>, run: impl Fn(Run) + Send + 'static) {
        let Some((fence, due)) = self.node.fire(lane, aimed) else {
            return;
        };
        let start = |Aimed { id, version }| Change::Start { id, version, fence };
        let starts = due.into_iter().map(start).collect();
        self.commits.start(starts, move |(answers, _)| {
            let answers = answers.unwrap_or_default().into_iter();
            let runs = answers.filter_map(|answer| Run::of(answer, fence));
            runs.for_each(&run);
            None
        });
        self.commit_here();
    }

    /// Waits until a job of a lane may be started, or the node is shut down. Returns how many may.
    pub(crate) fn wait_for_room(&self, lane: usize) -> usize {
        match self.node.room(lane) {
            0 => self.commits.hurried(|| self.node.wait_for_room(lane)),
            room => room,
        }
    }
}
