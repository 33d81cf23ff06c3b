//! Promises 10 and 13: nobody is harmed by a task, or woken without a reason.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use tickwheel::{CloseReason, Firing, TaskEngine, Timer};

#[test]
fn promise_10_a_slow_task_harms_nobody_else() {
    let tasks = TaskEngine::builder().workers(2).start().unwrap();
    let (tell, told) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    tasks
        .run_after(MS, move || {
            let _ = released.recv();
        })
        .unwrap();
    for n in 0..200 {
        let tell = tell.clone();
        tasks
            .run_after(2 * MS, move || tell.send(n).unwrap())
            .unwrap();
    }
    for n in 0..200 {
        assert_eq!(told.recv_timeout(20 * SECOND), Ok(n));
    }
    drop(release);
}

#[test]
fn promise_10_a_full_queue_does_not_block_the_ticker() {
    let engine = Engine::builder().queues(2).queue_bound(1).start().unwrap();
    for n in 0..10_000 {
        engine.schedule(Timer::after(MS, n)).unwrap();
    }
    engine.schedule(Timer::after(20 * MS, 7).queue(1)).unwrap();
    // Nobody serves queue 0.
    let other = engine.queue(1).recv_timeout(20 * SECOND).unwrap();
    assert_eq!(other.into_payload(), 7);
}

#[test]
fn promise_10_a_panic_is_caught_and_the_worker_goes_on() {
    struct PanicsOnDrop;
    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            if !thread::panicking() {
                panic!("on purpose, in a drop");
            }
        }
    }
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    let (tell, told) = mpsc::channel();
    tasks.run_after(MS, || panic!("on purpose")).unwrap();
    let bomb = PanicsOnDrop;
    let armed = move |_| {
        let _ = &bomb;
    };
    tasks.run(Timer::after(MS, armed)).unwrap();
    tasks
        .run_after(2 * MS, move || tell.send("alive").unwrap())
        .unwrap();
    clock.run_until(tasks.now() + 2 * MS);
    assert_eq!(told.try_recv(), Ok("alive"));
    assert_eq!(tasks.engine().snapshot().panics, 2);
    assert!(tasks.ledger().is_balanced());
}

/// Panics when it is dropped, and throws another one less by that.
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            std::panic::panic_any(Bomb(self.0 - 1));
        }
    }
}

#[test]
fn promise_10_a_panic_whose_payload_panics_ends_no_worker() {
    let tasks = TaskEngine::builder().start().unwrap();
    let (tell, told) = mpsc::channel();
    for bombs in 1..5 {
        let throw = move || std::panic::panic_any(Bomb(bombs));
        tasks.run_after(MS, throw).unwrap();
    }
    let alive = tell.clone();
    let last = move || alive.send("alive").unwrap();
    tasks.run_after(2 * MS, last).unwrap();
    assert_eq!(told.recv_timeout(20 * SECOND), Ok("alive"));
    assert_eq!(tasks.engine().snapshot().panics, 4);
    tasks.shutdown();
    thread::spawn(move || {
        tasks.join();
        tell.send("joined").unwrap();
    });
    assert_eq!(told.recv_timeout(20 * SECOND), Ok("joined"));
}

/// Says which thread drops it.
struct Where(mpsc::Sender<thread::ThreadId>);

impl Drop for Where {
    fn drop(&mut self) {
        let _ = self.0.send(thread::current().id());
    }
}

/// Leaves so many reports with a payload unread, and returns what each of these
/// says of the thread that drops it when the last handle goes.
fn drops_of_unread_reports(
    builder: tickwheel::Builder<Where>,
    count: usize,
) -> Vec<thread::ThreadId> {
    let (tell, told) = mpsc::channel();
    let engine = builder.start().unwrap();
    for _ in 0..count {
        let last = Timer::every(MS, Where(tell.clone())).times(1);
        engine.schedule(last.reported()).unwrap();
    }
    drop(tell);
    let queue = engine.queue(0);
    (0..count).for_each(|_| drop(queue.recv().unwrap()));
    assert_eq!(engine.reports().len(), count);
    drop(queue);
    drop(engine);
    told.iter().collect()
}

#[test]
fn promise_10_the_ticker_drops_no_unread_report() {
    let here = thread::current().id();
    for _ in 0..30 {
        let timerfd = drops_of_unread_reports(Engine::builder(), 3);
        assert_eq!(timerfd, [here; 3]);
        let portable = Engine::builder().portable_ticker();
        assert_eq!(drops_of_unread_reports(portable, 3), [here; 3]);
    }
}

/// More than anybody takes out of a shard at a time.
#[test]
fn promise_10_the_last_owner_drops_every_unread_report() {
    let here = thread::current().id();
    for _ in 0..30 {
        let reports = drops_of_unread_reports(Engine::builder().shards(1), 100);
        assert_eq!(reports, [here; 100]);
    }
}

