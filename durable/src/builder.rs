//! Opening a node with its settings.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tickwheel::{ClockSource, Engine, StartError};

use crate::attempt::Attempt;
use crate::commit::Commits;
use crate::durable::Durable;
#[cfg(feature = "postgres")]
use crate::handlers::InTransaction;
use crate::handlers::{Handler, Handlers};
use crate::inner::{Inner, Mode};
use crate::keeper::Alarm;
use crate::node::{Node, Settings};
use crate::outcome::{Outcome, Retry};
use crate::runner::Runner;
#[cfg(feature = "postgres")]
use crate::store::Transaction;
use crate::store::{RedbStore, Store, StoreError};
use crate::virtual_node::VirtualNode;
use crate::wall::{ManualClock, SystemClock, WallClock};
use crate::window::Aimed;

/// The bounds of lengths of time.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3_600);
/// The largest number of jobs that are started ahead, unless it is set.
const AHEAD: usize = 60;

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
            ahead: None,
            tick: Duration::from_millis(1),
            ends_within: Duration::from_secs(30),
            settings: Settings::default(),
        }
    }
}

/// The settings of a node. Every setting has a default.
pub struct Builder {
    handlers: Handlers,
    wall: Option<Arc<dyn WallClock>>,
    ahead: Option<usize>,
    tick: Duration,
    ends_within: Duration,
    settings: Settings,
}

debug!(Builder, this, owner: this.settings.owner, workers: this.settings.workers);

impl Builder {
    /// Sets the handler of the jobs of a kind. It returns an [`Outcome`], or something that
    /// converts to one, such as a `Result`.
    ///
    /// A node runs jobs of the kinds that it has handlers for. Others wait for a node that has
    /// theirs; [`Jobs::unhandled`](crate::Jobs::unhandled) lists kinds that none has.
    #[must_use]
    pub fn handler<O: Into<Outcome>>(
        mut self,
        kind: impl Into<String>,
        handler: impl Fn(&Attempt) -> O + Send + Sync + 'static,
    ) -> Builder {
        let handler = Box::new(move |attempt: &Attempt| handler(attempt).into());
        self.handlers.of(kind).handler = Some(Handler::Plain(handler));
        self
    }

    /// Sets the handler of the jobs of a kind, which works in the transaction of its completion:
    /// its effects in the database and the job's end happen together, exactly once.
    ///
    /// If the outcome is a failure, if the handler panics or takes longer than its [time
    /// limit](Builder::time_limit), or if the outcome is refused because the lease was lost or the
    /// job was moved or cancelled meanwhile, the transaction is rolled back; the run then counts as
    /// failed. The handler leaves beginning and ending the transaction to the node. Jobs that it
    /// [schedules](Transaction::schedule) in the transaction are stored with its end.
    ///
    /// Such a handler occupies a [worker](Builder::workers) and a connection. Settings, locks and temporary
    /// tables of the session end with the run; a statement that it has prepared by SQL stays. Needs a
    /// [`PostgresStore`](crate::PostgresStore), and the feature `postgres`.
    ///
    /// ```no_run
    /// use tickwheel_durable::{Durable, PostgresStore};
    ///
    /// let jobs = Durable::builder()
    ///     .handler_in_transaction("charge", async |attempt, transaction| {
    ///         let charge = "UPDATE accounts SET balance = balance - 1 WHERE name = $1";
    ///         let name = String::from_utf8_lossy(attempt.payload());
    ///         transaction.execute(charge, &[&&*name]).await.map(|_| ())
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
        handler: impl AsyncFn(&Attempt, &mut Transaction<'_>) -> O + Send + Sync + 'static,
    ) -> Builder {
        let handler = Arc::new(handler);
        let handler: Box<InTransaction> = Box::new(move |attempt, transaction| {
            let handler = Arc::clone(&handler);
            Box::pin(async move { handler(attempt, transaction).await.into() })
        });
        self.handlers.of(kind).handler = Some(Handler::InTransaction(handler));
        self
    }

