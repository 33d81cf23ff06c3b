//! What is known of one timer, and its payload, which keeps that up to date.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tickwheel::Engine;

use crate::book::Book;
use crate::threads;

/// How often a timer is to fire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Firings {
    Once,
    Times(u32),
    Forever,
}

/// What a timer was asked to be.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub firings: Firings,
    /// Nanoseconds from one firing to the next.
    pub period: u64,
    pub reported: bool,
    /// Too far away to be waited for.
    pub far: bool,
}

/// Which answer said that the timer has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum End {
    No,
    Refused,
    Delivered,
    Cancelled,
    ShutDown,
    Dismissed,
}

const ENDS: [End; 6] = [
    End::No,
    End::Refused,
    End::Delivered,
    End::Cancelled,
    End::ShutDown,
    End::Dismissed,
];

#[derive(Debug)]
pub struct Record {
    pub asked: Asked,
    /// The next firing must not come before this.
    not_before: Mutex<u64>,
    end: AtomicU8,
    accepted: AtomicBool,
    /// No firing may come after this many.
    firings_max: AtomicU32,
    /// Somebody ended it while it ran: how many more come is open.
    stopped: AtomicBool,
    pub delivered: AtomicU32,
    pub in_hand: AtomicU32,
    pub reports: AtomicU32,
    tokens_made: AtomicU32,
    tokens_dropped: AtomicU32,
}

impl Record {
    pub fn new(asked: Asked, not_before: u64) -> Arc<Record> {
        let firings_max = match asked.firings {
            Firings::Once => 1,
            Firings::Times(times) => times,
            Firings::Forever => u32::MAX,
        };
        Arc::new(Record {
            asked,
            not_before: Mutex::new(not_before),
            end: AtomicU8::new(End::No as u8),
            accepted: AtomicBool::new(false),
            firings_max: AtomicU32::new(firings_max),
            stopped: AtomicBool::new(false),
            delivered: AtomicU32::new(0),
            in_hand: AtomicU32::new(0),
            reports: AtomicU32::new(0),
            tokens_made: AtomicU32::new(0),
            tokens_dropped: AtomicU32::new(0),
        })
    }

    pub fn end(&self) -> End {
        ENDS[usize::from(self.end.load(Ordering::Acquire))]
    }

    pub fn accept(&self) {
        self.accepted.store(true, Ordering::Release);
    }

    pub fn is_accepted(&self) -> bool {
        self.accepted.load(Ordering::Acquire)
    }

    /// Held while the deadline is changed, and while a delivery is judged.
    pub fn not_before(&self) -> MutexGuard<'_, u64> {
        self.not_before
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how the timer ended; it must not have ended before.
    pub fn ends(&self, end: End, book: &Book) {
        let before = ENDS[usize::from(self.end.swap(end as u8, Ordering::AcqRel))];
        if before != End::No {
            book.broke(format!("two endings, {before:?} and {end:?}: {self:?}"));
        }
    }

    /// One firing may be under way; there must be none after it.
    pub fn runs_for_the_last_time(&self) {
        self.stopped.store(true, Ordering::Release);
        let last = self.delivered.load(Ordering::Acquire) + 1;
        self.firings_max.fetch_min(last, Ordering::AcqRel);
    }

    /// The worker that holds a firing keeps the payload.
    pub fn fires_no_more(&self) {
        self.stopped.store(true, Ordering::Release);
        let delivered = self.delivered.load(Ordering::Acquire);
        self.firings_max.fetch_min(delivered, Ordering::AcqRel);
    }

    /// Judges a firing that a worker got at `now`.
    pub fn deliver(&self, now: u64, book: &Book) {
        self.in_hand.fetch_add(1, Ordering::AcqRel);
        let mut not_before = self.not_before();
        if now < *not_before {
            let early = *not_before - now;
            book.broke(format!("early by {early} ns: {self:?}"));
        }
        *not_before = not_before.saturating_add(self.asked.period);
        drop(not_before);
        let delivered = self.delivered.fetch_add(1, Ordering::AcqRel) + 1;
        if delivered > self.firings_max.load(Ordering::Acquire) {
            book.broke(format!("fired once too often: {self:?}"));
        }
        if self.in_hand.load(Ordering::Acquire) > 1 {
            book.broke(format!("two firings at a time: {self:?}"));
        }
        match self.asked.firings {
            Firings::Once => self.ends(End::Delivered, book),
            // A shutdown may have overtaken a firing that was taken before it.
            _ if matches!(self.end(), End::No | End::ShutDown) => {}
            _ => book.broke(format!("fired after it had ended: {self:?}")),
        }
    }

    pub fn let_go(&self) {
        self.in_hand.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether it still has to fire, sooner or later.
    pub fn is_awaited(&self) -> bool {
        let fires = match self.asked.firings {
            Firings::Once => !self.asked.far,
            Firings::Times(times) => self.delivered.load(Ordering::Acquire) < times,
            Firings::Forever => false,
        };
        let lives = self.end() == End::No && !self.stopped.load(Ordering::Acquire);
        fires && lives && self.is_accepted()
    }

    pub fn are_tokens_dropped(&self) -> bool {
        let made = self.tokens_made.load(Ordering::Acquire);
        made == self.tokens_dropped.load(Ordering::Acquire)
    }

    /// What must hold when nothing of the engine is left.
    pub fn check(&self, all_told: bool, book: &Book) {
        if !self.are_tokens_dropped() {
            book.broke(format!("a payload was lost or dropped twice: {self:?}"));
        }
        let is_untold = self.asked.firings == Firings::Once && self.end() == End::No;
        if all_told && self.is_accepted() && is_untold {
            book.broke(format!("ended without a word: {self:?}"));
        }
        let wanted = u32::from(self.asked.reported && self.is_accepted());
        let reports = self.reports.load(Ordering::Acquire);
        if reports > wanted || all_told && reports < wanted {
            book.broke(format!("{reports} reports instead of {wanted}: {self:?}"));
        }
    }
}

/// A payload that counts itself.
#[derive(Debug)]
pub struct Token {
    pub record: Arc<Record>,
    book: Book,
    /// Dropped with the token, wherever that is.
    handle: Option<Engine<Token>>,
}

impl Token {
    pub fn new(record: &Arc<Record>, book: &Book) -> Token {
        record.tokens_made.fetch_add(1, Ordering::AcqRel);
        Token {
            record: Arc::clone(record),
            book: book.clone(),
            handle: None,
        }
    }

    pub fn holding(mut self, handle: Engine<Token>) -> Token {
        self.handle = Some(handle);
        self
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.record.tokens_dropped.fetch_add(1, Ordering::AcqRel);
        if thread::current().name() == Some(threads::TICKER) {
            self.book.broke("the ticker dropped a payload".into());
        }
    }
}
