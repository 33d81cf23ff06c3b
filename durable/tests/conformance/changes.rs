//! Storing, cancelling, moving; keys.

use super::*;

on_each_store!(
    a_stored_job_is_found,
    a_job_is_cancelled_once,
    a_moved_job_keeps_its_id,
    a_key_is_refused_kept_or_replaced,
    an_update_keeps_what_is_due,
    durable_02_an_update_keeps_an_occurrence_that_has_failed,
    durable_11_an_update_leaves_a_run_its_occurrence,
    durable_11_a_run_is_reckoned_by_the_schedule_of_its_end,
    an_update_of_a_job_that_runs_is_not_lost,
    durable_02_an_update_to_a_single_job_is_due_when_that_says,
    a_key_is_free_after_the_end,
    kinds_do_not_share_keys,
    a_batch_sees_its_own_changes,
    a_forged_id_reaches_no_job,
    a_name_with_a_nul_is_that_of_no_job,
    a_kind_that_is_too_long_is_that_of_no_job,
    every_field_is_kept,
);

fn a_stored_job_is_found<S: Store>(bench: &Bench<S>) {
    let job = bench.insert(mail(5).key("ada", IfTaken::Refuse));
    let found = bench.store.get(job.id).unwrap().unwrap();
    assert_eq!((found.due, found.version, found.attempts), (at(5), job.version, 0));
    assert_eq!(bench.store.find("mail", "ada").unwrap(), Some(found));
    assert_eq!(bench.store.find("mail", "eve").unwrap(), None);
}

fn a_job_is_cancelled_once<S: Store>(bench: &Bench<S>) {
    let job = bench.insert(mail(5));
    let cancel = || bench.change(Change::Cancel(job.id.into()));
    assert!(matches!(cancel(), Answer::Removed(removed) if removed.payload == b"body"));
    assert_eq!(cancel(), Answer::Gone);
    assert_eq!(bench.counts(), (0, 0));
}

fn a_moved_job_keeps_its_id<S: Store>(bench: &Bench<S>) {
    let (target, _other) = (bench.insert(mail(5)), bench.insert(mail(6)));
    for due in [7, 3, 5] {
        let moved = Change::Move { target: target.id.into(), due: at(due) };
        let moved = placed(bench.change(moved));
        assert_eq!((moved.id, moved.due), (target.id, at(due)));
        let found = bench.store.get(target.id).unwrap().unwrap();
        assert_eq!((found.due, found.version), (at(due), moved.version));
        let mut due = [due, 6];
        due.sort_unstable();
        assert_eq!(bench.due(), due);
    }
    let gone = Change::Move { target: JobId::new(at(5), 99).into(), due: at(1) };
    assert_eq!(bench.change(gone), Answer::Gone);
}

fn a_key_is_refused_kept_or_replaced<S: Store>(bench: &Bench<S>) {
    let first = bench.insert(mail(5).key("ada", IfTaken::Refuse));
    assert_eq!(bench.try_insert(mail(6).key("ada", IfTaken::Refuse)), Answer::Taken(first.id));
    assert_eq!(bench.try_insert(mail(6).key("ada", IfTaken::Keep)), Answer::Kept(first.id));
    assert_eq!(bench.due(), [5]);
    let replaced =
        bench.insert(Job::new("mail", b"new".to_vec()).at(at(9)).key("ada", IfTaken::Replace));
    assert_eq!((replaced.id, bench.due()), (first.id, vec![9]));
    let found = bench.store.find("mail", "ada").unwrap().unwrap();
    assert_eq!((found.payload.as_slice(), found.due), (&b"new"[..], at(9)));
    assert!(found.version > first.version);
}

/// The service was changed while an occurrence was missed.
fn an_update_keeps_what_is_due<S: Store>(bench: &Bench<S>) {
    let now = SystemClock.now();
    let insert = |job: Job| {
        let job = job.key("k", IfTaken::Update);
        let placed = placed(bench.change(Change::Insert(NewJob::new(job, now).unwrap())));
        bench.store.get(placed.id).unwrap().unwrap()
    };
    let every = |text: &str, due| Job::new("mail", text).every(HOUR).at(at(due));
    let first = insert(every("first", 5));
    let second = insert(every("second", 9));
    assert_eq!((second.due, second.version), (at(5), first.version));
    assert_eq!(second.recurrence, first.recurrence);
    assert_eq!(second.payload, b"second");
    // The seventh part of an hour is no whole number of microseconds.
    let often = |due| insert(Job::new("often", "").every(HOUR / 7).at(due)).due;
    assert_eq!([now + HOUR, now + HOUR * 2].map(often), [now + HOUR; 2]);
    let cron = |minute| Job::new("mail", "").cron(format!("{minute} * * * * UTC")).unwrap();
    assert_eq!(NewJob::new(cron(1).at(at(7)), now).unwrap().due, at(7), "not the first occurrence");
    let overdue = insert(cron(1));
    assert_eq!((overdue.id, overdue.due), (first.id, at(5)));
    assert!(overdue.version > second.version && overdue.recurrence != second.recurrence);
    bench.change(Change::Move { target: first.id.into(), due: now + HOUR * 9 });
    assert_eq!(insert(cron(1)).due, now + HOUR * 9);
    let changed = insert(cron(2)).due;
    assert!(changed > now && changed <= now + HOUR, "{changed}");
}

