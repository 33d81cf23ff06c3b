//! A node on virtual time: one thread does what several do otherwise.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use tickwheel::VirtualClock;

use crate::inner::Run;
use crate::runner::Runner;
use crate::wall::{ManualClock, WallClock, WallTime};

/// The driver of a node that was opened with
/// [`open_virtual`](crate::Builder::open_virtual).
///
/// Handlers run within [`run_until`](VirtualNode::run_until), on the calling thread, in the
/// order in which their jobs become due; only asynchronous ones run on their runtime, in real time.
/// To make the wall clock step, set the [`ManualClock`]: what the node's timers count does not
/// change by that. Of jobs that a step made due, those of a kind with a limit may run later.
pub struct VirtualNode {
    runner: Arc<Runner>,
    wall: ManualClock,
    clock: VirtualClock,
    /// The jobs that may run. The starts whose commit failed follow once the store has recovered.
    started: (Sender<Run>, Receiver<Run>),
}

debug!(VirtualNode, this, jobs: this.runner.jobs, wall: this.wall);

impl VirtualNode {
    pub(crate) fn new(runner: Arc<Runner>, wall: ManualClock, clock: VirtualClock) -> VirtualNode {
        VirtualNode { runner, wall, clock, started: unbounded() }
    }

    /// Moves the clocks forward to `time`, and runs everything that becomes due on the way.
    /// If `time` has passed, runs what is due now.
    pub fn run_until(&self, time: WallTime) {
        loop {
            let inner = self.runner.inner();
            inner.commits.try_recover(&inner.node);
            inner.commit_here();
            let next = inner.keep();
            self.run_due();
            let now = self.wall.now();
            if now >= time {
                return;
            }
            self.advance(self.next_stop(next, now).min(time).since(now));
        }
    }

    /// Returns the time at which something happens next: a load, a renewal or a timer.
    fn next_stop(&self, keep: WallTime, now: WallTime) -> WallTime {
        let engine = &self.runner.inner().node.engine;
        let deadline = engine.earliest_deadline();
        let timer = deadline.map(|deadline| now + deadline.since(engine.now()));
        let tick = now + Duration::from_micros(1);
        timer.map_or(keep, |timer| timer.min(keep)).max(tick)
    }

    fn advance(&self, by: Duration) {
        self.wall.set(self.wall.now() + by);
        self.clock.advance(by);
    }

    /// Runs the jobs whose timers have expired, and those that become due by that.
    fn run_due(&self) {
        let inner = self.runner.inner();
        loop {
            self.run_started();
            self.clock.advance(Duration::ZERO);
            let mut is_idle = true;
            for lane in 0..inner.node.lanes() {
                let (queue, room) = (inner.node.engine.queue(lane), inner.node.room(lane));
                let mut aimed = Vec::new();
                if room > 0 && queue.try_recv_many(&mut aimed, room).is_ok() {
                    is_idle = false;
                    let started = self.started.0.clone();
                    inner.start(lane, aimed, move |run| drop(started.send(run)));
                }
            }
            if is_idle {
                return;
            }
        }
    }

    fn run_started(&self) {
        for run in self.started.1.try_iter() {
            self.runner.run(run, ());
        }
        self.runner.inner().after_commit();
    }
}