/// Panics when it is dropped, after it has said that it was.
struct Loud(mpsc::Sender<thread::ThreadId>);

impl Drop for Loud {
    fn drop(&mut self) {
        let _ = self.0.send(thread::current().id());
        if !thread::panicking() {
            panic!("as it is dropped");
        }
    }
}

#[test]
fn promise_10_a_payload_that_panics_keeps_no_other_unread() {
    let here = thread::current().id();
    for _ in 0..30 {
        let (tell, told) = mpsc::channel();
        let engine = Engine::builder().shards(1).start().unwrap();
        for _ in 0..100 {
            let last = Timer::every(MS, Loud(tell.clone())).times(1);
            engine.schedule(last.reported()).unwrap();
        }
        drop(tell);
        engine.queue(0).take(100).for_each(drop);
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(engine)));
        assert!(dropped.is_err(), "the first panic is passed on");
        assert_eq!(told.iter().collect::<Vec<_>>(), [here; 100]);
    }
}

#[test]
fn promise_10_what_a_panic_throws_is_dropped() {
    let tasks = TaskEngine::builder().start().unwrap();
    let (tell, told) = mpsc::channel();
    let throw = move || std::panic::panic_any(Where(tell));
    tasks.run_after(MS, throw).unwrap();
    assert!(told.recv_timeout(20 * SECOND).is_ok(), "it was kept");
    tasks.shutdown();
}

#[test]
fn promise_10_the_last_owner_drops_unread_reports() {
    let (tell, told) = mpsc::channel();
    let engine = Engine::builder().start().unwrap();
    let beat = Timer::every(MS, Where(tell)).reported();
    engine.schedule(beat).unwrap();
    let firing = engine.queue(0).recv().unwrap();
    assert!(engine.shutdown()[0].payload.is_none());
    drop(engine);
    let worker = thread::spawn(move || drop(firing));
    let last = worker.thread().id();
    worker.join().unwrap();
    assert_eq!(told.iter().collect::<Vec<_>>(), [last]);
}

#[test]
fn promise_10_the_ticker_drops_no_payload() {
    let (tell, told) = mpsc::channel();
    let engine = Engine::builder().start().unwrap();
    for n in 0..100 {
        engine
            .schedule(Timer::after((n % 20) * MS, Where(tell.clone())))
            .unwrap();
    }
    let queue = engine.queue(0);
    for _ in 0..60 {
        drop(queue.recv().unwrap());
    }
    drop(engine); // and the rest with this
    drop((queue, tell));
    let here = thread::current().id();
    assert_eq!(told.iter().filter(|&thread| thread == here).count(), 100);
}

#[test]
fn promise_13_idle_is_free() {
    let engine = Engine::builder().start().unwrap();
    thread::sleep(50 * MS);
    let idle = engine.snapshot().wakeups;
    thread::sleep(300 * MS);
    assert_eq!(engine.snapshot().wakeups, idle, "woken without a timer");

    let far = engine.schedule(Timer::after(3_600 * SECOND, 0)).unwrap();
    thread::sleep(300 * MS);
    assert_eq!(
        engine.snapshot().wakeups,
        idle,
        "woken for a timer an hour away"
    );

    // A later timer wakes nothing, and neither does cancelling.
    for n in 0..1_000 {
        let id = engine
            .schedule(Timer::after((3_700 + n) * SECOND, n))
            .unwrap();
        engine.cancel(id).payload().unwrap();
    }
    thread::sleep(50 * MS);
    assert_eq!(engine.snapshot().wakeups, idle);

    // At most one wake-up per armed instant whose timer was cancelled.
    let near = engine.schedule(Timer::after(100 * MS, 1)).unwrap();
    engine.cancel(near).payload().unwrap();
    thread::sleep(300 * MS);
    assert!(
        engine.snapshot().wakeups - idle <= 2,
        "{}",
        engine.snapshot().wakeups - idle
    );
    assert_eq!(engine.cancel(far).payload(), Some(0));

    // What comes due wakes it, and is counted.
    let before = engine.snapshot().wakeups;
    engine.schedule(Timer::after(20 * MS, 2)).unwrap();
    assert_eq!(engine.queue(0).recv().unwrap().into_payload(), 2);
    assert!(engine.snapshot().wakeups > before);
}

