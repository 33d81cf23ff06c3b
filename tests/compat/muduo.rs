//! muduo's TimerQueue: run_at, run_after, run_every and cancel.

use super::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use tickwheel::{Cancel, Firing, RecvError, TaskEngine, Timer};

fn virtual_tasks() -> (TaskEngine, VirtualClock<tickwheel::Task>) {
    TaskEngine::builder().start_virtual().unwrap()
}

/// What callbacks print, in the order in which they ran.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<String>>>);

impl Printed {
    fn print(&self, line: impl ToString) {
        self.0.lock().unwrap().push(line.to_string());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[test]
fn b1_all_four_calls_are_safe_from_any_thread() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 250;
    let (tasks, clock) = TaskEngine::builder().workers(2).start_virtual().unwrap();
    let (runs, cancelled) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    // Where each thread leaves ids for whichever thread comes by to cancel.
    let shared = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for seed in 1..=THREADS as u64 {
            let (tasks, runs, cancelled, shared) = (&tasks, &runs, &cancelled, &shared);
            scope.spawn(move || {
                let mut random = Rng::with_seed(seed);
                let one_shot = || {
                    let runs = Arc::clone(runs);
                    move || {
                        runs.fetch_add(1, Ordering::Relaxed);
                    }
                };
                for _ in 0..ROUNDS {
                    let delay = random.u32(..50) * MS;
                    let at = tasks.run_at(tasks.now() + delay, one_shot()).unwrap();
                    let after = tasks.run_after(delay, one_shot()).unwrap();
                    let every = tasks.run_every(3 * MS, |_| ()).unwrap();
                    let mine = [(at, 1), (after, 1), (every, 0)][random.usize(..3)];
                    let (theirs, one_shots) = {
                        let mut shared = shared.lock().unwrap();
                        shared.push(mine);
                        shared[random.usize(..shared.len())]
                    };
                    if let Cancel::Cancelled(_) = tasks.cancel(theirs) {
                        cancelled.fetch_add(one_shots, Ordering::Relaxed);
                    }
                    let _ = tasks.cancel(every);
                }
            });
        }
        // Time moves on meanwhile, so that expiry races with all of this.
        for _ in 0..100 {
            clock.advance(MS);
            thread::yield_now();
        }
    });
    clock.run_until(Time::from_millis(400));
    let ended = runs.load(Ordering::Relaxed) + cancelled.into_inner();
    assert_eq!(ended, 2 * THREADS * ROUNDS);
    let ledger = tasks.ledger();
    assert!(ledger.is_balanced());
    assert_eq!((ledger.accepted, ledger.live), (3_000, 0));
}

#[test]
fn b1_callbacks_may_make_all_four_calls_too() {
    let (tasks, clock) = virtual_tasks();
    let printed = Printed::default();
    let (inner, out) = (tasks.clone(), printed.clone());
    let callback = move || {
        let print = |line: &'static str| {
            let out = out.clone();
            move || out.print(line)
        };
        inner.run_at(Time::from_millis(7), print("at 7")).unwrap();
        inner.run_after(MS, print("after 1")).unwrap();
        let beat = print("every 2");
        let every = inner.run_every(2 * MS, move |_| beat()).unwrap();
        let canceller = inner.clone();
        let cancel = move || {
            let _ = canceller.cancel(every);
        };
        inner.run_at(Time::from_millis(9), cancel).unwrap();
    };
    tasks.run_after(4 * MS, callback).unwrap();
    clock.run_until(Time::from_millis(100));
    assert_eq!(
        printed.lines(),
        ["after 1", "every 2", "at 7", "every 2"],
        "at 5, 6, 7 and 8; cancelled at 9"
    );
}

#[test]
fn b2_one_shots_fire_once_and_repeats_after_a_period() {
    let (tasks, clock) = virtual_tasks();
    let (tell, told) = mpsc::channel();
    let (at, after) = (tell.clone(), tell.clone());
    tasks
        .run_at(Time::from_millis(20), move || at.send(("at", 20)).unwrap())
        .unwrap();
    tasks
        .run_after(30 * MS, move || after.send(("after", 30)).unwrap())
        .unwrap();
    let every = move |firing: Firing| tell.send(("every", firing.tick().0)).unwrap();
    tasks.run_every(25 * MS, every).unwrap();

    clock.run_until(Time::from_millis(19));
    assert_eq!(told.try_iter().count(), 0);
    clock.run_until(Time::from_millis(24));
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [("at", 20)]);
    clock.run_until(Time::from_millis(100));
    assert_eq!(
        told.try_iter().collect::<Vec<_>>(),
        [
            ("every", 25),
            ("after", 30),
            ("every", 50),
            ("every", 75),
            ("every", 100)
        ]
    );
}

