//! Leases and shards, without nodes: what the store itself refuses.

use std::sync::mpsc::channel;

use tickwheel_durable::Attempt;

use super::*;

fn insert(store: &PostgresStore, due: u64) -> DueJob {
    let job = note("job").at(WallTime::from_unix_micros(due));
    let new = NewJob::new(job, WallTime::default()).unwrap();
    match store.commit(&[Change::Insert(new)]).unwrap().remove(0) {
        Answer::Placed(job) => job,
        answer => panic!("{answer:?}"),
    }
}

fn start(store: &PostgresStore, lease: Lease, job: DueJob) -> Answer {
    let (DueJob { id, version, .. }, fence) = (job, lease.fence);
    let start = Change::Start { id, version, fence };
    store.commit(&[start]).unwrap().remove(0)
}

fn finish(store: &PostgresStore, lease: Lease, job: DueJob) -> Answer {
    let (DueJob { id, version, .. }, fence) = (job, lease.fence);
    let then = Then::End;
    let finish = Change::Finish { id, version, fence, recurrence: None, then };
    store.commit(&[finish]).unwrap().remove(0)
}

/// The outcome of a run that is to be repeated at once.
fn run_again(store: &PostgresStore, lease: Lease, job: DueJob) -> Answer {
    let (DueJob { id, version, due, .. }, fence) = (job, lease.fence);
    let then = Then::Again { due, failure: None };
    let finish = Change::Finish { id, version, fence, recurrence: None, then };
    store.commit(&[finish]).unwrap().remove(0)
}

fn attempts(answer: Answer) -> u32 {
    match answer {
        Answer::Started { job, .. } => job.attempts,
        answer => panic!("{answer:?}"),
    }
}

fn due(store: &PostgresStore, lease: Lease) -> usize {
    store.due_before(lease, &names(), WallTime::MAX, 99).unwrap().jobs.len()
}

/// The answer to the first start was lost: repeated, it does not wait for itself.
#[test]
fn a_kind_is_full_when_as_many_run_as_may() {
    let Some(schema) = Schema::new() else { return };
    let store = schema.open();
    let kind = Kind { most: Some(1), ..Kind::from("note") };
    let lease = store.acquire("node", &[kind], HOUR).unwrap().unwrap();
    let (first, second) = (insert(&store, 5), insert(&store, 6));
    assert_eq!([(); 2].map(|()| attempts(start(&store, lease, first))), [1, 1]);
    assert_eq!(start(&store, lease, second), Answer::Full);
    let asks = DueJob { version: 0, ..second };
    assert_eq!(start(&store, lease, asks), Answer::Full);
    finish(&store, lease, first);
    assert_eq!(start(&store, lease, asks), Answer::Stale(second));
    assert_eq!(attempts(start(&store, lease, second)), 1);
}

/// A node that is paused for longer than its lease comes back with a start and an outcome.
#[test]
fn durable_08_a_node_that_was_paused_is_fenced_off() {
    let Some(schema) = Schema::new() else { return };
    let (paused, other) = (schema.open(), schema.open());
    let old = paused.acquire("paused", &kinds(), millis(20)).unwrap().unwrap();
    let (job, next) = (insert(&paused, 5), insert(&paused, 6));
    assert_eq!(attempts(start(&paused, old, job)), 1);

    let new = other.acquire("other", &kinds(), HOUR).unwrap().unwrap();
    until("the other node has the jobs", || {
        assert!(other.renew(new, HOUR).unwrap());
        due(&other, new) == 2
    });
    assert_eq!(finish(&paused, old, job), Answer::Fenced);
    assert_eq!(start(&paused, old, next), Answer::Fenced);
    assert!(!paused.renew(old, HOUR).unwrap());
    assert_eq!(due(&paused, old), 0);
    assert_eq!(attempts(start(&other, new, job)), 2);
    assert!(matches!(finish(&other, new, job), Answer::Removed(_)));
}

