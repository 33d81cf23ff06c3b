//! Failures of time: too late, too early, never, all at once.

use super::*;
use tickwheel::wheel::Advance;
use tickwheel::{MissedTicks, Time, Timer};

/// An event loop computed how far its top level had wrapped while a timer
/// beyond it existed, got a distance that was a whole turn too long, and slept:
/// after 12.4 days, 2³⁰ ms, short timers hung until the far one came.
#[test]
fn f03_a_far_timer_does_not_hold_up_short_ones_at_a_wrap() {
    const WRAP: Duration = Duration::from_millis(1 << 30);
    for levels in [1, 2, 5, 11] {
        let (engine, clock) = Engine::builder()
            .start_at(Time::START + (WRAP - 10 * SECOND))
            .max_levels(levels)
            .start_virtual()
            .unwrap();
        let far = engine.schedule(Timer::after(YEAR, 0)).unwrap();
        for second in 1..=20 {
            let delay = Timer::after(SECOND, second);
            engine.schedule(delay).unwrap();
            clock.advance(SECOND - MS);
            assert_eq!(take(&engine, 0), []);
            clock.advance(MS);
            let now = engine.current_tick().0;
            assert_eq!(take(&engine, 0), [(now, second)], "{levels} levels");
        }
        assert!(engine.deadline(far).is_some());
    }
}

/// The finest level that held anything said when to wake up next; a timer that
/// had been filed earlier, in a coarser level, was due before that, and came
/// late.
#[test]
fn f04_a_later_fine_timer_does_not_hide_an_earlier_coarse_one() {
    for coarse in [63, 64, 65, 130, 4_095, 4_096, 4_097, 300_000] {
        let (engine, clock) = virtual_engine();
        let at = |tick: u64| Time::from_nanos(tick * 1_000_000);
        engine.schedule(Timer::at(at(coarse), "coarse")).unwrap();
        for ahead in [60, 5, 1] {
            clock.advance_to(at(coarse - ahead));
            let fine = Timer::at(at(coarse + 2), "fine");
            engine.schedule(fine).unwrap();
        }
        // Steps from one wake-up to the next, as a ticker does.
        clock.run_until(at(coarse + 100));
        assert_eq!(take(&engine, 0)[0], (coarse, "coarse"));
        let lateness = engine.snapshot().lateness;
        assert!(lateness.quantile(1.0) <= Some(Duration::from_nanos(1)));
    }
}

/// The ticker overslept, and its notion of now was old; a timer that was
/// scheduled before it caught up counted its delay from there, and fired
/// before its time.
#[test]
fn f05_an_overslept_ticker_fires_no_new_timer_early() {
    let (engine, driver) = Engine::builder().start_driven().unwrap();
    engine.schedule(Timer::after(MS, Instant::now())).unwrap();
    let queue = engine.queue(0);
    for _ in 0..3 {
        thread::sleep(40 * MS); // nobody processes what is due
        for delay in [1, 2, 5, 30] {
            let due = Instant::now() + delay * MS;
            engine.schedule(Timer::after(delay * MS, due)).unwrap();
        }
        for _ in 0..40 {
            while driver.process_due(usize::MAX) == Advance::More {}
            while let Ok(expired) = queue.try_recv() {
                assert!(*expired.payload() <= Instant::now(), "fired early");
            }
            thread::sleep(MS);
        }
    }
    assert_eq!(engine.ledger().completed, 13);
}

/// A keep-alive was postponed in place. When its old slot came up, it was
/// linked anew, but no wake-up was set for it.
#[test]
fn f09_a_postponed_timer_reaches_the_next_wake_up() {
    let (engine, clock) = virtual_engine();
    let id = engine.schedule(Timer::after(10 * MS, "session")).unwrap();
    for delay in [20, 500, 70_000] {
        engine.reschedule(id, delay * MS).unwrap();
        clock.run_until(engine.now() + (delay - 1) * MS);
        assert_eq!(take(&engine, 0), []);
    }
    clock.run_until(engine.now() + MS);
    assert_eq!(engine.queue(0).len(), 1);
    // It has expired and nobody took it: it can still be postponed.
    engine.reschedule(id, 5_000 * MS).unwrap();
    assert_eq!(engine.queue(0).len(), 0);
    let due = engine.current_tick().0 + 5_000;
    clock.run_until(engine.now() + HOUR);
    assert_eq!(take(&engine, 0), [(due, "session")]);
    let lateness = engine.snapshot().lateness;
    assert!(lateness.quantile(1.0) <= Some(Duration::from_nanos(1)));
}

/// As above, where a thread sleeps in earnest.
#[test]
fn f09_a_postponed_timer_wakes_a_sleeping_ticker() {
    let engine = Engine::builder().start().unwrap();
    let queue = engine.queue(0);
    for _ in 0..20 {
        let id = engine.schedule(Timer::after(2 * MS, ())).unwrap();
        wait_until(|| !queue.is_empty());
        engine.reschedule(id, 3 * MS).unwrap();
        queue.recv_timeout(PATIENCE).unwrap();
    }
}

/// The clock was stepped, by the administrator or after a suspension, and every
/// period that lay in between fired, all at once.
#[test]
fn f11_a_step_of_the_clock_starts_no_storm() {
    let (engine, clock) = virtual_engine();
    for policy in [MissedTicks::Skip, MissedTicks::Delay, MissedTicks::CatchUp] {
        for _ in 0..100 {
            let beat = Timer::every(10 * MS, policy).missed(policy);
            engine.schedule(beat).unwrap();
        }
    }
    clock.advance(YEAR + 5 * MS);
    // One entry and one firing each, whatever happened.
    let queue = engine.queue(0);
    assert_eq!((queue.len(), engine.ledger().live), (300, 300));
    let mut fired = 0;
    for _ in 0..300 {
        let expired = queue.try_recv().unwrap();
        fired += usize::from(*expired.payload() == MissedTicks::CatchUp);
    }
    // Only the policy that catches up fires for each missed period, one after
    // the other.
    assert_eq!((fired, queue.len()), (100, 100));
    for _ in 0..500 {
        let next = queue.try_recv().unwrap();
        assert_eq!(*next.payload(), MissedTicks::CatchUp);
    }
}