/// The schedule is changed in the pause before it is tried again.
fn durable_02_an_update_keeps_an_occurrence_that_has_failed<S: Store>(bench: &Bench<S>) {
    let update = |hours| mail(5).every(HOUR * hours).key("k", IfTaken::Update);
    let first = bench.started(bench.insert(update(1)));
    let (due, failure) = (SystemClock.now() + HOUR, Some("no line".to_owned()));
    bench.finish(&first, Then::Again { due, failure: failure.clone() });
    let updated = bench.insert(update(2));
    assert_eq!((updated.id, updated.due), (first.id, due));
    let second = bench.started(updated);
    assert_eq!((second.attempts, &second.failure), (2, &failure));
    let every = Recurrence::Every { period: HOUR * 2, first: at(5) };
    assert_eq!(second.recurrence, Some(every));
}

/// If its node dies, the occurrence is still due, and its attempt counts.
fn durable_11_an_update_leaves_a_run_its_occurrence<S: Store>(bench: &Bench<S>) {
    let update = |hours| mail(5).every(HOUR * hours).key("k", IfTaken::Update);
    let first = bench.started(bench.insert(update(1)));
    let updated = bench.insert(update(2));
    assert_eq!((updated.due, updated.version), (first.due, first.version));
    let lease = bench.store.acquire("first", &kinds(), HOUR).unwrap().unwrap();
    let Answer::Started { job: again, .. } = bench.start_under(lease, updated) else { panic!() };
    assert_eq!(again.attempts, 2);
    let then = Then::Again { due: at(9), failure: None };
    assert_eq!(placed(bench.change(Change::finish(&again, lease.fence, then))).due, at(9));
}

/// Its outcome knows the old schedule: a success, a retry, or a dead letter.
fn durable_11_a_run_is_reckoned_by_the_schedule_of_its_end<S: Store>(bench: &Bench<S>) {
    let update = |hours| mail(5).every(HOUR * hours).key("k", IfTaken::Update);
    let failure = "worn out".to_owned();
    let again = || Then::Again { due: at(9), failure: None };
    let die = |next| Then::Die { failure: failure.clone(), at: at(8), next };
    for (then, dead) in [(again(), 0), (die(Some(at(9))), 1), (die(None), 2), (Then::End, 2)] {
        let first = bench.started(bench.insert(update(1)));
        bench.insert(update(2));
        let found = bench.store.get(first.id).unwrap();
        let Answer::Changed(changed) = bench.finish(&first, then.clone()) else { panic!() };
        assert_eq!(bench.store.get(first.id).unwrap(), found, "nothing has happened");
        let recurrence = found.unwrap().recurrence;
        assert_eq!((&changed.recurrence, changed.attempts), (&recurrence, 1));
        let is_there = |answer| matches!(answer, Answer::Placed(_) | Answer::Removed(_));
        let second = StoredJob { recurrence, ..first };
        assert!(is_there(bench.finish(&second, then)));
        assert_eq!(bench.counts().1, dead);
        bench.change(Change::Cancel(second.id.into()));
    }
}

/// The outcome of the run is not that of the new payload. That of a recurring job waits for the next
/// occurrence instead.
fn an_update_of_a_job_that_runs_is_not_lost<S: Store>(bench: &Bench<S>) {
    let update = |text: &str| Job::new("mail", text).at(at(9)).key("k", IfTaken::Update);
    let first = bench.started(bench.insert(update("first")));
    let updated = bench.insert(update("second"));
    assert_eq!((updated.id, updated.due), (first.id, first.due));
    assert!(matches!(bench.finish(&first, Then::End), Answer::Stale(_)));
    let second = bench.started(updated);
    assert_eq!((&second.payload[..], second.attempts), (&b"second"[..], 1));
    bench.finish(&second, Then::End);
    let third = bench.started(bench.insert(update("third").every(HOUR)));
    let updated = bench.insert(update("fourth").every(HOUR));
    assert_eq!(updated.version, third.version);
}

