//! An `Instant` as a number.
//!
//! The standard library subtracts instants in a call of its own, with checks, and returns
//! a `Duration`. For a sleep with a given deadline, that is a sixth of the work. An
//! `Instant` has no number, but it has a `Hash`, which shows its fields to any hasher.
//! The hasher here keeps them.
//!
//! What a hash consists of is no promise of the standard library. A clock therefore
//! compares the numbers with differences of instants when it starts, and does without the
//! numbers if they differ ([`has_numbers`]).

use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

const PER_SECOND: u64 = 1_000_000_000;

/// Returns the nanoseconds of an instant since an unknown origin, the same for all
/// instants. Returns `None` if the number does not fit, or if the fields are not the
/// expected ones.
#[inline]
pub(super) fn number(instant: Instant) -> Option<u64> {
    let mut fields = Fields::default();
    instant.hash(&mut fields);
    let seconds = u64::try_from(fields.seconds?).ok()?;
    let nanos = u64::from(fields.nanos.filter(|_| !fields.unexpected)?);
    seconds.checked_mul(PER_SECOND)?.checked_add(nanos)
}

/// Returns whether the numbers of instants are as far apart as the instants.
pub(super) fn has_numbers(instant: Instant) -> bool {
    let number_after = |delay| instant.checked_add(delay).and_then(number);
    let agrees = |&nanos: &u64| {
        let after = number_after(Duration::from_nanos(nanos));
        after.is_some() && after == number(instant).map(|number| number + nanos)
    };
    let powers = (0..55).map(|power| 1 << power);
    let around = [PER_SECOND - 1, PER_SECOND, PER_SECOND + 1];
    powers.chain(around).all(|nanos| agrees(&nanos))
}

/// The numbers that a hash consists of.
#[derive(Default)]
struct Fields {
    seconds: Option<i64>,
    nanos: Option<u32>,
    unexpected: bool,
}

impl Hasher for Fields {
    #[inline]
    fn write_i64(&mut self, seconds: i64) {
        self.unexpected |= self.seconds.replace(seconds).is_some();
    }

    #[inline]
    fn write_u32(&mut self, nanos: u32) {
        self.unexpected |= self.nanos.replace(nanos).is_some();
    }

    fn write(&mut self, _: &[u8]) {
        self.unexpected = true;
    }

    fn finish(&self) -> u64 {
        0
    }
}

// Elsewhere, an instant may consist of other fields.
#[cfg(all(test, target_os = "linux", not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_as_far_apart_as_their_instants(nanos in 0..u64::MAX / 2, shift in 0..63u32) {
            let now = Instant::now();
            let later = now + Duration::from_nanos(nanos >> shift);
            let numbers = number(later).zip(number(now));
            let apart = numbers.map(|(later, now)| later - now);
            prop_assert_eq!(apart, Some(nanos >> shift));
        }
    }

    #[test]
    fn the_standard_library_shows_what_is_expected() {
        assert!(has_numbers(Instant::now()));
    }

    #[test]
    fn a_number_that_does_not_fit_is_none() {
        let now = Instant::now();
        let far = [600, 1_000_000].map(|years| Duration::from_secs(years * 365 * 24 * 3_600));
        for instant in far.map(|far| now.checked_add(far).expect("it is a valid instant")) {
            assert_eq!(number(instant), None);
        }
        let before_all = now.checked_sub(far[0]);
        assert_eq!(before_all.and_then(number), None);
    }

    #[test]
    fn other_fields_are_noticed() {
        let fields_of = |value: &dyn Fn(&mut Fields)| {
            let mut fields = Fields::default();
            value(&mut fields);
            fields
        };
        assert!(fields_of(&|fields| 1_u64.hash(fields)).unexpected);
        assert!(fields_of(&|fields| (1_i64, 2_i64).hash(fields)).unexpected);
        assert!(fields_of(&|fields| (1_i64, 2_u32, 3_u32).hash(fields)).unexpected);
        assert!(!fields_of(&|fields| (1_i64, 2_u32).hash(fields)).unexpected);
    }
}
