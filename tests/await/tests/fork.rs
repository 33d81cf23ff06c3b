//! Processes that fork while tasks sleep. A child has only the thread that forked, so the
//! thread that wakes its parent's tasks is not in it. No other test is in this process.

#![cfg(target_os = "linux")]

#[path = "../../support/child.rs"]
mod child;

use std::time::Instant;

use child::{Child, exit_unless};
use tickwheel::time::sleep;
use tickwheel_await_tests::{ByHand, block_on, ms};

/// A child has copies of the sleeps that wait in its parent. It may await, reset and drop
/// them, and begin others, without an effect on the parent.
#[test]
fn k02_a_sleep_that_waits_may_be_awaited_on_both_sides_of_a_fork() {
    let mut waits = [50, 60, 100].map(|millis| ByHand::new(sleep(ms(millis))));
    assert!(waits.iter_mut().all(|wait| wait.poll().is_pending()));
    let deadline = waits[2].deadline();
    let mut copies = Some(waits);
    let child = Child::fork(|| {
        let [dropped, mut reset, awaited] = copies.take().unwrap();
        drop(dropped);
        reset.reset(ms(1));
        block_on(reset.into_inner());
        exit_unless(!awaited.is_elapsed());
        block_on(awaited.into_inner());
        exit_unless(Instant::now() >= deadline);
        block_on(sleep(ms(1)));
    });
    assert!(child.ends_by_itself(), "the child failed, or is stuck");
    for wait in copies.take().unwrap() {
        block_on(wait.into_inner());
    }
    assert!(Instant::now() >= deadline);
}
