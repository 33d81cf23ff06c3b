//! Promises 2 and 10 beside a thread that files into the past for ever, or a
//! task that adds itself anew with no delay: both cost the others a share and no
//! more.

use super::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// How long a thread schedules at most: a test that needs all of it has failed.
const LIMIT: Duration = Duration::from_secs(8);

fn small(shards: usize) -> Builder<Engine<u64>> {
    Engine::builder().shards(shards).queues(2)
}

/// Runs `body` while another thread files into the past, for queue 1, and takes what comes
/// of that when it is too much. Asserts that `body` ends first.
fn beside_a_hot_thread(engine: &Engine<u64>, body: impl FnOnce()) {
    let (stop, begun) = (AtomicBool::new(false), Instant::now());
    let goes_on = || !stop.load(Relaxed) && begun.elapsed() < LIMIT;
    thread::scope(|scope| {
        let hot = scope.spawn(|| {
            let (queue, mut pending) = (engine.queue(1), 0);
            while goes_on() {
                (0..50).for_each(|_| _ = engine.put(Timer::at(Time::START, 0).queue(1)));
                pending += 50;
                while pending > 1_000 && goes_on() {
                    pending -= queue.try_iter().take(100).count();
                }
            }
            assert!(stop.load(Relaxed), "not delivered in {LIMIT:?}");
        });
        wait_until(|| engine.ledger().accepted > 1_000); // it is at it
        body();
        stop.store(true, Relaxed);
        hot.join().unwrap();
    })
}

/// Timers of 5 ms, one after the other, from enough threads to be in each shard. Each is
/// delivered, to whichever of the threads.
fn in_each_shard(engine: &Engine<u64>) {
    let one = |_| {
        engine.after(5 * MS, 1);
        let taken = engine.queue(0).recv_timeout(LIMIT);
        assert!(taken.is_ok(), "not delivered in {LIMIT:?}");
    };
    thread::scope(|scope| (0..8).for_each(|_| _ = scope.spawn(|| (0..4).for_each(one))));
}

#[test]
fn promise_02_scheduling_into_the_past_delays_no_other() {
    for shards in [1, 4] {
        for builder in [small(shards), small(shards).portable_ticker()] {
            let engine = builder.start().unwrap();
            beside_a_hot_thread(&engine, || in_each_shard(&engine));
        }
    }
}

#[test]
fn promise_02_nor_in_a_loop_that_drives_the_engine() {
    for (shards, budget) in [(1, 64), (4, 64), (4, usize::MAX)] {
        let (engine, driver) = small(shards).start_driven().unwrap();
        let (stop, begun) = (AtomicBool::new(false), Instant::now());
        thread::scope(|scope| {
            scope.spawn(|| {
                // Each call ends.
                while !stop.load(Relaxed) && begun.elapsed() < 3 * LIMIT {
                    let _ = driver.process_due(budget);
                }
            });
            beside_a_hot_thread(&engine, || in_each_shard(&engine));
            stop.store(true, Relaxed);
        });
    }
}

#[test]
fn promise_02_an_advance_ends_and_serves_what_was_due() {
    for shards in [1, 4] {
        let (engine, clock) = small(shards).start_virtual().unwrap();
        beside_a_hot_thread(&engine, || {
            (1..=20).for_each(|ms| _ = engine.after(ms * MS, 1));
            clock.advance(10 * MS);
            assert_eq!(engine.queue(0).len(), 10);
            clock.run_until(at(90));
            assert_eq!((clock.now(), engine.queue(0).len()), (at(90), 20));
        });
    }
}

/// Runs a task again and again with no delay, and counts; it gives up in the end.
fn again(tasks: &TaskEngine, count: &Arc<AtomicU64>) {
    let (inner, counted) = (tasks.clone(), Arc::clone(count));
    let task = move || {
        if counted.fetch_add(1, Relaxed) < 100_000 {
            again(&inner, &counted);
        }
    };
    let _ = tasks.run_after(Duration::ZERO, task);
}

#[test]
fn promise_02_a_task_that_adds_itself_stops_no_virtual_clock() {
    let (tasks, clock) = virtual_tasks();
    let (count, told) = (Arc::default(), told());
    again(&tasks, &count);
    let (now, tell) = (tasks.clone(), told.tell());
    let ran = move || tell.send(now.now()).unwrap();
    tasks.run_after(5 * MS, ran).unwrap();
    clock.run_until(at(9));
    assert_eq!((told.all(), clock.now()), (vec![at(5)], at(9)));
    // A thousand each at 0, 5 and 9 ms, where the first pass may find the task
    // there already.
    let count = count.load(Relaxed);
    assert!((3_000..=3_006).contains(&count), "ran {count} times");
    tasks.shutdown();

    let (tasks, clock) = virtual_tasks();
    let rearmed = |firing: Firing| firing.rearm(Duration::ZERO).unwrap();
    tasks.run(Timer::after(Duration::ZERO, rearmed)).unwrap();
    clock.run_until(at(2));
    assert_eq!(tasks.shutdown().len(), 1);
}

