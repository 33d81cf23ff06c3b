//! Promise 11: bounds, and nothing lost; and what bad input gets.

use super::*;
use std::sync::mpsc;
use std::thread;
use tickwheel::wheel::{Geometry, InvalidGeometry};
use tickwheel::{
    Cancel, Engine, Firing, MissedTicks, RecvError, Refusal, StartError, TaskEngine, Time, Timer,
};

#[test]
fn promise_11_live_timers_are_bounded() {
    let engine = Engine::builder().max_timers(1_000).start().unwrap();
    let accepted: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut accepted = 0;
                    for n in 0..2_000 {
                        match engine.schedule(Timer::after(3_600 * SECOND, n)) {
                            Ok(_) => accepted += 1,
                            Err(refused) => {
                                assert_eq!(refused.reason(), Refusal::Full);
                                assert_eq!(refused.into_payload(), n);
                            }
                        }
                    }
                    accepted
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(engine.ledger().live, accepted);
    assert!((900..=1_000).contains(&accepted), "{accepted}");
}

#[test]
fn promise_11_a_refused_task_comes_back() {
    let builder = TaskEngine::builder().max_timers(1);
    let (tasks, _clock) = builder.start_virtual().unwrap();
    let hour = 3_600 * SECOND;
    tasks.run_after(hour, || ()).unwrap();
    let (tell, told) = mpsc::channel();
    let say = |text: &'static str| {
        let tell = tell.clone();
        move || tell.send(text).unwrap()
    };
    let after = tasks.run_after(hour, say("after")).unwrap_err();
    let at = tasks.run_at(Time::MAX, say("at")).unwrap_err();
    assert_eq!(after.reason(), Refusal::Full);
    after.into_payload()();
    at.into_payload()();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), ["after", "at"]);

    let counted: fn(Firing) = |_| ();
    let every = tasks.run_every(hour, counted).unwrap_err().into_timer();
    assert_eq!(every, Timer::every(hour, counted));
    let run = || Timer::every(hour, counted).times(3).named("mine");
    let refused = tasks.run(run()).unwrap_err().into_timer();
    tasks.shutdown();
    let created = tasks.create(refused).unwrap_err();
    assert_eq!(created.reason(), Refusal::ShutDown);
    assert_eq!(created.into_timer(), run());
    // Reading the reason does not need the type of the closure.
    let reason = || -> Result<_, Refusal> { Ok(tasks.run_after(hour, say("late"))?) };
    assert_eq!(reason(), Err(Refusal::ShutDown));
}

#[test]
fn promise_11_a_bounded_queue_loses_nothing() {
    let (engine, clock) = Engine::builder().queue_bound(3).start_virtual().unwrap();
    let ids: Vec<_> = (0..10)
        .map(|n| engine.schedule(Timer::after(MS, n)).unwrap())
        .collect();
    clock.advance(MS);
    let queue = engine.queue(0);
    let mut handed: Vec<_> = (0..3).map(|_| queue.try_recv().unwrap()).collect();
    assert_eq!(queue.try_recv().unwrap_err(), RecvError::Empty);
    assert_eq!((queue.len(), engine.ledger().live), (7, 7));
    // The rest is live and cancellable.
    assert_eq!(engine.cancel(ids[3]), Cancel::Cancelled(3));
    assert_eq!(handed.pop().unwrap().into_payload(), 2);
    assert_eq!(queue.try_recv().unwrap().into_payload(), 4);
    drop(handed);
    let rest: Vec<_> = queue
        .try_iter()
        .map(|expired| expired.into_payload())
        .collect();
    assert_eq!(rest, [5, 6, 7, 8, 9]);
}

/// A payload of a drop that panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(thread::panicking(), "on purpose");
    }
}

#[test]
fn promise_11_a_payload_that_panics_frees_its_permit() {
    let builder = Engine::builder().shards(1).queue_bound(2);
    let (engine, clock) = builder.start_virtual().unwrap();
    let queue = engine.queue(0);
    let take = |timer: Timer<Bomb>| {
        engine.schedule(timer).unwrap();
        clock.advance(MS);
        queue.try_recv().expect("there is room")
    };
    let panics = |letting_go: &mut dyn FnMut()| {
        let letting_go = std::panic::AssertUnwindSafe(letting_go);
        assert!(std::panic::catch_unwind(letting_go).is_err());
    };
    for _ in 0..3 {
        panics(&mut || drop(take(Timer::after(MS, Bomb))));
        panics(&mut || drop(take(Timer::every(MS, Bomb).times(1))));
        panics(&mut || drop(take(Timer::every(MS, Bomb)).into_payload()));
        panics(&mut || {
            let cancelled = take(Timer::every(MS, Bomb));
            assert!(!engine.cancel(cancelled.id()).is_cancelled());
            drop(cancelled);
        });
    }
    // Not more than before, either.
    let two = [0, 1].map(|_| take(Timer::after(MS, Bomb)));
    engine.schedule(Timer::after(MS, Bomb)).unwrap();
    clock.advance(MS);
    assert!(queue.try_recv().is_err(), "the bound has moved");
    // The payloads are never dropped: they would panic.
    for expired in two {
        std::mem::forget(expired.into_payload());
    }
    for closed in engine.shutdown() {
        std::mem::forget(closed.payload);
    }
}

