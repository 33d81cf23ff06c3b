//! Failures, dead letters, and recurring jobs.

use std::sync::atomic::{AtomicBool, Ordering};

use super::support::failing::{Failing, Mode};
use super::*;

#[test]
fn a_failed_job_is_tried_again_and_then_dead() {
    let world = World::new();
    let builder = world.notes(|_| Err::<(), _>("no line"));
    let retry = Retry::attempts(3).first_pause(SECOND);
    let (jobs, node) = world.open(builder.retry("note", retry));
    let id = jobs.schedule(note("job", 10)).unwrap();
    node.run_until(at(100));
    let runs = world.log.take();
    let pauses: Vec<u64> = runs.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    assert_eq!(runs.len(), 3);
    assert!((500..=1_001).contains(&pauses[0]), "{pauses:?}");
    assert!((1_000..=2_001).contains(&pauses[1]), "{pauses:?}");

    let dead = jobs.list(List::Dead, None, 9).unwrap();
    assert_eq!((dead.len(), dead[0].id, dead[0].attempts), (1, id, 3));
    assert_eq!(dead[0].failure.as_deref(), Some("no line"));
    jobs.revive(id, at(200)).unwrap();
    node.run_until(at(300));
    assert_eq!(world.log.take().len(), 3, "with all attempts");
    assert_eq!(jobs.bury(id).unwrap().map(|job| job.id), Some(id));
    assert_eq!(jobs.get(id).unwrap(), None);
}

#[test]
fn a_job_that_has_failed_more_often_than_is_allowed_now_keeps_its_failure() {
    let world = World::new();
    let open = |attempts| {
        let builder = world.notes(|_| Err::<(), _>("no line"));
        world.open(builder.retry("note", Retry::attempts(attempts)))
    };
    let (jobs, node) = open(3);
    let id = jobs.schedule(note("job", 1)).unwrap();
    node.run_until(at(1));
    drop((jobs, node));
    let (jobs, node) = open(1);
    node.run_until(at(9));
    let failure = jobs.get(id).unwrap().unwrap().failure.unwrap();
    assert!(failure.contains("fewer are allowed") && failure.contains("no line"), "{failure}");
}

#[test]
fn dead_letters_are_kept_for_as_long_as_is_set() {
    let world = World::new();
    let builder = world.notes(|_| Outcome::Never("no such address".to_owned()));
    let (jobs, node) = world.open(builder.keeps_dead(HOUR));
    for due in [1, 2_000] {
        jobs.schedule_many([note("job", due), note("job", due)]);
    }
    node.run_until(at(3_590));
    assert_eq!(jobs.count(List::Dead).unwrap(), 4);
    node.run_until(at(3_700));
    let dead = jobs.list(List::Dead, None, 9).unwrap();
    assert_eq!(dead.iter().map(|job| job.due).collect::<Vec<_>>(), [at(2_000); 2]);
    assert_eq!(dead[0].attempts, 1, "it is not tried again");
}

/// Otherwise a store to which more are added than a window has removed would grow without end.
#[test]
fn many_old_dead_letters_are_removed_soon() {
    let world = World::new();
    let builder = world.notes(|_| Outcome::Never("no such address".to_owned()));
    let (jobs, node) = world.open(builder.keeps_dead(HOUR));
    jobs.schedule_many((0..1_000).map(|_| note("job", 1)));
    node.run_until(at(3_590));
    assert_eq!(jobs.count(List::Dead).unwrap(), 1_000);
    node.run_until(at(3_650));
    assert_eq!(jobs.count(List::Dead).unwrap(), 0);
}

#[test]
fn a_panic_is_a_failure() {
    let world = World::new();
    let builder = world.notes(|_| -> () { panic!("at the disco") });
    let (jobs, node) = world.open(builder.retry("note", Retry::attempts(1)));
    let id = jobs.schedule(note("job", 1)).unwrap();
    node.run_until(at(2));
    let dead = jobs.get(id).unwrap().unwrap();
    assert_eq!(dead.state, State::Dead);
    assert_eq!(dead.failure.as_deref(), Some("panicked: at the disco"));
}

/// It looks the pause up in a table, which has one only.
#[test]
fn durable_02_after_a_panic_of_the_function_for_pauses_comes_the_longest_pause() {
    let world = World::new();
    let builder = world.notes(|_| Err::<(), _>("no line"));
    let retry = Retry::attempts(3).longest_pause(SECOND * 9);
    let retry = retry.pauses(|attempts| [SECOND][attempts as usize - 1]);
    let (jobs, node) = world.open(builder.retry("note", retry));
    jobs.schedule(note("job", 1)).unwrap();
    node.run_until(at(20));
    assert_eq!(world.log.take(), [1_000, 2_000, 11_000].map(|millis| said("job", millis)));
    assert_eq!(world.count(List::Dead), 1);
}

