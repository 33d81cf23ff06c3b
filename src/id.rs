//! Timer ids. An id names a wheel, an entry, and one of the timers that the entry
//! has held.

pub(crate) mod by_hash;
mod wheel_count;

use core::fmt;
use core::num::NonZeroU64;

/// The position of the sequence number in [`TimerId::high`]. The lower bits hold
/// the upper part of the wheel's number.
const SEQUENCE_SHIFT: u32 = 12;
const WHEEL_HIGH_MASK: u64 = (1 << SEQUENCE_SHIFT) - 1;

/// The largest sequence number of an id. It has 52 bits, so a wheel that schedules
/// ten million timers a second reaches it in fourteen years.
pub(crate) const MAX_SEQUENCE: u64 = (1 << 52) - 1;

/// Identifies one timer of one [`Wheel`](crate::Wheel) or
/// [`Engine`](crate::Engine), for ever.
///
/// An id is a plain value that can be copied, stored and sent to other threads.
/// Dropping it cancels nothing. When its timer has ended, the id is stale. A stale
/// id is harmless: it never refers to a later timer, even one in the same storage,
/// nor to a timer of another wheel or engine of the same process, unless one wheel is a
/// [clone](crate::Wheel#clones) of the other. Ids of one `Wheel` compare in the order in which
/// their timers were scheduled; see [Saving a game](crate::Wheel::iter_in_order).
///
/// # As a number
/// An id converts to a `u128` and back, for a log, a foreign interface or a wire.
/// A forged id is as harmless as a stale one: a call with it never touches memory
/// that is not its own and never disturbs a wheel. At worst, the forged id is the id
/// of a live timer, which the call then cancels or moves. Ids count upwards and are
/// easy to guess, so an id is no secret and proves nothing about its sender.
///
/// Ids have no meaning in another process, or after a restart. There they may equal
/// ids of other timers.
///
/// ```
/// use tickwheel::{Tick, Wheel};
///
/// let mut wheel = Wheel::new(64);
/// let first = wheel.schedule_at(Tick(5), 'a');
/// assert_eq!(wheel.cancel(first), Some('a'));
///
/// let second = wheel.schedule_at(Tick(5), 'b'); // takes over the storage
/// assert_ne!(first, second);
/// assert_eq!(wheel.cancel(first), None);
/// assert_eq!(wheel.len(), 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerId {
    /// The sequence number, followed by the upper 12 bits of the wheel's number.
    high: NonZeroU64,
    /// The lower 32 bits of the wheel's number, followed by the entry's index.
    low: u64,
}

impl TimerId {
    #[inline]
    pub(crate) fn new(wheel: WheelNumber, sequence: u64, index: u32) -> TimerId {
        debug_assert!(0 < sequence && sequence <= MAX_SEQUENCE);
        let high = (sequence << SEQUENCE_SHIFT) | wheel.high;
        TimerId {
            // A sequence number is never zero, so `MIN` is never used.
            high: NonZeroU64::new(high).unwrap_or(NonZeroU64::MIN),
            low: wheel.low | u64::from(index),
        }
    }

    /// Returns the distance of the timer's wheel from `first`, if
    /// [`WheelNumber::reserve`] reserved both in one call. For any other wheel, the
    /// distance is huge.
    #[inline]
    pub(crate) fn wheels_after(self, first: WheelNumber) -> usize {
        let other_high = (self.high.get() ^ first.high) << (u64::BITS - SEQUENCE_SHIFT);
        let ahead = self.low.wrapping_sub(first.low) >> 32;
        usize::try_from(other_high | ahead).unwrap_or(usize::MAX)
    }

    /// Returns an id that no timer has, for an owner of ids that notes something else in the
    /// place of one.
    #[inline]
    pub(crate) const fn unissued(number: u64) -> TimerId {
        // The sequence number is zero, which is that of an entry without a timer.
        let high = NonZeroU64::MIN;
        TimerId { high, low: number }
    }

    /// Returns the number of which [`TimerId::unissued`] made this id.
    #[inline]
    pub(crate) fn unissued_number(self) -> Option<u64> {
        (self.high == NonZeroU64::MIN).then_some(self.low)
    }

    /// Returns whether the timer belongs to this wheel.
    #[inline]
    pub(crate) fn is_of(self, wheel: WheelNumber) -> bool {
        let (high, low) = self.words_in(wheel);
        high & WHEEL_HIGH_MASK | low >> 32 == 0
    }

    /// Returns both words without the number of the timer's wheel: the sequence number, followed
    /// by 12 zeros, and the index of the entry. For any other wheel, the first word has other bits
    /// there, or the second one has more than 32 bits.
    #[inline]
    pub(crate) fn words_in(self, wheel: WheelNumber) -> (u64, u64) {
        (self.high.get() ^ wheel.high, self.low ^ wheel.low)
    }

