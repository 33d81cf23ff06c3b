//! Opening a node, its threads, and its end.

use std::fmt;
use std::io;
use std::mem;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use tickwheel::{ClockSource, Engine, RecvError, StartError};

use crate::attempt::Attempt;
use crate::commit::{Commits, guarded};
use crate::handlers::{Handler, Handlers};
use crate::inner::{Inner, Mode, Run};
use crate::jobs::Jobs;
use crate::keeper::Alarm;
use crate::node::{Node, Settings};
use crate::outcome::{Outcome, Retry};
use crate::runner::Runner;
use crate::store::{RedbStore, Store, StoreError};
use crate::threads::Threads;
use crate::virtual_node::VirtualNode;
use crate::wall::{ManualClock, SystemClock, WallClock};
use crate::window::Aimed;

/// The bounds of lengths of time.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3_600);
/// The largest number of jobs that are started ahead, unless it is set.
const AHEAD: usize = 60;
/// The largest number of jobs that are started in one commit.
const MOST_STARTS: usize = 4_096;
/// The pause of the keeper after a panic of the store.
const KEEP_AGAIN: Duration = Duration::from_secs(1);

/// A node: a store, and the threads that run its jobs. Offers the calls of [`Jobs`].
///
/// Dropping it waits for the handlers of all jobs that were started.
///
/// After `fork`, the node belongs to the parent: in the child, calls that change something return
/// [`StoreError::NotWriting`], and dropping the node does nothing.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("jobs.redb");
/// use std::time::Duration;
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
    closing: Arc<AtomicBool>,
    threads: Threads,
    /// Ends the commits with the last thread that has something to commit.
    committing: Option<Arc<Committing>>,
}

/// The last of its clones lets the thread that commits end.
struct Committing(Arc<Inner>);

impl Drop for Committing {
    fn drop(&mut self) {
        self.0.commits.close();
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Durable")
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}

impl Durable {
    /// Opens the jobs in a file, or creates it, to schedule, to read and to cancel them. Runs
    /// none: a node that runs jobs is [built](Durable::builder) with handlers.
    ///
    /// # Errors
    /// See [`RedbStore::open`].
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("jobs.redb");
    /// use std::time::Duration;
    /// use tickwheel_durable::{Durable, Job};
    ///
    /// let jobs = Durable::open(path)?;
    /// let id = jobs.schedule(Job::new("reminder", "call Ada").after(Duration::from_secs(60)))?;
    /// assert_eq!(jobs.get(id)?.map(|job| job.attempts), Some(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Durable, OpenError> {
        Durable::builder().open(RedbStore::open(path)?)
    }

    /// Returns the settings of a node.
    #[must_use]
    pub fn builder() -> Builder {
        Builder {
            handlers: Handlers::default(),
            wall: None,
            owner: format!("node-{:016x}", fastrand::u64(..)),
            workers: 4,
            ahead: None,
            running: 1_024,
            window: Duration::from_secs(60),
            window_jobs: 65_536,
            tick: Duration::from_millis(1),
            lease: Duration::from_secs(10),
        }
    }

    /// Starts the threads. If the system refuses one, the others are ended.
    fn start(runner: Runner, workers: usize) -> Result<Durable, OpenError> {
        let inner = Arc::clone(runner.inner());
        let mut durable = Durable {
            jobs: Jobs { inner },
            closing: Arc::default(),
            threads: Threads::default(),
            committing: None,
        };
        let started = durable.start_threads(runner, workers);
        started.map(|()| durable).map_err(OpenError::Thread)
    }

    /// Starts the keeper last, because no job starts before it.
    fn start_threads(&mut self, runner: Runner, workers: usize) -> Result<(), io::Error> {
        let inner = runner.inner();
        let shared = Arc::clone(inner);
        self.threads.spawn("commit", move || {
            shared.commits.work(&shared.node, || shared.after_commit());
        })?;
        let committing = Arc::new(Committing(Arc::clone(inner)));
        self.committing = Some(Arc::clone(&committing));
        match inner.node.delivers() {
            true => self.start_delivery(Arc::new(runner), workers, &committing),
            false => Ok(()),
        }
    }