#[test]
fn a_job_without_a_handler_waits_for_one() {
    let world = World::new();
    let (jobs, node) = world.node();
    let id = jobs.schedule(Job::new("other", "").at(at(5))).unwrap();
    jobs.schedule(note("job", 6)).unwrap();
    jobs.schedule(Job::new("other", "").at(at(9))).unwrap();
    let unhandled = [("other".to_owned(), at(5))];
    assert_eq!(jobs.unhandled().unwrap(), unhandled, "before the first lease");
    node.run_until(at(100));
    assert_eq!(world.log.texts(), ["job"]);
    assert_eq!(jobs.unhandled().unwrap(), unhandled);
    assert_eq!(jobs.status().running, 0);
    drop((jobs, node));
    let (jobs, node) = world.open(Durable::builder().owner("node").handler("other", |_| ()));
    node.run_until(at(101));
    assert_eq!(jobs.get(id).unwrap(), None);
}

/// The process dies in every attempt: the handler never returns.
#[test]
fn durable_07_a_job_that_kills_its_process_is_not_retried_for_ever() {
    let world = World::new();
    let retry = Retry::attempts(3);
    let (jobs, node) = world.open(Durable::builder());
    let id = jobs.schedule(note("poison", 1)).unwrap();
    drop((jobs, node));
    world.clock.set(at(2));
    for attempts in 1..=3 {
        // Started, and then nothing more is heard of this node.
        let job = world.store.get(id).unwrap().unwrap();
        let fence = world.store.acquire("node", &kinds(), HOUR).unwrap().unwrap().fence;
        let start = Change::Start { id, version: job.version, fence };
        let answer = world.store.commit(&[start]).unwrap().remove(0);
        assert!(matches!(answer, Answer::Started { job, .. } if job.attempts == attempts));
    }
    let (jobs, node) = world.open(world.notes(|_| ()).retry("note", retry));
    node.run_until(at(100));
    assert_eq!(world.log.texts(), [""; 0], "its attempts are used up");
    let dead = jobs.get(id).unwrap().unwrap();
    assert_eq!(dead.state, State::Dead);
    let failure = dead.failure.unwrap();
    assert!(failure.contains("process ended"), "{failure}");
}

#[test]
fn a_handler_asks_for_another_run() {
    let world = World::new();
    let builder = world.notes(|attempt| {
        if attempt.due() < at(20) {
            Outcome::AgainAt(attempt.due() + SECOND * 7)
        } else {
            Outcome::Done
        }
    });
    let (jobs, node) = world.open(builder.retry("note", Retry::attempts(1)));
    jobs.schedule(note("job", 10)).unwrap();
    node.run_until(at(100));
    let expected = [10_000, 17_000, 24_000].map(|millis| said("job", millis));
    assert_eq!(world.log.take(), expected);
    assert_eq!(world.count(List::Live), 0);
}

#[test]
fn durable_11_a_recurring_job_keeps_its_phase() {
    let world = World::new();
    let (jobs, node) = world.node();
    let id = jobs.schedule(note("job", 5).every(SECOND * 10)).unwrap();
    node.run_until(at(26));
    let expected = [5_000, 15_000, 25_000].map(|millis| said("job", millis));
    assert_eq!(world.log.take(), expected);

    // Four occurrences pass while no node runs: one run makes up for them.
    drop((jobs, node));
    world.clock.set(at(67));
    let (jobs, node) = world.node();
    node.run_until(at(80));
    assert_eq!(world.log.take(), [said("job", 67_000), said("job", 75_000)]);
    assert!(jobs.cancel(id).unwrap().is_cancelled());
}

/// A service schedules its recurring job at each start, and changes it in the last one.
#[test]
fn durable_11_a_recurring_job_is_scheduled_at_each_start() {
    let world = World::new();
    let hourly =
        |text, minute| Job::new("note", text).cron(format!("{minute} * * * * UTC")).unwrap();
    for text in ["first", "second"] {
        let (jobs, _node) = world.node();
        jobs.schedule(hourly(text, 30)).unwrap();
        assert_eq!(jobs.count(List::Live).unwrap(), 1);
    }
    // The occurrence after half an hour is missed.
    world.clock.set(at(2_000));
    let (jobs, node) = world.node();
    jobs.schedule(hourly("second", 30)).unwrap();
    jobs.schedule(hourly("changed", 40)).unwrap();
    node.run_until(at(2_500));
    assert_eq!(world.log.take(), [said("changed", 2_000_000), said("changed", 2_400_000)]);
    let every = |text| note(text, 3_000).every(SECOND * 100).key("own", IfTaken::Update);
    jobs.schedule(every("a")).unwrap();
    node.run_until(at(3_050));
    jobs.schedule(every("b").at(at(9_000))).unwrap();
    node.run_until(at(3_101));
    assert_eq!(world.log.take(), [said("a", 3_000_000), said("b", 3_100_000)]);
}

