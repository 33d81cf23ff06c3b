//! A node: a store, the window in front of it, and the lease under which it starts jobs.
//!
//! The node has no thread. Threads call it: one that commits, one that keeps window and lease,
//! one that takes expired timers. On virtual time, one thread does all of it.

mod held;
mod late;
mod lease;
mod limits;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tickwheel::{Engine, Time};

use self::held::Held;
use self::limits::Limits;
use crate::job::JobId;
use crate::observe::Observer;
use crate::pace::Pace;
use crate::store::{Answer, Change, Hear, List, News, Store, StoreError};
use crate::wall::{WallClock, WallTime};
use crate::window::{Aimed, Window};

/// The number of dead letters that are removed at once.
const BURIALS: usize = 32;
/// The pause after a read that failed.
const READ_AGAIN: Duration = Duration::from_secs(1);
/// A difference between wall clock and engine that is taken for a step.
const STEP: Duration = Duration::from_millis(1);

pub(crate) struct Settings {
    pub(crate) owner: String,
    pub(crate) window: Duration,
    pub(crate) window_jobs: usize,
    pub(crate) running: usize,
    /// The number of jobs whose handlers run at the same time.
    pub(crate) workers: usize,
    /// The largest number of jobs that are started beyond those.
    pub(crate) ahead: usize,
    pub(crate) lease: Duration,
    /// For how long dead letters are kept, if not for ever.
    pub(crate) keeps_dead: Option<Duration>,
    /// The kinds that have handlers. A node without any runs no jobs.
    pub(crate) kinds: Vec<String>,
}

pub(crate) struct Node {
    store: Box<dyn Store>,
    /// The clock by which jobs are due, and that of this machine.
    wall: Arc<dyn WallClock>,
    local: Arc<dyn WallClock>,
    engine: Engine<Aimed>,
    settings: Settings,
    observer: Observer,
    window: Mutex<Window>,
    pace: Pace,
    /// Notified when runs have ended.
    freed: Condvar,
    held: Mutex<Held>,
    limits: Mutex<Limits>,
    /// Notified when the lease is lost, and at the end.
    #[cfg(feature = "tokio")]
    lease_changed: tokio::sync::Notify,
    /// The engine's time and the wall clock when they were last compared.
    compared: Mutex<(Time, WallTime)>,
    /// Held while the store recovers.
    recovering: Mutex<()>,
    /// The reason why the last request for a lease failed.
    failure: Mutex<Option<StoreError>>,
    /// Whether the keeper should look before its time has come.
    is_load_due: AtomicBool,
    /// Whether the lease should be renewed before its time has come.
    is_renewal_due: AtomicBool,
}

impl Node {
    pub(crate) fn new(
        store: Box<dyn Store>,
        local: Arc<dyn WallClock>,
        engine: Engine<Aimed>,
        settings: Settings,
    ) -> Node {
        let wall = store.clock().unwrap_or_else(|| Arc::clone(&local));
        let window = Window::new(engine.clone(), settings.window, settings.window_jobs);
        let (time, now) = (engine.now(), wall.now());
        Node {
            store,
            wall,
            local,
            engine,
            observer: Observer::new(settings.owner.clone()),
            window: Mutex::new(window),
            pace: Pace::new(settings.ahead),
            settings,
            freed: Condvar::new(),
            held: Mutex::new(Held::new(time)),
            limits: Mutex::default(),
            #[cfg(feature = "tokio")]
            lease_changed: tokio::sync::Notify::new(),
            compared: Mutex::new((time, now)),
            recovering: Mutex::default(),
            failure: Mutex::default(),
            is_load_due: AtomicBool::new(false),
            is_renewal_due: AtomicBool::new(false),
        }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn pace(&self) -> &Pace {
        &self.pace
    }

    pub(crate) fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Returns whether this node runs jobs.
    pub(crate) fn delivers(&self) -> bool {
        !self.settings.kinds.is_empty()
    }

    pub(crate) fn engine(&self) -> &Engine<Aimed> {
        &self.engine
    }

    pub(crate) fn now(&self) -> WallTime {
        self.wall.now()
    }

    /// Returns how far the clock of this machine is from the one by which jobs are due.
    pub(crate) fn clock_differs(&self) -> Duration {
        let (wall, local) = (self.wall.now(), self.local.now());
        wall.since(local).max(local.since(wall))
    }

    pub(crate) fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock()
    }

    /// Returns the number of jobs that may be started now.
    pub(crate) fn room(&self) -> usize {
        self.room_beside(&self.window())
    }