#[test]
fn promise_11_a_repeating_timer_is_one_entry_whatever_happens() {
    let builder = Engine::builder().shards(1).max_timers(1);
    let (engine, clock) = builder.start_virtual().unwrap();
    engine.schedule(Timer::every(MS, ())).unwrap();
    clock.advance(3_600 * SECOND);
    for tick in 1..=1_000 {
        assert_eq!((engine.queue(0).len(), engine.ledger().live), (1, 1));
        assert_eq!(engine.queue(0).recv().unwrap().tick().0, tick);
    }
}

#[test]
fn bad_input_is_refused_with_a_reason_and_changes_nothing() {
    let start = |builder: tickwheel::Builder<u32>| builder.start().unwrap_err();
    let builder = Engine::<u32>::builder;
    assert!(matches!(
        start(builder().tick(Duration::ZERO)),
        StartError::ZeroTick
    ));
    for size in [0, 1, 65_537] {
        let error = start(builder().wheel_size(size));
        assert!(matches!(error, StartError::Geometry(InvalidGeometry::Size(s)) if s == size));
        assert!(error.to_string().contains("2 to 65536"), "{error}");
        assert!(Geometry::new(size).is_err());
    }
    assert!(matches!(
        start(builder().max_levels(0)),
        StartError::Geometry(InvalidGeometry::NoLevels)
    ));
    assert!(matches!(start(builder().queues(0)), StartError::NoQueues));
    assert!(matches!(
        start(builder().queue_bound(0)),
        StartError::ZeroQueueBound
    ));
    assert!(matches!(start(builder().shards(0)), StartError::NoShards));
    let none = TaskEngine::builder().workers(0).start().unwrap_err();
    assert!(matches!(none, StartError::NoWorkers));

    let (engine, _clock) = virtual_engine();
    let refused = |timer: Timer<u32>, reason| {
        let error = engine.schedule(timer.clone()).unwrap_err();
        assert_eq!(error.reason(), reason);
        assert_eq!(error.into_timer(), timer);
    };
    refused(Timer::after(MS, 1).queue(2), Refusal::NoSuchQueue);
    refused(Timer::every(Duration::ZERO, 2), Refusal::ZeroPeriod);
    refused(Timer::after(MS, 3).times(2), Refusal::NotRepeating);
    let short = Timer::every(MS / 100 - Duration::from_nanos(1), 4);
    refused(short, Refusal::PeriodTooShort);
    assert!(engine.get_queue(2).is_none());
    assert_eq!(engine.ledger().accepted, 0);
    engine.shutdown();
    refused(Timer::at(Time::START, 4), Refusal::ShutDown);
    assert_eq!(engine.ledger().accepted, 0);
}

/// The settings that only a repeating timer can have, and the answer to each on
/// a one-shot: none is ignored, and nothing changes.
#[test]
fn a_one_shot_is_refused_with_anything_that_needs_a_period() {
    let (engine, clock) = virtual_engine();
    let once = || [Timer::after(SECOND, 1), Timer::at(Time::MAX, 1)];
    let mut misfits: Vec<Timer<u32>> = Vec::new();
    for policy in [MissedTicks::CatchUp, MissedTicks::Skip, MissedTicks::Delay] {
        misfits.extend(once().map(|timer| timer.missed(policy)));
    }
    for times in [0, 1, 2] {
        misfits.extend(once().map(|timer| timer.times(times)));
    }
    misfits.extend(once().map(|timer| timer.starting(5 * MS)));
    misfits.extend(once().map(|timer| timer.starting(Time::START)));
    for misfit in misfits {
        let scheduled = engine.schedule(misfit.clone()).unwrap_err();
        let created = engine.create(misfit.clone()).unwrap_err();
        for refused in [scheduled, created] {
            assert_eq!(refused.reason(), Refusal::NotRepeating, "{misfit:?}");
            for setter in ["starting", "times", "missed", "Timer::every"] {
                assert!(refused.to_string().contains(setter), "{refused}");
            }
            assert_eq!(refused.into_timer(), misfit);
        }
    }
    clock.advance(2 * SECOND);
    assert_eq!((engine.queue(0).len(), engine.ledger().accepted), (0, 0));
}

#[test]
fn a_timer_that_catches_up_is_refused_where_no_worker_could() {
    let (engine, _clock) = virtual_engine();
    let shortest = MS / 100;
    let too_short = shortest - Duration::from_nanos(1);
    let every = |period, policy| Timer::every(period, 1).missed(policy);
    engine.schedule(Timer::every(shortest, 1)).unwrap();
    for policy in [MissedTicks::Skip, MissedTicks::Delay] {
        engine
            .schedule(every(Duration::from_nanos(1), policy))
            .unwrap();
    }
    let asked = every(too_short, MissedTicks::CatchUp);
    for refused in [
        engine.schedule(asked.clone()).unwrap_err(),
        engine.create(asked.clone()).unwrap_err(),
    ] {
        assert_eq!(refused.reason(), Refusal::PeriodTooShort);
        assert!(
            refused.to_string().contains("MissedTicks::Skip"),
            "{refused}"
        );
        assert_eq!(refused.into_timer(), asked);
    }
    assert_eq!(engine.ledger().accepted, 3);
}

