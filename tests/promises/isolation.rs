//! Promise 10: nobody is harmed by a task.

use super::*;

#[test]
fn promise_10_a_slow_task_harms_nobody_else() {
    let tasks = TaskEngine::builder().workers(2).start().unwrap();
    let told = told();
    let (release, slow) = told.hold(0);
    tasks.run_after(Duration::ZERO, slow).unwrap();
    assert_eq!(told.next(), 0);
    for n in 1..=200 {
        tasks.run_after(2 * MS, told.say(n)).unwrap();
    }
    (1..=200).for_each(|n| assert_eq!(told.next(), n));
    // The last of them has still to return.
    wait_until(|| tasks.ledger().live == 1);
    drop(release);
}

#[test]
fn promise_10_a_queue_without_workers_does_not_block_the_ticker() {
    let engine = Engine::builder().queues(2).start().unwrap();
    let stuck: Vec<_> = (0..10_000).map(|n| engine.after(MS, n)).collect();
    engine.put(Timer::after(20 * MS, 7).queue(1));
    // Nobody serves queue 0.
    let other = engine.queue(1).recv_timeout(PATIENCE).unwrap();
    assert_eq!(other.into_payload(), 7);
    // What is stuck is live, and can be cancelled; nothing was dropped.
    assert_eq!(engine.cancel(stuck[1]), Cancel::Cancelled(1));
    assert_eq!(engine.queue(0).take(9_999).count(), 9_999);
    assert_eq!(ends(&engine), [0, 10_000, 1, 0, 0]);
}

/// Panics when it is dropped, and throws another one less by that.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 && !thread::panicking() {
            std::panic::panic_any(Bomb(self.0 - 1));
        }
    }
}

#[test]
fn a_panic_is_counted_before_its_timer_has_ended() {
    struct Counts(TaskEngine, Sender<u64>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.1.send(self.0.snapshot().panics).unwrap();
        }
    }
    let (tasks, clock) = virtual_tasks();
    let (tell, told) = channel();
    let counts = Counts(tasks.clone(), tell);
    tasks.run(Timer::after(MS, move |_| assert!(counts.0.is_shut_down(), "on purpose"))).unwrap();
    clock.run_until(at(1));
    assert_eq!(told.recv(), Ok(1));
}

#[test]
fn promise_10_a_panic_is_caught_and_the_worker_goes_on() {
    let (tasks, clock) = virtual_tasks();
    let (dropped, told) = (told(), told());
    tasks.run_after(MS, || panic!("on purpose")).unwrap();
    // A task that panics twice counts once.
    for panics in [false, true] {
        let bomb = Bomb(1);
        let armed = move |_| assert!(!panics || size_of_val(&bomb) == 0, "on purpose");
        tasks.run(Timer::after(MS, armed)).unwrap();
    }
    // The payload of a panic panics as well.
    for bombs in 1..5 {
        let throw = move || std::panic::panic_any(Bomb(bombs));
        tasks.run_after(MS, throw).unwrap();
    }
    // What a panic throws is dropped.
    let held = Where(dropped.tell());
    let throw = move || std::panic::panic_any(held);
    tasks.run_after(MS, throw).unwrap();
    tasks.run_after(2 * MS, told.say("alive")).unwrap();
    clock.run_until(at(2));
    assert_eq!((told.all(), dropped.all().len()), (vec!["alive"], 1));
    assert_eq!(tasks.snapshot().panics, 8);
    assert_eq!(ends(&tasks)[0], 0);
    tasks.shutdown();
    tasks.join();
}

#[test]
fn promise_10_the_last_owner_drops_unread_reports() {
    let here = thread::current().id();
    for _ in 0..30 {
        for builder in [Engine::builder(), Engine::builder().portable_ticker()] {
            let (told, engine) = (told(), builder.start().unwrap());
            for _ in 0..3 {
                engine.put(Timer::every(MS, Where(told.tell())).times(1).reported());
            }
            engine.queue(0).take(3).for_each(drop);
            assert_eq!(engine.reports().len(), 3);
            drop(engine);
            assert_eq!([told.next(), told.next(), told.next()], [here; 3]);
        }
    }
    // Or whoever holds the last firing.
    let (told, engine) = (told(), Engine::builder().start().unwrap());
    engine.put(Timer::every(MS, Where(told.tell())).reported());
    let firing = engine.queue(0).recv().unwrap();
    assert!(engine.shutdown()[0].payload.is_none());
    drop(engine);
    let worker = thread::spawn(move || drop(firing));
    assert_eq!(told.next(), worker.thread().id());
}