    fn room_beside(&self, window: &Window) -> usize {
        if window.has_interrupted(self.now()) {
            // Its process may have died of it: others would die with it again.
            return usize::from(window.running() == 0);
        }
        let running = self.settings.running.saturating_sub(window.running());
        let started = self.settings.workers.saturating_add(self.pace.ahead());
        running.min(started.saturating_sub(window.at_work()))
    }

    /// Waits until a job may be started, or the node is shut down. Returns how many may, and one
    /// after the shutdown, so that the caller asks the queue, which says so.
    pub(crate) fn wait_for_room(&self) -> usize {
        let mut window = self.window();
        while self.room_beside(&window) == 0 && !self.engine.is_shut_down() {
            self.freed.wait(&mut window);
        }
        self.room_beside(&window).max(1)
    }

    /// Starts no more jobs.
    pub(crate) fn shut_down(&self) {
        let window = self.window();
        self.engine.shutdown();
        drop(window);
        self.freed.notify_all();
        self.tell_lease_changed();
    }

    /// Takes the jobs among these that are to be started, and returns them with the fence of
    /// the lease. Without a lease there are none, and the window is emptied.
    pub(crate) fn fire(&self, aimed: Vec<Aimed>) -> Option<(u64, Vec<Aimed>)> {
        let ended = self.ended_fence();
        let Some(lease) = self.lease() else {
            self.lose_lease(ended);
            return None;
        };
        let (now, mut window) = (self.now(), self.window());
        let mut fired = Vec::new();
        for aimed in aimed {
            // A load may have brought an interrupted job since the room was found. It is the first.
            let waits = window.has_interrupted(now) && !window.is_interrupted(aimed.id);
            match waits || self.room_beside(&window) == 0 {
                true => window.put_back(aimed),
                false => fired.extend(window.fire(aimed, now)),
            }
        }
        self.note_load(&window, now);
        (!fired.is_empty()).then_some((lease.fence, fired))
    }

    /// Takes note that a handler has returned after so long: its worker may have the next job.
    pub(crate) fn note_return(&self, id: JobId, after: Duration) {
        self.pace.note_run(after);
        self.window().note_return(id);
        self.freed.notify_all();
    }

    /// Gives up a job that was started under a lease that the node has lost. Whoever holds the
    /// lease now finds it in the store, perhaps this node.
    pub(crate) fn give_up_run(&self, id: JobId) {
        let mut window = self.window();
        window.end_run(id);
        window.forget_horizon();
        self.is_load_due.store(true, Ordering::SeqCst);
        drop(window);
        self.observer.given_up();
        self.freed.notify_all();
    }

    /// Returns for how long starts and outcomes may linger: no longer than a tenth of the lease.
    pub(crate) fn linger(&self) -> Duration {
        self.store.linger().min(self.settings.lease / 10)
    }

    fn note_load(&self, window: &Window, now: WallTime) {
        if window.wants_load(now) && self.lease().is_some() {
            self.is_load_due.store(true, Ordering::SeqCst);
        }
    }

    /// Returns, once, whether the window should be loaded before its time has come.
    pub(crate) fn take_load_due(&self) -> bool {
        self.is_load_due.swap(false, Ordering::SeqCst)
    }

    /// Commits the changes, and tells the window of them in their order.
    pub(crate) fn commit(&self, changes: &[Change]) -> Result<Vec<Answer>, StoreError> {
        let answers = self.store.commit(changes)?;
        self.settle(changes, &answers);
        Ok(answers)
    }

    /// Tells the window of changes that were committed, in their order.
    pub(crate) fn settle(&self, changes: &[Change], answers: &[Answer]) {
        let (now, mut window) = (self.now(), self.window());
        let fence = self.last_fence();
        let mut is_lost = false;
        for (change, answer) in changes.iter().zip(answers) {
            settle(&mut window, change, answer, now);
            is_lost |= *answer == Answer::Fenced && change.fence() == fence;
        }
        self.note_load(&window, now);
        drop(window);
        self.freed.notify_all();
        if is_lost {
            self.lose_lease(fence);
        }
    }

    /// Ends the run of a change that the store cannot carry out, and leaves its job alone for
    /// a while: otherwise the load that follows would try it again at once.
    pub(crate) fn drop_run(&self, change: &Change) {
        let (now, mut window) = (self.now(), self.window());
        settle(&mut window, change, &Answer::Gone, now);
        if let Change::Start { id, .. } | Change::Finish { id, .. } = change {
            window.set_job_aside(*id);
        }
        drop(window);
        self.freed.notify_all();
    }

    /// Has the window loaded at once.
    pub(crate) fn ask_for_load(&self) {
        self.window().forget_horizon();
        self.is_load_due.store(true, Ordering::SeqCst);
    }

