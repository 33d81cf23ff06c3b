//! Promise 15 to those who own the clock: it steps from due tick to due tick, waits for
//! the workers that it is to expect, and for no call that waits for it.

use super::*;
use std::pin::pin;
use std::task::{Context, Waker};
use tickwheel::time::Timers;

#[test]
fn promise_15_run_until_steps_and_waits_for_the_workers() {
    let (engine, clock) = Engine::builder().queues(2).start_virtual().unwrap();
    let told = told();
    let worker = |index| {
        let (engine, tell, queue) = (engine.clone(), told.tell(), engine.queue(index));
        let (ready, is_ready) = channel();
        let worker = thread::spawn(move || {
            let _ = queue.recv_timeout(Duration::ZERO);
            ready.send(()).unwrap();
            for expired in queue {
                let now = engine.now();
                thread::sleep(2 * MS); // real time: slower than the clock
                let left: u32 = expired.into_payload();
                tell.send(now).unwrap();
                if left > 0 {
                    engine.put(Timer::after(SECOND, left - 1).queue(index));
                }
            }
        });
        is_ready.recv().unwrap();
        worker
    };
    let workers = [0, 1].map(worker);
    (0..2).for_each(|index| _ = engine.put(Timer::after(SECOND, 4).queue(index)));
    clock.run_until(Time::from_secs(4));
    assert_eq!(told.all(), [1, 1, 2, 2, 3, 3, 4, 4].map(Time::from_secs));
    clock.run_until(Time::from_secs(100));
    assert_eq!(told.all().len(), 2);
    engine.shutdown();
    let _ended = workers.map(|worker| worker.join().unwrap());
}

#[test]
fn promise_15_run_until_waits_for_workers_that_have_not_come() {
    let clock = VirtualClock::new();
    let [_first, engine] = [(); 2].map(|()| Engine::builder().queues(2).start_on(&clock).unwrap());
    let timer = |seconds| Timer::after(seconds * SECOND, ()).queue(1);
    (1..=3).for_each(|seconds| _ = engine.put(timer(seconds)));
    // The last number counts.
    [2, 1].iter().for_each(|&count| engine.queue(1).expect_workers(count));
    let owner = thread::spawn(move || clock.run_until(Time::from_secs(3)));
    // The clock stands still however long the worker is held. (A clock that does not
    // wait is found sooner.)
    thread::sleep(20 * MS);
    let too_soon = owner.is_finished() || engine.now() > Time::START;
    let (late, now) = (engine.queue(1), engine.clone());
    let late = thread::spawn(move || late.map(|_| now.now()).collect::<Vec<_>>());
    owner.join().unwrap();
    engine.shutdown();
    assert_eq!(late.join().unwrap(), [1, 2, 3].map(Time::from_secs));
    assert!(!too_soon, "the clock moved without a worker");
}

#[test]
fn promise_15_run_until_within_a_task_is_refused_and_advance_is_not() {
    let (tasks, clock) = virtual_tasks();
    let (clock, told) = (Arc::new(clock), told());
    let inner = Arc::clone(&clock);
    let task = told.of(move |_| {
        let run = AssertUnwindSafe(|| inner.run_until(at(9)));
        let complaint = *catch_unwind(run).unwrap_err().downcast::<String>().unwrap();
        inner.advance(9 * MS);
        (complaint, inner.now())
    });
    tasks.run(Timer::every(MS, task)).unwrap();
    clock.advance(MS);
    let (complaint, now) = told.next();
    assert!(complaint.contains("call `advance`"), "{complaint}");
    assert_eq!(now, at(10));
    told.next(); // another task has run
    tasks.shutdown();
}

#[test]
#[should_panic = "would wait for itself"]
fn promise_15_run_until_does_not_wait_for_a_handle_of_its_own_thread() {
    let (engine, clock) = virtual_engine();
    let [queue, other] = [(); 2].map(|()| engine.queue(0));
    engine.after(MS, ());
    clock.advance(MS);
    assert!(queue.recv_timeout(MS).is_ok() && other.recv_timeout(MS).is_err());
    drop(other);
    clock.run_until(Time::from_secs(1));
}

#[test]
fn promise_15_run_until_waits_for_no_worker_that_knows_of_the_end() {
    let (engine, clock) = virtual_engine::<()>();
    let queues = [(); 2].map(|()| engine.queue(0));
    engine.shutdown();
    assert_eq!(queues[0].recv().unwrap_err(), RecvError::ShutDown);
    assert_eq!(queues[1].recv_many(&mut Vec::new(), 9).unwrap_err(), RecvError::ShutDown);
    clock.run_until(Time::from_secs(1));
}

