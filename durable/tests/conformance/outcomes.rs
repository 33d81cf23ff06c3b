//! Starting and finishing; attempts, dead letters; leases and fences.

use super::*;

on_each_store!(
    a_start_counts_the_attempt_once,
    a_start_needs_the_version,
    a_repeated_start_of_a_moved_job_leaves_its_attempts,
    a_cancelled_run_is_known,
    a_paused_kind_starts_nothing,
    a_move_outlives_the_outcome,
    a_repeated_outcome_changes_nothing,
    a_replacement_outlives_the_outcome,
    a_started_job_is_known_to_a_load,
    a_failure_keeps_the_attempts_and_success_forgets_them,
    a_dead_letter_is_kept_and_revived,
    a_revived_job_needs_its_key,
    a_recurring_job_leaves_its_failed_occurrence,
    a_late_holder_is_fenced_off,
    a_job_of_an_earlier_holder_is_started_again,
    a_token_rises_with_each_holder,
);

fn a_start_counts_the_attempt_once<S: Store>(bench: &Bench<S>) {
    let job = bench.insert(mail(5));
    let fence = bench.lease.fence;
    for _ in 0..2 {
        let started = bench.started(job);
        assert_eq!((started.attempts, started.state), (1, State::Started { fence }));
    }
    assert_eq!(bench.due(), [5], "a started job is still read");
}

fn a_start_needs_the_version<S: Store>(bench: &Bench<S>) {
    let job = bench.insert(mail(5));
    let (target, due) = (job.id.into(), at(6));
    let moved = placed(bench.change(Change::Move { target, due }));
    assert_eq!(bench.start(job), Answer::Stale(moved));
    bench.change(Change::Cancel(job.id.into()));
    assert_eq!(bench.start(moved), Answer::Gone);
}

/// The start is repeated because its commit failed, and another node has moved the job between.
fn a_repeated_start_of_a_moved_job_leaves_its_attempts<S: Store>(bench: &Bench<S>) {
    let job = bench.insert(mail(5).key("a", IfTaken::Refuse));
    bench.started(job);
    let replaced = bench.insert(mail(6).key("a", IfTaken::Replace));
    assert_eq!(stale(bench.start(job)), replaced.version);
    let found = bench.store.get(job.id).unwrap().unwrap();
    assert_eq!((found.attempts, found.state), (0, State::Waiting));
    assert_eq!(bench.started(replaced).attempts, 1, "its first run");
}

/// Also if its job was replaced.
fn a_cancelled_run_is_known<S: Store>(bench: &Bench<S>) {
    let job = bench.started(bench.insert(mail(5).key("a", IfTaken::Refuse)));
    bench.insert(mail(9).key("a", IfTaken::Replace));
    let cancel = Change::Cancel(job.id.into());
    assert_eq!(bench.change(cancel), Answer::RemovedRunning(job.id));
    assert_eq!(bench.finish(&job, Then::End), Answer::Gone);
    assert_eq!(bench.counts(), (0, 0));
}

/// Not even to say that it was moved. What runs goes on.
fn a_paused_kind_starts_nothing<S: Store>(bench: &Bench<S>) {
    let [waits, moved, runs] = [5, 6, 7].map(|due| bench.insert(mail(due)));
    let started = [moved, runs].map(|job| bench.started(job));
    for target in [waits, moved] {
        bench.change(Change::Move { target: target.id.into(), due: at(9) });
    }
    bench.change(Change::Pause { kind: "mail".to_owned(), is_paused: true });
    assert_eq!([waits, moved].map(|job| bench.start(job)), [Answer::Gone, Answer::Gone]);
    assert_eq!(bench.store.get(moved.id).unwrap().unwrap().state, State::Waiting);
    assert_eq!(bench.started(runs), started[1]);
    assert!(matches!(bench.finish(&started[1], Then::End), Answer::Removed(_)));
}

