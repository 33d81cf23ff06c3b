//! Promises 2 and 10 beside a thread that files into the past for ever, or a
//! task that adds itself anew with no delay: both cost the others a share and no
//! more.

use super::*;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;
use tickwheel::wheel::Advance;
use tickwheel::{Builder, TaskEngine, Time, Timer};

/// How long a thread schedules at most: a test that needs all of it has failed.
const LIMIT: Duration = Duration::from_secs(8);

/// Runs `body` while another thread files into the past, for queue 1, and takes
/// what comes of that when it is too much: soon with one shard, which it shares
/// with everybody. Returns whether `body` ended first.
fn beside_a_hot_thread(engine: &Engine<u64>, shards: usize, body: impl FnOnce(&str)) -> bool {
    let place = std::sync::Mutex::new(None);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let hot = scope.spawn(|| {
            let (begun, queue) = (Instant::now(), engine.queue(1));
            let most = if shards == 1 { 1_000 } else { 100_000 };
            let mut pending = 0;
            let goes_on = || !stop.load(Relaxed) && begun.elapsed() < LIMIT;
            while goes_on() {
                for _ in 0..50 {
                    let past = Timer::at(Time::START, 0).queue(1);
                    let id = engine.schedule(past).unwrap();
                    if pending == 0 {
                        place.lock().unwrap().get_or_insert_with(|| shard_of(id));
                    }
                }
                pending += 50;
                while pending > most && goes_on() {
                    pending -= queue.try_iter().take(100).count();
                }
            }
            stop.load(Relaxed)
        });
        // It is at it.
        while engine.ledger().accepted < 1_000 {
            thread::yield_now();
        }
        let place = place.lock().unwrap().clone().unwrap();
        body(&place);
        stop.store(true, Relaxed);
        hot.join().unwrap()
    })
}

fn small(shards: usize) -> Builder<u64> {
    Engine::builder().shards(shards).queues(2)
}

/// Timers of 5 ms, one after the other, from enough threads to be in each shard;
/// where there are several, those in the hot one are not looked at. Each is
/// delivered, to whichever of the threads.
fn in_each_shard(engine: &Engine<u64>, shards: usize, hot: &str) {
    let one = || {
        let id = engine.schedule(Timer::after(5 * MS, 1)).unwrap();
        if shards > 1 && shard_of(id) == hot {
            let _ = engine.cancel(id);
            return;
        }
        let taken = engine.queue(0).recv_timeout(LIMIT);
        assert!(taken.is_ok(), "not delivered in {LIMIT:?}");
    };
    thread::scope(|scope| {
        (0..2 * shards).for_each(|_| _ = scope.spawn(|| (0..4).for_each(|_| one())));
    });
}

#[test]
fn promise_02_scheduling_into_the_past_delays_no_other() {
    for shards in [1, 4] {
        for builder in [small(shards), small(shards).portable_ticker()] {
            let engine = builder.start().unwrap();
            assert!(beside_a_hot_thread(&engine, shards, |hot| {
                in_each_shard(&engine, shards, hot)
            }));
        }
    }
}

#[test]
fn promise_02_nor_in_a_loop_that_drives_the_engine() {
    for (shards, budget) in [(1, 64), (4, 64), (4, usize::MAX)] {
        let (engine, driver) = small(shards).start_driven().unwrap();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let stop = &stop;
            scope.spawn(move || {
                // Each call ends.
                let begun = Instant::now();
                while !stop.load(Relaxed) && begun.elapsed() < 3 * LIMIT {
                    let _ = driver.process_due(budget);
                }
            });
            assert!(beside_a_hot_thread(&engine, shards, |hot| {
                in_each_shard(&engine, shards, hot)
            }));
            stop.store(true, Relaxed);
        });
    }
}

#[test]
fn promise_02_an_advance_ends_and_serves_what_was_due() {
    for shards in [1, 4] {
        let (engine, clock) = small(shards).start_virtual().unwrap();
        assert!(beside_a_hot_thread(&engine, shards, |_| {
            for _ in 0..3 {
                for ms in 1..=20 {
                    engine.schedule(Timer::after(ms * MS, 1)).unwrap();
                }
                clock.advance(20 * MS);
                assert_eq!(engine.queue(0).try_iter().count(), 20);
            }
        }));
    }
}

#[test]
fn promise_02_nobody_keeps_a_virtual_clock_from_getting_there() {
    let (engine, clock) = small(2).start_virtual().unwrap();
    assert!(beside_a_hot_thread(&engine, 2, |_| {
        for ms in 1..=5 {
            engine.schedule(Timer::after(ms * MS, 1)).unwrap();
        }
        clock.run_until(Time::from_millis(9));
    }));
    assert_eq!(clock.now(), Time::from_millis(9));
    assert_eq!(engine.queue(0).len(), 5);
}

/// How often a task adds itself anew before it gives up.
const PATIENCE: u64 = 100_000;

