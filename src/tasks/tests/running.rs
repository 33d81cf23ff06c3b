//! Calls on a one-shot task while it runs. A task without a record answers as one with a
//! record does.

use super::*;
use crate::CloseReason;
use crate::timeline::Time;

/// What a task does while it runs. It writes the answers down.
type Act = fn(&TaskEngine, &Firing) -> Vec<String>;

/// Runs a one-shot that does `act`, with or without a record. Returns the answers, and
/// the ledger afterwards.
fn answers(act: Act, make: impl Fn(Timer<()>) -> Timer<()>) -> (Vec<String>, Ledger) {
    let Here { timers, driver } = Here::new(8);
    let (log, inner) = (Arc::new(Mutex::new(Vec::new())), timers.clone());
    let written = Arc::clone(&log);
    let task = move |firing: Firing| {
        let answers = act(&inner, &firing);
        written.lock().unwrap().extend(answers);
    };
    let timer = make(Timer::at(Time::START, ()));
    timers.run(timer.map(|()| task)).unwrap();
    while timers.ledger().live > 0 {
        let _ = driver.process_due(1);
    }
    let mut log = log.lock().unwrap().clone();
    let snapshot = timers.snapshot();
    log.push(said(snapshot.durations.count()));
    (log, snapshot.ledger)
}

#[track_caller]
fn assert_same(act: Act) {
    let plain = answers(act, |timer| timer);
    assert!(!plain.0.is_empty());
    assert_eq!(plain, answers(act, |timer| timer.named("recorded")));
    assert_eq!(plain, answers(act, Timer::reported));
}

fn said(answer: impl std::fmt::Debug) -> String {
    format!("{answer:?}")
}

/// Returns the answers to the calls that change nothing.
fn questions(timers: &TaskEngine, firing: &Firing) -> Vec<String> {
    let (engine, id) = (&timers, firing.id());
    let found = timers.find(id);
    vec![
        said(timers.deadline(id)),
        said(found.map(|it| (it.tick, it.queue))),
        said(engine.earliest_deadline()),
        said(engine.live().count()),
        said((firing.number(), firing.remaining(), firing.tick())),
        said((firing.is_cancelled(), firing.outcome())),
        said(timers.ledger()),
        said(engine.snapshot().held),
    ]
}

#[test]
fn questions_are_answered_while_a_task_runs() {
    assert_same(questions);
}

#[test]
fn a_running_task_is_cancelled_once() {
    assert_same(|timers, firing| {
        let id = firing.id();
        let mut log = vec![said(timers.reschedule(id, LATER)), said(timers.cancel(id))];
        log.extend(questions(timers, firing));
        log.push(said(timers.reschedule(id, LATER)));
        log.push(said(timers.cancel(id)));
        log.push(said(timers.cancel_and_wait(id)));
        log.push(said(firing.rearm(LATER)));
        log
    });
}

#[test]
fn a_running_task_is_cancelled_with_all() {
    assert_same(|timers, firing| {
        let cancelled = timers.cancel_all().into_iter();
        let mut log: Vec<_> = cancelled.map(|(_, answer)| said(answer)).collect();
        log.extend(questions(timers, firing));
        log
    });
}

#[test]
fn a_running_task_is_re_armed() {
    assert_same(|timers, firing| {
        let rearmed = match firing.number() {
            1 => said(firing.rearm(Time::START)),
            _ => said(()),
        };
        let mut log = vec![rearmed];
        log.extend(questions(timers, firing));
        log
    });
}

#[test]
fn a_running_task_that_was_re_armed_is_cancelled() {
    assert_same(|timers, firing| {
        let mut log = vec![
            said(firing.rearm(Time::START)),
            said(timers.cancel(firing.id())),
            said(firing.rearm(Time::START)),
        ];
        log.extend(questions(timers, firing));
        log
    });
}

#[test]
fn a_running_task_is_left_alone_by_a_shutdown() {
    assert_same(|timers, firing| {
        let mut log = vec![said(timers.shutdown().len())];
        log.extend(questions(timers, firing));
        log.push(said(timers.cancel(firing.id())));
        log
    });
    assert_same(|timers, firing| {
        let closed = timers.shutdown().len();
        vec![said((closed, firing.rearm(Time::START)))]
    });
}

#[test]
fn a_task_that_a_shutdown_tells_of_its_end_has_no_name_meanwhile() {
    let Here { timers, driver } = Here::new(8);
    let inner = timers.clone();
    let task = move |firing: Firing| match firing.outcome() {
        CloseReason::Completed => {
            assert_eq!(inner.shutdown().len(), 1);
            assert_eq!(inner.find_by_name("beat").count(), 0);
        }
        _ => add(&RUNS),
    };
    RUNS.set(0);
    let beat = Timer::every(LATER, task).starting(NOW);
    timers.run(beat.named("beat").notified()).unwrap();
    while driver.process_due(1) == Advance::More {}
    assert_eq!((RUNS.get(), timers.snapshot().panics), (1, 0));
}

#[test]
fn a_drain_does_not_wait_for_a_running_task() {
    assert_same(|timers, firing| {
        let mut log = vec![said(timers.drain(LATER).len())];
        log.extend(questions(timers, firing));
        log
    });
}

#[test]
fn a_panic_of_a_task_whose_timer_was_ended_does_not_fail_it() {
    let ends: [fn(&TaskEngine, TimerId); 2] = [
        |timers, id| assert_eq!(timers.cancel(id), Cancel::Running),
        |timers, _| assert_eq!(timers.shutdown().len(), 1),
    ];
    for (end, expected) in ends.into_iter().zip([[1, 0, 0], [0, 1, 0]]) {
        let Here { timers, driver } = Here::new(8);
        let inner = timers.clone();
        let task = move |firing: Firing| {
            end(&inner, firing.id());
            panic!("on purpose");
        };
        timers.run(Timer::every(LATER, task).starting(NOW)).unwrap();
        let _ = driver.process_due(9);
        let Ledger { cancelled, shut_down, failed, .. } = timers.ledger();
        assert_eq!([cancelled, shut_down, failed], expected);
    }
}
