//! What becomes of closures of every size, whichever way their timers end.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use super::*;
use crate::drive::Driver;
use crate::stats::Ledger;
use crate::timeline::Time;
use crate::wheel::Advance;

mod awaited;
mod driven;
mod refused;
mod reused;
mod running;
mod survives;

thread_local! {
    /// The captures of this thread that were made and dropped.
    static MADE: Cell<usize> = const { Cell::new(0) };
    static DROPPED: Cell<usize> = const { Cell::new(0) };
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

fn add(count: &'static std::thread::LocalKey<Cell<usize>>) {
    count.set(count.get() + 1);
}

/// A capture of this many bytes.
struct Bytes<const N: usize>([u8; N]);

/// A capture of a large alignment.
#[repr(align(64))]
struct Aligned(u8);

/// What a closure captures. Each counts its drop.
trait Capture: Send + 'static {
    fn make() -> Self;
    fn is_intact(&self) -> bool;
}

impl<const N: usize> Capture for Bytes<N> {
    fn make() -> Self {
        add(&MADE);
        Bytes(std::array::from_fn(|n| n as u8))
    }

    fn is_intact(&self) -> bool {
        (0..).zip(&self.0).all(|(n, &byte)| byte == n as u8)
    }
}

impl<const N: usize> Drop for Bytes<N> {
    fn drop(&mut self) {
        assert!(self.is_intact());
        add(&DROPPED);
    }
}

impl Capture for Aligned {
    fn make() -> Self {
        add(&MADE);
        Aligned(7)
    }

    fn is_intact(&self) -> bool {
        self.0 == 7 && std::ptr::from_ref(self).addr() % 64 == 0
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        assert!(self.is_intact());
        add(&DROPPED);
    }
}

/// An engine whose tasks run in this thread.
struct Here {
    timers: TaskEngine,
    driver: Driver<Task>,
}

impl Here {
    fn new(max_timers: usize) -> Here {
        let builder = TaskEngine::builder().max_timers(max_timers);
        let (timers, driver) = builder.start_driven().unwrap();
        Here { timers, driver }
    }

    fn run(&self) {
        let _ = self.driver.process_due(100);
    }
}

/// Runs a case, in which every capture must be dropped exactly once. Returns the number
/// of closures that ran.
fn all_dropped_once(case: impl FnOnce(Here)) -> usize {
    for count in [&MADE, &DROPPED, &RUNS] {
        count.set(0);
    }
    case(Here::new(8));
    assert_eq!(DROPPED.get(), MADE.get());
    RUNS.get()
}

const NOW: Duration = Duration::ZERO;
const LATER: Duration = Duration::from_secs(3_600);

/// A closure that looks at its capture and runs once, because the capture is moved out.
fn once<C: Capture>() -> impl FnOnce() + Send + 'static {
    let capture = C::make();
    move || {
        add(&RUNS);
        let moved = capture;
        assert!(moved.is_intact());
    }
}

/// A closure that looks at its capture whenever it runs.
fn each<C: Capture>() -> impl FnMut(Firing) + Send + 'static {
    let capture = C::make();
    move |_| {
        add(&RUNS);
        assert!(capture.is_intact());
    }
}

fn every_ending<C: Capture>() {
    let run = all_dropped_once(|here| {
        here.timers.run_after(NOW, once::<C>()).unwrap();
        here.timers.run(Timer::after(NOW, each::<C>())).unwrap();
        let taking = once::<C>();
        let once = Timer::after(NOW, move |_| taking());
        here.timers.run_once(once).unwrap();
        here.run();
        assert_eq!(here.timers.ledger().completed, 3);
    });
    assert_eq!(run, 3);

    let run = all_dropped_once(|here| {
        let ids = [
            here.timers.run_after(LATER, once::<C>()).unwrap(),
            here.timers.run_after(NOW, once::<C>()).unwrap(),
        ];
        assert_eq!(ids.map(|id| here.timers.cancel(id)), [Cancel::Cancelled(()); 2]);
        assert_eq!(DROPPED.get(), 2);
        here.run();
    });
    assert_eq!(run, 0);

    let run = all_dropped_once(|here| {
        here.timers.run_after(LATER, once::<C>()).unwrap();
        let closed = here.timers.shutdown();
        assert_eq!((closed.len(), DROPPED.get()), (1, 0));
        let refused = here.timers.run_after(NOW, once::<C>()).unwrap_err();
        (refused.into_payload())();
        let refused = here.timers.run(Timer::after(NOW, each::<C>())).unwrap_err();
        drop(refused.into_payload());
    });
    assert_eq!(run, 1);

    all_dropped_once(|here| {
        here.timers.run_after(LATER, once::<C>()).unwrap();
        here.timers.run_every(LATER, each::<C>()).unwrap();
    });

    let run = all_dropped_once(|here| {
        let period = Duration::from_millis(1);
        let beat = Timer::every(period, each::<C>()).starting(NOW).times(3);
        here.timers.run(beat).unwrap();
        while here.timers.ledger().live > 0 {
            here.run();
        }
    });
    assert_eq!(run, 3);

    all_dropped_once(|here| {
        let task = once::<C>();
        let fails = move || {
            let _task = task;
            panic!("on purpose");
        };
        here.timers.run_after(NOW, fails).unwrap();
        let mut task = each::<C>();
        let fails = move |firing| {
            task(firing);
            panic!("on purpose");
        };
        here.timers.run(Timer::after(NOW, fails)).unwrap();
        here.run();
        assert_eq!((here.timers.ledger().failed, here.timers.ledger().live), (2, 0));
    });
}

