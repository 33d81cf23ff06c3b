//! The state of a search, and its next step.

use super::*;

impl Search {
    pub(super) fn new(seed: u64) -> Search {
        let mut random = fastrand::Rng::with_seed(seed);
        let size = [2, 4, 64][random.usize(..3)];
        let shard = shard(size, Pool::share(Some(MOST_TIMERS), 2)());
        Search {
            now: Time::from_millis(shard.wheel.now().0),
            shard,
            next: 0,
            inside: BTreeSet::new(),
            ids: Vec::new(),
            unstarted: Vec::new(),
            held: Vec::new(),
            looking: None,
            cancelling: None,
            closing: None,
            is_shrinking: false,
            drains: Vec::new(),
            bells: [false; QUEUES + 1],
            settled: 0,
            random,
        }
    }

    pub(super) fn payload(&mut self) -> u64 {
        let payload = self.next;
        self.next += 1;
        payload
    }

    pub(super) fn came_in(&mut self, payload: u64) {
        assert!(self.inside.insert(payload), "{payload} is inside already");
    }

    pub(super) fn came_out(&mut self, payload: u64) {
        assert!(self.inside.remove(&payload), "{payload} came out twice");
    }

    /// The end of a hold.
    pub(super) fn release(&mut self) {
        let earliest = self.shard.take_earliest_new();
        assert!(earliest == Tick::MAX || self.shard.phase != Phase::Closed);
        if !self.shard.has_signals() {
            return;
        }
        let signals = self.shard.take_signals();
        for queue in signals.bells() {
            assert!(!std::mem::replace(&mut self.bells[queue], true));
        }
        self.settled += usize::from(signals.all_reported);
    }

    pub(super) fn some_time(&mut self) -> Time {
        let ms = match self.random.u32(..8) {
            0 => return Time::from_nanos(self.now.as_nanos() - 1_000_000),
            1..5 => self.random.u64(..4),
            5..7 => self.random.u64(..80),
            _ => self.random.u64(..100_000),
        };
        self.now + Duration::from_millis(ms)
    }

    pub(super) fn some_id(&mut self) -> Option<TimerId> {
        let count = self.ids.len();
        let recent = self.random.bool();
        match (count, recent) {
            (0, _) => None,
            (_, true) => Some(self.ids[count - 1 - self.random.usize(..count.min(6))]),
            (_, false) => Some(self.ids[self.random.usize(..count)]),
        }
    }

    pub(super) fn some_timer<P>(&mut self, payload: P) -> Timer<P> {
        let at = self.some_time();
        let period = Duration::from_millis(1 + self.random.u64(..5));
        let mut timer = if self.random.bool() {
            Timer::every(period, payload).starting(at).times(self.random.u64(..3))
        } else {
            Timer::at(at, payload)
        };
        timer = timer.queue(self.random.usize(..QUEUES));
        timer.reported = self.random.bool();
        timer.rearmable = self.random.bool();
        timer.task = self.random.bool();
        timer.notified = self.random.bool();
        if self.random.u8(..4) == 0 {
            timer = timer.tolerance(Duration::from_millis(self.random.u64(..9)));
        }
        timer
    }

    /// Gives a timer one of two names, which have the same hash.
    pub(super) fn some_name<P>(&mut self, timer: &mut Timer<P>) -> Option<u64> {
        timer.name = NAMES.get(self.random.usize(..4)).map(|&name| name.into());
        timer.name.as_ref().map(|_| HASH)
    }

    pub(super) fn some_of(&mut self, count: usize) -> Option<usize> {
        (count > 0).then(|| self.random.usize(..count))
    }

    pub(super) fn due(&self, requested: Time) -> Due {
        let deadline = self.shard.tick.tick_after(requested);
        Due { requested, deadline }
    }

    pub(super) fn when<P>(&self, timer: &Timer<P>) -> Due {
        match timer.requested {
            crate::timeline::When::At(time) => self.due(time),
            crate::timeline::When::After(delay) => self.due(self.now + delay),
            crate::timeline::When::AtInstant(_) => unreachable!(),
        }
    }

    pub(super) fn step(&mut self) {
        let call = self.random.u32(..100);
        match call {
            0..12 => self.schedule_plain(),
            12..22 => self.schedule_recorded(),
            22..25 => self.create(),
            25..27 => self.start(),
            27 => self.dismiss(),
            28..46 => self.expire(),
            46..56 => self.claim(),
            56..59 => self.claim_report(),
            59..64 => self.return_firing(),
            64..67 => self.rearm(),
            67..80 => self.change_one(),
            80..94 => self.shrink(),
            95 => self.walk(),
            94 if self.random.bool() => self.cancel_by_name(),
            96 if self.random.u8(..4) == 0 => self.cancel_all(),
            97 if self.random.u8(..16) == 0 => self.drain(),
            98 if self.random.u8(..16) == 0 => self.close(),
            _ => {}
        }
        if self.cancelling.is_some() && self.random.bool() {
            self.cancel_all();
        }
        if !self.drains.is_empty() && self.random.bool() {
            self.drain();
        }
        if self.closing.is_some() && self.random.bool() {
            self.close();
        }
        self.release();
        self.check();
    }
}