/// A deploy changes it while an occurrence runs, which then succeeds or fails.
#[test]
fn durable_11_an_occurrence_that_has_begun_runs_once_if_its_schedule_is_changed() {
    for fails in [false, true] {
        let world = World::new();
        let hourly =
            |text, minute| Job::new("note", text).cron(format!("{minute} * * * * UTC")).unwrap();
        let builder = world.notes(move |attempt| {
            if attempt.payload() == b"old" {
                attempt.jobs().schedule(hourly("new", 40)).unwrap();
                if fails { Err("no line") } else { Ok(()) }
            } else {
                Ok(())
            }
        });
        let retry = Retry::attempts(2).pauses(|_| SECOND);
        let (jobs, node) = world.open(builder.retry("note", retry));
        jobs.schedule(hourly("old", 30)).unwrap();
        node.run_until(at(6_100));
        let mut expected = vec![said("old", 1_800_000)];
        expected.extend(fails.then(|| said("new", 1_801_000)));
        expected.extend([said("new", 2_400_000), said("new", 6_000_000)]);
        assert_eq!(world.log.take(), expected);
    }
}

/// Another node, or a client in SQL, changes it while the outcome is on its way to the store.
#[test]
fn durable_11_a_schedule_that_is_changed_beside_an_outcome_holds_from_then_on() {
    let world = World::new();
    let every = |period| note("job", 10).every(period);
    let (store, inner) = (Failing::new(world.store.clone()), world.store.clone());
    let mut periods = vec![SECOND * 7, SECOND * 5];
    store.on_commit(move |changes| {
        if let [Change::Finish { .. }] = changes
            && let Some(period) = periods.pop()
        {
            let new = NewJob::new(every(period), at(10)).unwrap();
            inner.commit(&[Change::Insert(new)]).unwrap();
        }
        Ok(())
    });
    let (jobs, node) = world.notes(|_| ()).open_virtual(store, world.clock.clone()).unwrap();
    jobs.schedule(every(HOUR)).unwrap();
    node.run_until(at(30));
    assert_eq!(world.log.take(), [10_000, 17_000, 24_000].map(|millis| said("job", millis)));
    let counts = jobs.status().counts;
    assert_eq!((counts.attempts, counts.done, counts.refused), (3, 3, 0));
}

#[test]
fn durable_11_a_failed_occurrence_does_not_end_the_recurrence() {
    let world = World::new();
    let builder = world.notes(|attempt| {
        if attempt.due() < at(60) { Outcome::Failed("no".to_owned()) } else { Outcome::Done }
    });
    let (jobs, node) = world.open(builder.retry("note", Retry::attempts(1)));
    let cron = Job::new("note", "job").cron("* * * * * UTC").unwrap();
    let cron = cron.key("minutely", IfTaken::Update);
    jobs.schedule(note("every", 30).every(SECOND * 60)).unwrap();
    jobs.schedule(cron).unwrap();
    node.run_until(at(130));
    let expected =
        [said("every", 30_000), said("job", 60_000), said("every", 90_000), said("job", 120_000)];
    assert_eq!(world.log.take(), expected);
    assert_eq!((world.count(List::Live), world.count(List::Dead)), (2, 1));
}

/// One job kills its process in every attempt, and 50 others are due with it. Each has one
/// attempt.
#[test]
fn durable_07_a_job_that_kills_its_process_uses_up_no_attempt_of_others() {
    let world = World::new();
    let (jobs, node) = world.open(Durable::builder());
    let poison = jobs.schedule(note("poison", 1)).unwrap();
    for _ in 0..50 {
        jobs.schedule(note("innocent", 1)).unwrap();
    }
    drop((jobs, node));
    let is_dead = Arc::new(AtomicBool::new(false));
    for _ in 0..2 {
        // From the poison on, the store hears nothing of this process, and no handler runs.
        let store = Failing::new(world.store.clone());
        let (log, dead, switch) = (world.log.clone(), is_dead.clone(), store.clone());
        let builder = Durable::builder().owner("node").workers(1).retry("note", Retry::attempts(1));
        let builder = builder.handler("note", move |attempt| {
            if attempt.payload() == b"poison" {
                dead.store(true, Ordering::SeqCst);
                switch.set(Mode::FailsBefore);
            } else if !dead.load(Ordering::SeqCst) {
                log.note("innocent", at(1));
            }
        });
        let (_jobs, node) = builder.open_virtual(store, world.clock.clone()).unwrap();
        is_dead.store(false, Ordering::SeqCst);
        node.run_until(at(2));
    }
    assert_eq!(world.log.texts().len(), 50);
    let dead = world.store.list(Page::new(List::Dead, None, 99)).unwrap();
    assert_eq!(dead.iter().map(|job| job.id).collect::<Vec<_>>(), [poison]);
}
