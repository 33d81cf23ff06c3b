//! The threads of a node, and its end.

use std::io;
use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, unbounded};
use tickwheel::RecvError;

use crate::commit::guarded;
use crate::inner::{Inner, Mode, Run};
use crate::jobs::Jobs;
#[cfg(feature = "tokio")]
use crate::runner::NODE;
use crate::runner::Runner;
use crate::threads::Threads;
use crate::window::Aimed;

/// The largest number of jobs that are started in one commit.
const MOST_STARTS: usize = 4_096;
/// The pause of the keeper after a panic of the store.
const KEEP_AGAIN: Duration = Duration::from_secs(1);

/// A node: a store, and the threads that run its jobs. Offers the calls of [`Jobs`].
///
/// Dropping it waits for the handlers of all jobs that were started, for
/// [a limited time](crate::Builder::ends_within), and gives back its lease. A handler that drops its own
/// node waits for those that workers run, and not for asynchronous ones. A file is then closed; that
/// of a node without handlers, when the last [`Jobs`] is dropped.
///
/// The child of a fork has none of its threads: open nodes after forking. Don't use a parent's node
/// in the child, and don't drop it there.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("jobs.redb");
/// use std::time::{Duration, Instant};
/// use tickwheel_durable::{Durable, Job, RedbStore};
///
/// let (sender, receiver) = std::sync::mpsc::channel();
/// let jobs = Durable::builder()
///     .handler("reminder", move |attempt| {
///         println!("{}", String::from_utf8_lossy(attempt.payload()));
///         sender.send(attempt.number())
///     })
///     .open(RedbStore::open(path)?)?;
/// jobs.schedule(Job::new("reminder", "call Ada").after(Duration::from_millis(20)))?;
/// assert_eq!(receiver.recv()?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Durable {
    jobs: Jobs,
    threads: Arc<Threads>,
    /// Those that commit and keep the lease for the others.
    keepers: Threads,
    ends_within: Duration,
    /// Ends the commits with the last thread that has something to commit.
    committing: Option<Arc<Committing>>,
}

/// The last of its clones lets the thread that commits end.
struct Committing(Arc<Inner>);

impl Drop for Committing {
    fn drop(&mut self) {
        self.0.close();
    }
}

debug!(Durable, this, jobs: this.jobs);

impl Durable {
    /// Ends the node, like its drop, and lets the calling thread do other work meanwhile: that of
    /// asynchronous handlers, if the runtime has no other thread.
    #[cfg(feature = "tokio")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
    pub async fn close(self) {
        // A handler of the node doesn't wait for itself.
        let own = NODE.try_with(|own| *own).unwrap_or_default();
        let end = move || NODE.sync_scope(own, || drop(self));
        // If the runtime is ending, too, nobody waits.
        let _ = tokio::task::spawn_blocking(end).await;
    }

    /// Returns a node that has no threads yet.
    pub(crate) fn new(runner: &Runner, ends_within: Duration) -> Durable {
        Durable {
            jobs: runner.jobs.clone(),
            threads: Arc::default(),
            keepers: Threads::default(),
            ends_within,
            committing: None,
        }
    }

    /// Starts the threads; the keeper last, because no job starts before it. If the system refuses
    /// one, the drop of the node ends the others.
    pub(crate) fn start(&mut self, runner: &Arc<Runner>, workers: usize) -> io::Result<()> {
        let inner = runner.inner();
        let shared = Arc::clone(runner);
        self.keepers.spawn("commit", move || {
            let inner = shared.inner();
            inner.commits.work(&inner.node, || inner.after_commit());
        })?;
        let committing = Arc::new(Committing(Arc::clone(inner)));
        self.committing = Some(Arc::clone(&committing));
        if inner.node.delivers() {
            self.start_delivery(runner, workers, committing)
        } else {
            Ok(())
        }
    }

    fn start_delivery(
        &self,
        runner: &Arc<Runner>,
        workers: usize,
        committing: Arc<Committing>,
    ) -> io::Result<()> {
        let inner = Arc::clone(runner.inner());
        let (sender, receiver) = unbounded();
        let pool = Pool {
            runner: Arc::clone(runner),
            receiver,
            committing,
            threads: Arc::downgrade(&self.threads),
        };
        for _ in 0..workers {
            pool.add()?;
        }
        for lane in 0..inner.node.lanes() {
            let (shared, pool) = (Arc::clone(&inner), pool.clone());
            let sender = Some(sender.clone()).filter(|_| inner.node.needs_workers(lane));
            let run = move |run| match &sender {
                Some(sender) => drop(sender.send(run)),
                // An asynchronous one, which leaves the thread at once.
                None => drop(pool.runner.run(run, Arc::clone(&pool.committing))),
            };
            self.threads.spawn("start", move || dispatch(&shared, lane, &run))?;
        }
        drop(sender);
        let shared = Arc::clone(&inner);
        self.threads.spawn("late", move || shared.node.watch(|| pool.add().is_ok()))?;
        listen(&inner);
        self.keepers.spawn("keep", move || keep(&inner))
    }
}

/// The workers.
#[derive(Clone)]
struct Pool {
    runner: Arc<Runner>,
    receiver: Receiver<Run>,
    committing: Arc<Committing>,
    threads: Weak<Threads>,
}

