//! A search for calls on a shard that break each other between two holds of its lock.
//!
//! A hold of a shard's lock is one step for all other threads. Whatever threads do to a
//! shard is therefore a sequence of holds. This search makes random sequences, in which
//! walks, drains, shrinks and shutdowns are under way while timers are scheduled, moved,
//! taken and ended. It compares nothing with a model. After each hold, every payload must
//! have exactly one owner, and all counts must be those of the entries.

mod check;
mod firings;
mod search;
mod timers;
mod walks;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use super::credit::Pool;
use super::*;
use crate::timer::{Cancel, Closed};
use crate::wheel::{Cursor, Tag};

const QUEUES: usize = 2;
const MOST_TIMERS: usize = 200;
const NAMES: [&str; 2] = ["one", "other"];
const HASH: u64 = 7;

/// A firing that a worker holds.
struct Held {
    id: TimerId,
    number: u64,
    payload: u64,
    /// Whether the task may be consumed.
    task: bool,
    rearmed: bool,
}

/// A walk over all timers.
struct Looking {
    cursor: Cursor,
    expected: BTreeSet<u64>,
    seen: BTreeSet<u64>,
}

struct Search {
    shard: Shard<u64>,
    now: Time,
    next: u64,
    /// The payloads that the shard has.
    inside: BTreeSet<u64>,
    ids: Vec<TimerId>,
    unstarted: Vec<TimerId>,
    held: Vec<Held>,
    looking: Option<Looking>,
    /// The position, and the highest sequence number.
    cancelling: Option<(Cursor, u64)>,
    closing: Option<Cursor>,
    is_shrinking: bool,
    /// The position, the limit, and the number of moved timers at the beginning.
    drains: Vec<(Cursor, Tick, u64)>,
    bells: [bool; QUEUES + 1],
    settled: usize,
    random: fastrand::Rng,
}

/// Creates a shard with a tick of a millisecond, at a tick soon before outer slots have
/// their turns.
fn shard(size: usize, credit: Credit) -> Shard<u64> {
    let tick = TickLength::new(Duration::from_millis(1)).unwrap();
    let geometry = Geometry::new(size).unwrap();
    let start = Tick(size as u64 * 4 - 2);
    Shard::new(WheelNumber::reserve(1), start, geometry, QUEUES, credit, tick)
}

/// A slot is out of order if a timer was postponed to it. Its timers are sorted before
/// they expire, in as many holds as that takes.
#[test]
fn a_timer_that_is_disarmed_while_its_slot_is_sorted_does_not_expire() {
    for budget in 1..70 {
        let mut shard = shard(64, Pool::share(None, 1)());
        let mut schedule = |n, deadline| {
            shard.admit().unwrap();
            shard.schedule_plain(n, None, Tick(deadline), Tag::one_shot(0, false)).0
        };
        let oldest = schedule(0, 255);
        let younger: Vec<_> = (1..20).map(|n| schedule(n, 310)).collect();
        assert!(shard.postpone_plain(oldest, Tick(310)));
        // Comes to the slot of the others behind them.
        shard.expire(Time::from_millis(255), &mut { usize::MAX });
        let due = Time::from_millis(310);
        shard.expire(due, &mut { budget });
        let never = Due { requested: Time::MAX, deadline: Tick::MAX };
        shard.reschedule(younger[7], never).unwrap();
        shard.expire(due, &mut { usize::MAX });
        assert!(shard.cancel(younger[7], || Tick::MAX).is_cancelled());
        let mut payloads = Vec::new();
        assert!(shard.claim_many(0, 100, None, &mut payloads).is_none());
        assert!(payloads.into_iter().eq((0..20).filter(|&n| n != 8)));
    }
}

/// A shutdown returns no timer whose last firing is running, and those that repeat.
#[test]
fn a_retry_that_a_shutdown_refuses_before_it_comes_to_the_timer_ends_as_shut_down() {
    let mut shard = shard(64, Pool::share(None, 1)());
    let later = Time::from_millis(300);
    let [due, next] = [Time::START, later]
        .map(|requested| Due { requested, deadline: shard.tick.tick_after(requested) });
    let once = Timer::at(Time::START, 0).rearmable().reported();
    let beat = |n| Timer::every(Duration::from_millis(9), n).reported();
    for timer in [once, beat(1), beat(2)] {
        shard.admit().unwrap();
        shard.schedule_recorded(timer, due, None).ok().unwrap();
    }
    shard.expire(later, &mut { usize::MAX });
    let mut held = Vec::new();
    (0..3).for_each(|_| shard.claim(0, None, |it| held.push(it)));
    shard.close();
    for Claimed { firing, payload } in held {
        let refused = shard.rearm_and_return(firing.id, 1, payload, next, later);
        assert_eq!(refused, Err((Refusal::ShutDown, payload)));
        if payload != 1 {
            shard.return_firing(firing.id, None, Outcome::Kept, later);
        }
    }
    let (mut closed, now) = (Vec::new(), Tick(300));
    assert!(shard.close_some(&mut { Cursor::START }, now, &mut closed));
    assert_eq!((closed.len(), closed[0].firings), (1, 1));
    for report in [0, 2].map(|_| shard.claim_report().unwrap()) {
        assert_eq!((report.reason, report.tick), (CloseReason::ShutDown, now));
    }
    assert!(shard.ledger().is_balanced() && shard.ledger().shut_down == 3);
}

/// Random steps, the same in every run. `SCRIPTS` is the number of scripts.
#[test]
fn no_steps_between_holds_lose_a_payload_or_miscount() {
    let scripts = std::env::var("SCRIPTS").ok();
    let scripts = scripts.and_then(|scripts| scripts.parse().ok());
    for seed in 0..scripts.unwrap_or(400) {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut search = Search::new(seed);
            for _ in 0..search.random.usize(20..300) {
                search.step();
            }
            search.end();
        }));
        if let Err(thrown) = outcome {
            println!("seed {seed}");
            resume_unwind(thrown);
        }
    }
}
