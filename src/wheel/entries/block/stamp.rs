//! The stamp of an entry, which identifies the timer in it, if any.

use core::num::NonZeroU64;

/// The identity of an entry's timer: a sequence number that is never reused, and
/// a tag with some bits of state for the owner of the wheel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Stamp(u64);

/// A sequence number in the place that it has in a stamp and in an id. It is not zero, so
/// no call has to check that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence(NonZeroU64);

impl Sequence {
    /// The sequence number 1.
    pub(crate) const FIRST: Sequence = match NonZeroU64::new(1 << Stamp::TAG_BITS) {
        Some(first) => Sequence(first),
        None => unreachable!(),
    };

    /// Returns the next sequence number, or `None` if none is left.
    #[inline]
    pub(crate) fn following(self) -> Option<Sequence> {
        self.0.checked_add(1 << Stamp::TAG_BITS).map(Sequence)
    }

    #[inline]
    pub(crate) fn shifted(self) -> NonZeroU64 {
        self.0
    }

    /// Returns the stamp of the timer with this number.
    #[inline]
    pub(crate) fn stamp(self, tag: u16) -> Stamp {
        Stamp(self.0.get()).with(tag)
    }
}

impl Stamp {
    pub(crate) const TAG_BITS: u32 = 12;
    const TAG_MASK: u64 = (1 << Self::TAG_BITS) - 1;
    /// Less than every timer's stamp.
    pub(crate) const VACANT: Stamp = Stamp(0);
    /// Less than every timer's stamp.
    pub(super) const SENTINEL: Stamp = Stamp(1);

    pub(crate) fn new(sequence: u64, tag: u16) -> Stamp {
        debug_assert!(0 < sequence && sequence <= u64::MAX >> Self::TAG_BITS);
        debug_assert!(u64::from(tag) <= Self::TAG_MASK);
        Stamp(sequence << Self::TAG_BITS | u64::from(tag))
    }

    #[inline]
    pub(crate) fn sequence(self) -> u64 {
        self.0 >> Self::TAG_BITS
    }

    #[inline]
    pub(crate) fn tag(self) -> u16 {
        (self.0 & Self::TAG_MASK) as u16
    }

    /// Returns the stamp with another tag.
    #[inline]
    pub(crate) fn tagged(self, tag: u16) -> Stamp {
        Stamp(self.0 & !Self::TAG_MASK | u64::from(tag) & Self::TAG_MASK)
    }

    /// Returns the stamp with these bits of the tag set.
    #[inline]
    pub(crate) fn with(self, bits: u16) -> Stamp {
        Stamp(self.0 | u64::from(bits) & Self::TAG_MASK)
    }

    /// Returns the stamp with these bits of the tag clear.
    #[inline]
    pub(crate) fn without(self, bits: u16) -> Stamp {
        Stamp(self.0 & !(u64::from(bits) & Self::TAG_MASK))
    }

    /// Returns whether the stamp belongs to a timer, whatever its tag.
    #[inline]
    pub(crate) fn is_timer(self) -> bool {
        self.0 > Self::TAG_MASK
    }

    /// Returns whether the stamp belongs to a list head.
    pub(super) fn is_sentinel(self) -> bool {
        self == Stamp::SENTINEL
    }
}