    #[inline]
    pub(crate) fn wheel(self) -> WheelNumber {
        WheelNumber { high: self.high.get() & WHEEL_HIGH_MASK, low: self.low >> 32 << 32 }
    }

    #[inline]
    pub(crate) fn sequence(self) -> u64 {
        self.high.get() >> SEQUENCE_SHIFT
    }

    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.low as u32
    }
}

/// Returns the id as a number, for [`TimerId::try_from`].
///
/// ```
/// use tickwheel::{Tick, TimerId, Wheel};
///
/// let mut wheel = Wheel::new(64);
/// let id = wheel.schedule_at(Tick(5), "reply");
/// let sent = u128::from(id).to_string();
///
/// let received = sent.parse::<u128>()?;
/// assert_eq!(wheel.cancel(TimerId::try_from(received)?), Some("reply"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl From<TimerId> for u128 {
    fn from(id: TimerId) -> u128 {
        u128::from(id.high.get()) << u64::BITS | u128::from(id.low)
    }
}

/// Returns the id that [`u128::from`] made into this number.
///
/// Fails only for a number that no id has. A number from any other source makes an
/// id that is harmless: see [`TimerId`].
///
/// ```
/// use tickwheel::TimerId;
///
/// let error = TimerId::try_from(0).unwrap_err();
/// assert_eq!(error.to_string(), "no timer has this id: convert only numbers made from ids");
/// ```
impl TryFrom<u128> for TimerId {
    type Error = InvalidTimerId;

    fn try_from(number: u128) -> Result<TimerId, InvalidTimerId> {
        let high = NonZeroU64::new((number >> u64::BITS) as u64).ok_or(InvalidTimerId)?;
        let low = number as u64;
        // Entries without a timer have the sequence number zero.
        match high.get() >> SEQUENCE_SHIFT {
            0 => Err(InvalidTimerId),
            _ => Ok(TimerId { high, low }),
        }
    }
}

/// The error of converting a number to a [`TimerId`]: no timer can have this id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct InvalidTimerId;

impl fmt::Display for InvalidTimerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no timer has this id: convert only numbers made from ids")
    }
}

impl core::error::Error for InvalidTimerId {}

impl fmt::Debug for TimerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TimerId({self})")
    }
}

/// Writes the number of the wheel, that of the entry, and that of the timer, for a log.
///
/// ```
/// use tickwheel::{Tick, Wheel};
///
/// let id = Wheel::new(64).schedule_at(Tick(5), ());
/// let parts = id.to_string();
/// assert_eq!(parts.split('.').count(), 3);
/// assert_eq!(format!("{id:?}"), format!("TimerId({parts})"));
/// ```
impl fmt::Display for TimerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wheel, entry, timer) = (self.wheel(), self.index(), self.sequence());
        write!(f, "{wheel}.{entry}.{timer}")
    }
}

/// The number of a wheel within the process. It has 44 bits and is never reused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WheelNumber {
    /// The upper 12 bits.
    high: u64,
    /// The lower 32 bits of the number, in the upper half of this word, as in an id.
    low: u64,
}

impl WheelNumber {
    /// Reserves `count` consecutive numbers with the same upper bits, and returns the
    /// first.
    pub(crate) fn reserve(count: usize) -> WheelNumber {
        let count = count as u64;
        let next = wheel_count::advance(|next| first_of(count, next) + count);
        let first = next.map(|next| first_of(count, next));
        match first.filter(|&first| first < 1 << 43) {
            Some(first) => WheelNumber::from(first),
            None => panic!("this process has made too many wheels"),
        }
    }

    #[inline]
    fn number(self) -> u64 {
        self.high << 32 | self.low >> 32
    }

    /// Returns the number `offset` places after this one.
    pub(crate) fn nth(self, offset: usize) -> WheelNumber {
        WheelNumber::from(self.number() + offset as u64)
    }
}

/// Returns the first of `count` consecutive numbers from `next` on that have the same
/// upper bits.
fn first_of(count: u64, next: u64) -> u64 {
    let last = next + count.saturating_sub(1);
    if next >> 32 == last >> 32 { next } else { last >> 32 << 32 }
}

impl From<u64> for WheelNumber {
    fn from(number: u64) -> WheelNumber {
        WheelNumber { high: number >> 32, low: number << 32 }
    }
}

impl fmt::Display for WheelNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.number(), f)
    }
}

// For the feature `serde`: an id as the number that it converts to.
//
// It is a string in binary formats too: JSON readers round large numbers, and serde
// cannot buffer a `u128`, as tagged enums and flattened structs need in any format.
#[cfg(feature = "serde")]
mod serialize {
    use core::fmt;

    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;
    use serde::{Deserialize, Serialize};

    use super::TimerId;

