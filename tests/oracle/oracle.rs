//! The slow oracle: a sorted map of deadlines, and the state of every timer.
//!
//! It knows nothing of slots, levels, lists and locks. Where the engine is free
//! in the order of what it does, the oracle allows each: see [`Filed`].

mod closing;

pub use closing::{CancelledThose, Report};

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tickwheel::stats::{Histogram, Ledger};
use tickwheel::{CloseReason, MissedTicks, Refusal, Time, When};

use crate::script::{Ask, First, How, Reach};
use crate::setup::{QUEUES, Setup};

pub const NEVER: u64 = u64::MAX;

/// Deadline, and the place among those of the same tick: by creation, or, for
/// what was due already as it was filed, behind them in the order of calls.
type Key = (u64, u64);

/// Where a timer was filed: for its tick, or, if that had begun, in any tick
/// from that one to the one of the call, depending on how far its wheel had got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Filed {
    from: u64,
    to: u64,
    late: bool,
    /// Younger than every other timer. An old one is filed by its age, or by
    /// this call.
    fresh: bool,
}

impl Filed {
    fn at(tick: u64) -> Filed {
        let (from, to, late, fresh) = (tick, tick, false, false);
        Filed { from, to, late, fresh }
    }

    /// Whether it may fire ahead of a timer that stands before it.
    fn may_pass(&self, ahead: &Filed) -> bool {
        let meet = ahead.from <= self.to && self.from <= ahead.to;
        let in_turn = self.fresh && !ahead.late && ahead.to <= self.from;
        let called_in_turn = self.fresh && ahead.fresh && ahead.from == self.from;
        meet && (self.late || ahead.late) && !in_turn && !called_in_turn
    }
}

/// Places behind those of all timers that were filed ahead of their deadline.
const LATE: u64 = 1 << 32;

pub struct Oracle {
    setup: Setup,
    /// What the clock says, in nanoseconds.
    pub now: u64,
    /// In the order in which they were created.
    pub timers: Vec<Timer>,
    armed: BTreeMap<Key, usize>,
    /// What waits to be taken, by shard and queue.
    ready: BTreeMap<(u64, usize), VecDeque<Ready>>,
    /// Unread reports, by shard.
    pub reports: BTreeMap<u64, VecDeque<Report>>,
    /// The ledger, kept by counting; `live` is counted when it is read.
    account: Ledger,
    /// How often something was filed that was due already.
    late: u64,
    /// How often the clock was moved.
    moves: u64,
    closed: bool,
    /// How late timers came due.
    pub lateness: Histogram,
}

pub struct Timer {
    pub shard: u64,
    pub ask: Ask,
    first: When,
    pub payload: u64,
    pub state: State,
    /// The requested time of the current or next firing, in nanoseconds.
    pub due: u64,
    /// The tick that this, rounded up, is filed for.
    pub tick: u64,
    pub number: u64,
    pub firings: u64,
    /// Firings still to be delivered, if they are counted.
    pub left: Option<u64>,
    filed: Filed,
    /// Whether it lost its name to a cancel while a worker holds a firing.
    unnamed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Unstarted {
        cancelled: bool,
    },
    Armed(Key),
    Ready,
    /// A worker holds a firing. How and at which tick the timer ends if it was
    /// cancelled, or shut down in its last firing.
    Lent {
        ending: Option<(CloseReason, u64)>,
    },
    /// Shut down at this tick, while a worker holds a firing.
    Abandoned(u64),
    /// Ended; the report has still to be read.
    Unread,
    Gone,
}

/// A timer in a ready list.
struct Ready {
    timer: usize,
    /// Which move of the clock made it ready.
    moves: u64,
    filed: Filed,
}

impl Timer {
    pub fn is_live(&self) -> bool {
        self.is_waiting() || matches!(self.state, State::Lent { .. })
    }

    pub fn is_waiting(&self) -> bool {
        matches!(self.state, State::Armed(_) | State::Ready)
    }

    /// Whether it is waiting, or else why it is not changed.
    fn waits(&self) -> Result<(), Refusal> {
        if self.is_waiting() { Ok(()) } else { Err(self.obstacle()) }
    }