fn a_move_outlives_the_outcome<S: Store>(bench: &Bench<S>) {
    let job = bench.started(bench.insert(mail(5)));
    let (target, due) = (job.id.into(), at(9));
    let moved = placed(bench.change(Change::Move { target, due }));
    assert_eq!(stale(bench.finish(&job, Then::End)), moved.version);
    let found = bench.store.get(job.id).unwrap().unwrap();
    assert_eq!((found.due, found.state), (at(9), State::Waiting));
    assert_eq!(found.attempts, 0, "it is a new job in all but its id");
}

fn stale(answer: Answer) -> u64 {
    match answer {
        Answer::Stale(job) => job.version,
        answer => panic!("{answer:?}"),
    }
}

/// It is unknown whether a commit that failed has happened, so an outcome may come twice.
fn a_repeated_outcome_changes_nothing<S: Store>(bench: &Bench<S>) {
    let job = bench.started(bench.insert(mail(5)));
    let again = || Then::Again { due: at(9), failure: Some("no".to_owned()) };
    let placed = placed(bench.finish(&job, again()));
    assert_eq!(stale(bench.finish(&job, again())), placed.version);
    let found = bench.store.get(job.id).unwrap().unwrap();
    assert_eq!((found.attempts, found.state), (1, State::Waiting));
}

/// The lease under which a job was started may be over: its run has not ended.
fn a_started_job_is_known_to_a_load<S: Store>(bench: &Bench<S>) {
    let first = bench.insert(mail(5));
    bench.insert(mail(6));
    bench.started(first);
    let lease = bench.store.acquire("first", &kinds(), HOUR).unwrap().unwrap();
    let due = bench.store.due_before(lease, &names(), at(9), 9).unwrap();
    let started: Vec<bool> = due.jobs.iter().map(|job| job.is_interrupted).collect();
    assert_eq!(started, [true, false]);
}

fn a_replacement_outlives_the_outcome<S: Store>(bench: &Bench<S>) {
    let job = bench.started(bench.insert(mail(5).key("a", IfTaken::Refuse)));
    let replaced = bench.insert(mail(9).key("a", IfTaken::Replace));
    assert_eq!(stale(bench.finish(&job, Then::End)), replaced.version);
    assert_eq!(bench.started(replaced).attempts, 1);
}

fn a_failure_keeps_the_attempts_and_success_forgets_them<S: Store>(bench: &Bench<S>) {
    let again =
        |failure: Option<&str>| Then::Again { due: at(5), failure: failure.map(str::to_owned) };
    let mut job = bench.insert(mail(5));
    for attempts in [1, 2, 3] {
        let started = bench.started(job);
        assert_eq!(started.attempts, attempts);
        job = placed(bench.finish(&started, again(Some("no"))));
    }
    let failure = bench.store.get(job.id).unwrap().unwrap().failure;
    assert_eq!(failure.as_deref(), Some("no"));
    let started = bench.started(job);
    placed(bench.finish(&started, again(None)));
    let found = bench.store.get(job.id).unwrap().unwrap();
    assert_eq!((found.attempts, found.failure), (0, None));
}

fn die(bench: &Bench<impl Store>, job: DueJob, next: Option<WallTime>) -> Answer {
    let job = bench.started(job);
    let failure = "worn out".to_owned();
    let at = at(100);
    bench.finish(&job, Then::Die { failure, at, next })
}

fn a_dead_letter_is_kept_and_revived<S: Store>(bench: &Bench<S>) {
    let job = bench.insert(mail(5));
    assert!(matches!(die(bench, job, None), Answer::Removed(_)));
    assert_eq!((bench.due(), bench.counts()), (vec![], (0, 1)));
    let dead = bench.store.list(Page::new(List::Dead, None, 9)).unwrap().remove(0);
    assert_eq!((dead.id, dead.due, dead.state), (job.id, at(100), State::Dead));
    assert_eq!(bench.start(job), Answer::Gone);
    assert_eq!(bench.change(Change::Cancel(job.id.into())), Answer::Gone);

    let (id, due) = (job.id, at(7));
    let revived = placed(bench.change(Change::Revive { id, due }));
    assert_eq!((revived.due, bench.counts()), (at(7), (1, 0)));
    assert_eq!(bench.started(revived).attempts, 1);
    assert_eq!(bench.change(Change::Revive { id, due }), Answer::Gone);
    assert_eq!(bench.change(Change::Bury(id)), Answer::Gone);
}