    /// Sets the asynchronous handler of the jobs of a kind. It runs on the runtime of tokio that the
    /// calling thread is in, and occupies no [worker](Builder::workers), so that as many run at once
    /// as [`running`](Builder::running) says. Beyond its [time limit](Builder::time_limit), it is
    /// dropped at its next wait, and the attempt fails. Needs the feature `tokio`.
    ///
    /// The calls of [`Jobs`](crate::Jobs) block for about as long as a commit takes. The end of a node
    /// blocks until its handlers have ended, so the runtime needs another thread for these.
    ///
    /// # Panics
    /// Outside of a runtime.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel_durable::{Durable, Job, RedbStore};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    /// let jobs = Durable::builder()
    ///     .async_handler("mail", move |attempt| {
    ///         let sender = sender.clone();
    ///         async move {
    ///             tokio::time::sleep(Duration::from_millis(1)).await;
    ///             sender.send(attempt.id())
    ///         }
    ///     })
    ///     .open(RedbStore::in_memory())?;
    /// let id = jobs.schedule(Job::new("mail", "ada@example.org"))?;
    /// assert_eq!(receiver.recv().await, Some(id));
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tokio")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
    #[must_use]
    pub fn async_handler<F>(
        mut self,
        kind: impl Into<String>,
        handler: impl Fn(Attempt) -> F + Send + Sync + 'static,
    ) -> Builder
    where
        F: Future<Output: Into<Outcome>> + Send + 'static,
    {
        let handler = move |attempt| -> crate::handlers::Handling {
            let handling = handler(attempt);
            Box::pin(async move { handling.await.into() })
        };
        let runtime = tokio::runtime::Handle::current();
        let handler = Handler::Async(runtime, Arc::new(handler));
        self.handlers.of(kind).handler = Some(handler);
        self
    }

    /// Sets how long a run of a kind may take. Defaults to ten minutes.
    ///
    /// A handler that takes longer cannot be stopped unless it is asynchronous and waits. It goes on,
    /// and no other run of its job begins; but it occupies no worker any more, because another thread
    /// takes its place, and the node says that it is [stuck](crate::Health::Stuck).
    #[must_use]
    pub fn time_limit(mut self, kind: impl Into<String>, limit: Duration) -> Builder {
        self.handlers.of(kind).time_limit = Some(limit.min(LONGEST));
        self
    }

    /// Sets for how long the end of a node waits for its handlers. Until then it keeps its lease: on a file,
    /// the other jobs wait for that; on a database, only those of the shards whose jobs still run. After that
    /// it gives back its lease, and what still runs has no outcome: its jobs run again, here or elsewhere.
    /// Defaults to 30 seconds.
    #[must_use]
    pub fn ends_within(mut self, limit: Duration) -> Builder {
        self.ends_within = limit.min(LONGEST);
        self
    }

    /// Sets for how long dead letters are kept, also those of kinds that only other nodes handle.
    /// Older ones are removed by and by. Defaults to keeping them until they are
    /// [buried](crate::Jobs::bury) or [revived](crate::Jobs::revive), or another node removes them.
    #[must_use]
    pub fn keeps_dead(mut self, length: Duration) -> Builder {
        self.settings.keeps_dead = Some(length);
        self
    }

    /// Sets how often and when failed jobs of a kind are tried again.
    #[must_use]
    pub fn retry(mut self, kind: impl Into<String>, retry: Retry) -> Builder {
        self.handlers.of(kind).retry = retry;
        self
    }

    /// Sets how many jobs of a kind may run at a time on this node, at least one. A job counts until
    /// its outcome is durable. Defaults to what [`workers`](Builder::workers) and
    /// [`running`](Builder::running) allow.
    ///
    /// The jobs of such a kind have a window of their own, so that others don't wait behind them.
    #[must_use]
    pub fn limit(mut self, kind: impl Into<String>, most: usize) -> Builder {
        self.handlers.of(kind).here = Some(most.max(1));
        self
    }

    /// Sets how many jobs of a kind may run at a time on all nodes together, at least one. Of nodes
    /// that say different numbers, or none, the last one that took a lease decides.
    ///
    /// A job for which there is no room is tried again ten times a second.
    #[must_use]
    pub fn limit_on_all_nodes(mut self, kind: impl Into<String>, most: usize) -> Builder {
        self.handlers.of(kind).everywhere = Some(most.max(1));
        self
    }