#[test]
fn b3_a_cancelled_pending_timer_never_fires() {
    let (tasks, clock) = virtual_tasks();
    let printed = Printed::default();
    let (once, again) = (printed.clone(), printed.clone());
    let one = tasks.run_after(5 * MS, move || once.print("one")).unwrap();
    let every = tasks
        .run_every(5 * MS, move |_| again.print("every"))
        .unwrap();
    clock.run_until(Time::from_millis(4));
    assert!(matches!(tasks.cancel(one), Cancel::Cancelled(_)));
    assert!(matches!(tasks.cancel(every), Cancel::Cancelled(_)));
    clock.run_until(Time::from_millis(1_000));
    assert!(printed.lines().is_empty());
}

#[test]
fn b3_cancelling_fired_unknown_or_stale_ids_has_no_effect() {
    let (tasks, clock) = virtual_tasks();
    let (others, _) = virtual_tasks();
    let unknown = others.run_after(MS, || ()).unwrap();
    let printed = Printed::default();
    let first = printed.clone();
    let fired = tasks.run_after(MS, move || first.print("first")).unwrap();
    clock.run_until(Time::from_millis(1));

    let second = printed.clone();
    let reusing = tasks.run_after(MS, move || second.print("second")).unwrap();
    // An id reads TimerId(wheel.entry.sequence): the entry is the same one.
    let wheel_and_entry = |id: TimerId| {
        let id = format!("{id:?}");
        id.rsplit_once('.').unwrap().0.to_owned()
    };
    assert_eq!(wheel_and_entry(fired), wheel_and_entry(reusing));

    assert!(matches!(tasks.cancel(fired), Cancel::Gone));
    assert!(matches!(tasks.cancel(fired), Cancel::Gone));
    assert!(matches!(tasks.cancel(unknown), Cancel::Gone));
    let ledger = tasks.ledger();
    assert_eq!((ledger.live, ledger.cancelled), (1, 0));
    clock.run_until(Time::from_millis(2));
    assert_eq!(printed.lines(), ["first", "second"]);
    assert_eq!(others.ledger().live, 1);
}

#[test]
fn b4_a_repeating_timer_may_cancel_itself_in_its_callback() {
    let (tasks, clock) = virtual_tasks();
    let (printed, inner) = (Printed::default(), tasks.clone());
    let out = printed.clone();
    let third_time = move |firing: Firing| {
        out.print(firing.tick());
        if firing.number() == 3 {
            assert!(matches!(inner.cancel(firing.id()), Cancel::Running));
        }
    };
    tasks.run_every(2 * MS, third_time).unwrap();
    clock.run_until(Time::from_millis(1_000));
    assert_eq!(printed.lines(), ["2", "4", "6"], "it was re-armed");
    assert_eq!((tasks.ledger().live, tasks.ledger().cancelled), (0, 1));
    tasks.shutdown();
}

#[test]
fn b5_a_deadline_in_the_past_fires_soon_and_not_inline() {
    let (tasks, clock) = virtual_tasks();
    clock.advance(10 * SECOND);
    let (tell, told) = mpsc::channel();
    let say_where = move || tell.send(thread::current().id()).unwrap();
    tasks.run_at(Time::from_secs(3), say_where).unwrap();
    assert_eq!(told.try_recv(), Err(mpsc::TryRecvError::Empty));
    // Without any time going by.
    clock.run_until(clock.now());
    assert_ne!(told.try_recv().unwrap(), thread::current().id());

    // The same in real time, where the next wake-up would be an hour away.
    let tasks = TaskEngine::builder().start().unwrap();
    tasks.run_after(3_600 * SECOND, || ()).unwrap();
    thread::sleep(5 * MS);
    let (tell, told) = mpsc::channel();
    let held = Arc::new(Mutex::new(()));
    let holding = held.lock().unwrap();
    let lock = Arc::clone(&held);
    // Inline, this would wait for ever for what its own caller holds.
    let say_where = move || {
        drop(lock.lock());
        tell.send(thread::current().id()).unwrap();
    };
    tasks.run_at(Time::START, say_where).unwrap();
    drop(holding);
    assert_ne!(told.recv_timeout(PATIENCE).unwrap(), thread::current().id());
}

#[test]
fn b6_destroying_the_queue_runs_nothing() {
    let (tell, told) = mpsc::channel::<&str>();
    let (started, has_started) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let tasks = TaskEngine::builder().start().unwrap();
    let running = tell.clone();
    let hold_the_worker = move || {
        started.send(()).unwrap();
        released.recv().unwrap();
        running.send("running").unwrap();
    };
    tasks.run_after(Duration::ZERO, hold_the_worker).unwrap();
    has_started.recv().unwrap();
    // One waits behind the running task for the worker, the rest for time.
    let (due, soon, every) = (tell.clone(), tell.clone(), tell);
    tasks
        .run_after(Duration::ZERO, move || due.send("due").unwrap())
        .unwrap();
    tasks
        .run_after(30 * MS, move || soon.send("soon").unwrap())
        .unwrap();
    tasks
        .run_every(30 * MS, move |_| every.send("every").unwrap())
        .unwrap();
    let queue = tasks.engine().queue(0);
    wait_until(|| !queue.is_empty());
    drop(tasks);
    release.send(()).unwrap();
    // The channel closes when the last of the closures has been dropped.
    assert_eq!(told.recv_timeout(PATIENCE), Ok("running"));
    let next = told.recv_timeout(PATIENCE);
    assert_eq!(next, Err(mpsc::RecvTimeoutError::Disconnected));
    assert_eq!(queue.recv().unwrap_err(), RecvError::ShutDown);
}

