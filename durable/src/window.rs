//! The near window: the jobs that stand in the wheel, and the horizon before which it holds
//! every waiting job.
//!
//! Loads, commits, expiries and steps of the wall clock meet here. The rules that keep them
//! from losing a job:
//!
//! 1. A load publishes its horizon ([`Window::begin_load`]) **before** it reads the store,
//!    reads from the beginning, and leaves alone a job that the window has with the same or a
//!    higher version ([`Window::end_load`]).
//! 2. A change is placed **after** its commit ([`Window::place`]): a job that is due before the
//!    horizon is armed.
//! 3. A removed job is disarmed after the commit ([`Window::remove`]). A load may bring it back.
//! 4. A job that fires is started at the store, which knows whether it is still there.
//! 5. A job that fires is compared with the wall clock ([`Window::fire`]); after a step of that
//!    clock, all are aimed anew ([`Window::re_aim`]).
//!
//! `tests/window_model.rs` drops each rule once.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use tickwheel::{Engine, Time, Timer, TimerId};

use crate::job::JobId;
use crate::store::{Due, DueJob};
use crate::wall::WallTime;

/// The pause before a job that the store could not carry out is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(3_600);
/// The pause after a load that failed.
const READ_AGAIN: Duration = Duration::from_secs(1);
/// The pause before jobs of a kind are tried again of which as many run on all nodes as may.
const FULL: Duration = Duration::from_millis(100);
/// The version with which the store is asked whether there is room. No job has it, so none begins.
pub(crate) const ASKS: u64 = 0;

/// The payload of a timer: the job that it stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Aimed {
    pub(crate) id: JobId,
    pub(crate) version: u64,
}

pub(crate) struct Window {
    engine: Engine<Aimed>,
    /// The queue of its timers.
    queue: usize,
    length: Duration,
    /// The largest number of armed jobs.
    most: usize,
    /// How many of its jobs may run at a time.
    limit: usize,
    horizon: WallTime,
    /// Whether the horizon was lowered because the window was full.
    is_cut: bool,
    /// The number of armed jobs when it was.
    filled: usize,
    jobs: HashMap<JobId, Held>,
    /// The armed jobs in the order of due times. None is due after the horizon.
    armed: BTreeSet<(WallTime, JobId)>,
    /// The held jobs of which an earlier run has begun and not ended.
    interrupted: HashSet<JobId>,
    /// The jobs that the store cannot carry out, and the times at which they are tried again.
    set_aside: HashMap<JobId, Time>,
    /// The number of jobs whose handler has returned.
    returned: usize,
    /// Until when none of its jobs is tried.
    full_until: Option<Time>,
    /// Whether there is room for an interrupted job. If its kind has a limit, the store is asked, and
    /// others do not wait for the job before.
    has_room: bool,
    /// When it may be loaded again, if the last load failed.
    unread_until: Option<WallTime>,
}

/// A job that waits for its timer.
#[derive(Clone, Copy)]
struct Armed {
    version: u64,
    due: WallTime,
    timer: TimerId,
}

enum Held {
    Armed(Armed),
    /// Being started, or running, since its due time, with its version. The end of the run says where
    /// the job goes.
    Running(WallTime, u64),
    /// The handler has returned, and its outcome is not durable.
    Returned,
}

impl Window {
    pub(crate) fn new(
        engine: Engine<Aimed>,
        queue: usize,
        length: Duration,
        most: usize,
        limit: usize,
    ) -> Window {
        Window {
            engine,
            queue,
            length,
            most,
            limit,
            horizon: WallTime::default(),
            is_cut: false,
            filled: most,
            jobs: HashMap::new(),
            armed: BTreeSet::new(),
            interrupted: HashSet::new(),
            set_aside: HashMap::new(),
            returned: 0,
            full_until: None,
            has_room: limit == usize::MAX,
            unread_until: None,
        }
    }

    pub(crate) fn armed(&self) -> usize {
        self.armed.len()
    }

    /// Returns the time for which the first armed job has been due.
    pub(crate) fn behind(&self, now: WallTime) -> Duration {
        let first = self.armed.first();
        first.map_or(Duration::ZERO, |(due, _)| now.since(*due))
    }

    pub(crate) fn running(&self) -> usize {
        self.jobs.len() - self.armed.len()
    }

    /// Returns the number of running jobs whose handler has not returned.
    pub(crate) fn at_work(&self) -> usize {
        self.running() - self.returned
    }

    /// Returns whether a job is at work or may be started of which an earlier run has begun and not
    /// ended.
    pub(crate) fn has_interrupted(&self, now: WallTime) -> bool {
        let has_room = self.has_room && self.running() < self.limit;
        let is_now = |id: &JobId| match self.jobs.get(id) {
            Some(Held::Armed(armed)) => armed.due <= now && has_room,
            held => matches!(held, Some(Held::Running(..))),
        };
        self.interrupted.iter().any(is_now)
    }

    pub(crate) fn set_aside(&self) -> usize {
        self.set_aside.len()
    }