/// A lease ends by the database's clock, even if nobody else takes its place.
#[test]
fn a_lease_ends_by_the_clock_of_the_database() {
    let Some(schema) = Schema::new() else { return };
    let store = schema.open();
    let lease = store.acquire("node", &kinds(), HOUR).unwrap().unwrap();
    assert!(store.renew(lease, millis(10)).unwrap());
    let text =
        format!("SELECT count(*) FROM {}.leases WHERE ends > clock_timestamp()", schema.name);
    let mut client = schema.client();
    until("the end", || client.query_one(&text, &[]).unwrap().get::<_, i64>(0) == 0);
    assert!(!store.renew(lease, HOUR).unwrap());
    let next = store.acquire("node", &kinds(), HOUR).unwrap().unwrap();
    assert!(next.fence > lease.fence);
}

/// Returns the fence of the lease that a job belongs to.
fn owner(schema: &Schema, job: DueJob) -> u64 {
    let text = format!(
        "SELECT s.fence FROM {0}.shards s, {0}.tickwheel_durable d WHERE s.part = $1 % d.parts",
        schema.name
    );
    let number = job.id.number() as i64;
    let row = schema.client().query_one(&text, &[&number]).unwrap();
    row.get::<_, i64>(0) as u64
}

/// Each shard has a job that runs when the second node comes.
#[test]
fn durable_03_a_shard_is_handed_over_when_nothing_of_it_runs() {
    let Some(schema) = Schema::new() else { return };
    let (first, second) = (schema.open(), schema.open());
    let old = first.acquire("first", &kinds(), HOUR).unwrap().unwrap();
    let jobs: Vec<DueJob> = (0..32).map(|due| insert(&first, due)).collect();
    for job in &jobs[..16] {
        assert_eq!(attempts(start(&first, old, *job)), 1);
    }
    let new = second.acquire("second", &kinds(), HOUR).unwrap().unwrap();
    for _ in 0..3 {
        assert!(first.renew(old, HOUR).unwrap());
        assert_eq!(shares(&schema)["second"], 0);
    }
    // Half of the shards leave: nothing more of them is started, and what runs may end.
    let leaving: Vec<usize> =
        (16..32).filter(|index| start(&first, old, jobs[*index]) == Answer::Gone).collect();
    assert_eq!(leaving.len(), 8);
    for (handed, index) in leaving.iter().enumerate() {
        let job = jobs[index - 16];
        assert!(matches!(finish(&first, old, job), Answer::Removed(_)));
        assert!(first.renew(old, HOUR).unwrap());
        assert_eq!(shares(&schema)["second"], handed as i64 + 1);
    }
    assert!(second.renew(new, HOUR).unwrap());
    assert_eq!(due(&second, new), 8);
    assert_eq!(owner(&schema, jobs[leaving[0]]), new.fence);
    assert_eq!(attempts(start(&second, new, jobs[leaving[0]])), 1);
}

fn token(answer: Answer) -> u64 {
    match answer {
        Answer::Started { token, .. } => token,
        answer => panic!("{answer:?}"),
    }
}

