//! Keep-alives: a future that ends when its handle has not been touched for a while.
//!
//! Handle and future share one word, which says what happened since the future last
//! looked: nothing, one touch and its time, or several touches. The first touch after a
//! look reads the clock, and the second notes that there are several. All others find
//! that noted, and only read the word. The future looks four times per limit. After one
//! touch it counts the limit from that touch, and after several from its look, because it
//! does not know the time of the last one.
//!
//! Why the future does not end early:
//!
//! * *A look comes before its reading of the clock.* A touch that found the word full
//!   began before the look, and therefore before the time from which the limit counts.
//! * *A touch that is late takes nothing back.* A thread may be interrupted between
//!   reading the clock and writing the word, while another one touches. The future counts
//!   from the latest time that it knows.
//! * *The end is a value of the word.* It replaces "nothing" in one step. A touch comes
//!   before that step, and the future sleeps again, or after it, and the touch returns
//!   `false`.

use core::fmt;
use core::future::Future;
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use crate::clock::Clock;
use crate::sync::{Arc, AtomicU64, Ordering};
use crate::time::Timers;
use crate::time::handle::{Global, Handle};
use crate::time::registration::Ended;
use crate::time::sleep::{Sleep, panic_of_refusal};
use crate::timeline::Time;

// The values of the word that are no time of a touch. No clock shows these times.
/// Nothing was touched since the last look.
const UNTOUCHED: u64 = u64::MAX - 2;
/// There were several touches since the last look.
const SEVERAL: u64 = u64::MAX - 1;
const ENDED: u64 = u64::MAX;

/// The number of looks in a limit, and so the share of the limit by which the end may be
/// late.
const LOOKS: u32 = 4;

struct Word {
    /// The time of the only touch since the last look, in nanoseconds, or one of the
    /// values above. No other data hangs on it, so all accesses are relaxed.
    touched: AtomicU64,
    clock: Clock,
}

impl Word {
    fn new(clock: Clock) -> Word {
        let touched = AtomicU64::new(UNTOUCHED);
        Word { touched, clock }
    }

    #[inline]
    fn touch(&self) -> bool {
        match self.touched.load(Ordering::Relaxed) {
            SEVERAL => true,
            found => self.note_touch(found),
        }
    }

    /// Notes the first or the second touch since a look.
    #[cold]
    fn note_touch(&self, found: u64) -> bool {
        let mut found = found;
        loop {
            let new = match found {
                ENDED => return false,
                SEVERAL => return true,
                UNTOUCHED => now(&self.clock),
                _once => SEVERAL,
            };
            match self.swap_if(found, new) {
                Ok(_) => return true,
                Err(other) => found = other,
            }
        }
    }

    fn swap_if(&self, known: u64, new: u64) -> Result<u64, u64> {
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        self.touched.compare_exchange(known, new, success, failure)
    }

    /// Looks for touches since the last look. Returns the time from which the limit
    /// counts, unless it counts from a later one that is known. Reads the clock last.
    fn look(&self) -> Option<Time> {
        let nanos = match self.touched.swap(UNTOUCHED, Ordering::AcqRel) {
            UNTOUCHED => return None,
            SEVERAL => now(&self.clock),
            once => once,
        };
        Some(Time::from_nanos(nanos))
    }

    /// Ends the keep-alive, unless it was touched since the last look. Returns whether it
    /// has ended.
    fn end_unless_touched(&self) -> bool {
        matches!(self.swap_if(UNTOUCHED, ENDED), Ok(_) | Err(ENDED))
    }

    fn end(&self) {
        self.touched.store(ENDED, Ordering::Relaxed);
    }

    fn has_ended(&self) -> bool {
        self.touched.load(Ordering::Relaxed) == ENDED
    }
}

/// Returns the time of a touch now, which is never too early.
#[inline]
fn now(clock: &Clock) -> u64 {
    clock.after(Duration::ZERO).as_nanos().min(UNTOUCHED - 1)
}

/// The future's share of the word. Nobody waits once it is dropped.
struct Watch(Arc<Word>);

impl Deref for Watch {
    type Target = Word;