    fn start_delivery(
        &self,
        runner: Arc<Runner>,
        workers: usize,
        committing: &Arc<Committing>,
    ) -> Result<(), io::Error> {
        let inner = Arc::clone(runner.inner());
        let (sender, receiver) = unbounded();
        for _ in 0..workers {
            let (runner, receiver) = (Arc::clone(&runner), receiver.clone());
            let committing = Arc::clone(committing);
            let run = move || work(&runner, &receiver, committing);
            self.threads.spawn("run", run)?;
        }
        let shared = Arc::clone(&inner);
        self.threads
            .spawn("start", move || dispatch(&shared, &sender))?;
        listen(&inner);
        let closing = Arc::clone(&self.closing);
        self.threads.spawn("keep", move || keep(&inner, &closing))
    }

    /// Keeps all of it in a forked child: there are no threads to wait for, and the store that
    /// would be closed is the parent's.
    fn leave_to_parent(&mut self) {
        mem::forget(mem::take(&mut self.threads));
        mem::forget(self.committing.take());
        mem::forget(Arc::clone(&self.jobs.inner));
    }
}

impl Deref for Durable {
    type Target = Jobs;

    fn deref(&self) -> &Jobs {
        &self.jobs
    }
}

/// Ends the threads in the order in which they hand over their work. A handler that drops its
/// own node waits for the other ones, and its own thread commits its outcome.
impl Drop for Durable {
    fn drop(&mut self) {
        if self.jobs.inner.is_forked() {
            return self.leave_to_parent();
        }
        let inner = &self.jobs.inner;
        self.closing.store(true, Ordering::SeqCst);
        inner.node.shut_down();
        inner.commits.end();
        if let Mode::Threads(alarm) = &inner.mode {
            alarm.ring();
        }
        // The first thread commits what the others hand in.
        let committing = &mut self.committing;
        self.threads.join(|| *committing = None);
        self.jobs.inner.node.observer().closed();
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

/// Keeps window and lease.
fn keep(inner: &Inner, closing: &AtomicBool) {
    let Mode::Threads(alarm) = &inner.mode else {
        return;
    };
    while !closing.load(Ordering::SeqCst) {
        let until = guarded(|| Ok(inner.node.keep()));
        let now = inner.node.now();
        alarm.sleep(until.unwrap_or(now + KEEP_AGAIN), now);
    }
}

/// Takes expired timers, and has their jobs started and handed to the workers.
fn dispatch(inner: &Inner, workers: &Sender<Run>) {
    let queue = inner.node.engine().queue(0);
    loop {
        let room = inner.wait_for_room().min(MOST_STARTS);
        let mut aimed: Vec<Aimed> = Vec::new();
        match queue.recv_many(&mut aimed, room) {
            Err(RecvError::ShutDown) => return,
            Err(RecvError::Empty) | Ok(_) => {}
        }
        inner.start(aimed, workers);
        inner.after_commit();
    }
}

/// Runs handlers. The last worker that returns lets the commits end.
fn work(runner: &Runner, started: &Receiver<Run>, committing: Arc<Committing>) {
    for run in started {
        runner.run(&run);
    }
    drop(committing);
}

/// The settings of a node. Every setting has a default.
pub struct Builder {
    handlers: Handlers,
    wall: Option<Arc<dyn WallClock>>,
    owner: String,
    workers: usize,
    ahead: Option<usize>,
    running: usize,
    window: Duration,
    window_jobs: usize,
    tick: Duration,
    lease: Duration,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut builder = f.debug_struct("Builder");
        builder
            .field("owner", &self.owner)
            .field("workers", &self.workers);
        builder
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Sets the handler of the jobs of a kind. It returns an [`Outcome`], or something that
    /// converts to one, such as a `Result`.
    ///
    /// A node with handlers runs the jobs of all kinds. A job without a handler fails.
    #[must_use]
    pub fn handler<O: Into<Outcome>>(
        mut self,
        kind: impl Into<String>,
        handler: impl Fn(&Attempt<'_>) -> O + Send + Sync + 'static,
    ) -> Builder {
        let handler = Box::new(move |attempt: &Attempt<'_>| handler(attempt).into());
        self.handlers
            .set_handler(kind.into(), Handler::Plain(handler));
        self
    }

    /// Sets the handler of the jobs of a kind, which works in the transaction of its completion:
    /// its effects in the database and the job's end happen together, exactly once.
    ///
    /// If the outcome is a failure, if the handler panics, or if the outcome is refused because
    /// the lease was lost or the job was moved or cancelled meanwhile, the transaction is rolled
    /// back; the run then counts as failed. The handler leaves beginning and ending the
    /// transaction to the node. Needs a [`PostgresStore`](crate::PostgresStore), and the feature
    /// `postgres`.
    ///
    /// ```no_run
    /// use tickwheel_durable::{Durable, PostgresStore};
    ///
    /// let jobs = Durable::builder()
    ///     .handler_in_transaction("charge", |attempt, transaction| {
    ///         let charge = "UPDATE accounts SET balance = balance - 1 WHERE name = $1";
    ///         let name = String::from_utf8_lossy(attempt.payload());
    ///         transaction.execute(charge, &[&&*name]).map(|_| ())
    ///     })
    ///     .open(PostgresStore::connect("postgres://app@db.example.org/app")?)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "postgres")]
    #[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
    #[must_use]
    pub fn handler_in_transaction<O: Into<Outcome>>(
        mut self,
        kind: impl Into<String>,
        handler: impl Fn(&Attempt<'_>, &mut postgres::Transaction<'_>) -> O + Send + Sync + 'static,
    ) -> Builder {
        let handler = Box::new(
            move |attempt: &Attempt<'_>, transaction: &mut postgres::Transaction<'_>| {
                handler(attempt, transaction).into()
            },
        );
        self.handlers
            .set_handler(kind.into(), Handler::InTransaction(handler));
        self
    }

    /// Sets how often and when failed jobs of a kind are tried again.
    #[must_use]
    pub fn retry(mut self, kind: impl Into<String>, retry: Retry) -> Builder {
        self.handlers.set_retry(kind.into(), retry);
        self
    }

    /// Sets the number of threads that run handlers, at least one. Defaults to 4.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Builder {
        self.workers = workers.max(1);
        self
    }

    /// Sets how many jobs may be started beyond those that the workers run. Defaults to 60, or
    /// to zero if [a kind](Builder::retry) has a single attempt.
    ///
    /// They share a commit, so a backlog of short jobs drains faster. Ahead of jobs that take
    /// longer than a commit, none is started. If the process dies, an attempt of each is
    /// counted, although its handler did not run. It is the only one that they lose: beside a
    /// job whose last run did not end, none is started ahead. Nor is any on virtual time.
    #[must_use]
    pub fn ahead(mut self, jobs: usize) -> Builder {
        self.ahead = Some(jobs);
        self
    }

    /// Sets the largest number of jobs that are started and not yet completed, at least one.
    /// A job whose handler has returned counts until its outcome is durable. Their bytes are in
    /// memory. Defaults to 1,024.
    #[must_use]
    pub fn running(mut self, most: usize) -> Builder {
        self.running = most.max(1);
        self
    }

    /// Sets how far the window reaches, from 10 ms to a year. The store is read every half of it.
    /// Defaults to a minute.
    #[must_use]
    pub fn window(mut self, length: Duration) -> Builder {
        self.window = length.clamp(SHORTEST, LONGEST);
        self
    }

    /// Sets the largest number of jobs in the window, at least one. Each takes about 200
    /// bytes. Defaults to 65,536.
    #[must_use]
    pub fn window_jobs(mut self, most: usize) -> Builder {
        self.window_jobs = most.max(1);
        self
    }

    /// Sets the tick to which due times are rounded up. Defaults to a millisecond.
    #[must_use]
    pub fn tick(mut self, tick: Duration) -> Builder {
        self.tick = tick;
        self
    }

    /// Sets the length of the lease, from 10 ms to a year, if the store's leases end. Another
    /// node takes over after this time and a tenth of it at the latest. Defaults to 10 seconds.
    ///
    /// It is renewed when a third of it is left. Leases of less than 10 seconds are renewed sooner,
    /// so that the store has up to 3.3 seconds for the answer.
    #[must_use]
    pub fn lease(mut self, length: Duration) -> Builder {
        self.lease = length.clamp(SHORTEST, LONGEST);
        self
    }

    /// Sets the name under which the node takes its lease. Nodes that work at the same time
    /// need different ones. A node that comes back under its name takes its lease at once.
    /// Defaults to a random name.
    #[must_use]
    pub fn owner(mut self, name: impl Into<String>) -> Builder {
        self.owner = name.into();
        self
    }

    /// Sets the wall clock. Defaults to the system's. After a step of a clock of your own, call
    /// [`clock_stepped`](Jobs::clock_stepped).
    #[must_use]
    pub fn wall_clock(mut self, clock: impl WallClock) -> Builder {
        self.wall = Some(Arc::new(clock));
        self
    }

    /// Starts a node on a store.
    ///
    /// # Errors
    /// Returns the reason why the store did not answer, or the engine or a thread did not start.
    /// Nothing of the node is left then.
    pub fn open(self, store: impl Store) -> Result<Durable, OpenError> {
        let engine = Engine::builder()
            .tick(self.tick)
            .shards(1)
            .clock(clock_source())
            .start()?;
        let alarm = Alarm::new(self.wall.is_none());
        let workers = self.workers;
        let runner = self.runner(store, engine, Mode::Threads(alarm))?;
        Durable::start(runner, workers)
    }

    /// Starts a node on virtual time: nothing happens except within
    /// [`VirtualNode::run_until`], which moves `clock`. The same calls give the same run.
    ///
    /// # Errors
    /// Returns the reason why the store did not answer, or the engine did not start.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel_durable::store::List;
    /// use tickwheel_durable::{Durable, Job, ManualClock, MemoryStore, WallClock, WallTime};
    ///
    /// let clock = ManualClock::new(WallTime::from_unix_micros(1_800_000_000_000_000));
    /// let (jobs, node) = Durable::builder()
    ///     .handler("reminder", |_| ())
    ///     .open_virtual(MemoryStore::with_clock(clock.clone()), clock.clone())?;
    /// let week = Duration::from_secs(7 * 24 * 3_600);
    /// jobs.schedule(Job::new("reminder", "call Ada").after(week))?;
    /// node.run_until(clock.now() + week);
    /// assert_eq!(jobs.count(List::Live)?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_virtual(
        mut self,
        store: impl Store,
        clock: ManualClock,
    ) -> Result<(Durable, VirtualNode), OpenError> {
        self.wall = Some(Arc::new(clock.clone()));
        let (engine, engine_clock) = Engine::builder()
            .tick(self.tick)
            .shards(1)
            .start_virtual()?;
        let runner = self.runner(store, engine, Mode::Virtual(Mutex::default()))?;
        let inner = Arc::clone(runner.inner());
        let jobs = Jobs { inner };
        let node = VirtualNode::new(runner, clock, engine_clock);
        let durable = Durable {
            jobs,
            closing: Arc::default(),
            threads: Threads::default(),
            committing: None,
        };
        Ok((durable, node))
    }

    fn runner(
        self,
        store: impl Store,
        engine: Engine<Aimed>,
        mode: Mode,
    ) -> Result<Runner, OpenError> {
        let settings = Settings {
            owner: self.owner,
            window: self.window,
            window_jobs: self.window_jobs,
            running: self.running,
            workers: self.workers,
            // Virtual time knows no length of a run or a commit.
            ahead: match (&mode, self.ahead) {
                (Mode::Virtual(_), _) => 0,
                (_, Some(ahead)) => ahead,
                (_, None) if self.handlers.has_single_attempts() => 0,
                (_, None) => AHEAD,
            },
            lease: self.lease,
            delivers: !self.handlers.is_empty(),
        };
        #[cfg(feature = "postgres")]
        if self.handlers.need_transactions() && store.transactions().is_none() {
            let message = "a handler in a transaction needs a PostgresStore".to_owned();
            return Err(StoreError::Refused(message).into());
        }
        let seed = match mode {
            Mode::Threads(_) => fastrand::u64(..),
            Mode::Virtual(_) => 0,
        };
        let wall = self.wall.unwrap_or_else(|| Arc::new(SystemClock));
        let node = Node::new(Box::new(store), wall, engine, settings);
        node.observer().opened(node.delivers());
        let commits = match mode {
            Mode::Threads(_) => Commits::new(node.linger()),
            Mode::Virtual(_) => Commits::default(),
        };
        let inner = Inner {
            node,
            commits,
            mode,
            process: std::process::id(),
        };
        Ok(Runner::new(Arc::new(inner), self.handlers, seed))
    }
}

/// A clock that counts suspends, where there is one.
fn clock_source() -> ClockSource {
    match cfg!(any(target_os = "linux", target_os = "android")) {
        true => ClockSource::BootTime,
        false => ClockSource::Monotonic,
    }
}

/// The reason why a node was not opened.
#[derive(Debug)]
pub enum OpenError {
    /// The store did not answer.
    Store(StoreError),
    /// The engine did not start.
    Engine(StartError),
    /// The system started no thread for the node, which has `workers` and three more.
    Thread(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Store(error) => error.fmt(f),
            OpenError::Engine(error) => error.fmt(f),
            OpenError::Thread(error) => write!(
                f,
                "the system starts no thread: {error}; set fewer `workers`, or raise its limit of threads"
            ),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Store(error) => Some(error),
            OpenError::Engine(error) => Some(error),
            OpenError::Thread(error) => Some(error),
        }
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> OpenError {
        OpenError::Store(error)
    }
}

impl From<StartError> for OpenError {
    fn from(error: StartError) -> OpenError {
        OpenError::Engine(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::store::{List, MemoryStore};
    use crate::threads::refusal;

    const WORKERS: usize = 3;
    /// Those that commit, start jobs and keep the window.
    const OTHERS: usize = 3;

    /// A node whose handler has `held`, on a system that starts so many threads.
    fn open(threads: usize, held: &Arc<()>) -> Result<Durable, OpenError> {
        let held = Arc::clone(held);
        let handler = move |_: &Attempt<'_>| drop(Arc::clone(&held));
        let builder = Durable::builder().workers(WORKERS).handler("job", handler);
        refusal::after(threads, || builder.open(MemoryStore::new()))
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

    /// The child has a copy of everything but the threads, which would answer and end.
    #[test]
    fn durable_12_a_forked_child_leaves_the_node_to_its_parent() {
        let (store, clock) = (MemoryStore::new(), ManualClock::default());
        let opened = Durable::builder().open_virtual(store.clone(), clock);
        let mut jobs = opened.unwrap().0;
        let (leave, left) = std::sync::mpsc::channel::<()>();
        let wait = move || _ = left.recv();
        jobs.threads.spawn("commit", wait).unwrap();
        Arc::get_mut(&mut jobs.jobs.inner).unwrap().process += 1;
        let refused = jobs.schedule(Job::new("job", "bytes")).unwrap_err();
        assert_eq!(refused.job.into_payload(), b"bytes");
        assert_eq!(store.count(List::Live).unwrap(), 0);
        // Does not wait for the thread.
        drop(jobs);
        drop(leave);
    }
}
