//! The clocks of the system: the monotonic clock and, on Linux and Android, the boot-time
//! clock.

#[cfg(any(target_os = "linux", target_os = "android"))]
use core::mem::MaybeUninit;
use core::time::Duration;
use std::hash::{Hash, Hasher};
use std::time::Instant;

use crate::timeline::{Time, nanos};

/// The system clock that an engine follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum ClockSource {
    /// The monotonic clock, which stands still while the machine is suspended, except on
    /// Windows.
    #[default]
    Monotonic,
    /// The boot-time clock, which also runs while the machine is suspended. Only
    /// Linux and Android have it. On other systems, this is the monotonic clock.
    BootTime,
}

/// Small, because every expired timer contains a copy.
#[derive(Clone, Copy)]
pub(crate) struct SystemClock {
    source: ClockSource,
    /// Whether this clock measures instants and [`nanos_between`] knows them.
    has_numbers: bool,
    /// The nanoseconds in which `origin` was read, beginning at `instant`. Two clocks
    /// cannot be read at once, and this is how far their readings may be apart.
    spread: u32,
    /// The reading of the system's clock at the start.
    origin: u64,
    instant: Instant,
}

/// The number of times that the clocks are read for a small spread. A thread that is
/// interrupted between two readings measures a large one.
const READINGS: usize = 8;

impl SystemClock {
    pub(crate) fn new(source: ClockSource) -> SystemClock {
        let readings = (0..READINGS).map(|_| SystemClock::read(source));
        let best = readings.min_by_key(|clock| clock.spread);
        let best = best.expect("there are several readings");
        let has_numbers = best.measures_instants() && has_numbers(best.instant);
        SystemClock { has_numbers, ..best }
    }

    fn read(source: ClockSource) -> SystemClock {
        let instant = Instant::now();
        let origin = raw_nanos(source, instant);
        let spread = u32::try_from(nanos(instant.elapsed()));
        let spread = spread.unwrap_or(u32::MAX);
        SystemClock { source, has_numbers: false, spread, origin, instant }
    }