#[test]
fn promise_10_the_ticker_drops_no_payload() {
    let told = told();
    let engine = Engine::builder().start().unwrap();
    for n in 0..100 {
        engine.after(n % 20 * MS, Where(told.tell()));
    }
    let queue = engine.queue(0);
    (0..60).for_each(|_| drop(queue.recv().unwrap()));
    drop(engine); // and the rest with this
    drop((queue, told.0));
    let here = thread::current().id();
    assert!(told.1.iter().eq([here; 100]));
}

#[test]
fn promise_10_lateness_until_the_work_begins_is_measured() {
    let slow = 800 * MS;
    let (tasks, clock) = virtual_tasks();
    let told = told();
    let (finish, task) = told.hold(());
    tasks.run_after(MS, task).unwrap();
    (0..100).for_each(|_| _ = tasks.run_after(MS, || ()).unwrap());
    clock.advance(MS);
    told.next();
    let seen = tasks.snapshot();
    assert_eq!((seen.held, seen.workers, seen.queued[0]), (1, 1, 100));
    clock.advance(slow);
    drop(finish);
    clock.run_until(tasks.now());

    let seen = tasks.snapshot();
    assert_eq!((seen.held, seen.ledger.completed), (0, 101));
    let latest = seen.lateness.quantile(1.0).unwrap();
    assert!(latest < MS, "the ticker was on time");
    let counts = [&seen.lateness_at_start, &seen.durations].map(stats::Histogram::count);
    assert_eq!(counts, [101, 101]);
    let waited = seen.lateness_at_start.quantile(0.5).unwrap();
    assert!(slow < waited && waited <= 2 * slow, "{waited:?}");
    let longest = seen.durations.quantile(1.0).unwrap();
    assert!(slow < longest && longest <= 2 * slow, "{longest:?}");
    assert!(seen.durations.quantile(0.5).unwrap() < MS);
}

#[test]
fn promise_10_work_is_measured_only_on_request_and_what_is_held_is_always_counted() {
    let counts = |seen: &stats::Snapshot| (seen.lateness_at_start.count(), seen.durations.count());
    for (measure, of_takes, of_tasks) in [(false, (0, 0), (0, 0)), (true, (3, 1), (2, 3))] {
        let builder = Engine::builder();
        let builder = if measure { builder.measure_work(true) } else { builder };
        let (engine, clock) = builder.start_virtual().unwrap();
        engine.after(Duration::ZERO, "first");
        clock.advance(Duration::ZERO);
        engine.queue(0).try_recv_many(&mut Vec::new(), 9).unwrap();
        engine.after(MS, "plain");
        engine.put(Timer::every(MS, "beat").times(1));
        clock.advance(MS);
        clock.advance(9 * MS);
        let held = take_all(&engine);
        assert_eq!(engine.snapshot().held, 1, "a plain payload is given away");
        clock.advance(30 * MS);
        drop(held);
        let seen = engine.snapshot();
        assert_eq!((seen.held, seen.workers), (0, 0));
        assert_eq!(counts(&seen), of_takes);

        // What is notified early is not late.
        let builder = TaskEngine::builder().measure_work(measure);
        let (tasks, clock) = builder.start_virtual().unwrap();
        (0..2).for_each(|_| _ = tasks.run_after(MS, || ()).unwrap());
        let notified = tasks.run(Timer::after(SECOND, |_| ()).notified()).unwrap();
        assert!(tasks.cancel(notified).is_cancelled());
        clock.run_until(at(1));
        assert_eq!(counts(&tasks.snapshot()), of_tasks);
    }
}

#[test]
fn promise_10_a_payload_may_use_the_engine_while_it_is_dropped() {
    /// Cancels another timer when it is dropped.
    struct Canceller(Option<(Engine<Canceller>, TimerId)>, Sender<()>);
    impl Drop for Canceller {
        fn drop(&mut self) {
            self.1.send(()).unwrap();
            if let Some((engine, other)) = self.0.take() {
                drop(engine.cancel(other));
            }
        }
    }
    let (engine, clock) = virtual_engine();
    let told = told();
    let victim = engine.after(SECOND, Canceller(None, told.tell()));
    let other = Some((engine.clone(), victim));
    let id = engine.every(MS, Canceller(other, told.tell()));
    clock.advance(MS);
    let expired = engine.next();
    assert!(engine.cancel(id).into_payload().is_none());
    drop(expired);
    assert_eq!(told.all().len(), 2);
    assert_eq!(engine.ledger().live, 0);
}
