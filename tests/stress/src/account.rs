//! The account of every timer, and what was broken.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tickwheel::{CloseReason, TimerId};

use crate::plan::Random;

/// How long timers may take to fire, and payloads to be dropped, before they count as lost. A
/// starved thread gets there in the end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Counts for display, by which the watchdog sees that something moves.
pub static OPERATIONS: AtomicU64 = AtomicU64::new(0);
pub static FIRED: AtomicU64 = AtomicU64::new(0);

static BROKEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub fn tally() -> String {
    let [operations, fired] = [&OPERATIONS, &FIRED].map(|count| count.load(Ordering::Relaxed));
    format!("{operations} operations, {fired} fired")
}

/// Notes that something does not hold.
pub fn broke(what: String) {
    lock(&BROKEN).push(what);
}

pub fn take_broken() -> Vec<String> {
    std::mem::take(&mut lock(&BROKEN))
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether it came to hold.
pub fn wait_until(mut holds: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(Duration::from_millis(2));
    }
    true
}

/// A timer that got an id.
#[derive(Clone)]
pub struct Known {
    pub id: TimerId,
    pub record: Arc<Record>,
}

/// Every timer of a round.
#[derive(Default)]
pub struct Book(Mutex<Vec<Known>>);

impl Book {
    pub fn enter(&self, known: Known) {
        lock(&self.0).push(known);
    }

    pub fn all(&self) -> Vec<Known> {
        lock(&self.0).clone()
    }

    /// One of the latest, or now and then any, whose id is long stale.
    pub fn find(&self, random: &mut Random) -> Option<Known> {
        let all = lock(&self.0);
        let latest = if random.once_in(8) { usize::MAX } else { 256 };
        let back = random.index(all.len().clamp(1, latest));
        all.iter().rev().nth(back).cloned()
    }
}

/// What a timer was asked to be.
#[derive(Clone, Copy, Default, Debug)]
pub struct Asked {
    /// Firings, of a repeating timer; `u32::MAX` is for ever.
    pub times: Option<u32>,
    /// Nanoseconds from one firing to the next.
    pub period: u64,
    pub reported: bool,
    /// Its task runs whatever becomes of it, and nobody else says how it ended.
    pub notified: bool,
    /// Too far away to be waited for.
    pub far: bool,
}

/// Which answer said that the timer has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Refused,
    Delivered,
    Cancelled,
    ShutDown,
}

/// What is known of one timer.
#[derive(Debug)]
pub struct Record(Mutex<State>);

#[derive(Default, Debug)]
pub struct State {
    pub asked: Asked,
    /// The next firing must not come before this.
    pub not_before: u64,
    pub is_accepted: bool,
    end: Option<End>,
    /// No firing may come after this many.
    firings_max: u32,
    /// Somebody ended it while it ran: how many more come is open.
    is_stopped: bool,
    delivered: u32,
    pub in_hand: u32,
    reports: u32,
    /// Payloads that were made and not dropped yet.
    pub tokens: i32,
}

impl Record {
    pub fn new(asked: Asked, not_before: u64) -> Arc<Record> {
        Arc::new(Record(Mutex::new(State {
            asked,
            not_before,
            firings_max: asked.times.unwrap_or(1),
            ..State::default()
        })))
    }

    /// Held while a deadline is changed, and while a delivery is judged.
    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

impl State {
    pub fn expect(&self, holds: bool, otherwise: impl Display) {
        if !holds {
            broke(format!("{otherwise}: {self:?}"));
        }
    }

    pub fn ends(&mut self, end: End) {
        let before = self.end.replace(end);
        self.expect(before.is_none(), format_args!("it had ended: {before:?}"));
    }

    /// Somebody ended it while a firing may be under way: at most so many `more` may come.
    pub fn stop(&mut self, more: u32) {
        self.is_stopped = true;
        self.firings_max = self.firings_max.min(self.delivered + more);
    }

    /// Judges a firing with this number that somebody got at `now`.
    pub fn deliver(&mut self, now: u64, number: u64) {
        count(&FIRED);
        (self.in_hand, self.delivered) = (self.in_hand + 1, self.delivered + 1);
        let is_open = matches!(self.end, None | Some(End::ShutDown)); // which may overtake it
        let early = self.not_before.saturating_sub(now);
        self.expect(early == 0, format_args!("early by {early} ns"));
        self.expect(self.delivered <= self.firings_max, "fired once too often");
        let is_next = number >= self.delivered.into();
        self.expect(is_next, format_args!("this was firing {number}"));
        self.expect(self.in_hand == 1, "two firings at a time");
        self.expect(is_open || self.asked.times.is_none(), "fired after its end");
        self.not_before = self.not_before.saturating_add(self.asked.period);
        if self.asked.times.is_none() {
            self.ends(End::Delivered);
        }
    }

    /// Whether it still has to fire.
    pub fn is_awaited(&self) -> bool {
        let fires = match self.asked.times {
            None => !self.asked.far,
            Some(times) => times != u32::MAX && self.delivered < times,
        };
        fires && self.is_accepted && self.end.is_none() && !self.is_stopped
    }

    /// Compares a closed report with what the threads saw.
    pub fn report(&mut self, firings: u64, reason: CloseReason, all_told: bool) {
        self.reports += 1;
        let agrees = match (reason, self.end) {
            (CloseReason::Completed | CloseReason::Failed, Some(End::Delivered)) => true,
            (CloseReason::Cancelled, Some(End::Cancelled)) => true,
            (CloseReason::ShutDown, Some(End::ShutDown)) => true,
            // Dropping the last handle does not return the live timers.
            (CloseReason::ShutDown, _) if !all_told => true,
            // Ended while a worker held it: only the report says so.
            (_, None) => self.asked.times.is_some(),
            _ => false,
        };
        let agrees = agrees && firings == u64::from(self.delivered);
        self.expect(agrees, format_args!("reported {reason:?} after {firings}"));
    }

    /// What must hold when nothing of the engine is left.
    pub fn check(&self, all_told: bool) {
        self.expect(self.tokens == 0, "a payload was lost or dropped twice");
        let has_ended = !self.is_accepted || self.asked.times.is_some() || self.end.is_some();
        self.expect(has_ended || !all_told, "ended without a word");
        let wanted = u32::from(self.asked.reported && self.is_accepted);
        let is_reported = self.reports == wanted || !all_told && self.reports == 0;
        self.expect(is_reported, format_args!("not {wanted} reports"));
    }
}