    pub(crate) fn name(&self) -> &'static str {
        if self.measures_instants() { "monotonic" } else { "boot time" }
    }

    /// Returns the number of nanoseconds since the start.
    #[inline]
    pub(crate) fn nanos(&self) -> u64 {
        raw_nanos(self.source, self.instant).saturating_sub(self.origin)
    }

    /// Returns the system's identifier of this clock, for timerfd.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn id(&self) -> libc::clockid_t {
        id(self.source)
    }

    /// Returns the reading of the system's clock at `time`.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn raw(&self, time: Time) -> u64 {
        self.origin.saturating_add(time.as_nanos())
    }

    /// Returns `None` unless this clock measures instants.
    #[inline]
    pub(crate) fn time_of(&self, instant: Instant) -> Option<Time> {
        // `self.instant` was read a moment before `origin`. The result is
        // therefore a moment late, but never early.
        match nanos_between(self.instant, instant).filter(|_| self.has_numbers) {
            Some(nanos) => Some(Time::from_nanos(nanos)),
            None => self.time_by_difference(instant),
        }
    }

    #[cold]
    fn time_by_difference(&self, instant: Instant) -> Option<Time> {
        let since = instant.checked_duration_since(self.instant);
        let time = Time::START + since.unwrap_or_default();
        self.measures_instants().then_some(time)
    }

    #[inline]
    pub(crate) fn after(&self, delay: Duration) -> Time {
        // `instant_at` is early by at most `spread`.
        Time::from_nanos(self.nanos() + u64::from(self.spread)) + delay
    }

    pub(crate) fn instant_at(&self, time: Time) -> Option<Instant> {
        let since = Duration::from_nanos(time.as_nanos());
        let instant = self.instant.checked_add(since);
        instant.filter(|_| self.measures_instants())
    }

    pub(crate) fn instant_of(&self, time: Time) -> Option<Instant> {
        // `origin` was read at most `spread` after `self.instant`. The result is
        // therefore a moment late, but never early.
        let late = Duration::from_nanos(u64::from(self.spread));
        self.instant_at(time)?.checked_add(late)
    }

    fn measures_instants(&self) -> bool {
        let is_linux = cfg!(any(target_os = "linux", target_os = "android"));
        !is_linux || self.source == ClockSource::Monotonic
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn id(source: ClockSource) -> libc::clockid_t {
    match source {
        ClockSource::Monotonic => libc::CLOCK_MONOTONIC,
        ClockSource::BootTime => libc::CLOCK_BOOTTIME,
    }
}

/// Returns the reading of the system's clock.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn raw_nanos(source: ClockSource, _: Instant) -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is valid for writes. The call succeeds and fills it
    // in, because every kernel that has timerfd has both clocks.
    let now = unsafe {
        let result = libc::clock_gettime(id(source), now.as_mut_ptr());
        debug_assert_eq!(result, 0);
        now.assume_init()
    };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the nanoseconds since an instant, because other systems have no other clock.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn raw_nanos(_: ClockSource, since: Instant) -> u64 {
    nanos(since.elapsed())
}

// An `Instant` as a number.
//
// The standard library subtracts instants in a call of its own, with checks, and returns
// a `Duration`. For a sleep with a given deadline, that is a good part of the work
// (DESIGN.md, "The engine has a time line of its own"). An `Instant` has no number, but it
// has a `Hash`, which shows its fields to any hasher. The hasher here keeps them.
//
// What a hash consists of is no promise of the standard library. A clock therefore
// compares the numbers with differences of instants when it starts, and does without the
// numbers if they differ (`has_numbers`).

const PER_SECOND: u64 = 1_000_000_000;

/// Returns the nanoseconds from one instant to another. Returns `None` if it is earlier, if the
/// number does not fit, or if the fields are not the expected ones.
#[inline]
fn nanos_between(from: Instant, to: Instant) -> Option<u64> {
    let [from, to] = [from, to].map(|instant| {
        let mut fields = Fields::default();
        instant.hash(&mut fields);
        fields.seconds.zip(fields.nanos).filter(|_| !fields.unexpected)
    });
    let ((from, from_nanos), (to, to_nanos)) = from.zip(to)?;
    let seconds = u64::try_from(to.checked_sub(from)?).ok()?;
    let nanos = seconds.checked_mul(PER_SECOND)?.checked_add(to_nanos.into())?;
    nanos.checked_sub(from_nanos.into())
}

/// Returns whether the numbers of instants are as far apart as the instants.
fn has_numbers(instant: Instant) -> bool {
    let agrees = |&nanos: &u64| {
        let after = instant.checked_add(Duration::from_nanos(nanos));
        after.and_then(|after| nanos_between(instant, after)) == Some(nanos)
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

/// As good as never for a timer of Windows: three centuries.
#[cfg(any(windows, test))]
const LONGEST_DELAY: Duration = Duration::from_secs(10_000_000_000);

/// Returns the due time of a waitable timer that goes off after `delay`, and never
/// before: a number of hundreds of nanoseconds, rounded up. It is negative, because any
/// other number is a time of day.
#[cfg(any(windows, test))]
pub(super) fn due_time(delay: Duration) -> i64 {
    let hundreds = delay.min(LONGEST_DELAY).as_nanos().div_ceil(100).max(1);
    -(hundreds as i64)
}

#[cfg(all(test, target_os = "linux", not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_as_far_apart_as_their_instants(nanos in 0..u64::MAX / 2, shift in 0..63u32) {
            let now = Instant::now();
            let later = now + Duration::from_nanos(nanos >> shift);
            prop_assert_eq!(nanos_between(now, later), Some(nanos >> shift));
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
            assert_eq!(nanos_between(now, instant), None);
            assert_eq!(nanos_between(instant, now), None);
        }
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

    #[test]
    fn neither_conversion_is_early_however_far_apart_the_clocks_were_read() {
        const SPREAD: u32 = 1_000_000_000;
        let clock = SystemClock {
            // Much longer than it takes to read a clock twice.
            spread: SPREAD,
            ..SystemClock::new(ClockSource::Monotonic)
        };
        // The engine's clock shows zero at this instant, or up to the spread later.
        let start = clock.instant;
        let latest = start + Duration::from_nanos(SPREAD.into());
        assert_eq!(clock.time_of(latest), Some(Time::from_nanos(SPREAD.into())));
        assert_eq!(clock.instant_of(Time::START), Some(latest));
        assert_eq!(clock.raw(Time::MAX), u64::MAX);
        // A delay counts from a time that instants have reached, too.
        let now = Time::from_nanos(clock.nanos() + u64::from(SPREAD));
        assert!(clock.after(Duration::ZERO) >= now);
    }

    #[test]
    fn an_instant_is_no_earlier_than_a_time_that_was_read_before() {
        for _ in 0..10_000 {
            let clock = SystemClock::read(ClockSource::Monotonic);
            let before = Time::from_nanos(clock.nanos());
            assert!(clock.time_of(Instant::now()) >= Some(before));
        }
    }

    #[test]
    fn a_due_time_is_never_early() {
        for (nanos, hundreds) in [(1, 1), (99, 1), (100, 1), (101, 2), (1_000_001, 10_001)] {
            assert_eq!(due_time(Duration::from_nanos(nanos)), -hundreds, "{nanos}");
        }
    }

    #[test]
    fn a_due_time_is_relative_for_every_delay() {
        for delay in [Duration::ZERO, LONGEST_DELAY, Duration::MAX] {
            assert!(due_time(delay) < 0);
            assert!(due_time(delay) >= due_time(LONGEST_DELAY));
        }
    }
}
