//! The stamp of an entry, which identifies the timer in it, if any.

/// The identity of an entry's timer: a sequence number that is never reused, and
/// a tag with some bits of state for the owner of the wheel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Stamp(u64);

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

    /// Returns the stamp with the next sequence number and the same tag, or `None`
    /// if no sequence number is left.
    #[inline]
    pub(crate) fn following(self) -> Option<Stamp> {
        self.0.checked_add(1 << Self::TAG_BITS).map(Stamp)
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
