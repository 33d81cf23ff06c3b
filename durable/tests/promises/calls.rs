//! Scheduling, cancelling, moving, and refusals.

use super::*;

/// After a crash, a new node on the same store goes on.
#[test]
fn durable_01_what_was_answered_survives_a_crash() {
    let world = World::new();
    let (jobs, node) = world.node();
    let ids: Vec<JobId> =
        ["kept", "cancelled", "moved"].map(|text| jobs.schedule(note(text, 10)).unwrap()).into();
    jobs.cancel(ids[1]).unwrap();
    assert!(jobs.reschedule(ids[2], at(20)).unwrap());
    drop((jobs, node));

    let (_jobs, node) = world.node();
    node.run_until(at(100));
    assert_eq!(world.log.take(), [said("kept", 10_000), said("moved", 20_000)]);
    assert_eq!(world.count(List::Live), 0);
}

/// However far away: a job beyond the window waits in the store.
#[test]
fn durable_02_every_job_is_handled() {
    let world = World::new();
    let (jobs, node) = world.node();
    let dues = [0, 1, 59, 60, 61, 3_600, 40_000];
    for due in dues {
        jobs.schedule(note("job", due)).unwrap();
    }
    node.run_until(at(41_000));
    let expected = dues.map(|due| said("job", due * 1_000));
    assert_eq!(world.log.take(), expected);
    assert_eq!(world.count(List::Live), 0);
}

#[test]
fn durable_05_cancel_has_three_answers() {
    let world = World::new();
    let builder = world.notes(|attempt| {
        let cancelled = attempt.jobs().cancel(attempt.id()).unwrap();
        assert_eq!(cancelled, Cancelled::Running(attempt.id()));
        Outcome::Failed("is not tried again".to_owned())
    });
    let (jobs, node) = world.open(builder);
    let (early, late) = (note("early", 1), note("late", 2).every(SECOND));
    let (early, late) = (jobs.schedule(early).unwrap(), jobs.schedule(late).unwrap());
    let cancelled = jobs.cancel(early).unwrap();
    assert!(matches!(cancelled, Cancelled::Cancelled(job) if job.payload == b"early"));
    assert_eq!(jobs.cancel(early).unwrap(), Cancelled::Gone);
    node.run_until(at(100));
    assert_eq!(world.log.texts(), ["late"]);
    assert_eq!(jobs.cancel(late).unwrap(), Cancelled::Gone);
    assert_eq!((world.count(List::Live), world.count(List::Dead)), (0, 0));
}

#[test]
fn durable_05_a_job_can_be_cancelled_until_it_starts() {
    let world = World::new();
    let builder = world.notes(|attempt| {
        attempt.jobs().cancel(("note", "second")).unwrap();
    });
    // One at a time, so that the second is due while the first one runs.
    let (jobs, node) = world.open(builder.running(1));
    jobs.schedule(note("first", 1)).unwrap();
    let second = note("second", 1).key("second", IfTaken::Refuse);
    jobs.schedule(second).unwrap();
    node.run_until(at(10));
    assert_eq!(world.log.texts(), ["first"]);
}

#[test]
fn durable_06_a_key_is_unique() {
    let world = World::new();
    let (jobs, node) = world.node();
    let keyed = |text, due, if_taken| note(text, due).key("k", if_taken);
    let first = jobs.schedule(keyed("first", 10, IfTaken::Refuse)).unwrap();
    let refused = jobs.schedule(keyed("refused", 1, IfTaken::Refuse)).unwrap_err();
    assert!(matches!(refused.reason, Refusal::KeyTaken(id) if id == first));
    assert_eq!(jobs.schedule(keyed("kept", 1, IfTaken::Keep)).unwrap(), first);
    assert_eq!(jobs.schedule(keyed("replaced", 20, IfTaken::Replace)).unwrap(), first);
    assert_eq!(jobs.find("note", "k").unwrap().unwrap().due, at(20));
    node.run_until(at(100));
    assert_eq!(world.log.take(), [said("replaced", 20_000)]);
    assert_eq!(jobs.find("note", "k").unwrap(), None);
}

/// The window holds few, and the store many.
#[test]
fn durable_09_memory_is_bounded() {
    let world = World::new();
    let builder = world.notes(|_| ()).window_jobs(10).running(4);
    let (jobs, node) = world.open(builder);
    for n in 0..500 {
        jobs.schedule(note("job", 1 + n % 50)).unwrap();
        let status = jobs.status();
        assert!(status.armed <= 10 && status.running <= 4, "{status:?}");
    }
    for second in 0..60 {
        node.run_until(at(second));
        let status = jobs.status();
        assert!(status.armed <= 10 && status.running <= 4, "{status:?}");
    }
    let ran = world.log.take();
    assert_eq!(ran.len(), 500);
    assert!(ran.is_sorted_by_key(|(_, millis)| *millis));
    for (n, (_, millis)) in ran.iter().enumerate() {
        assert_eq!(*millis, 1_000 * (1 + n as u64 / 10), "on time");
    }
}

#[test]
fn durable_12_a_refused_job_comes_back() {
    let world = World::new();
    let (jobs, _node) = world.node();
    let text = "x".repeat(300);
    let refused = jobs.schedule(Job::new(text, "body")).unwrap_err();
    assert!(matches!(refused.reason, Refusal::TooLarge));
    let never = || Job::new("note", "never").cron("0 0 30 2 * UTC").unwrap();
    for job in [never(), never().after(SECOND), never().at(at(9))] {
        let refused = jobs.schedule(job).unwrap_err();
        assert!(matches!(refused.reason, Refusal::NeverDue));
        assert_eq!(refused.job.into_payload(), b"never");
    }
    // A refused job does not affect those beside it.
    let taken = |text| note(text, 5).key("k", IfTaken::Refuse);
    let answers = jobs.schedule_many([taken("a"), taken("b"), note("c", 6)]);
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    let refused = answers[1].as_ref().unwrap_err();
    assert_eq!(refused.job.clone().into_payload(), b"b");
}

#[test]
fn what_is_no_id_is_refused() {
    assert_eq!("1-2".parse(), Ok(JobId::new(WallTime::from_unix_micros(1), 2)));
    for text in ["", "-", "1", "1-2-3", "-1-2", "+1-2", "1-+2", " 1-2", "10000000000000000-1"] {
        assert!(text.parse::<JobId>().is_err(), "{text}");
    }
}

#[test]
fn a_node_without_handlers_runs_nothing() {
    let world = World::new();
    let (jobs, node) = world.open(Durable::builder());
    jobs.schedule(note("later", 1)).unwrap();
    node.run_until(at(100));
    assert_eq!(jobs.count(List::Live).unwrap(), 1);
    drop((jobs, node));
    let (_jobs, node) = world.node();
    node.run_until(at(101));
    assert_eq!(world.log.texts(), ["later"]);
}
