//! Which events an operator sees.

use super::*;
use crate::events::{Panics, Told};
use ::tracing::{info, subscriber};
use tickwheel_durable::StoreError;

/// The events of the calling thread while `act` runs, those of a handler within their span. The
/// id of a job differs from run to run.
fn told(act: impl FnOnce()) -> Vec<String> {
    Told::new(&["tickwheel_durable", "handler"], "id").here(act)
}

#[test]
fn events_tell_failures_and_no_success() {
    let lines = told(|| World::new().run_each());
    assert_eq!(
        lines[..2],
        ["INFO opened owner=\"node\" delivers=true", "INFO lease taken owner=\"node\" fence=1",]
    );
    let expected = [
        "WARN attempt failed owner=\"node\" kind=\"failed\" attempt=1 failure=\"no line\"",
        "ERROR dead letter owner=\"node\" kind=\"never\" attempt=1 failure=\"no such address\"",
        "ERROR dead letter owner=\"node\" kind=\"failed\" attempt=2 failure=\"no line\"",
    ];
    for (line, expected) in lines[2..5].iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
    assert_eq!(lines[5..], ["INFO closed owner=\"node\""]);
}

/// Makes the store fail at 30 s, and work again at 35 s.
fn fail_for_a_while(world: &World) {
    world.store.set(Mode::FailsBefore);
    assert!(world.jobs.schedule(Job::new("done", "")).is_err());
    world.node.run_until(at(35));
    world.store.set(Mode::Works);
    world.node.run_until(at(40));
}

#[test]
fn events_tell_that_the_store_fails_and_recovers() {
    let world = World::new();
    world.node.run_until(at(30));
    let lines = told(|| fail_for_a_while(&world));
    let full = StoreError::Full;
    assert_eq!(lines[0], format!("ERROR store failed owner=\"node\" error={full}"));
    assert_eq!(lines.last().unwrap(), "INFO store recovered owner=\"node\"");
}

#[test]
fn events_tell_a_step_of_the_clock() {
    let world = World::new();
    let lines = told(|| {
        world.node.run_until(at(1));
        world.clock.set(at(3_601));
        world.node.run_until(at(3_602));
    });
    assert_eq!(lines[0], "INFO lease taken owner=\"node\" fence=1");
    assert_eq!(lines[1], "WARN wall clock stepped owner=\"node\" by=3600s");
}

/// What a handler logs belongs to its job.
#[test]
fn events_of_a_handler_are_within_the_span_of_its_job() {
    let builder = handlers().handler("talks", |_| info!(target: "handler", "hello"));
    let world = World::of(builder);
    world.schedule("talks", 1);
    let lines = told(|| world.node.run_until(at(2)));
    assert_eq!(lines[1..], ["job kind=\"talks\" attempt=1: INFO hello"]);
}

/// Another node has taken the lease while this one was paused.
#[test]
fn events_tell_a_lost_lease() {
    let paused = World::new();
    paused.node.run_until(at(1));
    let other = handlers().owner("other");
    let opened = other.open_virtual(paused.memory.clone(), paused.clock.clone());
    let (_jobs, node) = opened.unwrap();
    node.run_until(at(20));
    let lines = told(|| paused.node.run_until(at(30)));
    let lost = "WARN lease lost owner=\"node\" fence=1".to_owned();
    assert!(lines.contains(&lost), "{lines:?}");
}

/// Otherwise a thread of the node would end, and its callers would wait for ever.
#[test]
fn durable_02_a_subscriber_that_panics_fails_at_most_a_run_whose_span_it_has() {
    let world = World::new();
    subscriber::with_default(Panics, || {
        world.run_each();
        fail_for_a_while(&world);
    });
    let counts = world.jobs.status().counts;
    assert_eq!((counts.done, counts.recoveries), (0, 1));
    world.schedule("done", 41);
    world.node.run_until(at(50));
    assert_ne!(world.jobs.status().counts.done, 0);
}