/// A shard is handed over, given back and taken over, each time by leases with other fences: the
/// node that has the lowest fence shows the highest number at the end.
#[test]
fn durable_08_a_token_rises_with_each_grant_of_a_shard() {
    let Some(schema) = Schema::new() else { return };
    let first = schema.open();
    let low = first.acquire("first", &kinds(), HOUR).unwrap().unwrap();
    let mut jobs: Vec<DueJob> = (0..16).map(|due| insert(&first, due)).collect();
    let mut last: Vec<u64> = (jobs.iter()).map(|job| token(start(&first, low, *job))).collect();
    // A shard is handed over once nothing of it runs.
    let end_all = |store: &PostgresStore, lease: Lease, jobs: &mut Vec<DueJob>| {
        for job in jobs {
            if let Answer::Placed(again) = run_again(store, lease, *job) {
                *job = again;
            }
        }
    };
    end_all(&first, low, &mut jobs);
    for round in 0..3 {
        let second = schema.open();
        let high = second.acquire("second", &kinds(), HOUR).unwrap().unwrap();
        assert!(high.fence > low.fence);
        for _ in 0..2 {
            assert!(first.renew(low, HOUR).unwrap());
            assert!(second.renew(high, HOUR).unwrap());
        }
        let mut handed = Vec::new();
        for (job, last) in jobs.iter().zip(&mut last) {
            if owner(&schema, *job) == high.fence {
                let next = token(start(&second, high, *job));
                assert!(next > *last, "round {round}: handed over with {next} after {last}");
                *last = next;
                handed.push(job.id);
            }
        }
        assert_eq!(handed.len(), 8);
        end_all(&second, high, &mut jobs);
        second.give_back(high);
        assert!(first.renew(low, HOUR).unwrap());
        for (job, last) in jobs.iter().zip(&mut last) {
            let next = token(start(&first, low, *job));
            let is_back = handed.contains(&job.id);
            assert_eq!(next > *last, is_back, "round {round}: {next} after {last}");
            assert!(!is_back || next > high.fence);
            *last = next;
        }
        end_all(&first, low, &mut jobs);
    }
}

/// Another node moves it. It still runs alone.
#[test]
fn durable_07_an_interrupted_job_is_announced_as_such() {
    let Some(schema) = Schema::new() else { return };
    let (dies, stays) = (schema.open(), schema.open());
    let old = dies.acquire("dies", &kinds(), HOUR).unwrap().unwrap();
    let job = insert(&dies, 5);
    assert_eq!(attempts(start(&dies, old, job)), 1);
    dies.give_back(old);
    let (tell, told) = channel();
    stays.listen(HOUR, Box::new(move |news| drop(tell.send(news))));
    let new = stays.acquire("stays", &kinds(), HOUR).unwrap().unwrap();
    until("the other node has the job", || {
        stays.renew(new, HOUR).unwrap() && due(&stays, new) == 1
    });
    let (target, due) = (Target::Id(job.id), WallTime::from_unix_micros(6));
    dies.commit(&[Change::Move { target, due }]).unwrap();
    let placed = loop {
        if let News::Placed(jobs) = told.recv_timeout(SECOND * 60).unwrap() {
            break jobs;
        }
    };
    let found = placed.iter().map(|job| (job.due, job.is_interrupted));
    assert_eq!(found.collect::<Vec<_>>(), [(due, true)]);
}

/// The failed occurrence of a recurring job is a job of its own: a node finds it where its number
/// says.
#[test]
fn a_failed_occurrence_lies_in_the_shard_of_its_number() {
    let Some(schema) = Schema::new() else { return };
    let store = schema.open();
    let lease = store.acquire("node", &kinds(), HOUR).unwrap().unwrap();
    let (job, fence) = (insert(&store, 5), lease.fence);
    assert_eq!(attempts(start(&store, lease, job)), 1);
    let then = Then::Die {
        failure: "no".to_owned(),
        at: WallTime::from_unix_micros(6),
        next: Some(WallTime::from_unix_micros(7)),
    };
    let (DueJob { id, version, .. }, due) = (job, WallTime::from_unix_micros(8));
    let finish = Change::Finish { id, version, fence, recurrence: None, then };
    store.commit(&[finish]).unwrap();
    let id = store.list(Page::new(List::Dead, None, 9)).unwrap()[0].id;
    let revived = store.commit(&[Change::Revive { id, due }]).unwrap();
    let &[Answer::Placed(revived)] = &revived[..] else {
        panic!("{revived:?}");
    };
    let wrong = format!(
        "SELECT count(*) FROM {0}.jobs j JOIN {0}.shards s USING (shard) WHERE s.part <> j.number % 16",
        schema.name
    );
    let wrong: i64 = schema.client().query_one(&wrong, &[]).unwrap().get(0);
    assert_eq!(wrong, 0);
    assert_eq!(attempts(start(&store, lease, revived)), 1);
}

