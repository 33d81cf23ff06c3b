//! The status of a node, and what it counts.

use super::*;
use tickwheel_durable::{Health, StoreError};

/// Of each attempt, one ending is counted.
#[test]
fn attempts_and_outcomes_balance() {
    let world = World::new();
    world.run_each();
    let counts = world.jobs.status().counts;
    assert_eq!(counts.attempts, 6, "two runs each of `again` and `failed`");
    let endings = (counts.done, counts.again, counts.failed, counts.dead);
    assert_eq!(endings, (2, 1, 1, 2));
    assert_eq!((counts.given_up, counts.refused), (0, 0));
}

/// The lag is counted from the due time, also if no process ran at that time.
#[test]
fn lag_is_counted_from_the_due_time_to_the_handler() {
    let world = World::new();
    world.schedule("done", 10);
    let World { memory, clock, .. } = world;
    clock.set(at(14));
    let opened = handlers().open_virtual(memory, clock);
    let (jobs, node) = opened.unwrap();
    node.run_until(at(14));
    let lag = jobs.status().counts.lag;
    assert_eq!(lag.count(), 1);
    let most = lag.quantile(1.0).unwrap();
    assert!(most > 4 * SECOND && most <= 8 * SECOND, "{most:?}");
}

/// A job that is cancelled while it runs has an outcome that nobody accepts.
#[test]
fn a_refused_outcome_is_counted() {
    let builder =
        handlers().handler("cancels", |attempt| attempt.jobs().cancel(attempt.id()).map(drop));
    let world = World::of(builder);
    world.schedule("cancels", 1);
    world.node.run_until(at(2));
    let counts = world.jobs.status().counts;
    assert_eq!((counts.attempts, counts.done, counts.refused), (1, 1, 1));
}

/// Jobs that are scheduled together share a commit.
#[test]
fn commits_are_counted_with_their_changes() {
    let world = World::new();
    let jobs = (0..5).map(|_| Job::new("done", "").at(at(10)));
    world.jobs.schedule_many(jobs);
    let counts = world.jobs.status().counts;
    assert_eq!((counts.commits, counts.changes), (1, 5));
}

#[test]
fn a_failure_of_the_store_shows_until_it_recovers() {
    let world = World::new();
    world.node.run_until(at(30));
    assert!(matches!(world.jobs.status().health(), Health::Working));
    world.store.set(Mode::FailsBefore);
    assert!(world.jobs.schedule(Job::new("done", "")).is_err());
    let health = world.jobs.status().health();
    assert!(matches!(health, Health::Failing(StoreError::Full)));
    world.store.set(Mode::Works);
    world.node.run_until(at(40));
    let status = world.jobs.status();
    assert!(matches!(status.health(), Health::Working), "{status:?}");
    assert!(status.counts.store_failures >= 1);
    assert_eq!(status.counts.recoveries, 1);
}

/// A node without a lease is no node that stands by if its store does not answer.
#[test]
fn a_store_that_grants_no_lease_is_a_failure() {
    let world = World::new();
    world.store.on_commit(|_| Err(StoreError::Full));
    world.node.run_until(at(1));
    let status = world.jobs.status();
    assert!(!status.holds_lease);
    let health = status.health();
    assert!(matches!(health, Health::Failing(StoreError::Full)));
    assert!(status.counts.store_failures >= 1);
}

/// Another node with its own name has to wait for the end of the lease.
#[test]
fn leases_are_counted_when_taken_and_when_lost() {
    let first = World::new();
    first.node.run_until(at(1));
    let other = handlers().owner("other");
    let opened = other.open_virtual(first.memory.clone(), first.clock.clone());
    let (jobs, node) = opened.unwrap();
    node.run_until(at(2));
    assert!(matches!(jobs.status().health(), Health::StandingBy));
    node.run_until(at(20));
    assert!(matches!(jobs.status().health(), Health::Working));
    // It renews once two thirds of the length have passed.
    first.node.run_until(at(26));
    let counts = first.jobs.status().counts;
    assert_eq!((counts.leases_taken, counts.leases_lost), (1, 1));
    let counts = jobs.status().counts;
    assert_eq!((counts.leases_taken, counts.leases_lost), (1, 0));
}

/// Renewing a lease takes none.
#[test]
fn a_renewal_is_no_new_lease() {
    let world = World::new();
    world.node.run_until(at(100));
    assert_eq!(world.jobs.status().counts.leases_taken, 1);
}

/// A node whose workers do not keep up shows for how long the first job has been due.
#[test]
fn a_backlog_shows_as_time() {
    let world = World::new();
    world.schedule("done", 10);
    world.node.run_until(at(5));
    assert_eq!(world.jobs.status().behind, Duration::ZERO);
    world.clock.set(at(13));
    assert_eq!(world.jobs.status().behind, 3 * SECOND);
    assert_eq!(world.jobs.status().armed, 1);
    world.node.run_until(at(14));
    let status = world.jobs.status();
    assert_eq!((status.behind, status.armed), (Duration::ZERO, 0));
    assert_eq!(status.counts.clock_steps, 1);
}

/// A node without handlers needs no lease.
#[test]
fn a_node_that_only_schedules_is_healthy() {
    let world = World::of(Durable::builder());
    world.node.run_until(at(1));
    let status = world.jobs.status();
    assert!(!status.delivers && !status.holds_lease);
    assert!(matches!(status.health(), Health::Working));
}
