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
    let (tasks, clock) = builder.start_virtual().unwrap();
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
    // A task that has run makes room.
    clock.run_until(Time::START + HOUR);
    assert!(reason().is_ok());
}

#[test]
fn promise_11_what_waits_for_a_worker_counts_and_is_not_lost() {
    let bounded = Engine::builder().shards(1).max_timers(10);
    let (engine, clock) = bounded.start_virtual().unwrap();
    let ids: Vec<_> = (0..10).map(|n| engine.after(MS, n)).collect();
    clock.advance(MS);
    let queue = engine.queue(0);
    assert_eq!((queue.len(), engine.ledger().live), (10, 10));
    let refused = engine.schedule(Timer::after(MS, 10)).unwrap_err();
    assert_eq!(refused.reason(), Refusal::Full);
    // What waits can be cancelled. That makes room, and so does each take.
    assert_eq!(engine.cancel(ids[3]), Cancel::Cancelled(3));
    assert_eq!(engine.next().into_payload(), 0);
    let _ = [10, 11].map(|n| engine.after(MS, n));
    assert!(engine.schedule(Timer::after(MS, 12)).is_err());
    clock.advance(MS);
    let rest: Vec<_> = queue.try_iter().map(Expired::into_payload).collect();
    assert_eq!(rest, [1, 2, 4, 5, 6, 7, 8, 9, 10, 11]);
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
    let ids = (0..600).map(|queue| engine.put(Timer::after(MS, queue).queue(queue)));
    let ids: Vec<_> = ids.collect();
    clock.advance(MS);
    // What is taken out of its queue again comes back to it.
    ids.iter().skip(1).step_by(2).for_each(|&id| engine.reschedule(id, MS).unwrap());
    clock.advance(MS);
    for queue in 0..600 {
        assert_eq!(engine.queue(queue).clone().len(), 1);
        assert_eq!(take(&engine, queue), [(1 + queue as u64 % 2, queue)]);
    }
}