#[test]
fn promise_02_a_loop_runs_as_many_tasks_as_its_budget() {
    let (tasks, driver) = driven_tasks();
    let count = Arc::default();
    again(&tasks, &count);
    let run = |budget| (driver.process_due(budget), count.load(Relaxed));
    (0..3).for_each(|_| assert_eq!(run(0), (Advance::More, 0)));
    assert_eq!(run(1), (Advance::More, 1));
    assert_eq!(run(50), (Advance::More, 51));
    assert_eq!(driver.timeout(), Some(Duration::ZERO));
    tasks.shutdown();
    assert_eq!(run(0), (Advance::ShutDown, 51));
    assert_eq!(driver.timeout(), None);
    // Nor does it make many more ready than it runs.
    let (tasks, driver) = driven_tasks();
    (0..99).for_each(|_| _ = tasks.run_after(Duration::ZERO, || ()).unwrap());
    assert_eq!(driver.process_due(1), Advance::More);
    assert!(tasks.queue(0).len() < 20);
}

#[test]
fn promise_02_each_budget_hands_out_what_it_made_ready() {
    let (engine, driver) = Engine::builder().shards(1).start_driven().unwrap();
    let past = |n| _ = engine.put(Timer::at(Time::START, n));
    (0..100).for_each(past);
    let process = |budget| (driver.process_due(budget), payloads(&engine));
    assert_eq!(process(0), (Advance::More, vec![]));
    assert_eq!(process(1), (Advance::More, vec![0]));
    assert_eq!(process(39), (Advance::More, (1..40).collect()));
    assert_eq!(process(usize::MAX), (Advance::Done, (40..100).collect()));
    // A budget is spent on due timers only: one timer that needs one step, or two.
    for budget in [3, 40] {
        past(7);
        assert_eq!(process(budget), (Advance::Done, vec![7]), "{budget}");
    }
}

#[test]
fn promise_02_a_virtual_clock_moves_timers_within_its_budget() {
    let (engine, clock) = virtual_engine();
    (0..10).for_each(|n| _ = engine.after(5 * MS, n));
    let next = |by| (clock.advance_within(by, 4), engine.queue(0).len());
    assert_eq!(next(4 * MS), (Advance::Done, 0));
    assert_eq!(next(3 * MS), (Advance::More, 4));
    assert_eq!(clock.now(), at(7), "however much is left");
    assert_eq!(next(Duration::ZERO), (Advance::More, 8));
    assert_eq!(next(Duration::ZERO), (Advance::Done, 10));
    assert!(payloads(&engine).into_iter().eq(0..10));
    // One that comes back without a delay prolongs no advance.
    for n in 0..5 {
        engine.after(Duration::ZERO, n);
        assert_eq!(clock.advance_within(Duration::ZERO, 9), Advance::Done);
        assert_eq!(payloads(&engine), [n]);
    }
    engine.shutdown();
    assert_eq!(next(MS), (Advance::ShutDown, 0));
}

/// Fills some shards, each from several threads that live at the same time and so are in
/// shards of their own. Returns the shards.
fn fill_shards(engine: &Engine<u64>, shards: usize, each: usize) -> HashSet<String> {
    let gate = Barrier::new(2 * shards);
    let file = || {
        let ids = (0..each).map(|_| engine.put(Timer::at(at(1), 0)));
        let places: HashSet<String> = ids.map(shard_of).collect();
        gate.wait();
        places
    };
    let filled: HashSet<String> = thread::scope(|scope| {
        let filing: Vec<_> = (0..2 * shards).map(|_| scope.spawn(file)).collect();
        filing.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(filled.len() > 1);
    filled
}

#[test]
fn promise_02_budgets_begin_with_each_shard_in_turn() {
    let (engine, driver) = small(4).start_driven().unwrap();
    let filled = fill_shards(&engine, 4, 100);
    thread::sleep(2 * MS);
    (0..4).for_each(|_| assert_eq!(driver.process_due(20), Advance::More));
    let ready = take_all(&engine).into_iter();
    let ready: HashSet<_> = ready.map(|expired| shard_of(expired.id())).collect();
    assert_eq!(ready, filled);
}

#[test]
fn promise_02_each_round_serves_every_shard() {
    let (engine, clock) = small(8).start_virtual().unwrap();
    fill_shards(&engine, 8, 1);
    clock.advance(MS);
    assert_eq!(engine.queue(0).len(), 16);
}

#[test]
fn promise_02_a_crowded_shard_keeps_no_other_waiting() {
    let (engine, clock) = small(2).start_virtual().unwrap();
    let crowd: Vec<_> = (0..1_000).map(|_| engine.after(MS, 0)).collect();
    elsewhere(&engine, crowd[0], || 0, &|| _ = engine.after(2 * MS, 1));
    // The crowd is due first, and its bell is rung first.
    clock.advance(MS);
    clock.advance(MS);
    let place = payloads(&engine).iter().position(|&n| n == 1).unwrap();
    assert!(place < 200, "{place} were taken ahead of it");
}