    /// The number of [`u128::from`], in decimal in a string.
    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    impl Serialize for TimerId {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(&u128::from(*self))
        }
    }

    /// Fails if no id has the number. Any other id is harmless: see [`TimerId`].
    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    impl<'de> Deserialize<'de> for TimerId {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TimerId, D::Error> {
            deserializer.deserialize_str(Decimal)
        }
    }

    struct Decimal;

    impl Visitor<'_> for Decimal {
        type Value = TimerId;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a timer id, as a decimal number in a string")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<TimerId, E> {
            let number = text.parse::<u128>().map_err(E::custom)?;
            TimerId::try_from(number).map_err(E::custom)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tick, Wheel};

    #[test]
    fn an_id_returns_the_parts_that_it_was_made_of() {
        for wheel in [1, 0xFFFF_FFFF, 0x1_0000_0000, (1 << 44) - 1] {
            for sequence in [1, 4_096, MAX_SEQUENCE] {
                for index in [0, 1, u32::MAX] {
                    let id = TimerId::new(wheel.into(), sequence, index);
                    assert_eq!(id.wheel(), WheelNumber::from(wheel));
                    assert_eq!(id.sequence(), sequence);
                    assert_eq!(id.index(), index);
                }
            }
        }
    }

    #[test]
    fn an_id_takes_two_words_even_if_it_is_optional() {
        assert_eq!(size_of::<TimerId>(), 16);
        assert_eq!(size_of::<Option<TimerId>>(), 16);
    }

    #[test]
    fn an_id_belongs_to_its_own_wheel_alone() {
        // The last two differ from the first by the same bits in both halves.
        let wheels = [1 << 32 | 1, 1, 1 << 32, (1 << 44) - 1, 2 << 32 | 2, 0];
        for made in wheels.map(WheelNumber::from) {
            for asked in wheels.map(WheelNumber::from) {
                let id = TimerId::new(made, MAX_SEQUENCE, u32::MAX);
                assert_eq!(id.is_of(asked), made == asked, "{made} {asked}");
                let own = (MAX_SEQUENCE << SEQUENCE_SHIFT, u64::from(u32::MAX));
                assert_eq!(id.words_in(asked) == own, made == asked, "{made} {asked}");
            }
        }
    }

    #[test]
    fn a_number_without_a_sequence_number_is_no_id() {
        for wheel in [0, 1, u128::from(u32::MAX), (1 << 44) - 1] {
            for index in [0, 1, u128::from(u32::MAX)] {
                let number = wheel << 32 | index;
                assert_eq!(TimerId::try_from(number), Err(InvalidTimerId));
                let first = 1 << (u64::BITS + SEQUENCE_SHIFT) | number;
                assert_eq!(TimerId::try_from(first).map(u128::from), Ok(first));
            }
        }
        assert_eq!(TimerId::try_from(u128::MAX).map(u128::from), Ok(u128::MAX));
    }

    #[test]
    fn numbers_of_wheels_are_counted_from_the_first() {
        let first = WheelNumber::from(5);
        assert_eq!(first.nth(3), WheelNumber::from(8));
        assert_eq!(first.nth(3).to_string(), "8");
        let id = |wheel| TimerId::new(wheel, MAX_SEQUENCE, u32::MAX);
        for first in [first, WheelNumber::from(7 << 32)] {
            assert_eq!(id(first.nth(3)).wheels_after(first), 3);
            assert!(id(first).wheels_after(first.nth(3)) > 1 << 30);
            let same_low = WheelNumber::from(first.number() + (1 << 32));
            assert!(id(same_low).wheels_after(first) > 1 << 30);
        }
    }

    #[test]
    fn numbers_that_are_reserved_together_have_the_same_upper_bits() {
        let last = (1 << 32) - 1;
        assert_eq!(first_of(4, 5), 5);
        assert_eq!((first_of(1, last), first_of(2, last)), (last, 1 << 32));
        assert_eq!(first_of(4, last - 3), last - 3);
        assert_eq!(first_of(4, last - 2), 1 << 32);
        assert_eq!(first_of(4, 1 << 32), 1 << 32);
        // Of two that reserve nearly all, the second begins anew.
        let reserve = || WheelNumber::reserve(last as usize);
        let ends = |first: WheelNumber| (first.number(), first.number() + last - 1);
        let [one, two] = [ends(reserve()), ends(reserve())];
        assert!(one.1 < two.0 && one.0 >> 32 == one.1 >> 32 && two.0 >> 32 == two.1 >> 32);
    }

    #[test]
    fn a_wheel_tells_its_own_ids_from_those_of_another() {
        let mut wheels = [Wheel::new(64), Wheel::new(64)];
        let ids = wheels.each_mut().map(|wheel| wheel.schedule_at(Tick(5), ()));
        assert_eq!(wheels[0].cancel(ids[1]), None);
        assert!(wheels[0].contains(ids[0]) && wheels[1].contains(ids[1]));
    }
}