#[test]
fn promise_15_a_budget_that_one_engine_needs_each_time_leaves_some_to_the_next() {
    let clock = VirtualClock::new();
    let (start, name) = (|| Engine::builder().start_on(&clock).unwrap(), Arc::<str>::from("busy"));
    let busy = Engine::builder().name(Arc::clone(&name)).start_on(&clock).unwrap();
    let other = start();
    other.after(MS, 0);
    for _ in 0..3 {
        (0..10).for_each(|n| _ = busy.after(MS, n));
        let _more = clock.advance_within(MS, 10);
    }
    assert_eq!(other.queue(0).len(), 1);
    // When nothing is left to do, the first comes first again.
    clock.advance(MS);
    let _ = [&other, &busy].map(|engine| (engine.after(MS, 0), engine.after(MS, 0)));
    assert_eq!(clock.advance_within(MS, 2), Advance::More);
    assert_eq!((busy.queue(0).len(), other.queue(0).len()), (32, 1));
    clock.advance(MS);
    for (engine, answer) in [(busy, Advance::Done), (other, Advance::ShutDown)] {
        engine.shutdown();
        assert_eq!(clock.advance_within(MS, 100), answer);
    }
    // It keeps none that has ended.
    start();
    assert_eq!(Arc::strong_count(&name), 1);
}

/// A task schedules a payload at each second, which a worker takes half a second later, in
/// another engine with coarser ticks; and a future sleeps for three quarters of a second.
#[test]
fn promise_15_one_clock_moves_engines_tasks_and_sleeps_in_step() {
    let clock = VirtualClock::starting_at(Time::from_secs(10));
    let engine = Engine::builder().tick(7 * MS).start_on(&clock).unwrap();
    let tasks = TaskEngine::builder().start_on(&clock).unwrap();
    let timers = Timers::builder().start_on(&clock).unwrap();
    let told = told();

    let (tell, queue, now) = (told.tell(), engine.queue(0), clock.clone());
    queue.expect_workers(1);
    let worker = thread::spawn(move || {
        for _ in queue {
            tell.send((now.now(), "worker")).unwrap();
        }
    });
    let (tell, now, other) = (told.tell(), clock.clone(), engine.clone());
    let task = move |_| {
        tell.send((now.now(), "task")).unwrap();
        other.after(SECOND / 2, ());
    };
    tasks.run_every(SECOND, task).unwrap();
    let tell = told.tell();
    let mut program = pin!(async {
        loop {
            timers.sleep(750 * MS).await;
            tell.send((timers.now(), "sleep")).unwrap();
        }
    });
    let mut context = Context::from_waker(Waker::noop());
    clock.run_until_settled(at(13_000), || {
        assert!(engine.queue(0).is_empty() && tasks.queue(0).is_empty());
        assert!(program.as_mut().poll(&mut context).is_pending());
    });

    let mut seen = told.all();
    assert!(seen.is_sorted_by_key(|&(time, _)| time), "{seen:?}");
    seen.sort_unstable_by_key(|&(time, who)| (who, time));
    let millis = seen.iter().map(|&(time, _)| time.since(at(10_000)).as_millis());
    // 11,500 and 12,500 rounded up to ticks, at the end.
    let expected = [750, 1_500, 2_250, 3_000, 1_000, 2_000, 3_000, 1_501, 2_502];
    assert!(millis.eq(expected), "{seen:?}");
    engine.shutdown();
    worker.join().unwrap();
}

#[test]
fn promise_15_time_waits_for_work_that_one_engine_gets_from_another() {
    let clock = VirtualClock::new();
    let [first, second] = [(); 2].map(|()| TaskEngine::builder().start_on(&clock).unwrap());
    let (told, now, other) = (told(), clock.clone(), first.clone());
    // The sleeps are real time: the clock may go past the first engine, and go on.
    let task = told.of(move |_| {
        thread::sleep(20 * MS);
        now.now()
    });
    let id = first.run(Timer::after(100 * SECOND, task).notified()).unwrap();
    let cancels = move || {
        thread::sleep(20 * MS);
        other.cancel(id);
    };
    second.run_after(SECOND, cancels).unwrap();
    second.run_after(2 * SECOND, || ()).unwrap();
    clock.run_until(Time::from_secs(3));
    assert_eq!(told.all(), [Time::from_secs(1)]);
}

#[test]
fn promise_15_what_is_left_of_a_tick_holds_up_no_later_tick() {
    let clock = VirtualClock::new();
    let [busy, late] = [(); 2].map(|()| Engine::builder().shards(1).start_on(&clock).unwrap());
    let [first, second] = [70, 100].map(Time::from_millis);
    busy.put(Timer::at(first, ()));
    late.put(Timer::at(second, ()));
    let (mut passes, mut stops) = (0, Vec::new());
    clock.run_until_settled(Time::from_secs(1), || {
        stops.push(clock.now());
        if clock.now() == first {
            // After a thousand passes, time goes on. What came in the last one is left.
            passes += 1;
            let engine = if passes < 1_000 { &busy } else { &late };
            engine.put(Timer::at(first, ()));
        }
    });
    assert!(passes == 1_000 && stops.contains(&second), "{passes}");
}
