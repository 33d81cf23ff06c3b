//! A sleep that waits is given another deadline: a later one, as by a keep-alive,
//! or an earlier one.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::{Duration, Instant};

use crate::case::Case;
use crate::effort::Effort;
use crate::laps::Crew;
use crate::rival::Awaited;
use crate::rivals::awaited;

/// The number of resets between two looks of the runtime after its timers.
const RESETS_PER_TURN: u64 = 16;

const SLEEPS: usize = 64;

/// The first deadline is so far that no earlier one is due during a measurement.
const FAR: Duration = Duration::from_secs(24 * 3_600);

/// What distinguishes the deadlines of one turn from those of the next.
const STEP: Duration = Duration::from_millis(1);

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = awaited!(case(LATER_BY_DELAY, effort));
    cases.extend(awaited!(case(LATER, effort)));
    cases.extend(awaited!(case(EARLIER, effort)));
    cases
}

#[derive(Clone, Copy)]
struct Setting {
    metric: &'static str,
    takes_instants: bool,
    is_later: bool,
}

const LATER_BY_DELAY: Setting = Setting {
    metric: "later, delay given",
    takes_instants: false,
    is_later: true,
};

const LATER: Setting = Setting {
    metric: "later, instant given",
    takes_instants: true,
    is_later: true,
};

const EARLIER: Setting = Setting {
    metric: "earlier, instant given",
    takes_instants: true,
    is_later: false,
};

fn case<A: Awaited>(setting: Setting, effort: Effort) -> Case {
    let case = Case::new(A::NAME, true, SLEEPS, move || {
        let mut crew = Crew::new::<A>(1);
        let mut sleeps = Sleeps::<A>::new(setting);
        crew.spawn_steps(RESETS_PER_TURN, move |context| sleeps.reset_next(context));
        vec![crew.watch(effort).alone(setting.metric)]
    });
    let cannot = setting.takes_instants && !A::TAKES_INSTANTS;
    case.unless(cannot.then_some("it takes delays alone"))
}

/// Sleeps that wait, and the next one to be reset.
struct Sleeps<A: Awaited> {
    setting: Setting,
    waiting: Vec<Pin<Box<A::Sleep>>>,
    next: usize,
    deadline: Instant,
}

impl<A: Awaited> Sleeps<A> {
    fn new(setting: Setting) -> Sleeps<A> {
        Sleeps {
            setting,
            waiting: Vec::new(),
            next: 0,
            deadline: Instant::now() + FAR,
        }
    }

    fn reset_next(&mut self, context: &mut Context<'_>) {
        if self.waiting.len() < SLEEPS {
            return self.add(context);
        }
        let sleep = self.waiting[self.next].as_mut();
        match self.setting.takes_instants {
            true => A::reset_at(sleep, self.deadline),
            false => A::reset(sleep, FAR),
        }
        self.next += 1;
        if self.next == SLEEPS {
            self.begin_again();
        }
    }

    fn begin_again(&mut self) {
        self.next = 0;
        match self.setting.is_later {
            true => self.deadline += STEP,
            false => self.deadline -= STEP,
        }
    }

    fn add(&mut self, context: &mut Context<'_>) {
        let mut sleep = Box::pin(A::sleep_until(self.deadline));
        assert!(sleep.as_mut().poll(context).is_pending());
        self.waiting.push(sleep);
    }
}
