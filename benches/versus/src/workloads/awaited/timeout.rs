//! A time limit for a future that is ready at once, and for one that is ready when
//! it is polled again.

use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::case::Case;
use crate::effort::Effort;
use crate::laps::Crew;
use crate::rival::Awaited;
use crate::rivals::awaited;

/// Longer than a measurement.
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy)]
struct Setting {
    metric: &'static str,
    /// How often the future is polled in vain.
    polls_in_vain: u32,
    per_turn: u64,
}

const READY_AT_ONCE: Setting = Setting {
    metric: "ready at once",
    polls_in_vain: 0,
    // A yield would cost more than the work.
    per_turn: 1_024,
};

const PENDING_ONCE: Setting = Setting {
    metric: "pending once",
    polls_in_vain: 1,
    per_turn: 16,
};

pub fn cases(effort: Effort) -> Vec<Case> {
    let mut cases = awaited!(case(READY_AT_ONCE, effort));
    cases.extend(awaited!(case(PENDING_ONCE, effort)));
    cases
}

/// A future that is pending a number of times before it is ready.
struct ReadyAfter(u32);

impl Future for ReadyAfter {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        match self.0.checked_sub(1) {
            None => Poll::Ready(()),
            Some(left) => {
                self.0 = left;
                Poll::Pending
            }
        }
    }
}

fn case<A: Awaited>(setting: Setting, effort: Effort) -> Case {
    Case::new(A::NAME, true, 1, move || {
        let mut crew = Crew::new::<A>(1);
        let in_vain = setting.polls_in_vain;
        crew.spawn_steps(setting.per_turn, move |context| step::<A>(in_vain, context));
        vec![crew.watch(effort).alone(setting.metric)]
    })
}

fn step<A: Awaited>(in_vain: u32, context: &mut Context<'_>) {
    let work = ReadyAfter(black_box(in_vain));
    let mut limited = pin!(A::timeout(LIMIT, work));
    for _ in 0..in_vain {
        assert!(limited.as_mut().poll(context).is_pending());
    }
    assert!(limited.poll(context).is_ready());
}