    /// Sets the number of threads that run handlers, at least one. Defaults to 4.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Builder {
        self.settings.workers = workers.max(1);
        self
    }

    /// Sets how many jobs may be started beyond those that the workers run. Defaults to 60, or
    /// to zero if [a kind](Builder::retry) has a single attempt.
    ///
    /// They share a commit, so a backlog of short jobs drains faster. Ahead of jobs that take
    /// longer than a commit, none is started. If the process dies, an attempt of each is
    /// counted, although its handler did not run. It is the only one that they lose: beside a
    /// job whose last run did not end, none is started ahead. Nor is any on virtual time. One that was
    /// started counts as running: [`pause`](crate::Jobs::pause) and [`cancel`](crate::Jobs::cancel)
    /// come too late for it.
    #[must_use]
    pub fn ahead(mut self, jobs: usize) -> Builder {
        self.ahead = Some(jobs);
        self
    }

    /// Sets the largest number of jobs that are started and not yet completed, at least one: of those
    /// with asynchronous handlers, of the others, and of each kind with a [limit](Builder::limit).
    /// A job whose handler has returned counts until its outcome is durable. Their bytes are in
    /// memory. Defaults to 1,024.
    #[must_use]
    pub fn running(mut self, most: usize) -> Builder {
        self.settings.running = most.max(1);
        self
    }

    /// Sets how far the window reaches, from 10 ms to a year. The store is read every half of it.
    /// Defaults to a minute.
    #[must_use]
    pub fn window(mut self, length: Duration) -> Builder {
        self.settings.window = length.clamp(SHORTEST, LONGEST);
        self
    }

    /// Sets the largest number of jobs in the window, at least one, counted as those that
    /// [run](Builder::running). Each takes about 200 bytes. The store is read for that many at once.
    /// Defaults to 4,096.
    #[must_use]
    pub fn window_jobs(mut self, most: usize) -> Builder {
        self.settings.window_jobs = most.max(1);
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
        self.settings.lease = length.clamp(SHORTEST, LONGEST);
        self
    }

    /// Sets the name under which the node takes its lease. Nodes that work at the same time
    /// need different ones. A node that comes back under its name takes its lease at once.
    /// Defaults to a random name.
    #[must_use]
    pub fn owner(mut self, name: impl Into<String>) -> Builder {
        self.settings.owner = name.into();
        self
    }

    /// Sets the wall clock. Defaults to the system's. A store in a database goes by the database's
    /// clock instead; [`Status::clock_differs`](crate::Status::clock_differs) compares the two. After a step of a clock of your own, call
    /// [`clock_stepped`](crate::Jobs::clock_stepped).
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
        let engine = self.engine().clock(clock_source()).start()?;
        let alarm = Alarm::new(self.wall.is_none() && store.clock().is_none());
        let (workers, ends_within) = (self.settings.workers, self.ends_within);
        let runner = Arc::new(self.runner(store, engine, Mode::Threads(alarm))?);
        let mut durable = Durable::new(&runner, ends_within);
        let started = durable.start(&runner, workers);
        started.map(|()| durable).map_err(OpenError::Thread)
    }

    /// Starts a node on virtual time: nothing starts except within
    /// [`VirtualNode::run_until`], which moves `clock`. The same calls give the same run, if no
    /// handler is asynchronous.
    ///
    /// # Errors
    /// Returns the reason why the store did not answer, or the engine did not start.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel_durable::store::List;
    /// use tickwheel_durable::{Durable, Job, ManualClock, RedbStore, WallClock, WallTime};
    ///
    /// let clock = ManualClock::new(WallTime::from_unix_micros(1_800_000_000_000_000));
    /// let (jobs, node) = Durable::builder()
    ///     .handler("reminder", |_| ())
    ///     .open_virtual(RedbStore::in_memory_by(clock.clone()), clock.clone())?;
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
        let (engine, engine_clock) = self.engine().start_virtual()?;
        let runner = Arc::new(self.runner(store, engine, Mode::Virtual(Mutex::default()))?);
        let durable = Durable::new(&runner, Duration::ZERO);
        let node = VirtualNode::new(runner, clock, engine_clock);
        Ok((durable, node))
    }

    /// Returns the settings of the engine. It has a queue for each lane, and one for the limits of runs.
    fn engine(&self) -> tickwheel::Builder<Engine<Aimed>> {
        let queues = self.handlers.lanes().lanes.len() + 1;
        Engine::builder().tick(self.tick).shards(1).queues(queues)
    }

    fn runner(
        self,
        store: impl Store,
        engine: Engine<Aimed>,
        mode: Mode,
    ) -> Result<Runner, OpenError> {
        let settings = Settings {
            // Virtual time knows no length of a run or a commit.
            ahead: match (&mode, self.ahead) {
                (Mode::Virtual(_), _) => 0,
                (_, Some(ahead)) => ahead,
                (_, None) if self.handlers.has_single_attempts() => 0,
                (_, None) => AHEAD,
            },
            lanes: self.handlers.lanes(),
            ..self.settings
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
        let local = self.wall.unwrap_or_else(|| Arc::new(SystemClock));
        let node = Node::new(Box::new(store), local, engine, settings);
        node.observer.opened(node.delivers());
        let commits = match mode {
            Mode::Threads(_) => Commits::new(node.linger()),
            Mode::Virtual(_) => Commits::default(),
        };
        let inner = Inner { node, commits, mode };
        Ok(Runner::new(Arc::new(inner), self.handlers, seed))
    }
}

/// A clock that counts suspends, where there is one.
fn clock_source() -> ClockSource {
    if cfg!(any(target_os = "linux", target_os = "android")) {
        ClockSource::BootTime
    } else {
        ClockSource::Monotonic
    }
}

/// The reason why a node was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine did not start.
    #[error(transparent)]
    Engine(#[from] StartError),
    /// The system started no thread for the node, which has `workers` and at least four more.
    #[error("the system starts no thread: {0}; set fewer `workers`, or raise its limit of threads")]
    Thread(#[source] io::Error),
}