#[test]
fn a_closure_is_dropped_once_whatever_its_size() {
    every_ending::<Bytes<0>>();
    every_ending::<Bytes<1>>();
    every_ending::<Bytes<8>>();
    every_ending::<Bytes<24>>();
    every_ending::<Bytes<32>>();
    every_ending::<Bytes<33>>();
    every_ending::<Bytes<1_000>>();
    every_ending::<Aligned>();
}

/// A capture whose drop panics.
struct Bomb<const N: usize>(Bytes<N>);

impl<const N: usize> Drop for Bomb<N> {
    fn drop(&mut self) {
        assert!(!self.0.is_intact(), "on purpose");
    }
}

fn a_panic_in_drop<const N: usize>() {
    let bomb = || {
        let bomb = Bomb(Bytes::<N>::make());
        move || {
            let _bomb = &bomb;
            add(&RUNS);
        }
    };
    let run = all_dropped_once(|here| {
        here.timers.run_after(NOW, bomb()).unwrap();
        let each = bomb();
        here.timers.run(Timer::after(NOW, move |_| each())).unwrap();
        here.run();
        assert_eq!(here.timers.ledger().live, 0);
        assert_eq!(here.timers.snapshot().panics, 2);
        let id = here.timers.run_after(LATER, bomb()).unwrap();
        let cancel = AssertUnwindSafe(|| here.timers.cancel(id));
        assert!(catch_unwind(cancel).is_err());
        assert_eq!(here.timers.ledger().cancelled, 1);
    });
    assert_eq!(run, 2);
}

#[test]
fn a_panic_in_the_drop_of_a_capture_drops_nothing_twice() {
    a_panic_in_drop::<0>();
    a_panic_in_drop::<32>();
    a_panic_in_drop::<33>();
}

#[test]
fn a_refused_closure_is_the_one_that_was_given() {
    let here = Here::new(1);
    here.timers.run_after(LATER, || ()).unwrap();
    let mut log = vec![1];
    let task = move |_: Firing| log.push(2);
    let refused = here.timers.run_once(Timer::after(LATER, task)).unwrap_err();
    assert_eq!(refused.reason(), Refusal::Full);
    here.timers.cancel_all();
    let task = refused.into_payload();
    here.timers.run_once(Timer::after(NOW, task)).unwrap();
    here.run();
    assert_eq!(here.timers.ledger().completed, 1);
}

#[test]
fn a_loop_returns_the_task_that_uses_up_its_budget() {
    let here = Here::new(8);
    here.timers.run_after(NOW, || ()).unwrap();
    let _ = here.driver.process_due(1);
    assert_eq!(here.timers.ledger().completed, 1);
}

#[test]
fn a_worker_that_has_had_its_turns_in_a_shard_goes_on_to_the_next() {
    const TURNS: usize = 64;
    let (timers, driver) = TaskEngine::builder().shards(2).start_driven().unwrap();
    let ran = Arc::new(Mutex::new(Vec::new()));
    let all_live = Barrier::new(8);
    let schedule = || {
        for _ in 0..=TURNS {
            let ran = Arc::clone(&ran);
            let task = move |firing: Firing| ran.lock().unwrap().push(firing.id().wheel());
            timers.run_once(Timer::after(NOW, task)).unwrap();
        }
        // Living threads have numbers of their own, and so not all are in one shard.
        all_live.wait();
    };
    std::thread::scope(|scope| {
        (0..8).for_each(|_| _ = scope.spawn(schedule));
    });
    assert_eq!(driver.process_due(10_000), Advance::Done);
    let ran = ran.lock().unwrap();
    assert_eq!(ran.iter().position(|it| *it != ran[0]), Some(TURNS));
}

#[test]
fn a_closure_of_four_words_and_its_functions_fit_beside_an_entry() {
    assert_eq!(size_of::<Task>(), 5 * size_of::<usize>());
    assert_eq!(size_of::<Option<Task>>(), size_of::<Task>());
}