/// A run of the recurring one that goes on is none of the single one.
fn durable_02_an_update_to_a_single_job_is_due_when_that_says<S: Store>(bench: &Bench<S>) {
    let now = SystemClock.now();
    let due = now + HOUR;
    for is_running in [false, true] {
        let first = bench.insert(mail(5).every(HOUR).key("k", IfTaken::Update));
        let run = is_running.then(|| bench.started(first));
        let single = Job::new("mail", "single").at(due).key("k", IfTaken::Update);
        let new = NewJob::new(single, now).unwrap();
        let updated = placed(bench.change(Change::Insert(new)));
        assert_eq!((updated.id, updated.due), (first.id, due));
        if let Some(run) = run {
            let then = Then::Again { due: at(9), failure: None };
            let Answer::Stale(stale) = bench.finish(&run, then) else { panic!() };
            assert_eq!(stale.due, due);
        }
        let single = bench.started(updated);
        assert_eq!((single.attempts, &single.payload[..]), (1, &b"single"[..]));
        assert!(matches!(bench.finish(&single, Then::End), Answer::Removed(_)));
    }
}

fn a_key_is_free_after_the_end<S: Store>(bench: &Bench<S>) {
    let keyed = |due| mail(due).key("ada", IfTaken::Refuse);
    let first = bench.insert(keyed(5));
    bench.change(Change::Cancel(("mail", "ada").into()));
    let second = bench.insert(keyed(6));
    assert_ne!(first.id, second.id);
    let job = bench.started(second);
    bench.finish(&job, Then::End);
    let third = bench.started(bench.insert(keyed(7)));
    let die = Then::Die { failure: "no".to_owned(), at: at(8), next: None };
    bench.finish(&third, die);
    bench.insert(keyed(9));
}

fn kinds_do_not_share_keys<S: Store>(bench: &Bench<S>) {
    let insert = |kind: &str, key: &str| {
        bench.insert(Job::new(kind, Vec::new()).key(key, IfTaken::Refuse));
    };
    insert("a", "bc");
    insert("ab", "c");
    insert("abc", "");
    assert_eq!(bench.counts().0, 3);
}

fn a_batch_sees_its_own_changes<S: Store>(bench: &Bench<S>) {
    let insert =
        |due| Change::Insert(NewJob::new(mail(due).key("a", IfTaken::Keep), at(0)).unwrap());
    let cancel = Change::Cancel(("mail", "a").into());
    let answers = bench.commit(&[insert(1), insert(2), cancel.clone(), cancel, insert(3)]);
    let first = placed(answers[0].clone());
    assert_eq!(answers[1], Answer::Kept(first.id));
    assert!(matches!(&answers[2], Answer::Removed(job) if job.id == first.id));
    assert_eq!(answers[3], Answer::Gone);
    assert_ne!(placed(answers[4].clone()).id, first.id);
    assert_eq!(bench.due(), [3]);
}

fn a_forged_id_reaches_no_job<S: Store>(bench: &Bench<S>) {
    let job = bench.insert(mail(5));
    bench.change(Change::Move { target: job.id.into(), due: at(9) });
    let forged = JobId::new(at(8), job.id.number());
    assert_eq!(bench.store.get(forged).unwrap(), None);
    assert_eq!(bench.change(Change::Cancel(forged.into())), Answer::Gone);
    assert_eq!(bench.counts().0, 1);
}

/// Nor does it keep the others of its batch.
fn a_name_with_a_nul_is_that_of_no_job<S: Store>(bench: &Bench<S>) {
    let job = bench.insert(mail(5).key("a", IfTaken::Refuse));
    for (kind, key) in [("mail", "a\0"), ("mail\0", "a")] {
        let target = Target::from((kind, key));
        let pause = Change::Pause { kind: "mail\0".to_owned(), is_paused: true };
        let moved = Change::Move { target: target.clone(), due: at(9) };
        let right = Change::Move { target: job.id.into(), due: at(7) };
        let answers = bench.commit(&[Change::Cancel(target), moved, pause, right]);
        assert_eq!(answers[..2], [Answer::Gone, Answer::Gone]);
        assert_eq!(placed(answers[3].clone()).due, at(7));
        assert_eq!(bench.store.find(kind, key).unwrap(), None);
    }
    let page = Page { kind: Some("mail\0"), ..Page::new(List::Live, None, 9) };
    assert_eq!(bench.store.list(page).unwrap(), []);
}

/// An index has no room for it.
fn a_kind_that_is_too_long_is_that_of_no_job<S: Store>(bench: &Bench<S>) {
    let kind: String = (0..9_000).map(|_| fastrand::alphanumeric()).collect();
    let pause = Change::Pause { kind, is_paused: true };
    let answers = bench.commit(&[pause, Change::Insert(NewJob::new(mail(5), at(0)).unwrap())]);
    assert_eq!(placed(answers[1].clone()).due, at(5));
}

fn every_field_is_kept<S: Store>(bench: &Bench<S>) {
    let cron = mail(5).cron("0 6 * * MON Europe/Berlin").unwrap();
    for job in [mail(4), mail(5).every(HOUR), cron] {
        let new = NewJob::new(job.key("k", IfTaken::Replace), at(0)).unwrap();
        let placed = placed(bench.change(Change::Insert(new.clone())));
        let expected = StoredJob { version: placed.version, ..new.stored(placed.id) };
        assert_eq!(bench.store.get(placed.id).unwrap(), Some(expected));
    }
}
