//! A node: a store, the window in front of it, and the lease under which it starts jobs.
//!
//! The node has no thread. Threads call it: one that commits, one that keeps window and lease,
//! one that takes expired timers. On virtual time, one thread does all of it.

mod held;
mod keep;
mod lanes;
mod late;
mod lease;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tickwheel::{Engine, Time, TimerId};

use self::held::Held;
use self::lanes::Lane;
pub(crate) use self::lanes::Lanes;
use crate::job::JobId;
use crate::observe::Observer;
use crate::pace::Pace;
use crate::store::{Answer, Change, DueJob, Hear, News, Result, Store, StoreError};
use crate::wall::{WallClock, WallTime};
use crate::window::{ASKS, Aimed, Window};

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
    pub(crate) lanes: Lanes,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            owner: format!("node-{:016x}", fastrand::u64(..)),
            window: Duration::from_secs(60),
            window_jobs: 4_096,
            running: 1_024,
            workers: 4,
            ahead: 0,
            lease: Duration::from_secs(10),
            keeps_dead: None,
            lanes: Lanes::default(),
        }
    }
}

pub(crate) struct Node {
    pub(crate) store: Box<dyn Store>,
    /// The clock by which jobs are due, and that of this machine.
    wall: Arc<dyn WallClock>,
    local: Arc<dyn WallClock>,
    pub(crate) engine: Engine<Aimed>,
    settings: Settings,
    pub(crate) observer: Observer,
    /// The window of each lane.
    pub(crate) windows: Mutex<Vec<Window>>,
    pub(crate) pace: Pace,
    /// Notified when runs have ended, and when the window was kept.
    freed: Condvar,
    held: Mutex<Held>,
    /// The runs by the timers of their limits. Of one that is late, whether another worker has taken
    /// the place.
    runs: Mutex<HashMap<TimerId, Option<bool>>>,
    /// Notified when the lease is lost, and at the end.
    #[cfg(feature = "tokio")]
    lease_changed: tokio::sync::Notify,
    /// The engine's time and the wall clock when they were last compared.
    compared: Mutex<(Time, WallTime)>,
    /// Held while the store recovers.
    recovering: Mutex<()>,
    /// The reason why the last request for a lease failed.
    failure: Mutex<Option<StoreError>>,
    /// The reason why the last load failed.
    unread: Mutex<Option<StoreError>>,
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
        let window = |(lane, of): (usize, &Lane)| {
            Window::new(engine.clone(), lane, settings.window, settings.window_jobs, of.most)
        };
        let windows = settings.lanes.lanes.iter().enumerate().map(window).collect();
        let (time, now) = (engine.now(), wall.now());
        Node {
            store,
            wall,
            local,
            engine,
            observer: Observer::new(settings.owner.clone()),
            windows: Mutex::new(windows),
            pace: Pace::new(settings.ahead),
            settings,
            freed: Condvar::new(),
            held: Mutex::new(Held::new(time)),
            runs: Mutex::default(),
            #[cfg(feature = "tokio")]
            lease_changed: tokio::sync::Notify::new(),
            compared: Mutex::new((time, now)),
            recovering: Mutex::default(),
            failure: Mutex::default(),
            unread: Mutex::default(),
            is_load_due: AtomicBool::new(false),
            is_renewal_due: AtomicBool::new(false),
        }
    }

    /// Returns whether this node runs jobs.
    pub(crate) fn delivers(&self) -> bool {
        self.lanes() > 0
    }

    /// Returns the number of lanes. Each has a queue of the engine, and the last one is for the limits
    /// of runs.
    pub(crate) fn lanes(&self) -> usize {
        self.settings.lanes.lanes.len()
    }

    pub(crate) fn handles(&self, kind: &str) -> bool {
        self.settings.lanes.kinds.iter().any(|own| own.name == kind)
    }

    pub(crate) fn needs_workers(&self, lane: usize) -> bool {
        self.settings.lanes.lanes[lane].needs_workers
    }

    pub(crate) fn now(&self) -> WallTime {
        self.wall.now()
    }

    /// Returns how far the clock of this machine is from the one by which jobs are due.
    pub(crate) fn clock_differs(&self) -> Duration {
        let (wall, local) = (self.wall.now(), self.local.now());
        wall.since(local).max(local.since(wall))
    }

    /// Returns the number of jobs of a lane that may be started now.
    pub(crate) fn room(&self, lane: usize) -> usize {
        self.room_beside(&self.windows.lock(), lane)
    }

    fn room_beside(&self, windows: &[Window], lane: usize) -> usize {
        let (window, now, lanes) = (&windows[lane], self.now(), &self.settings.lanes.lanes);
        if windows.iter().any(|window| window.has_interrupted(now)) {
            // Its process may have died of it: others would die with it again. Those beyond their
            // limits may never return.
            let running: usize = windows.iter().map(Window::running).sum();
            let is_alone = running == self.late();
            return usize::from(is_alone && window.has_interrupted(now));
        }
        if !window.full_for().is_zero() {
            return 0;
        }
        let most = self.settings.running.min(lanes[lane].most);
        let room = most.saturating_sub(window.running());
        if !lanes[lane].needs_workers {
            return room;
        }
        let beside = windows.iter().zip(lanes).filter(|(_, lane)| lane.needs_workers);
        let at_work: usize = beside.map(|(window, _)| window.at_work()).sum();
        let started = self.settings.workers.saturating_add(self.pace.ahead());
        room.min(started.saturating_sub(at_work))
    }

    /// Waits until a job of a lane may be started, or the node is shut down. Returns how many may, and
    /// one after the shutdown, so that the caller asks the queue, which says so.
    pub(crate) fn wait_for_room(&self, lane: usize) -> usize {
        let mut windows = self.windows.lock();
        loop {
            let room = self.room_beside(&windows, lane);
            if room > 0 || self.engine.is_shut_down() {
                return room.max(1);
            }
            match windows[lane].full_for() {
                Duration::ZERO => self.freed.wait(&mut windows),
                full => drop(self.freed.wait_for(&mut windows, full)),
            }
        }
    }

    /// Starts no more jobs.
    pub(crate) fn shut_down(&self) {
        let windows = self.windows.lock();
        self.engine.shutdown();
        drop(windows);
        self.freed.notify_all();
        self.tell_lease_changed();
    }

    /// Takes the jobs among these that are to be started, and returns them with the fence of
    /// the lease. Without a lease there are none, and the window is emptied.
    pub(crate) fn fire(&self, lane: usize, aimed: Vec<Aimed>) -> Option<(u64, Vec<Aimed>)> {
        let ended = self.ended_fence();
        let Some(lease) = self.lease() else {
            self.lose_lease(ended);
            return None;
        };
        let (now, mut windows) = (self.now(), self.windows.lock());
        let mut fired = Vec::new();
        for aimed in aimed {
            // A load may have brought an interrupted job since the room was found. It is the first.
            let waits = windows.iter().any(|window| window.has_interrupted(now))
                && !windows[lane].is_interrupted(aimed.id);
            if waits || self.room_beside(&windows, lane) == 0 {
                windows[lane].put_back(aimed)
            } else {
                fired.extend(windows[lane].fire(aimed, now))
            }
        }
        self.note_load(&windows, now);
        (!fired.is_empty()).then_some((lease.fence, fired))
    }

    /// Takes note that a handler has returned after so long: its worker may have the next job.
    pub(crate) fn note_return(&self, id: JobId, after: Duration) {
        self.pace.note_run(after);
        let mut windows = self.windows.lock();
        windows.iter_mut().for_each(|window| window.note_return(id));
        drop(windows);
        self.freed.notify_all();
    }

    /// Gives up a job that was started under a lease that the node has lost. Whoever holds the
    /// lease now finds it in the store, perhaps this node.
    pub(crate) fn give_up_run(&self, id: JobId) {
        for window in &mut *self.windows.lock() {
            window.end_run(id);
            window.forget_horizon();
        }
        self.is_load_due.store(true, Ordering::SeqCst);
        self.observer.given_up();
        self.freed.notify_all();
    }

    /// Returns for how long starts and outcomes may linger: no longer than a tenth of the lease.
    pub(crate) fn linger(&self) -> Duration {
        self.store.linger().min(self.settings.lease / 10)
    }

    fn note_load(&self, windows: &[Window], now: WallTime) {
        let wants_load = windows.iter().any(|window| window.wants_load(now));
        if wants_load && self.lease().is_some() {
            self.is_load_due.store(true, Ordering::SeqCst);
        }
    }

    /// Returns, once, whether the window should be loaded before its time has come.
    pub(crate) fn take_load_due(&self) -> bool {
        self.is_load_due.swap(false, Ordering::SeqCst)
    }

    /// Commits the changes, and tells the window of them in their order.
    pub(crate) fn commit(&self, changes: &[Change]) -> Result<Vec<Answer>> {
        let answers = self.store.commit(changes)?;
        self.settle(changes, &answers);
        Ok(answers)
    }

    /// Tells the window of changes that were committed, in their order.
    pub(crate) fn settle(&self, changes: &[Change], answers: &[Answer]) {
        let (now, mut windows) = (self.now(), self.windows.lock());
        let fence = self.last_fence();
        let mut is_lost = false;
        for (change, answer) in changes.iter().zip(answers) {
            self.settle_one(&mut windows, change, answer, now);
            is_lost |= *answer == Answer::Fenced && change.fence() == fence;
        }
        self.note_load(&windows, now);
        drop(windows);
        self.freed.notify_all();
        if is_lost {
            self.lose_lease(fence);
        }
    }

    /// Has the window loaded at once.
    pub(crate) fn ask_for_load(&self) {
        self.windows.lock().iter_mut().for_each(Window::forget_horizon);
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
                let (now, mut windows) = (self.now(), self.windows.lock());
                jobs.into_iter().for_each(|job| self.place(&mut windows, job, now));
                self.note_load(&windows, now);
            }
            News::Many => self.ask_for_load(),
            News::Nodes => {
                self.is_renewal_due.store(true, Ordering::SeqCst);
                self.is_load_due.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Tells the windows of a change that was committed.
    fn settle_one(&self, windows: &mut [Window], change: &Change, answer: &Answer, now: WallTime) {
        match (change, answer) {
            (_, Answer::Started { .. } | Answer::Changed(_)) => {}
            (Change::Start { id, .. }, Answer::Full) => {
                windows.iter_mut().for_each(|window| window.put_off(*id, false));
            }
            (Change::Start { id, version: ASKS, .. }, Answer::Stale(_)) => {
                windows.iter_mut().for_each(|window| window.put_off(*id, true));
            }
            (Change::Start { id, .. } | Change::Finish { id, .. }, answer) => {
                for window in windows.iter_mut().filter(|window| window.has(*id)) {
                    window.end_run(*id);
                    // Otherwise the next load would try it again at once.
                    if let Answer::Damaged(_) = answer {
                        window.set_job_aside(*id);
                    }
                }
            }
            _ => {}
        }
        match answer {
            // Whoever holds the lease now finds the job in the store, perhaps this node. So does it
            // find the jobs of a kind that is no longer paused.
            Answer::Fenced | Answer::Set => windows.iter_mut().for_each(Window::forget_horizon),
            Answer::Placed(job) | Answer::Stale(job) => self.place(windows, *job, now),
            Answer::Removed(job) => windows.iter_mut().for_each(|window| window.remove(job.id)),
            _ => {}
        }
    }

    fn place(&self, windows: &mut [Window], job: DueJob, now: WallTime) {
        if let Some(lane) = job.kind.and_then(|kind| self.settings.lanes.of(kind)) {
            windows[lane].place(job, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use tickwheel::VirtualClock;

    use super::*;
    use crate::job::Job;
    use crate::store::{NewJob, RedbStore, Then};
    use crate::support::failing::{Failing, Mode};
    use crate::wall::ManualClock;

    fn node() -> Node {
        node_on(RedbStore::in_memory_by(clock()))
    }

    fn clock() -> ManualClock {
        ManualClock::new(WallTime::from_unix_micros(1_000_000))
    }

    fn node_on(store: impl Store) -> Node {
        node_with(store, Duration::from_secs(10))
    }

    fn node_with(store: impl Store, lease: Duration) -> Node {
        node_and_clock(store, lease).0
    }

    fn node_and_clock(store: impl Store, lease: Duration) -> (Node, VirtualClock) {
        let (engine, virtual_clock) = Engine::builder().queues(3).start_virtual().unwrap();
        let mut lanes = Lanes::default();
        lanes.add("job".into(), None, true);
        lanes.add("limited".into(), Some(1), true);
        let settings = Settings {
            owner: "node".to_owned(),
            window: Duration::from_secs(60),
            window_jobs: 9,
            running: 99,
            workers: 4,
            ahead: 60,
            lease,
            keeps_dead: None,
            lanes,
        };
        (Node::new(Box::new(store), Arc::new(clock()), engine, settings), virtual_clock)
    }

    /// A request for a lease fails, and so does the recovery; the next request is granted.
    #[test]
    fn durable_14_a_lease_that_is_granted_again_is_certain() {
        let store = Failing::new(RedbStore::in_memory_by(clock()));
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
        node.pace.set_by(|| ());
    }

    /// A renewal is a query of the database. A short lease has more time for its answer.
    #[test]
    fn an_idle_node_renews_when_a_third_of_its_lease_is_left() {
        for (lease, after) in [(30, 20_000), (10, 6_667), (6, 2_700), (3, 1_000)] {
            let lease = Duration::from_secs(lease);
            let node = node_with(RedbStore::in_memory_by(clock()), lease);
            let until = node.keep().since(node.now());
            assert_eq!((until.as_micros() + 500) / 1_000, after, "{lease:?}");
        }
    }

    /// Twice as many jobs are started ahead as short ones have returned.
    #[test]
    fn durable_07_no_job_is_started_ahead_of_long_ones() {
        let node = node();
        return_many(&node, 100, Duration::MAX);
        assert_eq!(node.room(0), 4);
        return_many(&node, 4, Duration::ZERO);
        assert_eq!(node.room(0), 12);
        return_many(&node, 100, Duration::ZERO);
        assert_eq!(node.room(0), 64);
        return_many(&node, 100, Duration::MAX);
        assert_eq!(node.room(0), 34);
        (0..9).for_each(|_| return_many(&node, 4, Duration::MAX));
        assert_eq!(node.room(0), 4);
    }

    /// Otherwise a job that kills its process would cost the others an attempt each time.
    #[test]
    fn durable_07_an_interrupted_job_runs_alone() {
        let store = RedbStore::in_memory_by(clock());
        let job = NewJob::new(Job::new("job", ""), clock().now()).unwrap();
        let placed = store.commit(&[Change::Insert(job)]).unwrap();
        let Answer::Placed(DueJob { id, version, .. }) = placed[0] else {
            panic!("{placed:?}");
        };
        let fence = store.acquire("node", &["job".into()], Duration::ZERO).unwrap().unwrap().fence;
        let start = Change::Start { id, version, fence };
        store.commit(&[start]).unwrap();

        let node = node_on(store);
        node.keep();
        return_many(&node, 60, Duration::ZERO);
        assert_eq!(node.windows.lock()[0].armed(), 1);
        assert_eq!(node.room(0), 1);
        let (fence, _) = node.fire(0, vec![Aimed { id, version }]).unwrap();
        let then = Then::End;
        node.commit(&[Change::Start { id, version, fence }]).unwrap();
        assert_eq!(node.room(0), 0);
        let finish = Change::Finish { id, version, fence, recurrence: None, then };
        node.commit(&[finish]).unwrap();
        assert_eq!(node.room(0), 64);
    }

    /// As many of its kind run on other nodes as may, perhaps for long. It asks for room, and others wait
    /// once there is some.
    #[test]
    fn durable_07_an_interrupted_job_without_room_keeps_no_others() {
        let second = Duration::from_secs(1);
        let (node, clock) = node_and_clock(RedbStore::in_memory_by(clock()), second * 10);
        node.keep();
        let fence = node.lease().unwrap().fence;
        let settle =
            |id, version, answer| node.settle(&[Change::Start { id, version, fence }], &[answer]);
        let other = fire(&node, 0, 1, false).unwrap();
        let (id, version) = (JobId::new(WallTime::default(), 2), 1);
        let job = DueJob { id, version, due: node.now(), is_interrupted: true, kind: Some(1) };
        node.hear(News::Placed(vec![job]));
        let fire = || node.fire(1, vec![Aimed { id, version }]).unwrap().1[0].version;
        for _ in 0..7 {
            assert_eq!((node.room(0), node.room(1)), (3, 1), "others would wait in vain");
            assert_eq!(fire(), ASKS, "it would begin beside another");
            assert_eq!(node.room(1), 0, "it would be asked twice");
            settle(id, ASKS, Answer::Full);
            assert_eq!((node.room(0), node.room(1)), (3, 0), "it would ask again at once");
            clock.advance(second);
        }
        assert_eq!(fire(), ASKS);
        settle(id, ASKS, Answer::Stale(job));
        assert_eq!((node.room(0), node.room(1)), (0, 0), "it waits for the other one");
        settle(other, 1, Answer::Gone);
        assert_eq!((node.room(0), node.room(1)), (0, 1));
        assert_eq!(fire(), 1);
        assert_eq!((node.room(0), node.room(1)), (0, 0), "it runs alone");
        settle(id, 1, Answer::Full);
        clock.advance(second);
        assert_eq!((node.room(0), node.room(1)), (4, 1), "another node was faster");
        assert_eq!(fire(), ASKS);
    }

    /// Places a job that is due, and returns it if it may be started.
    fn fire(node: &Node, lane: usize, number: u64, is_interrupted: bool) -> Option<JobId> {
        let (id, version) = (JobId::new(WallTime::default(), number), 1);
        let job = DueJob { id, version, due: node.now(), is_interrupted, kind: Some(lane) };
        node.hear(News::Placed(vec![job]));
        node.fire(lane, vec![Aimed { id, version }]).map(|_| id)
    }

    /// Not even if its worker can't be replaced.
    #[test]
    fn durable_07_an_interrupted_job_beyond_its_limit_keeps_no_others() {
        let node = node();
        node.keep();
        let id = fire(&node, 0, 1, true).unwrap();
        let limit = node.begin_run(id, Duration::MAX).unwrap();
        assert_eq!(fire(&node, 0, 2, false), None);
        node.note_late(limit, id, || false);
        assert!(fire(&node, 0, 3, false).is_some());
    }

    /// Who is beyond its limit still counts, and the others do not wait for that.
    #[test]
    fn durable_07_an_interrupted_job_waits_for_room_in_its_lane() {
        let node = node();
        node.keep();
        let id = fire(&node, 1, 1, true).unwrap();
        let (due, fence) = (node.now(), node.lease().unwrap().fence);
        let job = DueJob { id, version: 1, due, is_interrupted: true, kind: Some(1) };
        let asks = Change::Start { id, version: ASKS, fence };
        node.settle(&[asks], &[Answer::Stale(job)]);
        assert_eq!(fire(&node, 1, 1, true), Some(id));
        let limit = node.begin_run(id, Duration::MAX).unwrap();
        node.note_late(limit, id, || true);
        assert_eq!(fire(&node, 1, 2, true), None);
        assert!(fire(&node, 0, 3, false).is_some());
    }

    /// Another node has taken it with the next lease, say.
    #[test]
    fn durable_07_an_interrupted_job_that_is_gone_keeps_no_others() {
        let node = node();
        node.keep();
        let (id, version, due) = (JobId::new(WallTime::default(), 1), 1, node.now());
        let job = DueJob { id, version, due, is_interrupted: true, kind: Some(0) };
        node.hear(News::Placed(vec![job]));
        assert_eq!(node.room(1), 0);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| node.wait_for_room(1));
            std::thread::sleep(Duration::from_millis(50));
            node.lose_lease(node.last_fence());
            node.keep();
            let end = std::time::Instant::now() + Duration::from_secs(20);
            while !waits.is_finished() && std::time::Instant::now() < end {
                std::thread::yield_now();
            }
            let is_woken = waits.is_finished();
            node.shut_down();
            assert!(is_woken);
        });
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
            kind: Some(0),
        };
        node.hear(News::Placed(vec![due(5), due(59), due(60)]));
        assert_eq!(node.windows.lock()[0].armed(), 2);
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
        let (id, version) = (JobId::new(WallTime::default(), 1), 1);
        let finish =
            |fence| Change::Finish { id, version, fence, recurrence: None, then: Then::End };
        node.settle(&[finish(lease.fence - 1)], &[Answer::Fenced]);
        assert_eq!(node.lease(), Some(lease), "a run of an earlier lease has ended");
        node.settle(&[finish(lease.fence)], &[Answer::Fenced]);
        assert_eq!(node.lease(), None);
    }
}