/// Of those that a policy spares the worker there is one a tick, however short
/// the period.
#[test]
fn a_timer_that_does_not_catch_up_fires_once_a_tick_at_most() {
    for policy in [MissedTicks::Skip, MissedTicks::Delay] {
        let (engine, clock) = virtual_engine();
        let beat = Timer::every(Duration::from_nanos(1), ()).missed(policy);
        engine.schedule(beat).unwrap();
        for _ in 0..20 {
            clock.advance(MS);
            let fired = engine.queue(0).try_iter().take(9).count();
            assert_eq!(fired, 1, "{policy:?}");
        }
    }
}

#[test]
fn who_is_refused_is_told_why() {
    let (engine, clock) = virtual_engine();
    let error = engine
        .schedule(Timer::every(Duration::ZERO, 1))
        .unwrap_err();
    assert!(error.to_string().contains("longer than zero"), "{error}");
    assert!(format!("{error:?}").contains("ZeroPeriod"), "{error:?}");
    let error = engine.queue(0).try_recv().unwrap_err();
    assert!(error.to_string().contains("nothing has expired"), "{error}");
    let beat = engine.schedule(Timer::every(MS, 1)).unwrap();
    clock.advance(MS);
    let running = engine.queue(0).try_recv().unwrap();
    let error = engine.reschedule(beat, MS).unwrap_err();
    assert!(error.to_string().contains("running"), "{error}");
    drop(running);
}

#[test]
fn what_is_printed_says_what_it_is() {
    let (engine, clock) = virtual_engine();
    engine.schedule(Timer::after(MS, 1)).unwrap();
    clock.advance(MS);
    let expired = engine.queue(0).try_recv().unwrap();
    let says = |printed: String, what: &str| assert!(printed.starts_with(what), "{printed}");
    says(format!("{:?}", engine.queue(1)), "Queue { index: 1");
    says(format!("{:?}", engine.reports()), "Reports");
    says(format!("{expired:?}"), "Expired { id: TimerId(");
    says(format!("{:?}", engine.now()), "Time(1ms)");
    says(format!("{}", engine.now()), "1ms");
    let (tasks, clock) = TaskEngine::builder().start_virtual().unwrap();
    says(format!("{tasks:?}"), "TaskEngine { engine");
    let (tell, told) = mpsc::channel();
    let task = move |firing: Firing| tell.send(format!("{firing:?}")).unwrap();
    tasks.run(Timer::after(MS, task)).unwrap();
    let far = tasks.run_after(SECOND, || ()).unwrap();
    clock.run_until(Time::START + MS);
    says(told.recv().unwrap(), "Firing { id: TimerId(");
    let left = tasks.shutdown();
    says(format!("{left:?}"), &format!("[Closed {{ id: {far:?}"));
    says(format!("{:?}", left[0].payload), "Some(Task {");
}

#[test]
#[should_panic(expected = "no queue 2: this engine has 2")]
fn a_queue_that_does_not_exist_is_named() {
    let (engine, _clock) = virtual_engine::<()>();
    let _ = engine.queue(2);
}

#[test]
fn queues_beyond_what_an_entry_can_name_work_like_the_others() {
    let (engine, clock) = Engine::builder().queues(600).start_virtual().unwrap();
    for queue in 0..600 {
        engine
            .schedule(Timer::after(MS, queue).queue(queue))
            .unwrap();
    }
    clock.advance(MS);
    for queue in 0..600 {
        assert_eq!(
            engine.queue(queue).try_recv().unwrap().into_payload(),
            queue
        );
    }
    assert!(engine.ledger().is_balanced());
}

#[test]
fn a_payload_may_use_the_engine_while_it_is_dropped() {
    /// Cancels another timer when it is dropped.
    struct Canceller(
        Option<(Engine<Canceller>, tickwheel::TimerId)>,
        mpsc::Sender<()>,
    );
    impl Drop for Canceller {
        fn drop(&mut self) {
            self.1.send(()).unwrap();
            if let Some((engine, other)) = self.0.take() {
                drop(engine.cancel(other));
            }
        }
    }
    let (tell, told) = mpsc::channel();
    let (engine, clock) = virtual_engine();
    let victim = engine
        .schedule(Timer::after(SECOND, Canceller(None, tell.clone())))
        .unwrap();
    let payload = Canceller(Some((engine.clone(), victim)), tell);
    let id = engine.schedule(Timer::every(MS, payload).times(2)).unwrap();
    clock.advance(MS);
    let expired = engine.queue(0).recv().unwrap();
    assert_eq!(engine.cancel(id).payload().map(drop), None);
    drop(expired);
    assert_eq!(told.try_iter().count(), 2);
    assert_eq!(engine.ledger().live, 0);
}
