//! A loop of the caller's own that drives an engine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tickwheel::Driver;
use tickwheel::wheel::Advance;

use crate::epoll::{Epoll, Trigger};
use crate::random::Random;

/// How the loop waits for due timers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waits {
    Descriptor(Trigger),
    /// By no descriptor: it comes by every frame, or sooner if that is due.
    Frames,
}

/// How long a wait may go on before the loop looks whether it is over.
const LIMIT: Duration = Duration::from_millis(50);
const FRAME: Duration = Duration::from_millis(2);
/// From an entry at a time to more than there are.
const BUDGETS: [usize; 5] = [1, 3, 20, 1_000, usize::MAX];

/// Moves due timers, or runs due tasks, within a budget.
type Serve<T> = fn(&Driver<T>, usize) -> Advance;

pub struct EventLoop<T> {
    driver: Driver<T>,
    waits: Waits,
    serve: Serve<T>,
}

impl<T> EventLoop<T> {
    pub fn new(driver: Driver<T>, waits: Waits, serve: Serve<T>) -> EventLoop<T> {
        EventLoop {
            driver,
            waits,
            serve,
        }
    }

    /// Goes round until `over` is set.
    pub fn run(self, random: Random, over: &AtomicBool) {
        match self.waits {
            Waits::Descriptor(trigger) => self.run_by_descriptor(trigger, random, over),
            Waits::Frames => self.run_by_frames(random, over),
        }
    }

    /// Serves once each time the descriptor becomes readable. The descriptor
    /// must say when there is more: nothing makes up for a lost event.
    fn run_by_descriptor(&self, trigger: Trigger, mut random: Random, over: &AtomicBool) {
        let epoll = Epoll::new();
        epoll.add(&self.driver, 0, trigger);
        while !over.load(Ordering::Relaxed) {
            if !epoll.wait(Some(LIMIT)).is_empty() {
                let _ = (self.serve)(&self.driver, random.one_of(&BUDGETS));
            }
        }
    }

    fn run_by_frames(&self, mut random: Random, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            let sleep = self.driver.timeout().unwrap_or(FRAME);
            thread::sleep(sleep.min(FRAME));
            while (self.serve)(&self.driver, random.one_of(&BUDGETS)) == Advance::More {}
        }
    }
}
