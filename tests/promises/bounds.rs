//! Promise 11: bounds, and nothing lost.

use super::*;

#[test]
fn promise_11_live_timers_are_bounded() {
    let engine = Engine::builder().max_timers(1_000).start().unwrap();
    let submit = || {
        for n in 0..2_000 {
            if let Err(refused) = engine.schedule(Timer::after(HOUR, n)) {
                assert_eq!(refused.reason(), Refusal::Full);
                assert_eq!(refused.into_payload(), n);
            }
        }
    };
    thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(submit)));
    let [accepted, ..] = ends(&engine);
    assert!((900..=1_000).contains(&accepted), "{accepted}");
}

#[test]
fn promise_11_a_refused_task_comes_back() {
    let builder = TaskEngine::builder().max_timers(1);
    let (tasks, _clock) = builder.start_virtual().unwrap();
    tasks.run_after(HOUR, || ()).unwrap();
    let told = told();
    let after = tasks.run_after(HOUR, told.say("after")).unwrap_err();
    let at = tasks.run_at(Time::MAX, told.say("at")).unwrap_err();
    after.into_payload()();
    at.into_payload()();
    assert_eq!(told.all(), ["after", "at"]);
    let counted: fn(Firing) = |_| ();
    let every = tasks.run_every(HOUR, counted).unwrap_err().into_inner();
    assert_eq!(every, Timer::every(HOUR, counted));
    // Reading the reason does not need the type of the closure.
    let reason = || -> Result<_, Refusal> { Ok(tasks.run_after(HOUR, told.say("late"))?) };
    assert_eq!(reason(), Err(Refusal::Full));
}

#[test]
fn promise_11_a_bounded_queue_loses_nothing() {
    let bounded = Engine::builder().queue_bound(3);
    let (engine, clock) = bounded.start_virtual().unwrap();
    let ids: Vec<_> = (0..10).map(|n| engine.after(MS, n)).collect();
    clock.advance(MS);
    let queue = engine.queue(0);
    let mut handed: Vec<_> = (0..3).map(|_| engine.next()).collect();
    assert_eq!(queue.try_recv().unwrap_err(), RecvError::Empty);
    assert_eq!((queue.len(), engine.ledger().live), (7, 7));
    // The rest is live and cancellable.
    assert_eq!(engine.cancel(ids[3]), Cancel::Cancelled(3));
    assert_eq!(handed.pop().unwrap().into_payload(), 2);
    assert_eq!(engine.next().into_payload(), 4);
    drop(handed);
    let rest: Vec<_> = queue.try_iter().map(Expired::into_payload).collect();
    assert_eq!(rest, [5, 6, 7, 8, 9]);
}

/// Whatever happens, a step of the clock by a year included: nothing is fired for each
/// missed period at once.
#[test]
fn promise_11_a_repeating_timer_is_one_entry_whatever_happens() {
    let bounded = Engine::builder().shards(1).max_timers(3);
    let (engine, clock) = bounded.start_virtual().unwrap();
    for missed in [MissedTicks::CatchUp, MissedTicks::Skip, MissedTicks::Delay] {
        engine.put(Timer::every(MS, missed).missed(missed));
    }
    clock.advance(365 * 24 * HOUR);
    let queue = engine.queue(0);
    assert_eq!((queue.len(), engine.ledger().live), (3, 3));
    let mut ticks = Vec::new();
    for _ in 0..1_002 {
        assert_eq!(engine.ledger().live, 3);
        let fired = engine.next();
        if *fired.payload() == MissedTicks::CatchUp {
            ticks.push(fired.tick().0);
        }
    }
    // One firing each, and then only the policy that catches up goes on.
    assert!(ticks.into_iter().eq(1..=1_000));
    assert_eq!(queue.len(), 1);
}

#[test]
#[should_panic(expected = "no queue 2: this engine has 2")]
fn a_queue_that_does_not_exist_is_named() {
    let (engine, _clock) = virtual_engine::<()>();
    let _ = engine.queue(2);
}

#[test]
fn promise_11_queues_beyond_what_an_entry_can_name_work_like_the_others() {
    let (engine, clock) = Engine::builder().queues(600).start_virtual().unwrap();
    for queue in 0..600 {
        engine.put(Timer::after(MS, queue).queue(queue));
    }
    clock.advance(MS);
    for queue in 0..600 {
        assert_eq!(take(&engine, queue), [(1, queue)]);
    }
}

/// A payload whose drop panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(thread::panicking(), "on purpose");
    }
}

#[test]
fn promise_11_a_payload_that_panics_frees_its_permit() {
    let builder = Engine::builder().shards(1).queue_bound(1);
    let (engine, clock) = builder.start_virtual().unwrap();
    let take = |timer: Timer<Bomb>| {
        engine.put(timer);
        clock.advance(MS);
        engine.next()
    };
    for _ in 0..2 {
        assert!(panics(|| drop(take(Timer::after(MS, Bomb)))));
        assert!(panics(|| drop(take(Timer::every(MS, Bomb).times(1)))));
        assert!(panics(|| drop(take(Timer::every(MS, Bomb)).into_payload())));
    }
    // The bound has not moved. These payloads are never dropped: they would panic.
    let held = take(Timer::after(MS, Bomb));
    engine.after(Duration::ZERO, Bomb);
    clock.advance(MS);
    assert!(engine.queue(0).try_recv().is_err());
    std::mem::forget(held.into_payload());
    for closed in engine.shutdown() {
        std::mem::forget(closed.payload);
    }
}
