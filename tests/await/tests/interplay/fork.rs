//! Processes that fork while tasks sleep. A child has only the thread that forked, so the
//! thread that wakes its parent's tasks is not in it.
//!
//! Each test uses the process-wide engine before it forks: a child must not find it half
//! started by another test's thread.

#[path = "../../../support/child.rs"]
mod child;

use super::*;
use child::{Child, exit_unless};
use std::time::Instant;
use tickwheel::time::{Global, sleep, timeout};

/// A child that inherits the process-wide engine in use can sleep. The parent's sleeps go
/// on.
#[test]
fn k01_a_forked_child_sleeps_on_an_engine_of_its_own() {
    let sleeps = || {
        let begin = Instant::now();
        block_on(sleep(ms(5)));
        exit_unless(begin.elapsed() >= ms(5));
        let limited = block_on(timeout(ms(5), std::future::pending::<()>()));
        exit_unless(limited.is_err());
    };
    let mut parents = ByHand::new(sleep(ms(50)));
    assert!(parents.poll().is_pending());
    assert!(
        Child::fork(sleeps).ends_by_itself(),
        "the child failed, or is stuck"
    );
    block_on(parents.into_inner());
}

/// A child has copies of the sleeps that wait in its parent. It may await them: they end
/// in the child, too, without an effect on the parent.
#[test]
fn k02_a_sleep_that_waits_may_be_awaited_on_both_sides_of_a_fork() {
    let mut waits = ByHand::new(sleep(ms(100)));
    assert!(waits.poll().is_pending());
    let mut copy = Some(waits);
    let deadline = copy.as_ref().unwrap().deadline();
    let child = Child::fork(|| {
        let copy = copy.take().unwrap();
        exit_unless(!copy.is_elapsed());
        block_on(copy.into_inner());
        exit_unless(Instant::now() >= deadline);
    });
    assert!(child.ends_by_itself(), "the child failed, or is stuck");
    let waits = copy.take().unwrap();
    block_on(waits.into_inner());
    assert!(Instant::now() >= deadline);
}

/// A child that drops its copies, or resets them, takes nothing from its parent.
#[test]
fn k03_a_child_that_drops_or_resets_its_copies_disturbs_nobody() {
    let mut waits = [50, 60].map(|millis| ByHand::new(sleep(ms(millis))));
    for wait in &mut waits {
        assert!(wait.poll().is_pending());
    }
    let mut copies = Some(waits);
    let child = Child::fork(|| {
        let [dropped, mut reset] = copies.take().unwrap();
        drop(dropped);
        reset.reset(HOUR);
        exit_unless(reset.poll().is_pending());
        reset.reset(ms(1));
        block_on(reset.into_inner());
    });
    assert!(child.ends_by_itself(), "the child failed, or is stuck");
    for wait in copies.take().unwrap() {
        block_on(wait.into_inner());
    }
}

/// A grandchild is a child of its own.
#[test]
fn k04_children_of_children_sleep() {
    block_on(sleep(ms(2)));
    let child = Child::fork(|| {
        block_on(sleep(ms(2)));
        let grandchild = Child::fork(|| block_on(sleep(ms(2))));
        exit_unless(grandchild.ends_by_itself());
        block_on(sleep(ms(2)));
    });
    assert!(child.ends_by_itself());
    assert!(Global.snapshot().ledger.is_balanced());
}