#[test]
fn b7_the_demonstration_prints_what_the_original_prints() {
    let (tasks, clock) = virtual_tasks();
    let printed = Printed::default();
    // The 20th print ends the loop; here, the task engine.
    let print = |what: &'static str| {
        let (tasks, printed) = (tasks.clone(), printed.clone());
        move || {
            let now = tasks.now().since(Time::START).as_secs_f64();
            printed.print(format!("{what} {now}"));
            if printed.lines().len() == 20 {
                tasks.shutdown();
            }
        }
    };
    let once = |seconds: f64, what| {
        let delay = Duration::from_secs_f64(seconds);
        tasks.run_after(delay, print(what)).unwrap()
    };
    let every = |seconds, what| {
        let print = print(what);
        tasks.run_every(seconds * SECOND, move |_| print()).unwrap()
    };
    let cancel_after = |seconds: f64, id| {
        let canceller = tasks.clone();
        let cancel = move || {
            let _ = canceller.cancel(id);
        };
        let delay = Duration::from_secs_f64(seconds);
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
    assert_eq!(printed.lines().join(" · "), expected);
}

#[test]
fn b_better_repeats_keep_their_phase() {
    // The reader takes firings every 7 ms only; the period is 5 ms.
    let (engine, clock) = virtual_engine();
    engine.schedule(Timer::every(5 * MS, "beat")).unwrap();
    let mut due = Vec::new();
    for _ in 0..100 {
        clock.advance(7 * MS);
        due.extend(take(&engine, 0).into_iter().map(|(tick, _)| tick));
    }
    assert!(due.into_iter().eq((1..=140).map(|k| 5 * k)));
}

#[test]
fn b_better_a_timer_cancelled_in_the_same_batch_does_not_run() {
    let (tasks, clock) = virtual_tasks();
    let (inner, victims) = (tasks.clone(), Arc::new(Mutex::new(Vec::new())));
    let ids = Arc::clone(&victims);
    let cancel_the_others = move || {
        for &id in ids.lock().unwrap().iter() {
            assert!(matches!(inner.cancel(id), Cancel::Cancelled(_)));
        }
    };
    tasks.run_after(5 * MS, cancel_the_others).unwrap();
    let printed = Printed::default();
    let (once, every, last) = (printed.clone(), printed.clone(), printed.clone());
    let once = tasks.run_after(5 * MS, move || once.print("once")).unwrap();
    let every = tasks
        .run_every(5 * MS, move |_| every.print("every"))
        .unwrap();
    victims.lock().unwrap().extend([once, every]);
    tasks.run_after(5 * MS, move || last.print("last")).unwrap();
    clock.run_until(Time::from_millis(100));
    assert_eq!(printed.lines(), ["last"]);
    tasks.shutdown();

    // Where payloads are taken by hand, the same.
    let (engine, clock) = virtual_engine();
    engine.schedule(Timer::after(5 * MS, "canceller")).unwrap();
    let victim = engine.schedule(Timer::after(5 * MS, "victim")).unwrap();
    clock.advance(5 * MS);
    let first = engine.queue(0).recv().unwrap();
    assert_eq!(first.into_payload(), "canceller");
    assert_eq!(engine.cancel(victim), Cancel::Cancelled("victim"));
    assert!(take(&engine, 0).is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn b_better_deadlines_are_monotonic() {
    // A step of the wall clock cannot be staged here; but what could follow it
    // can be seen: no timer descriptor is on that clock.
    let tasks = TaskEngine::builder().start().unwrap();
    tasks.run_after(3_600 * SECOND, || ()).unwrap();
    let clocks = clocks_of_timer_descriptors();
    assert!(!clocks.is_empty());
    assert!(clocks.iter().all(|clock| [1, 7].contains(clock)));
}

#[test]
fn b_better_equal_deadlines_are_first_in_first_out() {
    let (tasks, clock) = virtual_tasks();
    let printed = Printed::default();
    let mut random = Rng::with_seed(11);
    let mut expected: HashMap<u64, Vec<String>> = HashMap::new();
    let mut payloads = Vec::new();
    for n in 0..500 {
        // Allocations of many sizes, so that addresses say nothing of order.
        payloads.push(vec![0u8; random.usize(..300)]);
        let due = 100 * (1 + random.u64(..3));
        let out = printed.clone();
        tasks
            .run_at(Time::from_millis(due), move || {
                out.print(format!("{due} {n}"))
            })
            .unwrap();
        expected.entry(due).or_default().push(format!("{due} {n}"));
    }
    clock.run_until(Time::from_millis(1_000));
    let expected: Vec<String> = [100, 200, 300]
        .iter()
        .flat_map(|due| expected.remove(due).unwrap())
        .collect();
    assert_eq!(printed.lines(), expected);
}