    /// Why it is not changed, if it is not waiting.
    pub fn obstacle(&self) -> Refusal {
        match self.state {
            State::Unstarted { cancelled: false } => Refusal::Unstarted,
            State::Lent { ending: None } => Refusal::Running,
            State::Lent { ending: Some((CloseReason::ShutDown, _)) } => Refusal::ShutDown,
            State::Lent { .. } => Refusal::Cancelled,
            State::Abandoned(_) => Refusal::ShutDown,
            _ => Refusal::Gone,
        }
    }

    /// Whether it has one firing, which it has before it.
    pub fn is_awaited_by_a_drain(&self) -> bool {
        self.ask.period.is_none() && self.firings == 0
    }

    /// Whether no further firing follows the one that is running.
    fn is_last(&self) -> bool {
        self.left == Some(0)
    }
}

/// Time.
impl Oracle {
    pub fn new(setup: Setup) -> Oracle {
        Oracle {
            now: setup.start_nanos(),
            setup,
            timers: Vec::new(),
            armed: BTreeMap::new(),
            ready: BTreeMap::new(),
            reports: BTreeMap::new(),
            account: Ledger::default(),
            late: 0,
            moves: 0,
            closed: false,
            lateness: Histogram::default(),
        }
    }

    /// The tick that has begun last; never the one that never comes.
    pub fn now_tick(&self) -> u64 {
        self.tick_at(self.now)
    }

    fn tick_at(&self, time: u64) -> u64 {
        (time / self.setup.tick).min(NEVER - 1)
    }

    /// The first tick that begins no earlier than `time`.
    fn tick_of(&self, time: u64) -> u64 {
        // Time itself ends before the last one, if that is not a whole one.
        let tick = time.div_ceil(self.setup.tick);
        let start = tick.checked_mul(self.setup.tick);
        start.filter(|&start| start < NEVER).map_or(NEVER, |_| tick)
    }

    /// When a tick begins, in nanoseconds.
    pub fn start_of(&self, tick: u64) -> u64 {
        tick.saturating_mul(self.setup.tick)
    }

    pub fn resolve(&self, reach: Reach) -> u64 {
        let (now, tick) = (self.now, self.setup.tick);
        match reach {
            Reach::Ticks(ticks) => now.saturating_add_signed(i64::from(ticks) * tick as i64),
            Reach::Nanos(nanos) => now.saturating_add(nanos),
            Reach::Boundary(level, off) => {
                let unit = self.setup.size.saturating_pow(u32::from(level));
                let next = (self.now_tick() / unit + 1).saturating_mul(unit);
                self.start_of(next.saturating_add_signed(off.into()))
            }
            Reach::Next(off) => match self.next_tick() {
                Some(next) => self.start_of(next.saturating_add_signed(off.into())),
                None => now,
            },
            Reach::Beat(which, ahead, off) => self.beat(which, ahead, off).unwrap_or(now),
            Reach::End(before) => NEVER - u64::from(before),
            Reach::Never => NEVER,
        }
    }

    /// Only of timers that are not so far that nothing would be left to test.
    fn beat(&self, which: usize, ahead: u8, off: i8) -> Option<u64> {
        let is_near = |timer: &&Timer| timer.due.saturating_sub(self.now) < 1 << 40;
        let live = self.timers.iter().filter(|timer| timer.is_live());
        let near: Vec<_> = live.filter(is_near).collect();
        let repeating = near.iter().filter(|timer| timer.ask.period.is_some());
        let timer = repeating.cycle().nth(which)?;
        let later = timer.ask.period?.saturating_mul(ahead.into());
        let due = timer.due.saturating_add(later);
        Some(due.saturating_add_signed(off.into()))
    }

    /// What is passed to the engine to mean what the script says.
    pub fn first(&self, first: First) -> When {
        match first {
            First::At(reach) => When::At(Time::from_nanos(self.resolve(reach))),
            First::After(Reach::Never) => When::After(Duration::MAX),
            First::After(reach) => {
                let delay = self.resolve(reach).saturating_sub(self.now);
                When::After(Duration::from_nanos(delay))
            }
        }
    }