    fn deref(&self) -> &Word {
        &self.0
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Creates a keep-alive on the process-wide timers: a handle that a connection touches,
/// and a future that ends when no handle has been touched for `limit`.
///
/// The first period begins with this call.
///
/// ```
/// use std::time::{Duration, Instant};
/// use tickwheel::time::{Idle, KeepAlive, keep_alive, sleep};
///
/// // A session that closes itself after 20 ms without a message.
/// async fn session(alive: KeepAlive, idle: Idle) {
///     for _message in 0..3 {
///         sleep(Duration::from_millis(10)).await;
///         alive.touch();
///     }
///     idle.await;
///     assert!(!alive.touch()); // too late
/// }
///
/// let begin = Instant::now();
/// let (alive, idle) = keep_alive(Duration::from_millis(20));
/// pollster::block_on(session(alive, idle));
/// assert!(begin.elapsed() >= Duration::from_millis(20));
/// ```
pub fn keep_alive(limit: Duration) -> (KeepAlive, Idle) {
    new(Global, limit)
}

impl Timers {
    /// Creates a keep-alive; see [`keep_alive`](crate::time::keep_alive).
    pub fn keep_alive(&self, limit: Duration) -> (KeepAlive, Idle<&Timers>) {
        new(self, limit)
    }
}

fn new<H: Handle>(handle: H, limit: Duration) -> (KeepAlive, Idle<H>) {
    let word = Arc::new(Word::new(handle.timers().core().clock.clone()));
    let since = Time::from_nanos(now(&word.clock));
    let idle = Idle {
        sleep: Sleep::at(handle, since + between_looks(limit).min(limit)),
        since,
        limit,
        word: Watch(Arc::clone(&word)),
    };
    (KeepAlive { word }, idle)
}

/// Returns the time from one look to the next, which is never zero.
fn between_looks(limit: Duration) -> Duration {
    limit / LOOKS + Duration::from_nanos(1)
}

/// Keeps an [`Idle`] from ending.
///
/// Clones touch the same future, from any thread. Dropping a handle touches nothing:
/// without any handle, the future ends when the limit has passed.
///
/// [`keep_alive`] and [`Timers::keep_alive`] create it.
#[derive(Clone)]
pub struct KeepAlive {
    word: Arc<Word>,
}

impl KeepAlive {
    /// Begins a new idle period. Returns `false` if the future has ended or was dropped;
    /// the touch is without effect then.
    ///
    /// If it returns `true`, the future does not end until the limit has passed from the
    /// start of this call.
    ///
    /// # Cost
    /// Reads one word, which the threads that touch share without writing it. The first
    /// two touches in each quarter of the limit write it, and the first also reads the
    /// clock. Takes no lock and does not call the engine.
    #[inline]
    pub fn touch(&self) -> bool {
        self.word.touch()
    }

    /// Returns whether the future has ended or was dropped.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.word.has_ended()
    }
}

impl fmt::Debug for KeepAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("KeepAlive");
        debug.field("has_ended", &self.has_ended()).finish()
    }
}

/// A future that ends when its [`KeepAlive`] has not been touched for the limit.
///
/// Ends never early: the limit has passed since the start of the last touch. If there was
/// one touch in the last quarter of the limit before that, ends at most a tick
/// and a wake-up later. If there were several, ends at most another quarter of
/// the limit later, because a touch does not read the clock each time.
///
/// Wakes up four times per limit. Dropping it frees its timer at once; so does its end.
/// If it is leaked, its timer fires once.
///
/// After [`Timers::shutdown`] it ends at once, and [`is_elapsed`](Idle::is_elapsed)
/// returns `false`.
///
/// # Panics
/// The first poll panics if the timers were shut down before.
#[must_use = "futures do nothing unless polled"]
pub struct Idle<H: Handle = Global> {
    /// Sleeps until the next look.
    sleep: Sleep<H>,
    /// The time from which the limit counts.
    since: Time,
    limit: Duration,
    word: Watch,
}

impl<H: Handle> Idle<H> {
    /// Returns the length of an idle period.
    #[must_use]
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns whether the future has ended because nothing was touched for the limit.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        self.word.has_ended() && self.sleep.is_elapsed()
    }

    /// Looks for touches, and sets the time of the next look. Returns `false` if the
    /// limit has passed: the future has ended.
    fn goes_on(&mut self) -> bool {
        let looked = self.sleep.deadline_time();
        if looked >= self.since + self.limit && self.word.end_unless_touched() {
            return false;
        }
        self.since = self.word.look().map_or(self.since, |at| at.max(self.since));
        let next = looked.max(self.since) + between_looks(self.limit);
        self.sleep.set_deadline(next.min(self.since + self.limit));
        true
    }
}

impl<H: Handle> Future for Idle<H> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let mut ended = ready!(this.sleep.poll_ended(context));
        if ended == Ended::Refused {
            panic_of_refusal();
        }
        while ended == Ended::Elapsed {
            if !this.goes_on() {
                return Poll::Ready(());
            }
            ended = ready!(this.sleep.poll_ended(context));
        }
        this.word.end();
        Poll::Ready(())
    }
}