impl Pool {
    /// Starts one more.
    fn add(&self) -> io::Result<()> {
        let (runner, receiver) = (Arc::clone(&self.runner), self.receiver.clone());
        let committing = Arc::clone(&self.committing);
        let Some(threads) = self.threads.upgrade() else {
            return Ok(());
        };
        threads.spawn("run", move || work(&runner, &receiver, committing))
    }
}

impl Deref for Durable {
    type Target = Jobs;

    fn deref(&self) -> &Jobs {
        &self.jobs
    }
}

/// Ends the threads in the order in which they hand over their work. A handler that drops its
/// own node waits for the workers, and its outcome is committed afterwards: under the lease, which
/// therefore ends by itself.
impl Drop for Durable {
    fn drop(&mut self) {
        let inner = &self.jobs.inner;
        inner.node.shut_down();
        inner.commits.end();
        let end = Instant::now() + self.ends_within;
        inner.node.leave();
        let is_own = self.threads.has_current();
        #[cfg(feature = "tokio")]
        let is_own = is_own || NODE.try_with(|own| *own == Arc::as_ptr(inner).addr()) == Ok(true);
        let have_ended = self.threads.join(end);
        self.committing = None;
        if !have_ended || !is_own && !self.keepers.join(end) {
            inner.close();
        }
        if !is_own {
            inner.node.give_back();
        }
        inner.node.observer.closed();
    }
}

/// Has the store tell the node of others. The store is part of the node, so it does not hold it.
fn listen(inner: &Arc<Inner>) {
    let node = Arc::downgrade(inner);
    let hear = move |news| {
        if let Some(inner) = node.upgrade() {
            inner.node.hear(news);
            inner.after_commit();
        }
    };
    inner.node.listen(Box::new(hear));
}

/// Keeps window and lease; the lease until the last outcome was handed in, because another node
/// would start the jobs of runs that go on.
fn keep(inner: &Inner) {
    let Mode::Threads(alarm) = &inner.mode else {
        return;
    };
    while !inner.commits.is_closed() {
        let until = guarded(|| Ok(inner.keep())).unwrap_or_else(|error| {
            inner.node.note_unread(error);
            inner.node.now() + KEEP_AGAIN
        });
        alarm.sleep(until, inner.node.now());
    }
}

/// Takes expired timers of a lane, and has their jobs started and handed to the workers.
fn dispatch(inner: &Inner, lane: usize, run: &(impl Fn(Run) + Clone + Send + 'static)) {
    let queue = inner.node.engine.queue(lane);
    loop {
        let room = inner.wait_for_room(lane).min(MOST_STARTS);
        let mut aimed: Vec<Aimed> = Vec::new();
        match queue.recv_many(&mut aimed, room) {
            Err(RecvError::ShutDown) => return,
            Err(RecvError::Empty) | Ok(_) => {}
        }
        inner.start(lane, aimed, run.clone());
        inner.after_commit();
    }
}

/// Runs handlers. The last run that ends after the last worker lets the commits end.
fn work(runner: &Arc<Runner>, started: &Receiver<Run>, committing: Arc<Committing>) {
    for run in started {
        if runner.run(run, Arc::clone(&committing)) {
            break;
        }
    }
    drop(committing);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attempt::Attempt;
    use crate::builder::OpenError;
    use crate::outcome::Retry;
    use crate::store::RedbStore;
    use crate::threads::refusal;

    const WORKERS: usize = 3;
    /// Those that commit, start jobs, replace late workers and keep the window.
    const OTHERS: usize = 4;

    /// A node whose handler has `held`, on a system that starts so many threads.
    fn open(threads: usize, held: &Arc<()>) -> Result<Durable, OpenError> {
        let held = Arc::clone(held);
        let handler = move |_: &Attempt| drop(Arc::clone(&held));
        let builder = Durable::builder().workers(WORKERS).handler("job", handler);
        refusal::after(threads, || builder.open(RedbStore::in_memory()))
    }

    #[test]
    fn a_node_without_a_thread_is_an_error_and_leaves_nothing() {
        for threads in 0..WORKERS + OTHERS {
            let held = Arc::new(());
            let error = open(threads, &held).unwrap_err();
            assert!(matches!(&error, OpenError::Thread(_)), "{error:?}");
            // Every thread has a part of the node, and one of these is the handler.
            assert_eq!(Arc::strong_count(&held), 1, "after {threads} threads");
        }
        assert!(open(WORKERS + OTHERS, &Arc::new(())).is_ok());
    }

    /// The end of the process would cost a job its only attempt, although it did not run.
    #[test]
    fn durable_07_nothing_is_started_ahead_if_a_kind_has_a_single_attempt() {
        for (attempts, ahead) in [(1, 0), (2, 2)] {
            let builder = Durable::builder().handler("job", |_| ());
            let builder = builder.retry("job", Retry::attempts(attempts));
            let jobs = builder.open(RedbStore::in_memory()).unwrap();
            let pace = &jobs.inner.node.pace;
            pace.note_run(Duration::ZERO);
            pace.set_by(|| ());
            assert_eq!(pace.ahead(), ahead);
        }
    }
}