    /// When a timer is due, exactly, and the tick that it is filed for.
    fn due(&self, first: When, tolerance: u64) -> (u64, u64) {
        let due = match first {
            When::At(time) => time.as_nanos(),
            When::After(delay) => (Time::from_nanos(self.now) + delay).as_nanos(),
            When::AtInstant(_) => unreachable!("the engine's clock is virtual"),
        };
        let tick = match first {
            When::After(Duration::ZERO) => self.now_tick(),
            _ => self.tick_of(due),
        };
        (due, self.within(tolerance, due, tick))
    }

    /// The coarsest boundary of a level that the tolerance reaches.
    fn within(&self, tolerance: u64, due: u64, tick: u64) -> u64 {
        if tolerance == 0 {
            return tick;
        }
        let last = (due.saturating_add(tolerance) / self.setup.tick).min(NEVER - 1);
        let levels = self.setup.max_levels.unwrap_or(64) as u32;
        let units = (0..levels).map_while(|level| self.setup.size.checked_pow(level));
        let starts = units.filter_map(|unit| tick.div_ceil(unit).checked_mul(unit));
        starts.filter(|&start| start <= last).last().unwrap_or(tick)
    }

    /// Moves the clock, and what has come due onto the ready lists.
    pub fn advance(&mut self, to: u64) {
        self.now = self.now.max(to);
        self.moves += 1;
        while let Some(timer) = self.pop_due(self.now_tick()) {
            let late = self.now - self.start_of(self.timers[timer].tick);
            self.lateness.record(Duration::from_nanos(late));
            self.make_ready(timer);
        }
    }

    /// Does the same in steps from one due tick to the next: only what was due before is
    /// late.
    pub fn run_until(&mut self, to: u64) {
        self.advance(self.now);
        let last = self.tick_at(to);
        while let Some(tick) = self.next_tick().filter(|&tick| tick <= last) {
            self.advance(self.start_of(tick));
        }
        self.advance(to);
    }

    fn next_tick(&self) -> Option<u64> {
        let first = self.armed.first_key_value();
        first.map(|(&(tick, _), _)| tick)
    }

    fn pop_due(&mut self, now: u64) -> Option<usize> {
        self.next_tick().filter(|&tick| tick <= now)?;
        self.armed.pop_first().map(|(_, timer)| timer)
    }

    fn make_ready(&mut self, timer: usize) {
        let Timer { shard, ask, filed, .. } = self.timers[timer];
        self.timers[timer].state = State::Ready;
        let list = self.ready.entry((shard, ask.queue)).or_default();
        list.push_back(Ready { timer, moves: self.moves, filed });
    }

    /// Files a timer for a tick, which stays what it is, whether it lies ahead
    /// or has begun.
    fn file(&mut self, timer: usize, tick: u64, fresh: bool) {
        let now = self.now_tick();
        let late = tick <= now;
        let place = if late {
            self.late += 1;
            LATE + self.late
        } else {
            timer as u64
        };
        self.armed.insert((tick, place), timer);
        self.timers[timer].state = State::Armed((tick, place));
        self.timers[timer].tick = tick;
        self.timers[timer].filed = Filed { from: tick, to: now.max(tick), late, fresh };
    }

    /// Takes a waiting timer off whichever list it is on.
    fn unlist(&mut self, timer: usize) {
        match self.timers[timer].state {
            State::Armed(key) => drop(self.armed.remove(&key)),
            _ => self.ready_list(timer).retain(|ready| ready.timer != timer),
        }
    }

    fn ready_list(&mut self, timer: usize) -> &mut VecDeque<Ready> {
        let Timer { shard, ask, .. } = &self.timers[timer];
        self.ready.entry((*shard, ask.queue)).or_default()
    }
}

/// How timers begin.
impl Oracle {
    pub fn refusal(&self, ask: &Ask) -> Option<Refusal> {
        if ask.queue >= QUEUES {
            return Some(Refusal::NoSuchQueue);
        }
        let needs_period = ask.times.is_some() || ask.missed.is_some() || ask.misfit;
        let catches_up = ask.missed.unwrap_or_default() == MissedTicks::CatchUp;
        match ask.period {
            None if needs_period => return Some(Refusal::NotRepeating),
            Some(0) => return Some(Refusal::ZeroPeriod),
            Some(period) if catches_up && period.saturating_mul(100) < self.setup.tick => {
                return Some(Refusal::PeriodTooShort);
            }
            _ => {}
        }
        if self.closed {
            return Some(Refusal::ShutDown);
        }
        let ended = |timer: &&Timer| timer.state == State::Gone;
        let entries = self.timers.len() - self.timers.iter().filter(ended).count();
        (Some(entries) == self.setup.max_timers).then_some(Refusal::Full)
    }