/// Runs `task` again and again with no delay, and counts.
fn again(tasks: &TaskEngine, count: &Arc<AtomicU64>) {
    let (inner, counted) = (tasks.clone(), Arc::clone(count));
    let task = move || {
        if counted.fetch_add(1, Relaxed) < PATIENCE {
            again(&inner, &counted);
        }
    };
    let _ = tasks.run_after(Duration::ZERO, task);
}

#[test]
fn promise_02_a_task_that_adds_itself_stops_no_virtual_clock() {
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let ran_at = Arc::new(AtomicU64::new(0));
    again(&tasks, &count);
    let (now, ran) = (tasks.clone(), Arc::clone(&ran_at));
    tasks
        .run_after(5 * MS, move || ran.store(now.now().as_nanos(), Relaxed))
        .unwrap();
    clock.run_until(Time::from_millis(9));
    assert_eq!(ran_at.load(Relaxed), 5_000_000);
    assert_eq!(clock.now(), Time::from_millis(9));
    // A thousand each at 0, 5 and 9 ms, where the first pass may find the task
    // there already.
    let count = count.load(Relaxed);
    assert!((3_000..=3_006).contains(&count), "ran {count} times");
    tasks.shutdown();
}

/// Adds a task with no delay that adds another, so many of them.
fn chain(tasks: &TaskEngine, ran: &Arc<AtomicU64>, more: u32) {
    let (inner, counted) = (tasks.clone(), Arc::clone(ran));
    let task = move || {
        counted.fetch_add(1, Relaxed);
        if more > 1 {
            chain(&inner, &counted, more - 1);
        }
    };
    tasks.run_after(Duration::ZERO, task).unwrap();
}

#[test]
fn promise_15_run_until_serves_tasks_added_at_its_last_tick() {
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    let ran = Arc::new(AtomicU64::new(0));
    let (inner, counted) = (tasks.clone(), Arc::clone(&ran));
    tasks
        .run_after(7 * MS, move || chain(&inner, &counted, 3))
        .unwrap();
    clock.run_until(Time::from_millis(7));
    assert_eq!(ran.load(Relaxed), 3);
    tasks.shutdown();
}

#[test]
fn promise_02_a_loop_runs_as_many_tasks_as_its_budget() {
    let (tasks, driver) = TaskEngine::builder().start_driven().unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let ran = || count.load(Relaxed);
    again(&tasks, &count);
    assert_eq!((driver.run_due(0), ran()), (Advance::More, 0));
    // Nor when it waits in the queue already.
    let _ = driver.process_due(9);
    for _ in 0..3 {
        assert_eq!((driver.run_due(0), ran()), (Advance::More, 0));
    }
    assert_eq!((driver.run_due(1), ran()), (Advance::More, 1));
    assert_eq!((driver.run_due(50), ran()), (Advance::More, 51));
    assert_eq!(driver.timeout(), Some(Duration::ZERO));
    tasks.shutdown();
    assert_eq!((driver.run_due(0), ran()), (Advance::ShutDown, 51));
    assert_eq!(driver.timeout(), None);
}

#[test]
fn promise_02_budgets_begin_with_each_shard_in_turn() {
    let shards = 4;
    let (engine, driver) = small(shards).start_driven().unwrap();
    let gate = std::sync::Barrier::new(2 * shards);
    let file = || {
        let past = || Timer::at(Time::START, 0);
        let ids = (0..100).map(|_| engine.schedule(past()).unwrap());
        let places: HashSet<String> = ids.map(shard_of).collect();
        gate.wait();
        places
    };
    let filed_in: HashSet<String> = thread::scope(|scope| {
        let filing: Vec<_> = (0..2 * shards).map(|_| scope.spawn(file)).collect();
        let filed = filing.into_iter().flat_map(|thread| thread.join().unwrap());
        filed.collect()
    });
    for _ in 0..shards {
        assert_eq!(driver.process_due(20), Advance::More);
    }
    let queue = engine.queue(0);
    let ready: HashSet<String> = queue
        .try_iter()
        .map(|expired| shard_of(expired.id()))
        .collect();
    assert_eq!(ready, filed_in);
    assert!(ready.len() > 1);
}

#[test]
fn promise_02_each_round_serves_every_shard() {
    let shards = 8;
    let (engine, clock) = small(shards).start_virtual().unwrap();
    // Threads that live at the same time are in shards of their own.
    let gate = std::sync::Barrier::new(shards);
    let file = || {
        let id = engine.schedule(Timer::after(MS, 1)).unwrap();
        gate.wait();
        shard_of(id)
    };
    let filed_in: HashSet<_> = thread::scope(|scope| {
        let filing: Vec<_> = (0..shards).map(|_| scope.spawn(file)).collect();
        let filed = filing.into_iter().map(|thread| thread.join().unwrap());
        filed.collect()
    });
    assert!(filed_in.len() > 1);
    clock.advance(MS);
    assert_eq!(engine.queue(0).len(), shards);
}
