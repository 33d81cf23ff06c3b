//! B. muduo's TimerQueue: run_at, run_after, run_every and cancel. That callbacks run in the
//! loop's own thread when a loop drives the engine, `reactor` shows; that deadlines are
//! monotonic, `tanjp` in `g6`.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn b1_all_four_calls_are_safe_from_any_thread() {
    let (tasks, clock) = TaskEngine::builder().workers(2).start_virtual().unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let count = || {
        let runs = Arc::clone(&runs);
        move || _ = runs.fetch_add(1, Ordering::Relaxed)
    };
    let work = |seed| {
        let mut random = Rng::with_seed(seed);
        for _ in 0..250 {
            let delay = random.u32(..50) * MS;
            let at = tasks.run_at(tasks.now() + delay, count()).unwrap();
            let every = tasks.run_every(3 * MS, |_| ()).unwrap();
            tasks.run_after(delay, count()).unwrap();
            let cancelled = thread::scope(|scope| scope.spawn(|| tasks.cancel(at)).join());
            if cancelled.unwrap().is_cancelled() {
                count()();
            }
            tasks.cancel(every);
        }
    };
    thread::scope(|scope| {
        (1..=4).for_each(|seed| drop(scope.spawn(move || work(seed))));
        // Time moves on meanwhile, so that expiry races with all of this.
        (0..100).for_each(|_| clock.advance(MS));
    });
    clock.run_until(Time::from_secs(1));
    assert_eq!(runs.load(Ordering::Relaxed), 4 * 2 * 250);
    assert_eq!(tasks.ledger().live, 0);
}

#[test]
fn b2_one_shots_fire_once_and_repeats_after_a_period() {
    let (tasks, clock, log) = virtual_tasks();
    let at = Time::from_millis(20);
    tasks.run_at(at, log.saying("at")).unwrap();
    tasks.run_after(30 * MS, log.saying("after")).unwrap();
    tasks.run_every(25 * MS, log.ticks("every")).unwrap();
    clock.run_until(Time::from_millis(100));
    let expected = "at · every 25 · after · every 50 · every 75 · every 100";
    assert_eq!(log.take().join(" · "), expected);
}

#[test]
fn b3_a_cancelled_pending_timer_never_fires() {
    let (tasks, clock, log) = virtual_tasks();
    let one = tasks.run_after(5 * MS, log.saying("one")).unwrap();
    let every = tasks.run_every(5 * MS, log.ticks("every")).unwrap();
    clock.run_until(Time::from_millis(4));
    assert!(tasks.cancel(one).is_cancelled() && tasks.cancel(every).is_cancelled());
    clock.run_until(Time::from_secs(1));
    assert!(log.take().is_empty());
}

#[test]
fn b3_cancelling_fired_unknown_or_stale_ids_has_no_effect() {
    let ((tasks, clock, log), (others, _, _)) = (virtual_tasks(), virtual_tasks());
    let unknown = others.run_after(MS, || ()).unwrap();
    let fired = tasks.run_after(MS, log.saying("first")).unwrap();
    clock.run_until(Time::from_millis(1));
    let reusing = tasks.run_after(MS, log.saying("second")).unwrap();
    // An id reads TimerId(wheel.entry.sequence): the entry is the same one.
    let entry = |id: TimerId| format!("{id:?}").rsplit_once('.').unwrap().0.to_owned();
    assert_eq!(entry(fired), entry(reusing));
    let cancelled = [fired, fired, unknown].map(|id| tasks.cancel(id));
    assert_eq!(cancelled, [Cancel::Gone; 3]);
    clock.run_until(Time::from_millis(2));
    assert_eq!(log.take(), ["first", "second"]);
    assert_eq!((tasks.ledger().cancelled, others.ledger().live), (0, 1));
}

#[test]
fn b4_a_repeating_timer_may_cancel_itself_in_its_callback() {
    let (tasks, clock, log) = virtual_tasks();
    let (inner, mut ticks) = (tasks.clone(), log.ticks("every"));
    let third_time = move |firing: Firing| {
        if firing.number() == 3 {
            assert_eq!(inner.cancel(firing.id()), Cancel::Running);
        }
        ticks(firing);
    };
    tasks.run_every(2 * MS, third_time).unwrap();
    clock.run_until(Time::from_secs(1));
    assert_eq!(log.take(), ["every 2", "every 4", "every 6"]);
    assert_eq!((tasks.ledger().live, tasks.ledger().cancelled), (0, 1));
}

#[test]
fn b5_a_deadline_in_the_past_fires_soon_and_not_inline() {
    let (tasks, clock, log) = virtual_tasks();
    clock.advance(10 * SECOND);
    let past = Timer::at(Time::from_secs(3), log.ending("past"));
    tasks.run(past).unwrap();
    assert!(log.take().is_empty());
    settle(&clock);
    assert_eq!(log.take(), ["past Completed"]);
}