impl Idle<&Timers> {
    /// Returns the same future with a handle of its own, which a spawned task needs; see
    /// [`Sleep::into_owned`].
    pub fn into_owned(self) -> Idle<Timers> {
        Idle {
            sleep: self.sleep.into_owned(),
            since: self.since,
            limit: self.limit,
            word: self.word,
        }
    }
}

impl<H: Handle> fmt::Debug for Idle<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Idle");
        debug.field("limit", &self.limit);
        debug.field("has_ended", &self.word.has_ended()).finish()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::Arc;
    use std::task::{Wake, Waker};
    use std::time::Instant;

    use super::*;
    use crate::clock::ClockSource;
    use crate::time::TimersClock;

    const LIMIT: Duration = Duration::from_secs(30);
    const TICK: Duration = Duration::from_millis(1);

    fn timers() -> (Timers, TimersClock) {
        Timers::builder().start_virtual().unwrap()
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Count>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A future, and the number of times that its task was woken.
    struct Task<'a> {
        idle: Idle<&'a Timers>,
        woken: Arc<Count>,
    }

    impl<'a> Task<'a> {
        fn new(idle: Idle<&'a Timers>) -> Task<'a> {
            let woken = Arc::default();
            Task { idle, woken }
        }

        fn has_ended(&mut self) -> bool {
            let waker = Waker::from(Arc::clone(&self.woken));
            let idle = Pin::new(&mut self.idle);
            idle.poll(&mut Context::from_waker(&waker)).is_ready()
        }

        fn woken(&self) -> usize {
            self.woken.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn ends_when_the_limit_has_passed_and_not_before() {
        let (timers, clock) = timers();
        let (alive, idle) = timers.keep_alive(LIMIT);
        let mut task = Task::new(idle);
        assert!(!task.has_ended());
        clock.advance(LIMIT - Duration::from_nanos(1));
        assert!(!task.has_ended() && !alive.has_ended());
        let woken = task.woken();
        clock.advance(TICK);
        assert_eq!(task.woken(), woken + 1);
        assert!(task.has_ended() && alive.has_ended() && task.idle.is_elapsed());
        assert_eq!(timers.ledger().live, 0);
    }

    #[test]
    fn a_touch_begins_a_new_period_and_costs_no_timer() {
        let (timers, clock) = timers();
        let (alive, idle) = timers.keep_alive(LIMIT);
        let mut task = Task::new(idle);
        assert!(!task.has_ended());
        // A touch every second, the last one after 100 seconds.
        for _ in 0..100 {
            clock.advance(Duration::from_secs(1));
            assert!(alive.touch());
            if task.woken() > 0 {
                assert!(!task.has_ended());
            }
        }
        let woken = task.woken();
        assert!(woken <= 4 * 4, "woken {woken} times");
        assert_eq!(timers.ledger().accepted, 1 + woken as u64);
        // The future looks, and counts from there.
        clock.advance(LIMIT / 4);
        assert!(!task.has_ended());
        clock.advance(LIMIT * 3 / 4 - TICK);
        assert!(!task.has_ended());
        clock.advance(LIMIT / 4 + TICK);
        assert!(task.has_ended());
    }

    #[test]
    fn touches_of_all_clones_count_even_if_the_rest_is_dropped() {
        let (timers, clock) = timers();
        let (alive, idle) = timers.keep_alive(LIMIT);
        let clones: Vec<KeepAlive> = (0..10).map(|_| alive.clone()).collect();
        drop(alive);
        let mut task = Task::new(idle);
        for clone in clones {
            clock.advance(LIMIT - TICK);
            assert!(!task.has_ended());
            assert!(clone.touch());
        }
        // No handle is left, and the limit still counts from the last touch.
        clock.advance(LIMIT - TICK);
        assert!(!task.has_ended());
        clock.advance(TICK);
        assert!(task.has_ended());
    }

    #[test]
    fn a_touch_after_the_end_is_refused_and_changes_nothing() {
        let (timers, clock) = timers();
        let (alive, idle) = timers.keep_alive(LIMIT);
        let mut task = Task::new(idle);
        clock.advance(LIMIT);
        // Over the limit, but the future has not looked: the touch comes in time.
        assert!(alive.touch());
        assert!(!task.has_ended());
        clock.advance(LIMIT);
        assert!(task.has_ended());
        assert!(!alive.touch() && !alive.touch());
        assert!(task.has_ended());
    }

    #[test]
    fn a_dropped_future_frees_its_timer_and_refuses_touches() {
        let (timers, _clock) = timers();
        let (alive, idle) = timers.keep_alive(LIMIT);
        let mut task = Task::new(idle);
        assert!(!task.has_ended());
        assert_eq!(timers.ledger().live, 1);
        drop(task);
        assert_eq!(timers.ledger().live, 0);
        assert!(!alive.touch() && alive.has_ended());
    }

    #[test]
    fn a_leaked_future_fires_once_and_takes_touches_for_ever() {
        let (timers, clock) = timers();
        let (alive, idle) = timers.keep_alive(LIMIT);
        let mut task = Task::new(idle);
        assert!(!task.has_ended());
        // The leak sanitizer would report a real leak.
        let leaked = task;
        clock.advance(10 * LIMIT);
        assert!(alive.touch());
        assert_eq!(timers.ledger().live, 0);
        drop(leaked);
    }

    #[test]
    fn a_shutdown_ends_it_and_says_so() {
        let (timers, _clock) = timers();
        let (alive, idle) = timers.keep_alive(LIMIT);
        let mut task = Task::new(idle);
        assert!(!task.has_ended());
        timers.shutdown();
        assert_eq!(task.woken(), 1);
        assert!(task.has_ended() && task.has_ended());
        assert!(!task.idle.is_elapsed());
        assert!(!alive.touch());
    }

    #[test]
    fn a_shutdown_between_two_periods_ends_it_as_well() {
        let (timers, clock) = timers();
        let (alive, idle) = timers.keep_alive(LIMIT);
        let mut task = Task::new(idle);
        assert!(!task.has_ended());
        clock.advance(LIMIT);
        alive.touch();
        timers.shutdown();
        assert!(task.has_ended() && !task.idle.is_elapsed());
    }

    #[test]
    fn a_limit_without_end_and_one_of_nothing_are_limits() {
        let (timers, clock) = timers();
        let (alive, idle) = timers.keep_alive(Duration::MAX);
        let (mut forever, mut at_once) = (
            Task::new(idle),
            Task::new(timers.keep_alive(Duration::ZERO).1),
        );
        assert!(!forever.has_ended());
        let _ = at_once.has_ended();
        clock.advance(TICK);
        assert!(at_once.has_ended());
        clock.advance(Duration::from_secs(u64::MAX / 2_000_000_000));
        assert!(!forever.has_ended() && alive.touch());
    }

    /// A thread that was interrupted after it had read the clock.
    #[test]
    fn a_touch_that_comes_late_does_not_take_a_later_one_back() {
        let (timers, clock) = timers();
        let (alive, idle) = timers.keep_alive(LIMIT);
        let mut task = Task::new(idle);
        clock.advance(LIMIT / 4 - TICK);
        assert!(alive.touch());
        clock.advance(2 * TICK);
        assert!(!task.has_ended());
        // The touch is known, and an earlier one comes now.
        assert!(alive.word.swap_if(UNTOUCHED, 1).is_ok());
        clock.advance(LIMIT - 3 * TICK);
        assert!(!task.has_ended());
        clock.advance(2 * TICK);
        assert!(task.has_ended());
    }

    #[test]
    fn several_touches_count_from_the_next_look_and_no_later() {
        let (timers, clock) = timers();
        let (alive, idle) = timers.keep_alive(LIMIT);
        let mut task = Task::new(idle);
        assert!(!task.has_ended());
        clock.advance(TICK);
        assert!(alive.touch());
        let first = timers.now();
        clock.advance(TICK);
        assert!(alive.touch() && alive.touch());
        let last = timers.now();
        let mut ended = None;
        while ended.is_none() {
            clock.advance(TICK);
            ended = task.has_ended().then(|| timers.now());
        }
        let ended = ended.unwrap();
        assert!(last + LIMIT <= ended);
        assert!(ended <= first + LIMIT + LIMIT / 4 + TICK);
    }

    #[test]
    fn a_touch_among_others_reads_and_writes_nothing_but_its_word() {
        let (timers, clock) = timers();
        let (alive, _idle) = timers.keep_alive(LIMIT);
        assert!(alive.touch() && alive.touch());
        let word = || {
            alive
                .word
                .touched
                .load(core::sync::atomic::Ordering::Relaxed)
        };
        assert_eq!(word(), SEVERAL);
        clock.advance(TICK);
        assert!(alive.touch());
        assert_eq!(word(), SEVERAL);
    }

    #[test]
    fn a_clock_without_instants_never_ends_early() {
        let limit = Duration::from_millis(20);
        for clock in [ClockSource::Monotonic, ClockSource::BootTime] {
            let timers = Timers::builder().clock(clock).start().unwrap();
            let (alive, idle) = timers.keep_alive(limit);
            std::thread::sleep(limit / 2);
            let touched = Instant::now();
            assert!(alive.touch());
            pollster::block_on(idle);
            assert!(touched.elapsed() >= limit);
        }
    }
}