#[test]
fn promise_13_notifying_a_cancelled_task_wakes_no_ticker() {
    let timers = TaskEngine::builder().start().unwrap();
    let (tell, told) = mpsc::channel();
    let task = move |firing: Firing| tell.send(firing.outcome()).unwrap();
    let far = timers
        .run(Timer::after(3_600 * SECOND, task).notified())
        .unwrap();
    thread::sleep(50 * MS);
    let idle = timers.engine().snapshot().wakeups;
    timers.cancel(far).payload().unwrap();
    assert_eq!(told.recv().unwrap(), CloseReason::Cancelled);
    thread::sleep(50 * MS);
    assert_eq!(timers.engine().snapshot().wakeups, idle);
}

/// The journey in ARCHITECTURE.md: the alarm is set for the deadline, and not for
/// the slot's turn.
#[test]
fn promise_13_a_timer_alone_costs_one_wakeup() {
    let engine = Engine::builder().start().unwrap();
    thread::sleep(20 * MS);
    let before = engine.snapshot().wakeups;
    // Beyond the first level's 64 ticks, and in no slot's first tick.
    let now = engine.now().as_nanos() / 1_000_000;
    let deadline = tickwheel::Time::from_millis((now / 64 + 3) * 64 + 32);
    engine.schedule(Timer::at(deadline, "alone")).unwrap();
    let expired = engine.queue(0).recv_timeout(20 * SECOND).unwrap();
    assert_eq!(expired.into_payload(), "alone");
    assert_eq!(engine.snapshot().wakeups - before, 1);
}

#[test]
fn promise_13_a_far_timer_costs_at_most_one_wakeup_per_level() {
    let engine = Engine::builder()
        .tick(Duration::from_micros(50))
        .start()
        .unwrap();
    thread::sleep(20 * MS);
    let before = engine.snapshot().wakeups;
    // Has the shard look, once, at what else there is.
    engine.schedule(Timer::after(MS, "near")).unwrap();
    // 6,000 ticks: three levels of 64.
    engine.schedule(Timer::after(300 * MS, "far")).unwrap();
    let queue = engine.queue(0);
    for name in ["near", "far"] {
        let expired = queue.recv_timeout(20 * SECOND).unwrap();
        assert_eq!(expired.into_payload(), name);
    }
    let woken = engine.snapshot().wakeups - before;
    assert!(woken <= 5, "{woken} wake-ups");
}

#[test]
fn promise_10_lateness_until_the_work_begins_is_measured() {
    const OTHERS: u32 = 100;
    let slow = 800 * MS;
    let (timers, clock) = TaskEngine::builder().start_virtual().unwrap();
    let ((started, is_started), (finish, may_finish)) = (mpsc::channel(), mpsc::channel::<()>());
    let task = move || {
        started.send(()).unwrap();
        may_finish.recv().unwrap();
    };
    timers.run_after(MS, task).unwrap();
    for _ in 0..OTHERS {
        timers.run_after(MS, || ()).unwrap();
    }
    clock.advance(MS);
    is_started.recv().unwrap();
    let seen = timers.engine().snapshot();
    assert_eq!((seen.held, seen.workers, seen.queued[0]), (1, 1, 100));
    clock.advance(slow);
    finish.send(()).unwrap();
    clock.run_until(timers.now());

    let seen = timers.engine().snapshot();
    assert_eq!(
        (seen.held, seen.ledger.completed),
        (0, u64::from(OTHERS) + 1)
    );
    assert!(
        seen.lateness.quantile(1.0).unwrap() < MS,
        "the ticker was on time"
    );
    let at_start = seen.lateness_at_start;
    assert_eq!(at_start.count(), u64::from(OTHERS) + 1);
    let waited = at_start.quantile(0.5).unwrap();
    assert!(slow < waited && waited <= 2 * slow, "{waited:?}");
    let longest = seen.durations.quantile(1.0).unwrap();
    assert!(slow < longest && longest <= 2 * slow, "{longest:?}");
    assert!(seen.durations.quantile(0.5).unwrap() < MS);
    assert_eq!(seen.durations.count(), u64::from(OTHERS) + 1);
}

#[test]
fn promise_10_work_is_measured_only_on_request_and_what_is_held_is_always_counted() {
    for measure in [false, true] {
        let builder = Engine::builder().measure_work(measure);
        let (engine, clock) = builder.start_virtual().unwrap();
        engine.schedule(Timer::after(MS, "plain")).unwrap();
        engine.schedule(Timer::every(MS, "beat").times(1)).unwrap();
        let queue = engine.queue(0);
        clock.advance(MS);
        clock.advance(9 * MS);
        let held: Vec<_> = queue.try_iter().collect();
        assert_eq!(engine.snapshot().held, 1, "a plain payload is given away");
        clock.advance(30 * MS);
        drop(held);
        let seen = engine.snapshot();
        assert_eq!((seen.held, seen.workers), (0, 0));
        let counts = (seen.lateness_at_start.count(), seen.durations.count());
        assert_eq!(counts, if measure { (2, 1) } else { (0, 0) });
    }
}