fn a_revived_job_needs_its_key<S: Store>(bench: &Bench<S>) {
    let keyed = || mail(5).key("a", IfTaken::Refuse);
    let job = bench.insert(keyed());
    die(bench, job, None);
    let other = bench.insert(keyed());
    let (id, due) = (job.id, at(7));
    assert_eq!(bench.change(Change::Revive { id, due }), Answer::Taken(other.id));
    bench.change(Change::Cancel(other.id.into()));
    placed(bench.change(Change::Revive { id, due }));
    assert_eq!(bench.try_insert(keyed()), Answer::Taken(id));
}

fn a_recurring_job_leaves_its_failed_occurrence<S: Store>(bench: &Bench<S>) {
    let job = bench.insert(mail(5).every(HOUR).key("a", IfTaken::Refuse));
    let next = placed(die(bench, job, Some(at(50))));
    assert_eq!((next.id, next.due), (job.id, at(50)));
    assert_eq!(bench.counts(), (1, 1));
    let dead = bench.store.list(Page::new(List::Dead, None, 9)).unwrap().remove(0);
    assert_ne!(dead.id, job.id);
    assert_eq!((dead.recurrence, dead.key), (None, None));
    assert_eq!(bench.started(next).attempts, 1);
    let id = dead.id;
    assert!(matches!(bench.change(Change::Bury(id)), Answer::Removed(_)));
    assert_eq!(bench.counts(), (1, 0));
}

fn a_late_holder_is_fenced_off<S: Store>(bench: &Bench<S>) {
    let due = bench.insert(mail(5));
    let job = bench.started(due);
    let next = bench.store.acquire("first", &kinds(), HOUR).unwrap().unwrap();
    assert!(next.fence > bench.lease.fence);
    assert!(!bench.store.renew(bench.lease, HOUR).unwrap());
    assert!(bench.store.renew(next, HOUR).unwrap());
    assert_eq!(bench.finish(&job, Then::End), Answer::Fenced);
    assert_eq!(bench.start(due), Answer::Fenced);
    // What needs no lease goes on.
    bench.insert(mail(6));
    let due = bench.store.due_before(next, &names(), WallTime::MAX, 9).unwrap();
    assert_eq!(due.jobs.len(), 2);
}

fn a_job_of_an_earlier_holder_is_started_again<S: Store>(bench: &Bench<S>) {
    let (job, other) = (bench.insert(mail(5)), bench.insert(mail(6)));
    bench.started(job);
    bench.started(other);
    let lease = bench.store.acquire("first", &kinds(), HOUR).unwrap().unwrap();
    let answer = bench.start_under(lease, job);
    assert!(matches!(answer, Answer::Started { job, .. } if job.attempts == 2));
    // A handler of a lost lease does not count as running.
    let cancelled = bench.change(Change::Cancel(other.id.into()));
    assert!(matches!(cancelled, Answer::Removed(_)));
}

/// Whatever a resource outside has seen last is lower than what the next holder shows.
fn a_token_rises_with_each_holder<S: Store>(bench: &Bench<S>) {
    let job = bench.insert(mail(5));
    let token = |lease| match bench.start_under(lease, job) {
        Answer::Started { token, .. } => token,
        answer => panic!("{answer:?}"),
    };
    let mut last = token(bench.lease);
    assert_eq!(token(bench.lease), last, "the holder is the same");
    for _ in 0..5 {
        let lease = bench.store.acquire("first", &kinds(), HOUR).unwrap().unwrap();
        let next = token(lease);
        assert!(next > last, "{next} after {last}");
        last = next;
    }
}
