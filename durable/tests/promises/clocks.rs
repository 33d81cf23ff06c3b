//! Steps of the wall clock, and the end of the window.

use super::*;

#[test]
fn durable_04_nothing_is_early_after_a_step_back() {
    let world = World::new();
    let (jobs, node) = world.node();
    node.run_until(at(7_200));
    jobs.schedule(note("job", 7_230)).unwrap();
    node.run_until(at(7_210));
    world.clock.set(at(3_610));
    node.run_until(at(3_610));
    // It reaches no further than other nodes know.
    assert_eq!(jobs.status().horizon, at(3_670));
    node.run_until(at(7_229));
    assert_eq!(world.log.texts(), [""; 0]);
    node.run_until(at(7_231));
    assert_eq!(world.log.take(), [said("job", 7_230_000)]);
}

/// By a daemon that corrects it, say.
#[test]
fn durable_11_an_occurrence_runs_once_if_the_clock_steps_back_meanwhile() {
    let world = World::new();
    // The second occurrence fails, and is tried again after its own due time.
    let (clock, steps) = (world.clock.clone(), [(1, true), (0, false), (11, true)]);
    let steps = Mutex::new(steps.into_iter());
    let builder = world.notes(move |_| {
        let (tenths, is_done) = steps.lock().unwrap().next().unwrap_or((0, true));
        let since = clock.now().since(at(0));
        clock.set(at(0) + (since - SECOND * tenths / 10));
        if is_done { Outcome::Done } else { Outcome::Failed("no".to_owned()) }
    });
    let (jobs, node) = world.open(builder.retry("note", Retry::attempts(2).pauses(|_| SECOND)));
    jobs.schedule(Job::new("note", "job").cron("* * * * * UTC").unwrap()).unwrap();
    node.run_until(at(190));
    let runs = [60_000, 120_000, 121_000, 180_000];
    assert_eq!(world.log.take(), runs.map(|millis| said("job", millis)));
}

/// The step comes after the timer has been set and before anybody notices.
#[test]
fn durable_04_a_timer_that_expires_early_is_aimed_again() {
    let world = World::new();
    let clock = world.clock.clone();
    let builder = world.notes(move |attempt| {
        if attempt.payload() == b"step" {
            clock.set(at(0));
        }
    });
    let (jobs, node) = world.open(builder.running(1));
    jobs.schedule(note("step", 10)).unwrap();
    jobs.schedule(note("job", 10)).unwrap();
    node.run_until(at(10));
    assert_eq!(world.log.take(), [said("step", 10_000), said("job", 10_000)]);
    assert_eq!(jobs.count(List::Live).unwrap(), 0);
}

#[test]
fn durable_10_a_step_forward_runs_at_once_what_it_makes_due() {
    let world = World::new();
    let (jobs, node) = world.node();
    node.run_until(at(1));
    for due in [30, 3_600, 3_601, 4_000, 90_000] {
        jobs.schedule(note("job", due)).unwrap();
    }
    world.clock.set(at(3_601));
    node.run_until(at(3_601));
    let expected = [(); 3].map(|()| said("job", 3_601_000));
    assert_eq!(world.log.take(), expected);
    node.run_until(at(5_000));
    assert_eq!(world.log.take(), [said("job", 4_000_000)]);
}

/// Steps of an hour either way, while jobs are scheduled: all run, none early.
#[test]
fn durable_10_many_steps_lose_nothing() {
    let world = World::new();
    let clock = world.clock.clone();
    let builder = world.notes(move |attempt| assert!(attempt.due() <= clock.now(), "early"));
    let (jobs, node) = world.open(builder.retry("note", Retry::attempts(1)));
    world.clock.set(at(10_000));
    let mut random = 7_u64;
    let (mut scheduled, mut furthest) = (0, 0);
    for _ in 0..200 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let now = world.clock.now().since(at(0)).as_secs();
        let due = now + (random >> 33) % 500;
        jobs.schedule(note("job", due)).unwrap();
        (scheduled, furthest) = (scheduled + 1, due.max(furthest));
        match (random >> 20) % 5 {
            0 => world.clock.set(at(now + 3_600)),
            1 => world.clock.set(at(now.saturating_sub(3_600))),
            _ => {}
        }
        node.run_until(world.clock.now() + SECOND * 30);
    }
    node.run_until(at(furthest + 1));
    assert_eq!(world.log.take().len(), scheduled);
    assert_eq!((world.count(List::Live), world.count(List::Dead)), (0, 0));
}