    /// A timer that was just created begins at once.
    pub fn schedule(&mut self, timer: usize) {
        self.begin(timer, true);
    }

    pub fn create(&mut self, shard: u64, ask: Ask, payload: u64) -> usize {
        self.timers.push(Timer {
            shard,
            first: self.first(ask.first),
            ask,
            payload,
            state: State::Unstarted { cancelled: false },
            due: NEVER,
            tick: NEVER,
            number: 1,
            firings: 0,
            left: match ask.period {
                None => Some(1),
                Some(_) => ask.times.filter(|&times| times > 0),
            },
            filed: Filed::at(NEVER),
            unnamed: false,
        });
        self.timers.len() - 1
    }

    pub fn start(&mut self, timer: usize) {
        match self.timers[timer].state {
            State::Unstarted { cancelled: false } => self.begin(timer, false),
            State::Unstarted { cancelled: true } => {
                self.account.accepted += 1;
                self.end(timer, CloseReason::Cancelled, self.now_tick(), None);
            }
            state => panic!("started when {state:?}"),
        }
    }

    fn begin(&mut self, timer: usize, fresh: bool) {
        self.account.accepted += 1;
        let Timer { first, ask, .. } = self.timers[timer];
        let (due, tick) = self.due(first, ask.tolerance);
        self.timers[timer].due = due;
        self.file(timer, tick, fresh);
    }

    /// Returns the payload, if it is still there.
    pub fn dismiss(&mut self, timer: usize) -> Option<u64> {
        let cancelled = self.timers[timer].state == State::Unstarted { cancelled: true };
        self.timers[timer].state = State::Gone;
        (!cancelled).then_some(self.timers[timer].payload)
    }

    pub fn reschedule(&mut self, timer: usize, first: When) -> Result<(), Refusal> {
        self.timers[timer].waits()?;
        let (due, tick) = self.due(first, self.timers[timer].ask.tolerance);
        self.unlist(timer);
        self.timers[timer].due = due;
        self.file(timer, tick, false);
        Ok(())
    }

    pub fn replace(&mut self, timer: usize, payload: u64) -> Result<u64, (Refusal, u64)> {
        let found = &mut self.timers[timer];
        found.waits().map_err(|why| (why, payload))?;
        Ok(std::mem::replace(&mut found.payload, payload))
    }

    pub fn ledger(&self) -> Ledger {
        let mut ledger = self.account;
        ledger.live = self.timers.iter().filter(|timer| timer.is_live()).count() as u64;
        ledger
    }

    pub fn is_held(&self, timer: usize) -> bool {
        let state = self.timers[timer].state;
        matches!(state, State::Lent { .. } | State::Abandoned(_))
    }

    pub fn deadline(&self, timer: usize) -> Option<Time> {
        let timer = &self.timers[timer];
        timer.is_live().then(|| Time::from_nanos(self.start_of(timer.tick)))
    }
}

/// How timers fire.
impl Oracle {
    pub fn ready_len(&self, queue: usize) -> usize {
        let lists = self.ready.iter().filter(|((_, of), _)| *of == queue);
        lists.map(|(_, list)| list.len()).sum()
    }

    /// A worker has taken this timer: it must have been the first of its shard
    /// and queue. Returns whether the payload is lent.
    pub fn take(&mut self, timer: usize) -> bool {
        let list = self.ready_list(timer);
        let place = list.iter().position(|ready| ready.timer == timer);
        let place = place.expect("fired, and was not due");
        let taken = list.remove(place).expect("it is there");
        let may_wait =
            |ahead: &Ready| ahead.moves == taken.moves && taken.filed.may_pass(&ahead.filed);
        let first = list.iter().take(place).all(may_wait);
        assert!(first, "timer {timer} fired ahead of {}", list[0].timer);

        let taken = &mut self.timers[timer];
        taken.firings += 1;
        taken.left = taken.left.map(|left| left - 1);
        if taken.ask.is_lent() {
            taken.state = State::Lent { ending: None };
            return true;
        }
        let tick = taken.tick;
        self.end(timer, CloseReason::Completed, tick, None);
        false
    }