/// It waits for their row, and goes by what they have left in it.
#[test]
fn durable_11_an_update_knows_of_a_start_and_of_an_outcome_beside_it() {
    let Some(schema) = Schema::new() else { return };
    let (store, name) = (schema.open(), &schema.name);
    let (now, mut client) = (SystemClock.now(), schema.client());
    let update = |hours| {
        let job = note("job").every(HOUR * hours).at(now + HOUR * hours);
        Change::Insert(NewJob::new(job, now).unwrap())
    };
    let start = "attempts = 1, fence = 9";
    let finish = "attempts = 0, fence = 0, version = version + 1, due = due + 900000000000";
    store.commit(&[update(1)]).unwrap();
    for (hours, beside, attempts, due) in [(2, start, 1, HOUR), (3, finish, 0, HOUR * 3)] {
        let mut transaction = client.transaction().unwrap();
        transaction.batch_execute(&format!("UPDATE {name}.jobs SET {beside}")).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| store.commit(&[update(hours)]).unwrap());
            let waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '.apply%'";
            let mut looks = schema.client();
            until("a wait", || !looks.query(waits, &[name]).unwrap().is_empty());
            transaction.commit().unwrap();
        });
        let job = store.find("note", "note").unwrap().unwrap();
        let every = Recurrence::Every { period: HOUR * hours, first: now + HOUR * hours };
        assert_eq!((job.due, job.attempts, job.recurrence), (now + due, attempts, Some(every)));
    }
}

/// Somebody keeps the row of a job for longer than the store waits. The commit that was given up
/// must not happen after later ones.
#[test]
fn durable_08_a_commit_that_was_given_up_does_not_happen_later() {
    let Some(schema) = Schema::new() else { return };
    // Creates the tables, which may take longer than a commit.
    drop(schema.open());
    let options = schema.options().answers_within(SECOND);
    let store = options.connect(&schema.server).unwrap();
    let job = insert(&store, 5);
    let mut client = schema.client();
    let mut transaction = client.transaction().unwrap();
    let keep = format!("SELECT 1 FROM {}.jobs FOR UPDATE", schema.name);
    transaction.query(&keep, &[]).unwrap();
    let move_to =
        |due| Change::Move { target: job.id.into(), due: WallTime::from_unix_micros(due) };
    let given_up = store.commit(&[move_to(10)]);
    assert!(
        matches!(&given_up, Err(StoreError::Io(error)) if error.kind() == std::io::ErrorKind::TimedOut),
        "{given_up:?}"
    );
    until("a recovery", || store.recover().is_ok());
    transaction.commit().unwrap();
    let moved = store.commit(&[move_to(20)]).unwrap().remove(0);
    assert!(matches!(moved, Answer::Placed(job) if job.version == 2), "{moved:?}");
}

/// Sends a signal to a process of the server.
fn signal(signal: &str, process: i32) {
    let arguments = [signal, &process.to_string()];
    let sent = std::process::Command::new("kill").args(arguments).status();
    assert!(sent.unwrap().success(), "{signal}");
}

/// The server's process stops before it has read a commit, and goes on when that was given up.
#[test]
fn durable_08_a_commit_that_was_not_read_does_not_happen_later() {
    let Some(schema) = Schema::new() else { return };
    // Creates the tables, which may take longer than a commit.
    drop(schema.open());
    let options = schema.options().answers_within(SECOND);
    let store = options.connect(&schema.server).unwrap();
    let job = insert(&store, 5);
    let mut client = schema.client();
    let text = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%' || $1 || '.apply%' AND pid <> pg_backend_pid()";
    let process: i32 = client.query_one(text, &[&schema.name]).unwrap().get(0);
    let move_to =
        |due| Change::Move { target: job.id.into(), due: WallTime::from_unix_micros(due) };
    signal("-STOP", process);
    assert!(store.commit(&[move_to(10)]).is_err());
    let goes_on = thread::spawn(move || {
        thread::sleep(millis(500));
        signal("-CONT", process);
    });
    until("a recovery", || store.recover().is_ok());
    let moved = store.commit(&[move_to(20)]).unwrap().remove(0);
    assert!(matches!(moved, Answer::Placed(_)), "{moved:?}");
    goes_on.join().unwrap();
    let text = "SELECT 1 FROM pg_stat_activity WHERE pid = $1";
    until("the end of the process", || client.query(text, &[&process]).unwrap().is_empty());
    let job = store.get(job.id).unwrap().unwrap();
    assert_eq!((job.version, job.due.as_unix_micros()), (2, 20));
}