    /// Returns whether a job is in the window, or runs.
    pub(crate) fn has(&self, id: JobId) -> bool {
        self.jobs.contains_key(&id)
    }

    /// Returns for how long no job of the window is tried.
    pub(crate) fn full_for(&self) -> Duration {
        let now = self.engine.now();
        self.full_until.map_or(Duration::ZERO, |until| until.since(now))
    }

    pub(crate) fn horizon(&self) -> WallTime {
        self.horizon
    }

    /// Returns whether half of the window is used up: of its time, or of its jobs if there was
    /// no room for more.
    ///
    /// The armed jobs of a cut window are due by the horizon. They are therefore used up by
    /// the time at which the first missing job is due.
    pub(crate) fn wants_load(&self, now: WallTime) -> bool {
        match self.unread_until {
            Some(until) => now >= until,
            None if self.is_cut => self.armed.len() <= self.filled / 2,
            None => now >= self.next_load(),
        }
    }

    /// Returns the time by which to look again whether a load is due. Of a cut window, the jobs
    /// that fire tell.
    pub(crate) fn look_again(&self, now: WallTime) -> WallTime {
        let soon = now + Duration::from_millis(1);
        if self.is_cut && !self.wants_load(now) {
            WallTime::MAX
        } else {
            self.unread_until.unwrap_or(self.next_load()).max(soon)
        }
    }

    /// Returns whether the last load failed.
    pub(crate) fn is_unread(&self) -> bool {
        self.unread_until.is_some()
    }

    /// Returns the time at which half of the window's time is used up.
    fn next_load(&self) -> WallTime {
        let half = self.length / 2;
        let since_1970 = self.horizon.since(WallTime::default());
        WallTime::default() + since_1970.saturating_sub(half)
    }

    /// Publishes the horizon of a load that is about to read the store. Returns it, and the
    /// number of jobs to read.
    ///
    /// After a step back of the wall clock the horizon falls. The jobs behind it leave the
    /// window, because those of a full window must be due by its horizon.
    pub(crate) fn begin_load(&mut self, now: WallTime) -> (WallTime, usize) {
        self.horizon = now + self.length;
        self.is_cut = false;
        while let Some((_, id)) = self.last_armed().filter(|(due, _)| *due >= self.horizon) {
            self.remove(id);
        }
        let skipped = self.running() + self.set_aside.len();
        (self.horizon, self.most.saturating_add(skipped))
    }

    /// Arms the jobs that a load has read, up to the horizon, which may have fallen meanwhile.
    pub(crate) fn end_load(&mut self, read: &Due, now: WallTime) {
        self.unread_until = None;
        if let Some(until) = read.until {
            self.cut(until);
        }
        for job in &read.jobs {
            if job.due <= self.horizon && !self.is_set_aside(job.id) {
                self.arm(*job, now);
            }
        }
        if read.until.is_some() {
            self.filled = self.armed.len();
        }
    }

    /// Forgets every armed job after a load that failed.
    pub(crate) fn fail_load(&mut self, now: WallTime) {
        self.clear();
        self.unread_until = Some(now + READ_AGAIN);
    }

    /// Takes note of a job's due time, after the commit that set it.
    pub(crate) fn place(&mut self, job: DueJob, now: WallTime) {
        self.set_aside.remove(&job.id);
        if job.due < self.horizon { self.arm(job, now) } else { self.disarm_older(job) }
    }

    /// Takes note of the removal of a job, after its commit. A running job stays noted until
    /// its run ends.
    pub(crate) fn remove(&mut self, id: JobId) {
        if let Some(armed) = self.armed_as(id) {
            self.armed.remove(&(armed.due, id));
            self.engine.cancel(armed.timer);
            self.forget(id);
        }
    }

    fn armed_as(&self, id: JobId) -> Option<Armed> {
        match self.jobs.get(&id) {
            Some(Held::Armed(armed)) => Some(*armed),
            _ => None,
        }
    }

    /// Leaves a job that the store cannot carry out alone for an hour.
    pub(crate) fn set_job_aside(&mut self, id: JobId) {
        self.remove(id);
        if self.set_aside.len() < self.most {
            self.set_aside.insert(id, self.engine.now() + TRY_AGAIN);
        }
    }

    fn is_set_aside(&mut self, id: JobId) -> bool {
        match self.set_aside.get(&id) {
            Some(until) if self.engine.now() < *until => true,
            Some(_) => self.set_aside.remove(&id).is_none(),
            None => false,
        }
    }

    fn forget(&mut self, id: JobId) {
        self.jobs.remove(&id);
        self.interrupted.remove(&id);
    }

    /// Takes a job whose timer has expired, if it is armed with this version and due by the
    /// wall clock. If it is not due, aims it anew.
    pub(crate) fn fire(&mut self, aimed: Aimed, now: WallTime) -> Option<Aimed> {
        let Aimed { id, version } = aimed;
        let armed = self.armed_as(id);
        let due = armed.filter(|armed| armed.version == version)?.due;
        if now < due {
            self.aim(aimed, due, now);
            return None;
        }
        self.armed.remove(&(due, id));
        self.jobs.insert(id, Held::Running(due, version));
        let asks = !self.has_room && self.is_interrupted(id);
        Some(if asks { Aimed { id, version: ASKS } } else { aimed })
    }