#[test]
fn b6_destroying_the_queue_runs_nothing() {
    let tasks = TaskEngine::builder().workers(1).start().unwrap();
    let (tell, told) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let say = |name| {
        let tell = tell.clone();
        move || tell.send(name).unwrap()
    };
    let (say_running, zero) = (say("running"), Duration::ZERO);
    let hold_the_worker = move || _ = (say_running(), released.recv());
    tasks.run_after(zero, hold_the_worker).unwrap();
    assert_eq!(told.recv(), Ok("running"));
    // One waits behind it for the worker, one for its time.
    tasks.run_after(zero, say("due")).unwrap();
    tasks.run_after(HOUR, say("pending")).unwrap();
    let queue = tasks.queue(0);
    wait_until(|| !queue.is_empty());
    drop((tasks, tell));
    release.send(()).unwrap();
    // The channel closes when the last of the closures has been dropped.
    assert_eq!(told.recv(), Err(mpsc::RecvError));
}

#[test]
fn b7_the_demonstration_prints_what_the_original_prints() {
    let (tasks, clock, log) = virtual_tasks();
    // The 20th print ends the loop; here, the task engine.
    let print = |what: &'static str| {
        let (tasks, log) = (tasks.clone(), log.clone());
        move || {
            let now = tasks.now().since(Time::START).as_secs_f64();
            log.say(format!("{what} {now}"));
            if log.lines.lock().unwrap().len() == 20 {
                tasks.shutdown();
            }
        }
    };
    let once = |seconds, what| {
        let delay = Duration::from_secs_f64(seconds);
        tasks.run_after(delay, print(what)).unwrap()
    };
    let every = |seconds, what| {
        let print = print(what);
        tasks.run_every(seconds * SECOND, move |_| print()).unwrap()
    };
    let cancel_after = |seconds, id| {
        let (canceller, delay) = (tasks.clone(), Duration::from_secs_f64(seconds));
        let cancel = move || _ = canceller.cancel(id);
        tasks.run_after(delay, cancel).unwrap();
    };

    print("main")();
    once(1.0, "once1");
    once(1.5, "once1.5");
    once(2.5, "once2.5");
    once(3.5, "once3.5");
    let once_4_5 = once(4.5, "once4.5");
    cancel_after(4.2, once_4_5);
    cancel_after(4.8, once_4_5);
    every(2, "every2");
    let every_3 = every(3, "every3");
    cancel_after(9.001, every_3);
    clock.run_until(Time::from_secs(100));

    // At 6 the two are due together: the one that was scheduled first is first.
    let expected = "main 0 · once1 1 · once1.5 1.5 · every2 2 · once2.5 2.5 · every3 3 · \
                    once3.5 3.5 · every2 4 · every2 6 · every3 6 · every2 8 · every3 9 · \
                    every2 10 · every2 12 · every2 14 · every2 16 · every2 18 · every2 20 · \
                    every2 22 · every2 24";
    assert_eq!(log.take().join(" · "), expected);
}

#[test]
fn b_better_repeats_keep_their_phase() {
    // The reader takes firings every 7 ms only; the period is 5 ms.
    let (engine, clock) = virtual_engine();
    engine.schedule(Timer::every(5 * MS, "beat")).unwrap();
    let mut fired = Vec::new();
    for _ in 0..100 {
        clock.advance(7 * MS);
        fired.extend(take(&engine, 0));
    }
    assert!(fired.into_iter().eq((1..=140).map(|k| (5 * k, "beat"))));
}

#[test]
fn b_better_a_timer_cancelled_in_the_same_batch_does_not_run() {
    let (tasks, clock, log) = virtual_tasks();
    let (inner, (tell, told)) = (tasks.clone(), mpsc::channel());
    let cancel_them = move || assert!(told.try_iter().all(|id| inner.cancel(id).is_cancelled()));
    tasks.run_after(5 * MS, cancel_them).unwrap();
    let once = tasks.run_after(5 * MS, log.saying("once")).unwrap();
    let every = tasks.run_every(5 * MS, log.ticks("every")).unwrap();
    [once, every].iter().for_each(|&id| tell.send(id).unwrap());
    tasks.run_after(5 * MS, log.saying("last")).unwrap();
    clock.run_until(Time::from_millis(100));
    assert_eq!(log.take(), ["last"]);
}

#[test]
fn b_better_equal_deadlines_are_first_in_first_out() {
    let (engine, clock) = virtual_engine();
    let schedule = |n: u64| engine.schedule(Timer::after(SECOND, n)).unwrap();
    // Freed in a random order, so that addresses say nothing of order.
    let mut before: Vec<_> = (0..500).map(schedule).collect();
    Rng::with_seed(11).shuffle(&mut before);
    assert!(before.into_iter().all(|id| engine.cancel(id).is_cancelled()));
    (0..500).for_each(|n| _ = schedule(n));
    clock.advance(SECOND);
    assert!(support::payloads(&engine).into_iter().eq(0..500));
}