/// However many nodes there are, each has its share, and the last one has everything.
#[test]
fn nodes_come_and_go() {
    let Some(schema) = Schema::new() else { return };
    let names = ["a", "b", "c", "d", "e"];
    let mut nodes: Vec<(PostgresStore, Lease)> = Vec::new();
    let settle = |nodes: &[(PostgresStore, Lease)]| {
        for _ in 0..3 {
            for (store, lease) in nodes {
                assert!(store.renew(*lease, HOUR).unwrap());
            }
        }
        let shares: Vec<i64> = shares(&schema).into_values().collect();
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        assert_eq!(shares.iter().sum::<i64>(), 16);
        assert!(most - least <= 1, "{shares:?}");
    };
    for name in names {
        let store = schema.open();
        let lease = store.acquire(name, &kinds(), HOUR).unwrap().unwrap();
        nodes.push((store, lease));
        settle(&nodes);
    }
    while nodes.len() > 1 {
        let (store, lease) = nodes.remove(0);
        store.give_back(lease);
        settle(&nodes);
    }
}

/// Two nodes store a job with the same key at once.
#[test]
fn durable_06_a_key_is_unique_among_nodes() {
    let Some(schema) = Schema::new() else { return };
    let stores = [schema.open(), schema.open(), schema.open()];
    for round in 0..20 {
        let key = format!("key {round}");
        let insert = |store: &PostgresStore| {
            let job = note("job").key(&key, tickwheel_durable::IfTaken::Keep);
            let new = NewJob::new(job, WallTime::default()).unwrap();
            store.commit(&[Change::Insert(new)]).unwrap().remove(0)
        };
        let answers: Vec<Answer> = thread::scope(|scope| {
            let all: Vec<_> = stores.iter().map(|store| scope.spawn(|| insert(store))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let placed = answers.iter().filter(|answer| matches!(answer, Answer::Placed(_)));
        assert_eq!(placed.count(), 1, "{answers:?}");
    }
    assert_eq!(stores[0].count(List::Live).unwrap(), 20);
}

/// Has updates of the jobs of a schema that are due at 4 fail with this error.
fn damage(schema: &Schema, code: &str) {
    let damage = format!(
        "CREATE OR REPLACE FUNCTION {0}.damage() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         RAISE EXCEPTION 'invalid page' USING ERRCODE = '{code}'; END $$; \
         DROP TRIGGER IF EXISTS damage ON {0}.jobs; \
         CREATE TRIGGER damage BEFORE UPDATE ON {0}.jobs FOR EACH ROW WHEN (OLD.due = 4) \
         EXECUTE FUNCTION {0}.damage()",
        schema.name
    );
    schema.client().batch_execute(&damage).unwrap();
}

/// A page of the table cannot be read, or a DBA's trigger says so. The other jobs go on.
#[test]
fn durable_14_one_damaged_job_does_not_stop_the_others() {
    let Some(schema) = Schema::new() else { return };
    let store = schema.open();
    let lease = store.acquire("node", &kinds(), HOUR).unwrap().unwrap();
    let jobs: Vec<DueJob> = (0..9).map(|due| insert(&store, due)).collect();
    damage(&schema, "data_corrupted");
    let start =
        |job: &DueJob| Change::Start { id: job.id, version: job.version, fence: lease.fence };
    let starts: Vec<Change> = jobs.iter().map(start).collect();
    let answers = store.commit(&starts).unwrap();
    for (number, answer) in answers.iter().enumerate() {
        match answer {
            Answer::Damaged(how) => assert!(number == 4 && how.contains("invalid page"), "{how}"),
            answer => assert!(number != 4 && matches!(answer, Answer::Started { .. })),
        }
    }
    insert(&store, 10);
}

/// What is wrong is no fault of the jobs, and of a full disk only one error speaks.
#[test]
fn durable_14_an_error_of_the_server_is_none_of_the_jobs() {
    let Some(schema) = Schema::new() else { return };
    let store = schema.open();
    let lease = store.acquire("node", &kinds(), HOUR).unwrap().unwrap();
    let DueJob { id, version, .. } = insert(&store, 4);
    let start = Change::Start { id, version, fence: lease.fence };
    let commit = |code: &str| {
        damage(&schema, code);
        store.recover().unwrap();
        store.commit(std::slice::from_ref(&start))
    };
    for code in ["53200", "53400", "55P03", "57P01", "58000", "58030", "58P01", "40P01", "40001"] {
        let answers = commit(code);
        let is_away = |error: &StoreError| error.to_string().contains("invalid page");
        assert!(
            matches!(&answers, Err(error @ StoreError::Io(_)) if is_away(error)),
            "{code}: {answers:?}"
        );
    }
    assert!(matches!(commit("53100"), Err(StoreError::Full)));
    assert!(matches!(commit("25006"), Err(StoreError::Refused(_))));
    assert!(matches!(commit("XX001").unwrap()[..], [Answer::Damaged(_)]));
    assert!(matches!(commit("XX002").unwrap()[..], [Answer::Damaged(_)]));
}

/// Another node has the only place of its kind, for long. Of another kind, one job runs for as long, and
/// those beside it begin.
#[test]
fn durable_07_an_interrupted_job_without_room_keeps_no_others() {
    let Some(schema) = Schema::new() else { return };
    let (dies, stays) = (schema.open(), schema.open());
    let kind = || [Kind { most: Some(1), ..Kind::from("note") }];
    let old = dies.acquire("dies", &kind(), HOUR).unwrap().unwrap();
    // A node that comes gets the last half of the shards.
    let jobs: Vec<DueJob> = (1..=15).map(|due| insert(&dies, due)).collect();
    let (first, last) = (jobs[0], jobs[14]);
    let rest = jobs[1..14].iter().map(|job| Change::Cancel(Target::Id(job.id)));
    dies.commit(&rest.collect::<Vec<_>>()).unwrap();
    assert_eq!(attempts(start(&dies, old, last)), 1);
    dies.give_back(old);
    let lease = stays.acquire("stays", &kind(), HOUR).unwrap().unwrap();
    until("the jobs are here", || stays.renew(lease, HOUR).unwrap() && due(&stays, lease) == 2);
    assert_eq!(attempts(start(&stays, lease, first)), 1);

    let (ledger, (leave, left)) = (Ledger::default(), channel::<()>());
    let (begun, left) = (ledger.clone(), Mutex::new(left));
    let free = move |attempt: &Attempt| {
        let text = String::from_utf8_lossy(attempt.payload());
        begun.note("node", &text);
        if text == "long" {
            left.lock().unwrap().recv().unwrap();
        }
    };
    let node = ledger.builder("node").limit_on_all_nodes("note", 1).handler("free", free);
    let node = node.open(schema.open()).unwrap();
    let free = |text: String| node.schedule(Job::new("free", text)).unwrap();
    free("long".to_owned());
    until("it has the interrupted job", || {
        stays.renew(lease, HOUR).unwrap();
        due(&stays, lease) == 1 && ledger.of("node") == 1
    });
    for number in 0..20 {
        thread::sleep(millis(50));
        free(number.to_string());
        until("others begin", || ledger.of("node") == number + 2);
    }
    finish(&stays, lease, first);
    leave.send(()).unwrap();
    until("the interrupted job has run", || node.count(List::Live).unwrap() == 0);
}