    /// Has the store call `hear` with what other nodes do.
    pub(crate) fn listen(&self, hear: Hear) {
        self.store.listen(self.settings.window, hear);
    }

    /// Takes note of what other nodes have done.
    pub(crate) fn hear(&self, news: News) {
        match news {
            News::Placed(jobs) => {
                let (now, mut window) = (self.now(), self.window());
                jobs.into_iter().for_each(|job| window.place(job, now));
                self.note_load(&window, now);
            }
            News::Many => self.ask_for_load(),
            News::Nodes => {
                self.is_renewal_due.store(true, Ordering::SeqCst);
                self.is_load_due.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Keeps lease and window: renews, loads, and aims anew after a step of the wall clock.
    /// Returns the time at which it wants to be called again.
    pub(crate) fn keep(&self) -> WallTime {
        if !self.delivers() {
            return WallTime::MAX;
        }
        if let Some(step) = self.clock_step() {
            self.observer.clock_stepped(step);
            self.window().re_aim(self.now());
            self.load();
        }
        self.keep_lease();
        if self.ended_fence().is_some() {
            self.tell_lease_changed();
        }
        let now = self.now();
        if self.lease().is_some() && self.window().wants_load(now) && !self.load() {
            return now + READ_AGAIN;
        }
        self.next_keep()
    }

    /// Returns the removal of some dead letters that have been kept for long enough.
    pub(crate) fn burials(&self) -> Vec<Change> {
        let (Some(keeps), Some(_)) = (self.settings.keeps_dead, self.lease()) else {
            return Vec::new();
        };
        let dead = self.store.list(List::Dead, None, BURIALS);
        let (dead, now) = (dead.unwrap_or_default(), self.now());
        let old = dead.iter().filter(|job| job.due + keeps <= now);
        old.map(|job| Change::Bury(job.id)).collect()
    }

    /// Compares the wall clock with the engine's, which knows no steps. Returns the length of a
    /// step, forwards or backwards.
    fn clock_step(&self) -> Option<Duration> {
        let (time, wall) = (self.engine.now(), self.now());
        let mut compared = self.compared.lock();
        let (before, expected) = *compared;
        let expected = expected + time.since(before);
        *compared = (time, wall);
        let step = wall.since(expected).max(expected.since(wall));
        (step > STEP).then_some(step)
    }

    /// Loads the window; see its rules. Returns whether the store could be read.
    fn load(&self) -> bool {
        let Some(lease) = self.lease() else {
            return true;
        };
        let (before, most) = self.window().begin_load(self.now());
        match self.store.due_before(lease, before, most) {
            Ok(read) => self.window().end_load(&read, self.now()),
            Err(_) => self.window().clear(),
        }
        self.window().horizon() > WallTime::default()
    }

    fn next_keep(&self) -> WallTime {
        let (now, length) = (self.now(), self.settings.lease);
        let renewal = now
            + self
                .until_renewal()
                .max(length / 10)
                .min(self.until_wanted());
        let look = match self.lease() {
            Some(_) => renewal.min(self.window().look_again(now)),
            None => renewal,
        };
        let limit = self.limits.lock().look(self.engine.now());
        look.min(limit.map_or(WallTime::MAX, |limit| now + limit))
    }
}

/// Tells the window of a change that was committed.
fn settle(window: &mut Window, change: &Change, answer: &Answer, now: WallTime) {
    let is_run = matches!(answer, Answer::Started { .. });
    if let (Change::Start { id, .. } | Change::Finish { id, .. }, false) = (change, is_run) {
        window.end_run(*id);
    }
    match answer {
        // Whoever holds the lease now finds the job in the store, perhaps this node.
        Answer::Fenced => window.forget_horizon(),
        Answer::Placed(job) | Answer::Stale(job) if job.is_here => {
            window.place(*job, now);
        }
        Answer::Removed(job) => window.remove(job.id),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::store::{DueJob, MemoryStore, NewJob, Then};
    use crate::support::failing::{Failing, Mode};
    use crate::wall::ManualClock;

    fn node() -> Node {
        node_on(MemoryStore::with_clock(clock()))
    }

    fn clock() -> ManualClock {
        ManualClock::new(WallTime::from_unix_micros(1_000_000))
    }

    fn node_on(store: impl Store) -> Node {
        node_with(store, Duration::from_secs(10))
    }

    fn node_with(store: impl Store, lease: Duration) -> Node {
        let (engine, _clock) = Engine::builder().start_virtual().unwrap();
        let settings = Settings {
            owner: "node".to_owned(),
            window: Duration::from_secs(60),
            window_jobs: 9,
            running: 99,
            workers: 4,
            ahead: 60,
            lease,
            keeps_dead: None,
            kinds: vec!["job".to_owned()],
        };
        Node::new(Box::new(store), Arc::new(clock()), engine, settings)
    }

    /// A request for a lease fails, and so does the recovery; the next request is granted.
    #[test]
    fn durable_14_a_lease_that_is_granted_again_is_certain() {
        let store = Failing::new(MemoryStore::with_clock(clock()));
        let node = node_on(store.clone());
        store.set(Mode::FailsBefore);
        store.on_commit(|_| Err(StoreError::Full));
        node.keep();
        assert_eq!(node.lease(), None);
        store.on_commit(|_| Ok(()));
        node.keep();
        assert!(node.lease().is_some());
    }

    /// Lets so many handlers return after so long, and sets the pace.
    fn return_many(node: &Node, count: u64, after: Duration) {
        for number in 0..count {
            node.note_return(JobId::new(WallTime::default(), number), after);
        }
        node.pace().set_by(|| ());
    }

    /// A renewal is a query of the database. A short lease has more time for its answer.
    #[test]
    fn an_idle_node_renews_when_a_third_of_its_lease_is_left() {
        for (lease, after) in [(30, 20_000), (10, 6_667), (6, 2_700), (3, 1_000)] {
            let lease = Duration::from_secs(lease);
            let node = node_with(MemoryStore::with_clock(clock()), lease);
            let until = node.keep().since(node.now());
            assert_eq!((until.as_micros() + 500) / 1_000, after, "{lease:?}");
        }
    }

    /// Twice as many jobs are started ahead as short ones have returned.
    #[test]
    fn durable_07_no_job_is_started_ahead_of_long_ones() {
        let node = node();
        return_many(&node, 100, Duration::MAX);
        assert_eq!(node.room(), 4);
        return_many(&node, 4, Duration::ZERO);
        assert_eq!(node.room(), 12);
        return_many(&node, 100, Duration::ZERO);
        assert_eq!(node.room(), 64);
        return_many(&node, 100, Duration::MAX);
        assert_eq!(node.room(), 34);
        (0..9).for_each(|_| return_many(&node, 4, Duration::MAX));
        assert_eq!(node.room(), 4);
    }

    /// Otherwise a job that kills its process would cost the others an attempt each time.
    #[test]
    fn durable_07_an_interrupted_job_runs_alone() {
        let store = MemoryStore::with_clock(clock());
        let job = NewJob::new(Job::new("job", ""), clock().now()).unwrap();
        let placed = store.commit(&[Change::Insert(job)]).unwrap();
        let Answer::Placed(DueJob { id, version, .. }) = placed[0] else {
            panic!("{placed:?}");
        };
        let fence = store
            .acquire("node", &["job".to_owned()], Duration::ZERO)
            .unwrap()
            .unwrap()
            .fence;
        let start = Change::Start { id, version, fence };
        store.commit(&[start]).unwrap();

        let node = node_on(store);
        node.keep();
        return_many(&node, 60, Duration::ZERO);
        assert_eq!(node.window().armed(), 1);
        assert_eq!(node.room(), 1);
        let (fence, _) = node.fire(vec![Aimed { id, version }]).unwrap();
        let then = Then::End;
        node.commit(&[Change::Start { id, version, fence }])
            .unwrap();
        assert_eq!(node.room(), 0);
        let finish = Change::Finish {
            id,
            version,
            fence,
            then,
        };
        node.commit(&[finish]).unwrap();
        assert_eq!(node.room(), 64);
    }

    #[test]
    fn jobs_of_other_nodes_are_armed_within_the_horizon() {
        let node = node();
        node.keep();
        let due = |secs| DueJob {
            id: JobId::new(WallTime::default(), secs),
            version: 1,
            due: node.now() + Duration::from_secs(secs),
            is_interrupted: false,
            is_here: true,
        };
        node.hear(News::Placed(vec![due(5), due(59), due(60)]));
        assert_eq!(node.window().armed(), 2);
        assert!(!node.take_load_due());
        node.hear(News::Many);
        assert!(node.take_load_due(), "reads the store");
    }

    /// One thread found no lease, and before it says so, another takes the next one.
    #[test]
    fn the_loss_of_a_lease_leaves_the_next_one() {
        let node = node();
        node.keep();
        let lease = node.lease().unwrap();
        node.lose_lease(None);
        node.lose_lease(Some(lease.fence - 1));
        assert_eq!(node.lease(), Some(lease));
        assert!(node.take_load_due(), "the window was emptied");
        node.lose_lease(Some(lease.fence));
        assert_eq!(node.lease(), None);
    }
}
