//! A keep-alive is touched while its limit passes.

#![cfg(loom)]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use loom::thread;
use tickwheel::time::{Idle, KeepAlive, Timers, TimersClock};
use tickwheel_loom_tests::{tick, timers_model};

/// Starts a keep-alive of two ticks at tick 0, and goes to tick 1.
fn start(timers: &Timers, clock: &TimersClock) -> (KeepAlive, Idle<Timers>) {
    let (alive, idle) = timers.keep_alive(Duration::from_millis(2));
    let mut idle = idle.into_owned();
    assert!(!has_ended(&mut idle));
    clock.advance_to(tick(1));
    (alive, idle)
}

fn has_ended(idle: &mut Idle<Timers>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    Pin::new(idle).poll(&mut context).is_ready()
}

/// A touch comes before the final look, and the future does not end; or after it, and the
/// touch is refused.
#[test]
fn a_touch_and_the_end() {
    timers_model(|timers, clock| {
        let (alive, mut idle) = start(&timers, &clock);
        let toucher = thread::spawn(move || alive.touch());
        clock.advance_to(tick(2));
        let ended = has_ended(&mut idle);
        assert_eq!(toucher.join().unwrap(), !ended);
        drop(idle);
        assert_eq!(timers.ledger().live, 0);
    });
}

/// A touch that comes while the future looks at an earlier one is not lost.
#[test]
fn a_touch_and_a_look() {
    timers_model(|timers, clock| {
        let (alive, idle) = timers.keep_alive(Duration::from_millis(4));
        let mut idle = idle.into_owned();
        clock.advance_to(tick(1));
        assert!(alive.touch());
        clock.advance_to(tick(2));
        let toucher = thread::spawn({
            let timers = timers.clone();
            move || {
                let begun = timers.now();
                assert!(alive.touch());
                begun
            }
        });
        assert!(!has_ended(&mut idle));
        clock.advance_to(tick(3));
        let begun = toucher.join().unwrap();
        clock.advance_to(begun + Duration::from_millis(3));
        assert!(!has_ended(&mut idle));
        clock.advance_to(begun + Duration::from_millis(8));
        assert!(has_ended(&mut idle));
    });
}

/// The later of two touches counts, whichever thread notes its own first.
#[test]
fn two_touches() {
    timers_model(|timers, clock| {
        let (alive, mut idle) = start(&timers, &clock);
        let other = alive.clone();
        let toucher = thread::spawn(move || other.touch());
        clock.advance_to(tick(2));
        assert!(alive.touch());
        assert!(toucher.join().unwrap());
        clock.advance_to(tick(3));
        assert!(!has_ended(&mut idle));
        clock.advance_to(tick(5));
        assert!(has_ended(&mut idle));
    });
}