    /// A firing that was lent comes back.
    pub fn let_go(&mut self, timer: usize, how: How, payload: u64) {
        let back = (how != How::KeepingThePayload).then_some(payload);
        let lent = &mut self.timers[timer];
        let ending = match lent.state {
            State::Lent { ending } => ending,
            State::Abandoned(tick) => {
                return self.close(timer, CloseReason::ShutDown, tick, back);
            }
            state => panic!("came back when {state:?}"),
        };
        lent.payload = payload;
        let tick = lent.tick;
        match (lent.is_last(), how, ending) {
            (true, How::Panicking, _) => self.end(timer, CloseReason::Failed, tick, back),
            (true, ..) => self.end(timer, CloseReason::Completed, tick, back),
            (_, _, Some((reason, tick))) => self.end(timer, reason, tick, back),
            (_, How::KeepingThePayload, _) => {
                self.end(timer, CloseReason::Cancelled, self.now_tick(), None);
            }
            _ => {
                let (due, steps) = self.next_firing(timer);
                let tick = self.within(self.timers[timer].ask.tolerance, due, self.tick_of(due));
                self.again(timer, due, tick, steps);
            }
        }
    }

    /// Whether the holder of a firing can set the next deadline.
    pub fn can_rearm(&self, timer: usize) -> Result<(), Refusal> {
        let lent = &self.timers[timer];
        match lent.state {
            _ if !lent.ask.is_lent() => Err(Refusal::NotRearmable),
            State::Lent { ending: None } if self.closed => Err(Refusal::ShutDown),
            State::Lent { ending: None } if lent.ask.period.is_some() && lent.is_last() => {
                Err(Refusal::UsedUp)
            }
            State::Lent { ending: None } => Ok(()),
            _ => Err(lent.obstacle()),
        }
    }

    /// The holder of a firing gives it back, and sets the next deadline.
    pub fn rearm(&mut self, timer: usize, first: When, payload: u64) {
        let (due, tick) = self.due(first, self.timers[timer].ask.tolerance);
        let lent = &mut self.timers[timer];
        lent.payload = payload;
        lent.left = lent.left.map(|left| left.max(1));
        lent.due = due;
        lent.number += 1;
        self.file(timer, tick, false);
    }

    /// The holder of a firing may not set the next deadline. A timer that would have
    /// fired again ends as it was marked.
    pub fn refuse_to_rearm(&mut self, timer: usize) {
        let lent = &mut self.timers[timer];
        if matches!(lent.state, State::Lent { ending: Some(_) }) && lent.ask.period.is_none() {
            lent.left = lent.left.map(|left| left.max(1));
        }
    }

    fn again(&mut self, timer: usize, due: u64, tick: u64, steps: u64) {
        let again = &mut self.timers[timer];
        again.due = due;
        again.number += steps;
        again.tick = tick;
        again.filed = Filed::at(tick);
        if tick <= self.now_tick() {
            self.make_ready(timer);
        } else {
            self.file(timer, tick, false);
        }
    }

    /// When the next firing is due, and how many due ticks later that is.
    fn next_firing(&self, timer: usize) -> (u64, u64) {
        let now = self.now;
        let Timer { ask, due, .. } = self.timers[timer];
        let period = ask.period.expect("only what repeats is lent");
        let next = due.saturating_add(period);
        let is_missed = self.within(ask.tolerance, next, self.tick_of(next)) <= self.tick_at(now);
        match ask.missed.unwrap_or_default() {
            MissedTicks::Skip if is_missed => {
                let steps = (now - due) / period + 1;
                (due.saturating_add(steps.saturating_mul(period)), steps)
            }
            MissedTicks::Delay if is_missed => (now.saturating_add(period), 1),
            _ => (next, 1),
        }
    }
}