    /// Takes note that a job no longer has to run alone.
    pub(crate) fn note_late(&mut self, id: JobId) {
        self.interrupted.remove(&id);
    }

    pub(crate) fn is_interrupted(&self, id: JobId) -> bool {
        self.interrupted.contains(&id)
    }

    /// Sets the timer of a job again whose timer has expired, if it is armed with this version.
    pub(crate) fn put_back(&mut self, aimed: Aimed) {
        let armed = self.armed_as(aimed.id);
        if let Some(armed) = armed.filter(|armed| armed.version == aimed.version) {
            self.aim(aimed, armed.due, armed.due);
        }
    }

    /// Takes note that a handler has returned. The run ends with the commit of its outcome.
    pub(crate) fn note_return(&mut self, id: JobId) {
        if let Some(held @ Held::Running(..)) = self.jobs.get_mut(&id) {
            *held = Held::Returned;
            self.returned += 1;
        }
    }

    /// Takes note that a job waits until another of its kind has ended, on whatever node; or that it
    /// has asked, and there is room.
    pub(crate) fn put_off(&mut self, id: JobId, has_room: bool) {
        if let Some(&Held::Running(due, version)) = self.jobs.get(&id) {
            self.armed.insert((due, id));
            self.aim(Aimed { id, version }, due, due);
            self.full_until = (!has_room).then(|| self.engine.now() + FULL);
            self.has_room = has_room;
        }
    }

    /// Takes note of the end of a run, or of a start that was refused.
    pub(crate) fn end_run(&mut self, id: JobId) {
        match self.jobs.get(&id) {
            Some(Held::Running(..)) => {}
            Some(Held::Returned) => self.returned -= 1,
            Some(Held::Armed(_)) | None => return,
        }
        if self.is_interrupted(id) {
            self.has_room = self.limit == usize::MAX;
        }
        self.forget(id);
    }

    /// Aims every armed job anew, after a step of the wall clock.
    pub(crate) fn re_aim(&mut self, now: WallTime) {
        for (due, id) in self.armed.clone() {
            if let Some(Armed { version, timer, .. }) = self.armed_as(id) {
                self.engine.cancel(timer);
                self.aim(Aimed { id, version }, due, now);
            }
        }
    }

    /// Forgets every armed job, and asks for a load. For a node that has lost its lease.
    pub(crate) fn clear(&mut self) {
        for (_, id) in self.armed.clone() {
            self.remove(id);
        }
        self.forget_horizon();
    }

    /// Asks for a load at once.
    pub(crate) fn forget_horizon(&mut self) {
        self.horizon = WallTime::default();
        self.is_cut = false;
    }

    fn disarm_older(&mut self, job: DueJob) {
        let armed = self.armed_as(job.id);
        if armed.is_some_and(|armed| armed.version < job.version) {
            self.remove(job.id);
        }
    }

    /// Arms a job unless the window has it with the same or a higher version. If the window is
    /// full, the furthest job leaves it.
    fn arm(&mut self, job: DueJob, now: WallTime) {
        match self.jobs.get(&job.id) {
            Some(Held::Running(..) | Held::Returned) => return,
            Some(Held::Armed(armed)) if armed.version >= job.version => return,
            _ => self.remove(job.id),
        }
        if self.make_room_for(job) {
            let (id, version) = (job.id, job.version);
            self.armed.insert((job.due, id));
            if job.is_interrupted {
                self.interrupted.insert(id);
            }
            self.aim(Aimed { id, version }, job.due, now);
        }
    }

    fn last_armed(&self) -> Option<(WallTime, JobId)> {
        self.armed.last().copied()
    }

    fn make_room_for(&mut self, job: DueJob) -> bool {
        if self.armed.len() < self.most {
            return true;
        }
        match self.last_armed() {
            Some((furthest, id)) if job.due < furthest => {
                self.cut(furthest);
                self.remove(id);
                true
            }
            _ => {
                self.cut(job.due);
                false
            }
        }
    }

    /// Lowers the horizon to the due time of a job for which there is no room. Those behind it
    /// leave the window.
    fn cut(&mut self, horizon: WallTime) {
        if horizon >= self.horizon {
            return;
        }
        self.horizon = horizon;
        self.is_cut = true;
        self.filled = self.armed.len();
        while let Some((_, id)) = self.last_armed().filter(|(due, _)| *due > horizon) {
            self.remove(id);
        }
    }

    /// Sets the timer of an armed job. An engine that was shut down takes none.
    fn aim(&mut self, aimed: Aimed, due: WallTime, now: WallTime) {
        let Aimed { id, version } = aimed;
        let timer = Timer::after(due.since(now), aimed).queue(self.queue);
        match self.engine.schedule(timer) {
            Ok(timer) => {
                let armed = Armed { version, due, timer };
                self.jobs.insert(id, Held::Armed(armed));
            }
            Err(_) => {
                self.armed.remove(&(due, id));
                self.forget(id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
