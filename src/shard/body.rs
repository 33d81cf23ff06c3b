//! The body of a wheel's entry: a payload or, for the few timers that need more, the
//! index of a record. While a worker has a task without a record, the body is the time at
//! which the worker took it.
//!
//! The entry's tag says which of these it is. An enum would cost eight more bytes for
//! every timer.

use core::mem::ManuallyDrop;

use crate::timeline::Time;
use crate::wheel::{Stamp, Tag};

/// The bits of a shard.
impl Tag {
    const RECORD: u16 = 1 << 3;
    const READY: u16 = 1 << 4;
    /// A one-shot whose payload is lent when it is taken. Together with `RECORD`, a task
    /// that a worker runs, and that has no record.
    const TASK: u16 = 1 << 5;
    const LENT: u16 = Self::TASK | Self::RECORD;
    const QUEUE_SHIFT: u32 = 6;
    /// The number of queues that fit into a tag.
    pub(crate) const QUEUES: usize = 1 << (Stamp::TAG_BITS - Self::QUEUE_SHIFT);

    #[inline]
    pub(crate) fn one_shot(queue: usize, task: bool) -> Tag {
        debug_assert!(queue < Self::QUEUES);
        let task = if task { Self::TASK } else { 0 };
        Tag((queue as u16) << Self::QUEUE_SHIFT | task)
    }

    /// Returns the tag of any timer with a record, which has its queue.
    pub(crate) fn recorded() -> Tag {
        Tag(Self::RECORD)
    }

    /// Whether the body is the index of a `TimerRecord`.
    #[inline]
    pub(crate) fn has_record(self) -> bool {
        self.0 & Self::LENT == Self::RECORD
    }

    /// Whether the body is a payload.
    #[inline]
    pub(crate) fn has_payload(self) -> bool {
        self.0 & Self::RECORD == 0
    }

    /// Whether the body is a payload and the timer is waiting for its deadline.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        self.0 & (Self::RECORD | Self::READY) == 0
    }

    /// Whether a worker that takes the timer gets its payload for good.
    #[inline]
    pub(crate) fn ends_when_taken(self) -> bool {
        self.0 & (Self::RECORD | Self::TASK) == 0
    }

    /// Whether a worker runs this task, which has no record.
    #[inline]
    pub(crate) fn is_lent(self) -> bool {
        self.0 & Self::LENT == Self::LENT
    }

    /// Returns the tag of the same task while a worker runs it.
    pub(crate) fn lent(self) -> Tag {
        Tag(self.0 | Self::LENT)
    }

    /// Whether the timer has expired and is waiting to be taken.
    #[inline]
    pub(crate) fn is_ready(self) -> bool {
        self.0 & Self::READY != 0
    }

    #[inline]
    pub(crate) fn ready(self, ready: bool) -> Tag {
        if ready { Tag(self.0 | Self::READY) } else { Tag(self.0 & !Self::READY) }
    }

    /// Returns the queue of a one-shot.
    #[inline]
    pub(crate) fn queue(self) -> usize {
        (self.0 >> Self::QUEUE_SHIFT) as usize
    }
}

pub(crate) union Body<T> {
    payload: ManuallyDrop<T>,
    record: u32,
    taken: Time,
}

impl<T> Body<T> {
    #[inline]
    pub(crate) fn payload(payload: T) -> Body<T> {
        Body { payload: ManuallyDrop::new(payload) }
    }

    pub(crate) fn record(record: usize) -> Body<T> {
        Body { record: u32::try_from(record).expect("no more records than entries") }
    }

    /// Makes the body of a task that a worker has, and took at `taken` if takes
    /// are measured.
    #[inline]
    pub(crate) fn lent(taken: Option<Time>) -> Body<T> {
        Body { taken: taken.unwrap_or(Time::MAX) }
    }

    /// # Safety
    /// The body must have been made by [`Body::payload`].
    #[inline]
    pub(crate) unsafe fn into_payload(self) -> T {
        // SAFETY: the caller promises that this field was written.
        ManuallyDrop::into_inner(unsafe { self.payload })
    }

    /// # Safety
    /// The body must have been made by [`Body::payload`].
    #[inline]
    pub(crate) unsafe fn as_payload(&self) -> &T {
        // SAFETY: the caller promises that this field was written.
        unsafe { &self.payload }
    }

    /// # Safety
    /// The body must have been made by [`Body::payload`].
    pub(crate) unsafe fn payload_mut(&mut self) -> &mut T {
        // SAFETY: the caller promises that this field was written.
        unsafe { &mut self.payload }
    }

    /// # Safety
    /// The body must have been made by [`Body::lent`].
    pub(crate) unsafe fn as_taken(&self) -> Option<Time> {
        // SAFETY: the caller promises that this field was written.
        Some(unsafe { self.taken }).filter(|&taken| taken != Time::MAX)
    }

    /// # Safety
    /// The body must have been made by [`Body::record`].
    #[inline]
    pub(crate) unsafe fn as_record(&self) -> usize {
        // SAFETY: the caller promises that this field was written.
        unsafe { self.record as usize }
    }
}
